#include "hurray/shape.hpp"

#include <algorithm>

#include "hurray/checked.hpp"

namespace hurray {

bool Shape::is_dynamic() const noexcept { return std::ranges::find(*this, dynamic) != end(); }
bool Shape::is_empty() const noexcept { return std::ranges::find(*this, 0u) != end(); }

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
