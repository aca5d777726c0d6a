#pragma once

#include <cstddef>

namespace hurray {

/// `count` bits (at most 8) from bit `shift` of `from` on; they may reach into the byte after it.
inline unsigned take_bits(const std::byte* from, unsigned shift, unsigned count) noexcept {
  auto bits = static_cast<unsigned>(*from) >> shift;
  if (shift + count > 8) bits |= static_cast<unsigned>(from[1]) << (8 - shift);
  return bits & ((1u << count) - 1);
}

/// The reverse; the bits around them are kept.
inline void put_bits(std::byte* to, unsigned shift, unsigned count, unsigned bits) noexcept {
  const unsigned mask = ((1u << count) - 1) << shift;
  const unsigned moved = bits << shift & mask;
  to[0] = static_cast<std::byte>((static_cast<unsigned>(to[0]) & ~mask) | moved);
  if (shift + count > 8)
    to[1] = static_cast<std::byte>((static_cast<unsigned>(to[1]) & ~(mask >> 8)) | moved >> 8);
}

}  // namespace hurray
