#include "hurray/values.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "hurray/cursor.hpp"
#include "packed_code.hpp"

namespace hurray {
namespace {

constexpr std::uint64_t ones(unsigned bits) noexcept {
  return bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
}

/// `significand * 2^exponent`, negated where so said. The lowest bit of a significand that did not
/// fit stands for all bits below it.
struct Number {
  FloatClass what = FloatClass::finite;
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
};

/// Sign, exponent and mantissa fields side by side; of a wide mantissa the part above 64 bits is in
/// `high`.
struct Fields {
  bool negative;
  std::uint64_t exponent;
  Code mantissa;
};

constexpr Fields split(const FloatFormat& format, Code code) noexcept {
  const unsigned m = format.mantissa_bits;
  if (m > 63) {  // the exponent lies in the high half
    const unsigned upper = m - 64;
    return {(code.high >> (upper + format.exponent_bits) & format.sign_bits) != 0,
            code.high >> upper & ones(format.exponent_bits),
            {code.low, code.high & ones(upper)}};
  }
  return {(code.low >> m >> format.exponent_bits & format.sign_bits) != 0,
          code.low >> m & ones(format.exponent_bits),
          {code.low & ones(m), 0}};
}

constexpr FloatClass class_of(const FloatFormat& format, const Fields& fields) noexcept {
  if (format.specials == Specials::none || fields.exponent != ones(format.exponent_bits))
    return FloatClass::finite;
  const unsigned m = format.mantissa_bits;
  if (format.specials == Specials::ieee)
    return fields.mantissa == Code{} ? FloatClass::infinite : FloatClass::nan;
  return fields.mantissa.low == ones(m) ? FloatClass::nan : FloatClass::finite;
}

constexpr Number unpack(const FloatFormat& format, Code code) noexcept {
  const Fields fields = split(format, code);
  const unsigned m = format.mantissa_bits;
  const bool subnormal = fields.exponent == 0 && m != 0;
  Number number{
      class_of(format, fields), fields.negative,
      static_cast<int>(fields.exponent) + (subnormal ? 1 : 0) - format.bias - static_cast<int>(m),
      fields.mantissa.low};
  if (m <= 63) {
    if (!subnormal) number.significand |= std::uint64_t{1} << m;
    return number;
  }
  const unsigned surplus = m + 1 - 64;
  const std::uint64_t upper = fields.mantissa.high | (subnormal ? 0 : std::uint64_t{1} << (m - 64));
  const bool inexact = (fields.mantissa.low & ones(surplus)) != 0;
  number.significand =
      upper << (64 - surplus) | fields.mantissa.low >> surplus | static_cast<unsigned>(inexact);
  number.exponent += static_cast<int>(surplus);
  return number;
}

/// The code of a format with at most 64 bits, sign apart. Precondition: finite and not 0.
constexpr std::uint64_t round_magnitude(const FloatFormat& format, const Number& number) noexcept {
  const unsigned m = format.mantissa_bits;
  const int up = std::countl_zero(number.significand);
  const std::uint64_t significand = number.significand << up;
  const int exponent = number.exponent - up + 63 + format.bias;  // biased
  if (exponent < 0 && m == 0) return 0;
  const int below = m != 0 && exponent < 1 ? 1 - exponent : 0;  // under the least normal exponent
  const int dropped = 63 - static_cast<int>(m) + below;
  if (dropped > 64) return 0;
  std::uint64_t kept = dropped == 64 ? 0 : significand >> dropped;
  const std::uint64_t rest = dropped == 64 ? significand : significand << (64 - dropped);
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;  // a carry raises the exponent
  if (below != 0) return kept;
  if (std::cmp_greater_equal(exponent, ones(format.exponent_bits) + 1))
    return ones(m + format.exponent_bits) + 1;
  const std::uint64_t implied = std::uint64_t{1} << m;
  return (static_cast<std::uint64_t>(exponent) << m) + (kept - implied);
}

/// The same for a format that holds 64 bits of mantissa or more and every exponent of a double as
/// a normal number.
constexpr Code widen_magnitude(const FloatFormat& format, const Number& number) noexcept {
  const unsigned m = format.mantissa_bits;
  const int up = std::countl_zero(number.significand);
  const std::uint64_t fraction = number.significand << up << 1;  // without the implied bit
  const auto exponent =
      static_cast<std::uint64_t>(number.exponent - up + 63 + static_cast<int>(format.bias));
  return {fraction << (m - 64), exponent << (m - 64) | fraction >> (128 - m)};
}

/// The nearest code; none for a NaN that the format has not.
constexpr std::optional<Code> pack(const FloatFormat& format, Number number) noexcept {
  const unsigned m = format.mantissa_bits;
  const unsigned e = format.exponent_bits;
  const bool wide = m > 63;
  const bool zero = number.what == FloatClass::finite && number.significand == 0;
  if (format.sign_bits == 0 && number.negative && !zero) number.what = FloatClass::nan;

  Code code;
  if (number.what == FloatClass::nan) {
    if (format.specials == Specials::none) return std::nullopt;
    const std::uint64_t quiet =
        format.specials == Specials::ieee ? ones(e + 1) : ones(m + e);  // from the top
    if (wide)
      code.high = quiet << (m - 64 - 1);
    else
      code.low = format.specials == Specials::ieee ? quiet << (m - 1) : quiet;
  } else if (wide) {
    if (number.what == FloatClass::infinite)
      code.high = ones(e) << (m - 64);
    else if (!zero)
      code = widen_magnitude(format, number);
  } else {
    const std::uint64_t infinity = ones(e) << m;
    const std::uint64_t largest = format.specials == Specials::ieee       ? infinity - 1
                                  : format.specials == Specials::nan_only ? ones(m + e) - 1
                                                                          : ones(m + e);
    if (number.what == FloatClass::infinite)
      code.low = largest + 1;
    else if (!zero)
      code.low = round_magnitude(format, number);
    if (code.low > largest) code.low = format.specials == Specials::ieee ? infinity : largest;
  }
  if (number.negative && format.sign_bits != 0) {
    if (wide)
      code.high |= std::uint64_t{1} << (m + e - 64);
    else
      code.low |= std::uint64_t{1} << (m + e);
  }
  return code;
}

constexpr bool same(const FloatFormat& a, const FloatFormat& b) noexcept {
  return a.exponent_bits == b.exponent_bits && a.mantissa_bits == b.mantissa_bits &&
         a.bias == b.bias && a.specials == b.specials;
}

/// A normal number of a narrow format, whose exponent is not the last either: only its fields have
/// to be moved to become a float32.
constexpr bool is_plain(const FloatFormat& format, std::uint32_t code) noexcept {
  const auto last = static_cast<std::uint32_t>(ones(format.exponent_bits));
  return (code >> format.mantissa_bits & last) - 1 < last - 1;
}
constexpr float move_fields(const FloatFormat& format, std::uint32_t code) noexcept {
  const unsigned m = format.mantissa_bits;
  const auto magnitude = code & static_cast<std::uint32_t>(ones(m + format.exponent_bits));
  const std::uint32_t sign = code >> m >> format.exponent_bits & format.sign_bits;
  const std::uint32_t rebias = (127u - format.bias) << 23;
  return std::bit_cast<float>(sign << 31 | ((magnitude << (23 - m)) + rebias));
}

// These hold every value of the formats that the callers let in.

constexpr float as_float(const FloatFormat& format, Code code) noexcept {
  const auto narrow = static_cast<std::uint32_t>(code.low);
  if (same(format, binary32)) return std::bit_cast<float>(narrow);
  if (is_plain(format, narrow)) return move_fields(format, narrow);
  const auto wide = pack(binary32, unpack(format, code));
  return std::bit_cast<float>(static_cast<std::uint32_t>(wide->low));
}

constexpr double as_double(const FloatFormat& format, Code code) noexcept {
  if (!same(format, binary64)) code = pack(binary64, unpack(format, code)).value_or(Code{});
  return std::bit_cast<double>(code.low);
}

/// The rows that `decode_float` knows.
constexpr const DTypeInfo* short_float(DType dtype) noexcept {
  const DTypeInfo* row = info(dtype);
  return row != nullptr && (row->kind == Kind::floating || row->kind == Kind::exponent) &&
                 row->bits <= 32
             ? row
             : nullptr;
}

constexpr std::int64_t integer(const DTypeInfo& row, Code code) noexcept {
  if (row.kind != Kind::integer) return static_cast<std::int64_t>(code.low & ones(row.bits));
  const unsigned above = 64u - row.bits;
  return static_cast<std::int64_t>(code.low << above) >> above;
}

/// Calls `each(code, i)` for `n` packed elements, with the width known while compiling.
template <unsigned Width>
void each_code(const std::byte* packed, std::uint64_t first, std::size_t n, auto&& each) noexcept {
  for (std::size_t i = 0; i < n; ++i) each(Code{packed_code<Width>(packed, first + i), 0}, i);
}

void each_code(unsigned width, const std::byte* packed, std::uint64_t first, std::size_t n,
               auto&& each) noexcept {
  switch (width) {
    case 1:
      return each_code<1>(packed, first, n, each);
    case 2:
      return each_code<2>(packed, first, n, each);
    case 4:
      return each_code<4>(packed, first, n, each);
    case 6:
      return each_code<6>(packed, first, n, each);
    case 8:
      return each_code<8>(packed, first, n, each);
    case 16:
      return each_code<16>(packed, first, n, each);
    case 32:
      return each_code<32>(packed, first, n, each);
    case 64:
      return each_code<64>(packed, first, n, each);
    default:
      for (std::size_t i = 0; i < n; ++i)
        each(detail::load_code(packed, width, static_cast<std::int64_t>(first + i)), i);
  }
}

}  // namespace

float decode_float(DType dtype, std::uint32_t code) noexcept {
  const DTypeInfo* row = short_float(dtype);
  return row != nullptr ? as_float(row->format, {code & ones(row->bits), 0}) : 0;
}

std::optional<std::uint32_t> encode_float(DType dtype, double value) noexcept {
  if (short_float(dtype) == nullptr) return std::nullopt;
  const auto code = from_double(dtype, value);
  if (!code) return std::nullopt;
  return static_cast<std::uint32_t>(code->low);
}

double to_double(DType dtype, Code code) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr) return 0;
  switch (row->kind) {
    case Kind::boolean:
    case Kind::integer:
      return static_cast<double>(integer(*row, code));
    case Kind::unsigned_integer:
      return static_cast<double>(code.low & ones(row->bits));
    case Kind::floating:
    case Kind::exponent:
    case Kind::complex:
      return as_double(row->format, code);
  }
  return 0;
}

std::optional<Code> from_double(DType dtype, double value) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr || row->format.exponent_bits == 0) return std::nullopt;
  const Code code{std::bit_cast<std::uint64_t>(value), 0};
  return same(row->format, binary64) ? code : pack(row->format, unpack(binary64, code));
}

std::int64_t to_integer(DType dtype, Code code) noexcept {
  const DTypeInfo* row = info(dtype);
  return row != nullptr && row->format.exponent_bits == 0 ? integer(*row, code) : 0;
}

FloatClass classify(DType dtype, Code code) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr || row->format.exponent_bits == 0) return FloatClass::finite;
  return class_of(row->format, split(row->format, code));
}

std::array<Code, 2> complex_halves(DType dtype, Code code) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr || row->kind != Kind::complex) return {code, Code{}};
  if (row->bits == 128) return {Code{code.low, 0}, Code{code.high, 0}};
  return {Code{code.low & ones(32), 0}, Code{code.low >> 32, 0}};
}

void decode_floats(DType dtype, std::span<const std::byte> packed, std::uint64_t first,
                   std::span<float> out) noexcept {
  const DTypeInfo* row = short_float(dtype);
  if (row == nullptr) {
    std::ranges::fill(out, 0.0f);
    return;
  }
  const FloatFormat format = row->format;
  constexpr std::size_t stretch = 64;
  std::array<std::uint32_t, stretch> codes;
  for (std::size_t done = 0; done < out.size(); done += stretch) {
    const auto to = out.subspan(done, std::min(stretch, out.size() - done));
    each_code(row->bits, packed.data(), first + done, to.size(),
              [&](Code code, std::size_t i) { codes[i] = static_cast<std::uint32_t>(code.low); });
    bool plain = !same(format, binary32);
    for (std::size_t i = 0; i < to.size(); ++i) plain &= is_plain(format, codes[i]);
    if (plain)
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = move_fields(format, codes[i]);
    else
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = as_float(format, {codes[i], 0});
  }
}

void to_doubles(DType dtype, std::span<const std::byte> packed, std::uint64_t first,
                std::span<double> out) noexcept {
  const unsigned width = bits(dtype);
  if (width == 0) {
    std::ranges::fill(out, 0.0);
    return;
  }
  each_code(width, packed.data(), first, out.size(),
            [&](Code code, std::size_t i) { out[i] = to_double(dtype, code); });
}

namespace detail {

Code load_code(const std::byte* packed, unsigned width, std::int64_t at) noexcept {
  const auto word = [](const std::byte* p, unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(p[i]) << (8 * i);
    return value;
  };
  // Eight elements fill `width` bytes.
  const auto bit = static_cast<unsigned>(at & 7) * width;
  const std::byte* p = packed + static_cast<std::ptrdiff_t>((at >> 3) * std::int64_t{width}) +
                       static_cast<std::ptrdiff_t>(bit / 8);
  if (width < 8) {
    const bool spills = bit % 8 + width > 8;
    return {word(p, spills ? 2 : 1) >> bit % 8 & ones(width), 0};
  }
  const unsigned bytes = width / 8;
  Code code{word(p, std::min(bytes, 8u)), 0};
  if (bytes > 8) code.high = word(p + 8, std::min(bytes - 8, 8u));
  return code;
}

}  // namespace detail
}  // namespace hurray
