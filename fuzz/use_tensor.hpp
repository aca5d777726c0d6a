#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <vector>

#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/elements.hpp"
#include "hurray/statistics_of.hpp"
#include "hurray/to_dense.hpp"

namespace fuzz {

inline void require(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u does not hold\n", at.file_name(), unsigned{at.line()});
  std::abort();
}

/// An error says something.
bool explained(const auto& result) {
  if (!result) require(!to_string(result.error()).empty());
  return result.has_value();
}

/// Everything that can be asked of a tensor's elements: answers agree with one another, and
/// whatever the bytes are, nothing but an error comes of them. Whole-tensor results only up to
/// `most` elements of the shape.
inline void use(const hurray::Tensor& tensor, std::uint64_t most = 4096) {
  using namespace hurray;
  const Descriptor& d = tensor.descriptor();
  const bool sound = explained(check_data(tensor));
  const auto elements = Elements::over(tensor);
  if (explained(elements)) {
    require(!opaque(d) && !d.shape.is_dynamic());
    std::uint64_t left = most;
    std::vector<std::byte> bytes(static_cast<std::size_t>(touched_bytes(elements->width(), 0)));
    std::vector<std::uint64_t> back(elements->index_size());
    const auto walked =
        elements->for_each([&](std::span<const std::uint64_t> index, std::int64_t slot) {
          require(elements->place(slot).has_value());
          require(elements->load(slot, bytes).has_value());
          const auto found = elements->slot(index);
          require(found.has_value());
          // Unsorted or repeated coordinates may lead elsewhere; sound ones lead here.
          if (sound) require(*found == slot);
          if (elements->index_of(slot, back) && sound) require(std::ranges::equal(back, index));
          return --left != 0;
        });
    explained(walked);
  }
  if (d.shape.is_dynamic() || d.shape.count() > most) return;
  const auto dense = to_dense(tensor);
  if (explained(dense)) {
    require(dense->descriptor().shape == d.shape && dense->descriptor().dtype == d.dtype);
    require(validate(dense->descriptor()).has_value());
  }
  const auto values = dequantize(tensor);
  if (explained(values)) require(values->descriptor().dtype == DType::float32);
  const auto statistics = statistics_of(tensor);
  if (explained(statistics)) {
    Descriptor with = d;
    with.set_statistics(*statistics);
    require(validate(with, {.permissive = true}).has_value());
  }
}

}  // namespace fuzz
