#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hurray/cursor.hpp"

namespace hurray {

/// Element `at` of packed codes of `Width` bits (1, 2, 4, 6, 8, 16, 32 or 64): eight of them fill
/// `Width` bytes (02-layouts.md section 3).
template <unsigned Width>
inline auto packed_code(const std::byte* packed, std::uint64_t at) noexcept {
  if constexpr (Width >= 8) {
    using Bits = std::conditional_t<
        Width == 8, std::uint8_t,
        std::conditional_t<Width == 16, std::uint16_t,
                           std::conditional_t<Width == 32, std::uint32_t, std::uint64_t>>>;
    return detail::load<Bits>(packed + static_cast<std::size_t>(at) * sizeof(Bits));
  } else {
    const unsigned bit = static_cast<unsigned>(at % 8) * Width;
    const std::byte* p = packed + static_cast<std::size_t>(at / 8) * Width + bit / 8;
    auto bits = static_cast<unsigned>(p[0]);
    if (8 % Width != 0 && bit % 8 + Width > 8) bits |= static_cast<unsigned>(p[1]) << 8;
    return static_cast<std::uint8_t>(bits >> bit % 8 & ((1u << Width) - 1));
  }
}

}  // namespace hurray
