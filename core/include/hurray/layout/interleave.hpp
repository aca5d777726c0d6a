#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hurray/export.hpp"

namespace hurray {

/// How index bits get to their places in a code: the results are the same.
enum class BitPath : std::uint8_t {
  portable,  ///< shifts and masks
  bmi2,      ///< the instructions PDEP and PEXT of x86-64
};

/// The faster path on this CPU.
HURRAY_EXPORT BitPath fastest_bit_path() noexcept;

/// Which of the numbers comes first, in the lowest bit, at each bit position.
enum class LowestBit : std::uint8_t { of_first_number, of_last_number };

/// Numbers of few bits interleaved into one code and taken apart again: bit positions from 0 up
/// and, in each, the numbers that have that many bits take the next free bit of the code (D2). A
/// value, never on the heap; freely shared between threads.
class Interleave {
 public:
  static constexpr std::size_t max_bits = 63;

  /// `bits[i]` of number i. Precondition: each at least 1, their sum at most 63, and this CPU has
  /// `path`.
  HURRAY_EXPORT Interleave(std::span<const std::uint32_t> bits, LowestBit lowest,
                           BitPath path = fastest_bit_path()) noexcept;
  /// The same number of bits of each.
  HURRAY_EXPORT Interleave(std::size_t numbers, std::uint32_t bits, LowestBit lowest,
                           BitPath path = fastest_bit_path()) noexcept;

  std::size_t numbers() const noexcept { return count_; }
  std::uint32_t code_bits() const noexcept { return code_bits_; }
  /// The bits of the code that number `i` has.
  std::uint64_t mask(std::size_t i) const noexcept { return masks_[i]; }

  /// Precondition: as many numbers, none with more bits than said.
  HURRAY_EXPORT std::uint64_t join(std::span<const std::uint64_t> numbers) const noexcept;
  /// The reverse. Precondition: no bit of `code` beyond `code_bits`.
  HURRAY_EXPORT void split(std::uint64_t code, std::span<std::uint64_t> numbers) const noexcept;

 private:
  // Bits move 1, 2, 4, … 32 places, those of `moves_[i][log2]` only.
  using Moves = std::array<std::uint64_t, 6>;
  static Moves moves_to(std::uint64_t mask) noexcept;
  void prepare_moves() noexcept;

  std::uint8_t count_ = 0;
  std::uint8_t code_bits_ = 0;
  std::uint8_t moves_used_ = 0;
  BitPath path_ = BitPath::portable;
  std::array<std::uint64_t, max_bits> masks_;
  std::array<Moves, max_bits> moves_;  // of the portable path
};

}  // namespace hurray
