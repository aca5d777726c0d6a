#include <algorithm>

#include "hurray/memory.hpp"

namespace hurray {

std::uint32_t measure_alignment(const void* address, std::uint64_t byte_size) noexcept {
  if (byte_size == 0) return 1;
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  const auto lowest = bits & (~bits + 1);
  if (lowest == 0 || lowest > page_alignment) return page_alignment;
  return static_cast<std::uint32_t>(lowest);
}

}  // namespace hurray
