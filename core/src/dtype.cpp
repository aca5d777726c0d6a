#include "hurray/dtype.hpp"

#include "hurray/checked.hpp"

namespace hurray {

std::optional<std::uint64_t> packed_bytes(unsigned width, std::uint64_t count) noexcept {
  if (width >= 8) return checked_mul<std::uint64_t>(count, width / 8);
  if (width == 6) return checked_mul<std::uint64_t>(count / 4 + (count % 4 != 0), 3);
  if (width == 0) return std::nullopt;
  const std::uint64_t per_byte = 8 / width;
  return count / per_byte + (count % per_byte != 0);
}

}  // namespace hurray
