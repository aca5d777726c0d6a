#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "packed_bits.hpp"

namespace hurray {

namespace detail {
template <std::size_t Bytes>
void move_items_of(std::byte* to, std::int64_t to_step, const std::byte* from,
                   std::int64_t from_step, std::uint64_t count) noexcept {
  for (;; to += to_step, from += from_step) {
    std::memcpy(to, from, Bytes);
    if (--count == 0) return;
  }
}
}  // namespace detail

/// `count` elements (at least 1) of `bytes` bytes from `from` on, `from_step` bytes apart, to
/// places `to_step` bytes apart. The memories do not overlap.
inline void move_items(std::size_t bytes, std::byte* to, std::int64_t to_step,
                       const std::byte* from, std::int64_t from_step,
                       std::uint64_t count) noexcept {
  switch (bytes) {
    case 1:
      return detail::move_items_of<1>(to, to_step, from, from_step, count);
    case 2:
      return detail::move_items_of<2>(to, to_step, from, from_step, count);
    case 4:
      return detail::move_items_of<4>(to, to_step, from, from_step, count);
    case 8:
      return detail::move_items_of<8>(to, to_step, from, from_step, count);
    case 16:
      return detail::move_items_of<16>(to, to_step, from, from_step, count);
    default:
      for (;; to += to_step, from += from_step) {
        std::memcpy(to, from, bytes);
        if (--count == 0) return;
      }
  }
}

/// The same for elements of `width` bits, fewer than 8; positions and steps in bits from `to` and
/// `from` on. Bits around the targets are kept.
inline void move_packed(unsigned width, std::byte* to, std::int64_t target, std::int64_t to_step,
                        const std::byte* from, std::int64_t source, std::int64_t from_step,
                        std::uint64_t count) noexcept {
  for (; count > 0; --count, target += to_step, source += from_step)
    put_bits(to + (target >> 3), static_cast<unsigned>(target & 7), width,
             take_bits(from + (source >> 3), static_cast<unsigned>(source & 7), width));
}

}  // namespace hurray
