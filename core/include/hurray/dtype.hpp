#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hurray/export.hpp"
#include "hurray/table.hpp"

namespace hurray {

/// Element types (01-descriptor.md section 2). The value is the wire byte `type_tag`.
enum class DType : std::uint8_t {
  float16 = 0x01,
  bfloat16 = 0x02,
  float32 = 0x03,
  float64 = 0x04,
  int8 = 0x10,
  uint8 = 0x11,
  int16 = 0x12,
  uint16 = 0x13,
  int32 = 0x14,
  uint32 = 0x15,
  int64 = 0x16,
  uint64 = 0x17,
  bool_ = 0x20,
  float8_e4m3 = 0x40,
  float8_e5m2 = 0x41,
  float8_e8m0 = 0x42,
  float4_e2m1 = 0x43,
  float6_e2m3 = 0x44,
  float6_e3m2 = 0x45,
  float128 = 0x46,
  // 0x47 is held back and must not be used.
  int4 = 0x48,
  uint4 = 0x49,
  int2 = 0x4A,
  uint2 = 0x4B,
  complex64 = 0x50,
  complex128 = 0x51,
};

enum class Kind : std::uint8_t { boolean, integer, unsigned_integer, floating, exponent, complex };

/// What the codes with all exponent bits set mean.
enum class Specials : std::uint8_t {
  none,      ///< Numbers like the others: neither infinity nor NaN.
  nan_only,  ///< NaN when all mantissa bits are set too, else numbers; no infinity.
  ieee,      ///< Infinity when the mantissa is 0, else NaN.
};

/// Bits of a floating-point code from the top: sign, exponent, mantissa; `(-1)^S * 1.M *
/// 2^(E-bias)`, `E = 0` as in 01-descriptor.md section 2.2. All zero for types that are not floats;
/// half of the element for complex types.
struct FloatFormat {
  std::uint8_t sign_bits = 0;
  std::uint8_t exponent_bits = 0;
  std::uint8_t mantissa_bits = 0;
  std::uint16_t bias = 0;
  Specials specials = Specials::none;
};

inline constexpr FloatFormat binary16{1, 5, 10, 15, Specials::ieee};
inline constexpr FloatFormat binary32{1, 8, 23, 127, Specials::ieee};
inline constexpr FloatFormat binary64{1, 11, 52, 1023, Specials::ieee};
inline constexpr FloatFormat binary128{1, 15, 112, 16383, Specials::ieee};

/// One element type. `bits` is the stored width of an element; `alignment` its natural alignment in
/// bytes (that of one half for complex types).
struct DTypeInfo {
  DType tag;
  std::string_view name;
  std::uint16_t bits;
  std::uint8_t alignment;
  Kind kind;
  FloatFormat format = {};
};

inline constexpr auto dtypes = std::to_array<DTypeInfo>({
    {DType::float16, "float16", 16, 2, Kind::floating, binary16},
    {DType::bfloat16, "bfloat16", 16, 2, Kind::floating, {1, 8, 7, 127, Specials::ieee}},
    {DType::float32, "float32", 32, 4, Kind::floating, binary32},
    {DType::float64, "float64", 64, 8, Kind::floating, binary64},
    {DType::int8, "int8", 8, 1, Kind::integer},
    {DType::uint8, "uint8", 8, 1, Kind::unsigned_integer},
    {DType::int16, "int16", 16, 2, Kind::integer},
    {DType::uint16, "uint16", 16, 2, Kind::unsigned_integer},
    {DType::int32, "int32", 32, 4, Kind::integer},
    {DType::uint32, "uint32", 32, 4, Kind::unsigned_integer},
    {DType::int64, "int64", 64, 8, Kind::integer},
    {DType::uint64, "uint64", 64, 8, Kind::unsigned_integer},
    {DType::bool_, "bool", 1, 1, Kind::boolean},
    {DType::float8_e4m3, "float8_e4m3", 8, 1, Kind::floating, {1, 4, 3, 7, Specials::nan_only}},
    {DType::float8_e5m2, "float8_e5m2", 8, 1, Kind::floating, {1, 5, 2, 15, Specials::ieee}},
    {DType::float8_e8m0, "float8_e8m0", 8, 1, Kind::exponent, {0, 8, 0, 127, Specials::nan_only}},
    {DType::float4_e2m1, "float4_e2m1", 4, 1, Kind::floating, {1, 2, 1, 1, Specials::none}},
    {DType::float6_e2m3, "float6_e2m3", 6, 1, Kind::floating, {1, 2, 3, 1, Specials::none}},
    {DType::float6_e3m2, "float6_e3m2", 6, 1, Kind::floating, {1, 3, 2, 3, Specials::none}},
    {DType::float128, "float128", 128, 16, Kind::floating, binary128},
    {DType::int4, "int4", 4, 1, Kind::integer},
    {DType::uint4, "uint4", 4, 1, Kind::unsigned_integer},
    {DType::int2, "int2", 2, 1, Kind::integer},
    {DType::uint2, "uint2", 2, 1, Kind::unsigned_integer},
    {DType::complex64, "complex64", 64, 4, Kind::complex, binary32},
    {DType::complex128, "complex128", 128, 8, Kind::complex, binary64},
});
static_assert(strictly_sorted(dtypes));

/// The row of an assigned type, or null (private, reserved and never valid tags).
constexpr const DTypeInfo* info(DType dtype) noexcept { return row_of<dtypes>(dtype); }

/// "float32"; "extension" for a private tag; "" for a tag that is not assigned.
constexpr std::string_view name(DType dtype) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row != nullptr) return row->name;
  return is_private(static_cast<std::uint8_t>(dtype)) ? "extension" : "";
}

/// Stored bits of one element; 0 where the tag does not say (private types: their
/// `ExtensionType` does).
constexpr unsigned bits(DType dtype) noexcept {
  const DTypeInfo* row = info(dtype);
  return row != nullptr ? row->bits : 0;
}

/// Stored narrower than a byte, hence packed.
constexpr bool is_sub_byte(DType dtype) noexcept { return bits(dtype) != 0 && bits(dtype) < 8; }

/// Tier is only a label (D16): 1 below tag `0x40`, else 2.
constexpr int tier(DType dtype) noexcept { return static_cast<std::uint8_t>(dtype) < 0x40 ? 1 : 2; }

/// Bytes that `count` packed elements of `width` bits occupy: whole groups of four for 6 bits (D1),
/// else the trailing bits rounded up to a byte (01-descriptor.md section 2.4). None above 2^64 - 1.
HURRAY_EXPORT std::optional<std::uint64_t> packed_bytes(unsigned width,
                                                        std::uint64_t count) noexcept;

}  // namespace hurray
