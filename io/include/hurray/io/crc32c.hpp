#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hurray/export.hpp"

namespace hurray::io {

/// CRC-32C (04-file.md section 7) of `bytes`, continuing from `crc` (0: from the start). Uses the
/// CPU's instructions where it has them; every path gives the same value.
HURRAY_EXPORT std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t crc = 0) noexcept;

}  // namespace hurray::io
