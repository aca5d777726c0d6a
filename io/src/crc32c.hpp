#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hurray::io {

/// One way to calculate a CRC-32C; all of them give the same value, as `crc32c` defines it.
struct Crc32cPath {
  std::string_view name;
  std::uint32_t (*crc32c)(std::span<const std::byte> bytes, std::uint32_t crc) noexcept;
};

/// Those that this CPU can run, the fastest first, the tables last.
std::span<const Crc32cPath> crc32c_paths() noexcept;

/// The CRC-32C of two ranges, the second of `length` bytes, one behind the other.
std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t length) noexcept;

}  // namespace hurray::io
