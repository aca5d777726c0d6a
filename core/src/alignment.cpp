#include <algorithm>

#include "hurray/memory.hpp"

namespace hurray {

std::uint32_t measure_alignment(const void* address, std::uint64_t byte_size) noexcept {
  if (byte_size == 0) return 1;
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  if (bits == 0) return 1;  // no memory is there
  const auto lowest = bits & (~bits + 1);
  return lowest > page_alignment ? page_alignment : static_cast<std::uint32_t>(lowest);
}

}  // namespace hurray
