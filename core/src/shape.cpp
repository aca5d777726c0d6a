#include "hurray/shape.hpp"

#include <algorithm>

#include "hurray/checked.hpp"

namespace hurray {

bool Shape::is_dynamic() const noexcept { return std::ranges::find(*this, dynamic) != end(); }
bool Shape::is_empty() const noexcept { return std::ranges::find(*this, 0u) != end(); }

std::uint64_t Shape::count() const noexcept {
  if (is_empty()) return 0;
  std::uint64_t product = 1;
  for (const std::uint64_t n : *this) {
    const auto next = checked_mul(product, n);
    if (!next) return std::numeric_limits<std::uint64_t>::max();
    product = *next;
  }
  return product;
}

}  // namespace hurray
