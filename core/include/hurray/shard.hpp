#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// An axis-aligned box of a larger tensor (01-descriptor.md section 3.6): the parent's sizes and
/// where this box starts in it, in logical elements, one of each per dimension. A value, freely
/// shared between threads; in place up to rank 8.
class Shard {
 public:
  Shard() = default;
  /// Precondition: equal lengths, at most 64.
  Shard(std::span<const std::uint64_t> parent_shape, std::span<const std::uint64_t> shard_offset) {
    numbers_.resize(parent_shape.size() + shard_offset.size());
    std::ranges::copy(parent_shape, numbers_.begin());
    std::ranges::copy(shard_offset, numbers_.begin() + parent_shape.size());
  }

  std::size_t rank() const noexcept { return numbers_.size() / 2; }
  std::span<const std::uint64_t> parent_shape() const noexcept { return {numbers_.data(), rank()}; }
  std::span<const std::uint64_t> shard_offset() const noexcept {
    return {numbers_.data() + rank(), rank()};
  }

  /// Fields and rules of 01-descriptor.md section 3.6: nothing dynamic, the box inside its parent.
  static void fields(auto& self, auto& io, const Shape& shape) {
    const std::size_t rank = shape.rank();
    const auto not_dynamic = [&](Field field, std::uint64_t value,
                                 std::uint64_t offset = Error::no_offset) {
      io.check(value != dynamic, [&] {
        return Error{.code = Errc::invalid_value,
                     .index = field.index,
                     .field = field.name,
                     .what = "a shard has no dynamic sizes",
                     .offset = offset};
      });
    };
    for (std::size_t k = 0; k < rank; ++k)
      not_dynamic({"shard.shape[]", k}, shape[k], shape_offset + 8 * k);
    if constexpr (!std::remove_reference_t<decltype(io)>::reads)
      io.check(self.rank() == rank, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = "shard.parent_shape",
                     .what = "entries",
                     .expected = rank,
                     .found = self.rank()};
      });
    io.list("shard.parent_shape[]", self.numbers_, 2 * rank, 8, [&](auto& n, std::size_t i) {
      const std::size_t k = i % rank;
      const Field field{i < rank ? "shard.parent_shape[]" : "shard.shard_offset[]", k};
      io(field, n);
      not_dynamic(field, n);
      if (i < rank || !io.ok()) return;
      const auto end = checked_add<std::uint64_t>(n, shape[k]);
      io.check(end.has_value(), [&] {
        return Error{.code = Errc::overflow,
                     .index = field.index,
                     .field = field.name,
                     .what = "the box ends beyond 2^64 - 1",
                     .found = n};
      });
      const std::uint64_t parent = self.numbers_[k];
      io.check(end && *end <= parent, [&] {
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .index = field.index,
                     .field = field.name,
                     .what = "(the parent's size) as the end of the box",
                     .expected = parent,
                     .found = end.value_or(0)};
      });
    });
  }
  friend bool operator==(const Shard&, const Shard&) = default;

 private:
  SmallVector<std::uint64_t, 16> numbers_;
};

}  // namespace hurray
