#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "hurray/dequantize.hpp"
#include "hurray/elements.hpp"
#include "hurray/to_dense.hpp"
#include "manifest.hpp"

/// The values of tensors in the words of the conformance manifest.
namespace hurray::conformance {

template <class Float>
Json shown_float(Float value) {
  return std::isnan(value) ? Json("nan") : Json(hex(value));
}

/// The element in `slot`, none for one that is not stored, as `kind` writes it.
inline Json shown_element(const Elements& elements, std::optional<std::int64_t> slot,
                          std::string_view kind) {
  const DType dtype = elements.tensor().descriptor().dtype;
  if (kind == "bits") {
    Bytes raw(static_cast<std::size_t>(touched_bytes(elements.width(), 0)));
    if (slot && !elements.load(*slot, raw)) return "not loaded";
    std::reverse(raw.begin(), raw.end());
    const std::string digits = hex(raw);
    return digits.substr(digits.size() - (elements.width() + 3) / 4);
  }
  Code code;
  if (slot) {
    const auto loaded = elements.load(*slot);
    if (!loaded) return to_string(loaded.error());
    code = *loaded;
  }
  if (kind == "int") {
    if (dtype == DType::uint64) return shown(code.low);
    return shown(to_integer(dtype, code));
  }
  if (kind == "float32")
    return shown_float(decode_float(dtype, static_cast<std::uint32_t>(code.low)));
  if (kind == "float64") return shown_float(std::bit_cast<double>(code.low));
  Json pair = Json::array();
  for (const Code half : complex_halves(dtype, code))
    pair.push_back(kind == "complex64"
                       ? shown_float(std::bit_cast<float>(static_cast<std::uint32_t>(half.low)))
                       : shown_float(std::bit_cast<double>(half.low)));
  return pair;
}

/// Calls `each(index)` for every index below `sizes`, row by row.
template <class Each>
void for_each_index(std::span<const std::uint64_t> sizes, Each each) {
  std::vector<std::uint64_t> index(sizes.size());
  for (const std::uint64_t n : sizes)
    if (n == 0) return;
  for (;;) {
    each(std::span<const std::uint64_t>(index));
    std::size_t k = sizes.size();
    while (k-- > 0) {
      if (++index[k] < sizes[k]) break;
      index[k] = 0;
    }
    if (k == static_cast<std::size_t>(-1)) return;
  }
}

/// Calls `each(index)` for every element that the manifest lists, in its order.
template <class Each>
void for_each_listed(const Descriptor& d, std::span<const std::uint64_t> tokens, Each each) {
  if (!std::holds_alternative<BlockPaged>(d.layout)) {
    for_each_index(d.shape, each);
    return;
  }
  for (std::uint64_t s = 0; s < tokens.size(); ++s) {
    const std::uint64_t sizes[] = {tokens[s], d.shape[1], d.shape[2]};
    for_each_index(sizes, [&](std::span<const std::uint64_t> i) {
      const std::uint64_t index[] = {s, i[0], i[1], i[2]};
      each(std::span<const std::uint64_t>(index));
    });
  }
}

/// The tensor's values one by one, or why there are none.
inline Json shown_values(const Tensor& tensor, std::string_view kind,
                         std::span<const std::uint64_t> tokens) {
  const auto elements = Elements::over(tensor, {.sequence_tokens = tokens});
  if (!elements) return to_string(elements.error());
  const bool quantized = tensor.descriptor().quantization() != nullptr;
  Json out = Json::array();
  for_each_listed(tensor.descriptor(), tokens, [&](std::span<const std::uint64_t> index) {
    if (quantized) {
      const auto value = dequantize(*elements, index);
      out.push_back(value ? shown_float(*value) : Json(to_string(value.error())));
    } else {
      const auto slot = elements->slot(index);
      out.push_back(slot ? shown_element(*elements, *slot, kind) : Json(to_string(slot.error())));
    }
  });
  return out;
}

/// The same from the tensor as a whole: `dequantize` or `to_dense`.
inline Json shown_whole(const Tensor& tensor, std::string_view kind,
                        std::span<const std::uint64_t> tokens) {
  const ElementOptions options{.sequence_tokens = tokens};
  const auto dense = tensor.descriptor().quantization() != nullptr ? dequantize(tensor, options)
                                                                   : to_dense(tensor, options);
  if (!dense) return to_string(dense.error());
  return shown_values(*dense, kind, {});
}

}  // namespace hurray::conformance
