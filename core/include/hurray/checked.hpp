#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace hurray {

/// Exact sums and products, or nothing: the only arithmetic on numbers that come from outside.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) noexcept {
#if defined(__GNUC__)
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
#else
  using limits = std::numeric_limits<T>;
  if (b >= 0 ? a > limits::max() - b : a < limits::min() - b) return std::nullopt;
  return static_cast<T>(a + b);
#endif
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) noexcept {
#if defined(__GNUC__)
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
#else
  using limits = std::numeric_limits<T>;
  if (a == 0 || b == 0) return T{0};
  if constexpr (std::signed_integral<T>) {
    if (a > 0 ? (b > 0 ? a > limits::max() / b : b < limits::min() / a)
              : (b > 0 ? a < limits::min() / b : b < limits::max() / a))
      return std::nullopt;
  } else {
    if (a > limits::max() / b) return std::nullopt;
  }
  return static_cast<T>(a * b);
#endif
}

/// The smallest multiple of `alignment` (a power of two) that is at least `value`.
template <std::unsigned_integral T>
constexpr std::optional<T> checked_align_up(T value, T alignment) noexcept {
  const auto sum = checked_add<T>(value, static_cast<T>(alignment - 1));
  if (!sum) return std::nullopt;
  return static_cast<T>(*sum & ~static_cast<T>(alignment - 1));
}

/// The upper 64 bits of the product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
  const std::uint64_t mid = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
  const std::uint64_t cross = (a & 0xFFFFFFFF) * (b >> 32) + (mid & 0xFFFFFFFF);
  return (a >> 32) * (b >> 32) + (mid >> 32) + (cross >> 32);
}

}  // namespace hurray
