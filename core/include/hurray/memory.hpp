#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hurray/export.hpp"

namespace hurray {

/// The format's floor for every buffer that is not empty, and for one shared with a device or with
/// another process, in bytes (01-descriptor.md section 4.1).
inline constexpr std::uint32_t min_buffer_alignment = 64;
inline constexpr std::uint32_t page_alignment = 4096;

/// The only place where buffers and oversized values get memory: `size` bytes on a multiple of
/// `alignment` (a power of two, at least `alignof(void*)`), null on failure or for sizes that this
/// machine cannot address. With `zeroed`, large blocks are untouched zero pages.
HURRAY_EXPORT void* allocate(std::uint64_t size, std::size_t alignment, bool zeroed) noexcept;

/// Gives back what `allocate` returned for the same size and alignment; null is fine.
HURRAY_EXPORT void deallocate(void* block, std::uint64_t size, std::size_t alignment) noexcept;

/// The one checked narrowing: `value` as a size of this machine, none where it does not fit.
constexpr std::optional<std::size_t> to_size(std::uint64_t value) noexcept {
  const auto narrow = static_cast<std::size_t>(value);
  if (narrow != value) return std::nullopt;
  return narrow;
}

/// The largest power of two up to 4096 that divides the address; 1 for an empty buffer (D15).
HURRAY_EXPORT std::uint32_t measure_alignment(const void* address,
                                              std::uint64_t byte_size) noexcept;

}  // namespace hurray
