#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hurray/dtype.hpp"

namespace hurray {

/// A difference as float32, nearest, ties to even. Where the processor computes in more bits than
/// its type has, only memory rounds.
inline float to_float32(std::int64_t difference) noexcept {
#if FLT_EVAL_METHOD == 0
  return static_cast<float>(difference);
#else
  const volatile float rounded = static_cast<float>(difference);
  return rounded;
#endif
}
inline float to_float32(std::int32_t difference) noexcept {
#if FLT_EVAL_METHOD == 0
  return static_cast<float>(difference);
#else
  return to_float32(std::int64_t{difference});
#endif
}

/// Packed codes, and what a code is before it is scaled: the integer of an affine scheme, whose
/// zero point is subtracted, or an entry of `values`.
struct Codes {
  const std::byte* packed;
  DType storage;
  /// 2^bits values by code; null: integers.
  const float* values;
  /// Every difference of a code and a zero point fits in 32 bits.
  bool narrow;
};

/// Runs of codes with one scale and zero point each, and their place in the result.
struct Runs {
  std::uint64_t first;              ///< Element of the packed codes.
  std::size_t length;               ///< Elements of each run; they follow each other.
  std::size_t count;                ///< Runs.
  const float* scales;              ///< `count` of them.
  const std::int32_t* zero_points;  ///< The same, or null: 0.
};

/// One way to compute `scale * float(code - zero_point)` or `scale * value` (03-quantization.md
/// section 7): one difference, one conversion, one multiplication. All ways give the same bits.
struct DequantizePath {
  std::string_view name;
  void (*dequantize)(const Codes& codes, const Runs& runs, float* out);
  /// Copies to memory that is not read again soon.
  void (*copy)(float* to, const float* from, std::size_t count);
};

/// What this CPU can run, the best first; the last one is portable.
std::span<const DequantizePath> dequantize_paths() noexcept;

}  // namespace hurray
