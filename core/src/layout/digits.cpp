#include "hurray/layout/digits.hpp"

#include <algorithm>

namespace hurray {
namespace {

constexpr std::uint64_t magnitude(std::int64_t stride) noexcept {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? 0 - bits : bits;
}

/// Sums and products of valid layouts fit; wrapping keeps the others defined.
constexpr std::int64_t times(std::uint64_t n, std::int64_t stride) noexcept {
  return static_cast<std::int64_t>(n * static_cast<std::uint64_t>(stride));
}
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0);
}

}  // namespace

DigitCodec::DigitCodec(const Shape& shape) noexcept
    : rank_(static_cast<std::uint8_t>(shape.rank())), empty_(shape.is_empty()) {
  std::ranges::copy(shape, shape_.begin());
}

void DigitCodec::add(LayoutTag order, std::span<const std::uint64_t> sizes,
                     std::span<const std::int64_t> strides, std::span<const std::uint64_t> units,
                     std::int64_t pitch) noexcept {
  if (empty_) return;
  // Slowest dimension first: its stride is the product of the sizes that are left.
  std::uint64_t product = 1;
  for (const std::uint64_t n : sizes) product *= n;
  for (std::size_t i = 0; i < rank_; ++i) {
    const std::size_t k = order == LayoutTag::col_major ? rank_ - 1u - i : i;
    product /= sizes[k];
    const std::uint64_t unit = units.empty() ? 1 : units[k];
    const std::uint64_t size = std::min(sizes[k], ceil_div(shape_[k], unit));
    if (size == 1 || count_ == max_digits) continue;
    const std::int64_t steps =
        order == LayoutTag::strided ? strides[k] : static_cast<std::int64_t>(product);
    const std::uint64_t bit = std::uint64_t{1} << k;
    const bool leads = (has_digits_ & bit) == 0;
    digits_[count_] = {.size = size,
                       .unit = unit,
                       .stride = times(static_cast<std::uint64_t>(pitch), steps),
                       .dimension = static_cast<std::uint8_t>(k),
                       .leads = leads,
                       .ragged = !leads && shape_[k] % (size * unit) != 0};
    has_digits_ |= bit;

    std::size_t place = count_;
    for (; place > 0 &&
           magnitude(digits_[by_stride_[place - 1]].stride) > magnitude(digits_[count_].stride);
         --place)
      by_stride_[place] = by_stride_[place - 1];
    by_stride_[place] = count_++;
  }
}

std::int64_t DigitCodec::offset(std::span<const std::uint64_t> index) const noexcept {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Digit& digit = digits_[i];
    std::uint64_t value = index[digit.dimension];
    if (digit.unit != 1) value /= digit.unit;
    if (!digit.leads) value %= digit.size;
    offset = plus(offset, times(value, digit.stride));
  }
  return offset;
}

bool DigitCodec::has_inverse() const noexcept {
  std::uint64_t reach = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Digit& digit = digits_[by_stride_[i]];
    const std::uint64_t step = magnitude(digit.stride);
    if (step <= reach) return false;
    reach += step * (digit.size - 1);
  }
  return true;
}

/// The smallest offset, as two's complement.
std::uint64_t DigitCodec::least() const noexcept {
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < count_; ++i)
    if (digits_[i].stride < 0) least -= magnitude(digits_[i].stride) * (digits_[i].size - 1);
  return least;
}

bool DigitCodec::index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept {
  const std::uint64_t lowest = least();
  if (empty_ || offset < static_cast<std::int64_t>(lowest) || !has_inverse()) return false;
  std::uint64_t rest = static_cast<std::uint64_t>(offset) - lowest;
  std::ranges::fill(index, std::uint64_t{0});
  for (std::size_t i = count_; i-- > 0;) {
    const Digit& digit = digits_[by_stride_[i]];
    const std::uint64_t step = magnitude(digit.stride);
    const std::uint64_t steps = rest / step;
    if (steps >= digit.size) return false;
    rest -= steps * step;
    index[digit.dimension] += (digit.stride < 0 ? digit.size - 1 - steps : steps) * digit.unit;
  }
  if (rest != 0) return false;
  for (std::size_t k = 0; k < rank_; ++k)
    if (index[k] >= shape_[k]) return false;
  return true;
}

namespace detail {

DigitWalk::DigitWalk(const DigitCodec& codec) noexcept : codec_(codec) {
  for (std::size_t i = 0; i < codec_.count_; ++i) {
    values_[i] = 0;
    limits_[i] = limit(codec_.digits_[i]);
  }
  if (codec_.count_ == 0) return;
  const DigitCodec::Digit& fastest = codec_.digits_[codec_.count_ - 1u];
  left_ = limits_[codec_.count_ - 1u] - 1;
  unit_ = fastest.unit;
  stride_ = fastest.stride;
  dimension_ = fastest.dimension;
}

/// Values of the digit behind the slower digits that `index_` stands for.
std::uint64_t DigitWalk::limit(const DigitCodec::Digit& digit) const noexcept {
  if (!digit.ragged) return digit.size;
  const std::size_t k = digit.dimension;
  return std::min(digit.size, ceil_div(codec_.shape_[k] - index_[k], digit.unit));
}

bool DigitWalk::carry() noexcept {
  const std::size_t count = codec_.count_;
  if (count == 0) return false;
  values_[count - 1] = limits_[count - 1] - 1;
  std::size_t at = count;
  do {
    if (at == 0) return false;
    const DigitCodec::Digit& digit = codec_.digits_[--at];
    if (values_[at] + 1 < limits_[at]) break;
    index_[digit.dimension] -= values_[at] * digit.unit;
    offset_ = plus(offset_, times(0 - values_[at], digit.stride));
    values_[at] = 0;
  } while (true);
  const DigitCodec::Digit& digit = codec_.digits_[at];
  ++values_[at];
  index_[digit.dimension] += digit.unit;
  offset_ = plus(offset_, digit.stride);
  for (std::size_t i = at + 1; i < count; ++i)
    if (codec_.digits_[i].ragged) limits_[i] = limit(codec_.digits_[i]);
  left_ = limits_[count - 1] - 1;
  return true;
}

}  // namespace detail
}  // namespace hurray
