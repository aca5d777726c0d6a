#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hurray/dtype.hpp"
#include "hurray/export.hpp"

namespace hurray {

/// The stored bits of one element: bit k of the element is bit k of `low`, from bit 64 on of
/// `high`. Bits above the element's width are 0.
struct Code {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Code&, const Code&) = default;
};

enum class FloatClass : std::uint8_t { finite, infinite, nan };

/// Value maps of the element types, driven by the columns of `dtypes` (01-descriptor.md section
/// 2.2, 03-quantization.md section 11). They do not depend on the rounding or flush-to-zero mode of
/// the processor. NaN carries its sign and nothing else: copies keep payloads, conversions do not.

/// The value of a code of a floating or exponent type of at most 32 bits, exactly; NaN is the quiet
/// NaN of its sign, but float32 codes come back bit for bit (signalling ones too where the machine
/// returns floats unchanged). 0 for other types.
HURRAY_EXPORT float decode_float(DType dtype, std::uint32_t code) noexcept;

/// The code of the same types that is nearest to `value`, rounded once, ties to even. What is
/// beyond the largest value becomes infinity where the type has one, else the largest value; NaN
/// becomes the quiet NaN of its sign (`0x7F` or `0xFF` for float8_e4m3). None where NaN is not
/// encodable, and for other types.
///
/// float8_e8m0 has neither zero nor sign: zeros and positive values below 2^-127 become `0x00`,
/// negative ones `0xFF` (NaN); halves between two powers of two go up, as the implied mantissa bit
/// is odd.
HURRAY_EXPORT std::optional<std::uint32_t> encode_float(DType dtype, double value) noexcept;

/// The same for every real type and complex half of `dtypes` (`code` holds one half): floats are
/// exact but float128, which is rounded once, ties to even; int64 and uint64 are rounded likewise;
/// bool is 0 or 1. 0 for types that are not known.
HURRAY_EXPORT double to_double(DType dtype, Code code) noexcept;

/// `encode_float` for every floating and exponent type, float128 and complex halves included.
HURRAY_EXPORT std::optional<Code> from_double(DType dtype, double value) noexcept;

/// The value of a code of an integer type or of bool; uint64 above 2^63 - 1 wraps. 0 for others.
HURRAY_EXPORT std::int64_t to_integer(DType dtype, Code code) noexcept;

/// What a code of a floating, exponent or complex (one half) type stands for; `finite` for others.
HURRAY_EXPORT FloatClass classify(DType dtype, Code code) noexcept;

/// Real and imaginary part as codes; a real type's code is its real part.
HURRAY_EXPORT std::array<Code, 2> complex_halves(DType dtype, Code code) noexcept;

/// Element `first + i` of packed storage as `out[i]` (01-descriptor.md section 2.3), by
/// `decode_float` and `to_double`. Precondition: `packed` holds them all.
HURRAY_EXPORT void decode_floats(DType dtype, std::span<const std::byte> packed,
                                 std::uint64_t first, std::span<float> out) noexcept;
HURRAY_EXPORT void to_doubles(DType dtype, std::span<const std::byte> packed, std::uint64_t first,
                              std::span<double> out) noexcept;

namespace detail {

/// Element `at` of packed storage that starts at `packed`; `at` may be negative. `width` is 1, 2,
/// 4, 6 or a multiple of 8; of elements above 128 bits the lowest 128.
HURRAY_EXPORT Code load_code(const std::byte* packed, unsigned width, std::int64_t at) noexcept;

}  // namespace detail
}  // namespace hurray
