#include "hurray/layout/interleave.hpp"

#include <algorithm>
#include <bit>

#if defined(__GNUC__) && defined(__x86_64__)
#define HURRAY_BMI2 1
#include <immintrin.h>
#endif

namespace hurray {
namespace {

/// Element `n`: every n-th bit, from bit 0 on.
constexpr auto every_nth = [] {
  std::array<std::uint64_t, Interleave::max_bits + 1> patterns{};
  for (std::size_t n = 1; n < patterns.size(); ++n)
    for (std::size_t bit = 0; bit < Interleave::max_bits; bit += n)
      patterns[n] |= std::uint64_t{1} << bit;
  return patterns;
}();

#if defined(HURRAY_BMI2)

__attribute__((target("bmi2"))) std::uint64_t join_with_pdep(std::span<const std::uint64_t> numbers,
                                                             const std::uint64_t* masks) noexcept {
  std::uint64_t code = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) code |= _pdep_u64(numbers[i], masks[i]);
  return code;
}

__attribute__((target("bmi2"))) void split_with_pext(std::uint64_t code,
                                                     std::span<std::uint64_t> numbers,
                                                     const std::uint64_t* masks) noexcept {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = _pext_u64(code, masks[i]);
}

/// Older AMD CPUs have the instructions, but take them apart bit by bit.
bool has_fast_bmi2() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_is("amdfam15h") == 0 &&
         __builtin_cpu_is("amdfam17h") == 0;
}

#endif

}  // namespace

BitPath fastest_bit_path() noexcept {
#if defined(HURRAY_BMI2)
  static const BitPath path = has_fast_bmi2() ? BitPath::bmi2 : BitPath::portable;
  return path;
#else
  return BitPath::portable;
#endif
}

Interleave::Interleave(std::span<const std::uint32_t> bits, LowestBit lowest, BitPath path) noexcept
    : count_(static_cast<std::uint8_t>(std::min(bits.size(), max_bits))), path_(path) {
  std::ranges::fill_n(masks_.begin(), count_, std::uint64_t{0});
  const std::uint32_t most = std::min(*std::ranges::max_element(bits), 63u);
  for (std::uint32_t b = 0; b < most; ++b)
    for (std::size_t k = 0; k < count_; ++k) {
      const std::size_t i = lowest == LowestBit::of_first_number ? k : count_ - 1u - k;
      if (b < bits[i] && code_bits_ < max_bits) masks_[i] |= std::uint64_t{1} << code_bits_++;
    }
  prepare_moves();
}

Interleave::Interleave(std::size_t numbers, std::uint32_t bits, LowestBit lowest,
                       BitPath path) noexcept
    : count_(static_cast<std::uint8_t>(std::min(numbers, max_bits))),
      code_bits_(static_cast<std::uint8_t>(std::min<std::uint64_t>(numbers * bits, max_bits))),
      path_(path) {
  const std::uint64_t code = (std::uint64_t{1} << code_bits_) - 1;
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t i = lowest == LowestBit::of_first_number ? k : count_ - 1u - k;
    masks_[i] = every_nth[count_] << k & code;
  }
  prepare_moves();
}

void Interleave::prepare_moves() noexcept {
#if defined(HURRAY_BMI2)
  if (path_ == BitPath::bmi2) return;
#endif
  for (std::size_t i = 0; i < count_; ++i) {
    moves_[i] = moves_to(masks_[i]);
    for (std::uint8_t k = moves_used_; k < moves_[i].size(); ++k)
      if (moves_[i][k] != 0) moves_used_ = static_cast<std::uint8_t>(k + 1);
  }
}

/// Warren, Hacker's Delight, section 7-4: how far each bit of the mask moves down when all of them
/// come together, one binary digit of that distance after the other.
Interleave::Moves Interleave::moves_to(std::uint64_t mask) noexcept {
  Moves moves;
  std::uint64_t free = ~mask << 1;
  for (std::size_t k = 0; k < moves.size(); ++k) {
    std::uint64_t odd = free;  // an odd number of free places below
    for (unsigned shift = 1; shift < 64; shift *= 2) odd ^= odd << shift;
    const std::uint64_t move = odd & mask;
    moves[k] = move;
    mask = (mask ^ move) | move >> (1u << k);
    free &= ~odd;
  }
  return moves;
}

std::uint64_t Interleave::join(std::span<const std::uint64_t> numbers) const noexcept {
#if defined(HURRAY_BMI2)
  if (path_ == BitPath::bmi2) return join_with_pdep(numbers, masks_.data());
#endif
  std::uint64_t code = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint64_t x = numbers[i];
    for (std::size_t k = moves_used_; k-- > 0;) {
      const std::uint64_t move = moves_[i][k];
      x = (x & ~move) | (x << (1u << k) & move);
    }
    code |= x & masks_[i];
  }
  return code;
}

void Interleave::split(std::uint64_t code, std::span<std::uint64_t> numbers) const noexcept {
#if defined(HURRAY_BMI2)
  if (path_ == BitPath::bmi2) return split_with_pext(code, numbers, masks_.data());
#endif
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint64_t x = code & masks_[i];
    for (std::size_t k = 0; k < moves_used_; ++k) {
      const std::uint64_t move = x & moves_[i][k];
      x = (x ^ move) | move >> (1u << k);
    }
    numbers[i] = x;
  }
}

}  // namespace hurray
