#include "hurray/layout/morton.hpp"

#include <algorithm>
#include <bit>

namespace hurray {

Morton Morton::fitting(const Shape& shape) {
  Morton layout;
  for (const std::uint64_t n : shape)
    layout.bits.push_back(
        n == dynamic || n < 2 ? 1u : static_cast<std::uint32_t>(std::bit_width(n - 1)));
  return layout;
}

std::optional<ElementRange> Morton::range(const Shape&) const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint32_t n : bits) sum += n;
  if (sum > max_bits) return std::nullopt;
  return ElementRange{0, static_cast<std::int64_t>((std::uint64_t{1} << sum) - 1)};
}

namespace {

Interleave lanes(const Morton& layout, BitPath path) noexcept {
  const std::span<const std::uint32_t> bits = layout.bits;
  const bool equal = std::ranges::all_of(bits, [&](std::uint32_t n) { return n == bits[0]; });
  return equal ? Interleave(bits.size(), bits[0], LowestBit::of_first_number, path)
               : Interleave(bits, LowestBit::of_first_number, path);
}

}  // namespace

MortonCodec::MortonCodec(const Morton& layout, const Shape& shape, BitPath path) noexcept
    : lanes_(lanes(layout, path)), empty_(shape.is_empty()) {
  std::ranges::copy_n(shape.begin(), static_cast<std::ptrdiff_t>(lanes_.numbers()), shape_.begin());
}

bool MortonCodec::index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept {
  const auto code = static_cast<std::uint64_t>(offset);
  if (offset < 0 || code >> lanes_.code_bits() != 0) return false;
  lanes_.split(code, index);
  for (std::size_t k = 0; k < lanes_.numbers(); ++k)
    if (index[k] >= shape_[k]) return false;
  return true;
}

namespace detail {

MortonWalk::MortonWalk(const MortonCodec& codec) noexcept : codec_(codec) {
  for (std::size_t d = 0; d < codec_.lanes_.numbers(); ++d) {
    std::uint8_t bit = 0;
    for (std::uint64_t left = codec_.lanes_.mask(d); left != 0; left &= left - 1)
      places_[static_cast<std::size_t>(std::countr_zero(left))] = {static_cast<std::uint8_t>(d),
                                                                   bit++};
  }
}

}  // namespace detail
}  // namespace hurray
