#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "hurray/checked.hpp"

namespace hurray {

/// Elements of a box, counted exactly below 2^128 (02-layouts.md L20).
struct Volume {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// The product of `sizes`: 1 for none of them, 0 when any is 0, none from 2^128 on.
  static constexpr std::optional<Volume> of(std::span<const std::uint64_t> sizes) noexcept {
    Volume product{0, 1};
    bool fits = true;
    for (const std::uint64_t n : sizes) {
      if (n == 0) return Volume{};
      const auto scaled = checked_mul(product.high, n);
      const auto high = scaled ? checked_add(*scaled, multiply_high(product.low, n)) : std::nullopt;
      fits = fits && high;
      product = {high.value_or(0), product.low * n};
    }
    if (!fits) return std::nullopt;
    return product;
  }

  constexpr std::optional<Volume> plus(const Volume& other) const noexcept {
    const std::uint64_t sum = low + other.low;
    const auto carried = checked_add<std::uint64_t>(high, sum < low ? 1 : 0);
    const auto total = carried ? checked_add(*carried, other.high) : std::nullopt;
    if (!total) return std::nullopt;
    return Volume{*total, sum};
  }

  friend auto operator<=>(const Volume&, const Volume&) = default;
};

}  // namespace hurray
