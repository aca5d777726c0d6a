#include "hurray/shape.hpp"

#include "hurray/checked.hpp"

namespace hurray {

std::uint64_t Shape::count() const noexcept {
  std::uint64_t product = 1;
  bool overflows = false;
  for (const std::uint64_t n : *this) {
    if (n == 0) return 0;
    const auto next = checked_mul(product, n);
    overflows |= !next;
    product = next.value_or(1);
  }
  return overflows ? std::numeric_limits<std::uint64_t>::max() : product;
}

}  // namespace hurray
