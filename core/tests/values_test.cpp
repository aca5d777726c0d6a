#include "hurray/values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace hurray {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// A row of the table in 03-quantization.md section 11, and binary16 and bfloat16.
struct Narrow {
  DType dtype;
  int bits, e, m, bias;
  double largest;
  std::uint32_t largest_code;
};

const Narrow narrow_types[] = {
    {DType::float16, 16, 5, 10, 15, 65504, 0x7BFF},
    {DType::bfloat16, 16, 8, 7, 127, 0x1.FEp127, 0x7F7F},
    {DType::float8_e4m3, 8, 4, 3, 7, 448, 0x7E},
    {DType::float8_e5m2, 8, 5, 2, 15, 57344, 0x7B},
    {DType::float4_e2m1, 4, 2, 1, 1, 6, 0x7},
    {DType::float6_e2m3, 6, 2, 3, 1, 7.5, 0x1F},
    {DType::float6_e3m2, 6, 3, 2, 3, 28, 0x1F},
};

TEST(Values, EveryCodeOfEveryNarrowTypeFollowsTheFormula) {
  for (const Narrow& type : narrow_types) {
    SCOPED_TRACE(name(type.dtype));
    const std::uint32_t sign = 1u << (type.bits - 1);
    for (std::uint32_t code = 0; code < 2 * sign; ++code) {
      const float value = decode_float(type.dtype, code);
      ASSERT_EQ(std::signbit(value), (code & sign) != 0) << code;
      const std::uint32_t magnitude = code & (sign - 1);
      if (magnitude > type.largest_code) {
        const bool infinite =
            type.dtype != DType::float8_e4m3 && magnitude == type.largest_code + 1;
        ASSERT_EQ(std::isinf(value), infinite) << code;
        ASSERT_EQ(std::isnan(value), !infinite) << code;
        ASSERT_EQ(classify(type.dtype, {code, 0}),
                  infinite ? FloatClass::infinite : FloatClass::nan);
        if (infinite) {
          ASSERT_EQ(encode_float(type.dtype, double{value}), code);
        }
        continue;
      }
      const int e = static_cast<int>(magnitude >> type.m);
      const double m = static_cast<double>(magnitude & ((1u << type.m) - 1)) / (1 << type.m);
      const double expected =
          e == 0 ? std::ldexp(m, 1 - type.bias) : std::ldexp(1 + m, e - type.bias);
      ASSERT_EQ(std::abs(double{value}), expected) << code;
      ASSERT_EQ(to_double(type.dtype, {code, 0}), double{value});
      ASSERT_EQ(classify(type.dtype, {code, 0}), FloatClass::finite);
      ASSERT_EQ(encode_float(type.dtype, double{value}), code);
    }
    EXPECT_EQ(decode_float(type.dtype, type.largest_code), type.largest);
  }
}

TEST(Values, HalvesGoToTheEvenMantissa) {
  for (const Narrow& type : narrow_types) {
    SCOPED_TRACE(name(type.dtype));
    for (std::uint32_t code = 0; code < type.largest_code; ++code) {
      const double low{decode_float(type.dtype, code)};
      const double high{decode_float(type.dtype, code + 1)};
      const double middle = low + (high - low) / 2;
      const std::uint32_t even = code + (code & 1);
      ASSERT_EQ(encode_float(type.dtype, middle), even) << code;
      ASSERT_EQ(encode_float(type.dtype, std::nextafter(middle, inf)), code + 1) << code;
      ASSERT_EQ(encode_float(type.dtype, std::nextafter(middle, 0)), code) << code;
      const std::uint32_t sign = 1u << (type.bits - 1);
      ASSERT_EQ(encode_float(type.dtype, -middle), even | sign) << code;
    }
  }
}

TEST(Values, ListedValuesOfTheSmallestTypes) {
  const float e2m1[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode_float(DType::float4_e2m1, code), e2m1[code]);
    EXPECT_EQ(decode_float(DType::float4_e2m1, code + 8), -e2m1[code]);
  }
  for (std::uint32_t code = 0; code < 32; ++code) {
    const auto at = static_cast<float>(code);
    const float e2m3 = code < 16   ? .125f * at
                       : code < 24 ? 2 + .25f * (at - 16)
                                   : 4 + .5f * (at - 24);
    EXPECT_EQ(decode_float(DType::float6_e2m3, code), e2m3);
    const float steps[] = {.0625f, .0625f, .125f, .25f, .5f, 1, 2, 4};
    const float starts[] = {0, .25f, .5f, 1, 2, 4, 8, 16};
    EXPECT_EQ(decode_float(DType::float6_e3m2, code),
              starts[code / 4] + steps[code / 4] * static_cast<float>(code % 4));
  }
}

TEST(Values, WhatIsTooLargeIsClampedOrInfinite) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float8_e5m2}) {
    const Narrow& type = *std::ranges::find(narrow_types, dtype, &Narrow::dtype);
    const double step = type.largest - double{decode_float(dtype, type.largest_code - 1)};
    const double edge = type.largest + step / 2;
    EXPECT_EQ(encode_float(dtype, std::nextafter(edge, 0)), type.largest_code);
    EXPECT_EQ(encode_float(dtype, edge), type.largest_code + 1);
    EXPECT_EQ(encode_float(dtype, 1e308), type.largest_code + 1);
    EXPECT_EQ(encode_float(dtype, inf), type.largest_code + 1);
  }
  for (const double large : {449.0, 464.0, 465.0, 480.0, 1e308, inf}) {
    EXPECT_EQ(encode_float(DType::float8_e4m3, large), 0x7Eu);
    EXPECT_EQ(encode_float(DType::float8_e4m3, -large), 0xFEu);
    EXPECT_EQ(encode_float(DType::float4_e2m1, large), 0x7u);
    EXPECT_EQ(encode_float(DType::float4_e2m1, -large), 0xFu);
    EXPECT_EQ(encode_float(DType::float6_e2m3, large), 0x1Fu);
    EXPECT_EQ(encode_float(DType::float6_e3m2, -large), 0x3Fu);
  }
}

TEST(Values, NanKeepsItsSignOrIsRefused) {
  EXPECT_EQ(encode_float(DType::float16, nan), 0x7E00u);
  EXPECT_EQ(encode_float(DType::bfloat16, -nan), 0xFFC0u);
  EXPECT_EQ(encode_float(DType::float32, nan), 0x7FC00000u);
  EXPECT_EQ(encode_float(DType::float8_e4m3, nan), 0x7Fu);
  EXPECT_EQ(encode_float(DType::float8_e4m3, -nan), 0xFFu);
  EXPECT_EQ(encode_float(DType::float8_e5m2, nan), 0x7Eu);
  EXPECT_EQ(encode_float(DType::float8_e8m0, nan), 0xFFu);
  EXPECT_EQ(encode_float(DType::float8_e8m0, -nan), 0xFFu);
  for (const DType dtype : {DType::float4_e2m1, DType::float6_e2m3, DType::float6_e3m2})
    EXPECT_EQ(encode_float(dtype, nan), std::nullopt);
  EXPECT_EQ(bits_of(decode_float(DType::float8_e4m3, 0xFF)), 0xFFC00000u);
  EXPECT_EQ(bits_of(decode_float(DType::float8_e5m2, 0x7D)), 0x7FC00000u);
  if (FLT_EVAL_METHOD == 0) {  // else to return a float changes a signalling NaN
    EXPECT_EQ(bits_of(decode_float(DType::float32, 0xFFA12345)), 0xFFA12345u);
  }
}

TEST(Values, PowersOfTwo) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    const double value = std::ldexp(1.0, static_cast<int>(code) - 127);
    EXPECT_EQ(decode_float(DType::float8_e8m0, code), value);
    EXPECT_EQ(encode_float(DType::float8_e8m0, value), code);
    const std::uint32_t next = std::min(code + 1, 254u);
    EXPECT_EQ(encode_float(DType::float8_e8m0, value * 1.5), next);
    EXPECT_EQ(encode_float(DType::float8_e8m0, std::nextafter(value * 1.5, 0)), code);
  }
  EXPECT_EQ(bits_of(decode_float(DType::float8_e8m0, 0)), 0x00400000u);
  EXPECT_TRUE(std::isnan(decode_float(DType::float8_e8m0, 0xFF)));
  for (const double small : {0.0, -0.0, 1e-45, 0x1p-128, 0x1.8p-128, 5e-324})
    EXPECT_EQ(encode_float(DType::float8_e8m0, small), 0u) << small;
  for (const double large : {0x1.8p127, 0x1p128, 1e308, inf})
    EXPECT_EQ(encode_float(DType::float8_e8m0, large), 254u) << large;
  for (const double negative : {-1.0, -5e-324, -inf})
    EXPECT_EQ(encode_float(DType::float8_e8m0, negative), 255u) << negative;
}

TEST(Values, Float32IsRoundedAsTheProcessorDoes) {
  std::uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents around the whole range of float32, subnormals and overflow included.
    const std::uint64_t exponent = 1023 - 160 + (state >> 40) % 300;
    const double value = std::bit_cast<double>((state & 0x800FFFFFFFFFFFFFu) | exponent << 52);
    const float expected = static_cast<float>(value);
    ASSERT_EQ(encode_float(DType::float32, value), bits_of(expected)) << value;
    ASSERT_EQ(to_double(DType::float32, {bits_of(expected), 0}), double{expected});
  }
}

Code float128(std::uint64_t exponent, std::uint64_t high, std::uint64_t low,
              bool negative = false) {
  return {low, std::uint64_t{negative} << 63 | exponent << 48 | high};
}

TEST(Values, Float128IsRoundedOnce) {
  const auto value = [](const Code& code) { return to_double(DType::float128, code); };
  EXPECT_EQ(value(float128(16383, 0, 0)), 1.0);
  EXPECT_EQ(value(float128(16384, 0x800000000000, 0, true)), -3.0);
  EXPECT_EQ(bits_of(static_cast<float>(value(float128(0, 0, 0, true)))), 0x80000000u);
  // 1 + 2^-53 is halfway; a bit at the far end of the mantissa decides.
  EXPECT_EQ(value(float128(16383, 0, std::uint64_t{1} << 59)), 1.0);
  EXPECT_EQ(value(float128(16383, 0, (std::uint64_t{1} << 59) + 1)), 1.0 + 0x1p-52);
  EXPECT_EQ(value(float128(16383, 0, std::uint64_t{3} << 59)), 1.0 + 0x1p-51);
  EXPECT_EQ(value(float128(16383, 0xFFFFFFFFFFFF, ~std::uint64_t{0})), 2.0);
  EXPECT_EQ(value(float128(16383 + 1023, 0xFFFFFFFFFFFF, 0xF000000000000000)),
            std::numeric_limits<double>::max());
  EXPECT_EQ(value(float128(16383 + 1023, 0xFFFFFFFFFFFF, 0xF800000000000000)), inf);
  EXPECT_EQ(value(float128(0x7FFE, 0, 0)), inf);
  EXPECT_EQ(value(float128(16383 - 1074, 0, 0)), 0x1p-1074);
  EXPECT_EQ(value(float128(16383 - 1075, 0, 0)), 0.0);
  EXPECT_EQ(value(float128(16383 - 1075, 0, 1)), 0x1p-1074);
  EXPECT_EQ(value(float128(1, 0, 0)), 0.0);
  EXPECT_EQ(value(float128(0, 0xFFFFFFFFFFFF, 1)), 0.0);
  EXPECT_EQ(value(float128(0x7FFF, 0, 0, true)), -inf);
  EXPECT_TRUE(std::isnan(value(float128(0x7FFF, 0, 1))));
  EXPECT_EQ(classify(DType::float128, float128(0x7FFF, 0, 1)), FloatClass::nan);
  EXPECT_EQ(classify(DType::float128, float128(0x7FFF, 0, 0)), FloatClass::infinite);
  EXPECT_EQ(classify(DType::float128, float128(0x7FFE, 1, 0)), FloatClass::finite);
}

TEST(Values, Float128HoldsEveryFloat64) {
  const auto check = [](double value) {
    const auto code = from_double(DType::float128, value);
    ASSERT_TRUE(code);
    const double back = to_double(DType::float128, *code);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(value)) << value;
  };
  for (const double value : {0.0, 1.0, 0.1, 5e-324, 0x1.8p-1070, 1e308, inf, nan}) {
    check(value);
    check(-value);
  }
  std::uint64_t state = 7;
  for (int i = 0; i < 100000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto value = std::bit_cast<double>(state ^ state >> 29);
    if (!std::isnan(value)) check(value);
  }
  EXPECT_EQ(from_double(DType::float128, 1.0), float128(16383, 0, 0));
  EXPECT_EQ(from_double(DType::float128, 5e-324), float128(16383 - 1074, 0, 0));
  EXPECT_EQ(from_double(DType::float128, -nan), float128(0x7FFF, 0x800000000000, 0, true));
}

TEST(Values, IntegersAndBool) {
  EXPECT_EQ(to_integer(DType::int4, {0x8, 0}), -8);
  EXPECT_EQ(to_integer(DType::uint4, {0xF, 0}), 15);
  EXPECT_EQ(to_integer(DType::int2, {3, 0}), -1);
  EXPECT_EQ(to_integer(DType::uint2, {3, 0}), 3);
  EXPECT_EQ(to_integer(DType::int8, {0x80, 0}), -128);
  EXPECT_EQ(to_integer(DType::int16, {0xFFFF, 0}), -1);
  EXPECT_EQ(to_integer(DType::uint32, {0xFFFFFFFF, 0}), 4294967295);
  EXPECT_EQ(to_integer(DType::int64, {~std::uint64_t{0}, 0}), -1);
  EXPECT_EQ(to_integer(DType::bool_, {1, 0}), 1);
  EXPECT_EQ(to_integer(DType::float32, {1, 0}), 0);
  EXPECT_EQ(to_double(DType::uint64, {~std::uint64_t{0}, 0}), 18446744073709551616.0);
  EXPECT_EQ(to_double(DType::int64, {std::uint64_t{1} << 63, 0}), -9223372036854775808.0);
  EXPECT_EQ(to_double(DType::int2, {2, 0}), -2);
  EXPECT_EQ(to_double(DType::bool_, {1, 0}), 1);
  EXPECT_EQ(to_double(DType{0x47}, {1, 0}), 0);
  EXPECT_EQ(from_double(DType::int8, 1), std::nullopt);
  EXPECT_EQ(encode_float(DType::float64, 1), std::nullopt);
  EXPECT_EQ(decode_float(DType::int8, 1), 0);
}

TEST(Values, ComplexHalves) {
  const Code one{std::bit_cast<std::uint64_t>(1.5), std::bit_cast<std::uint64_t>(-2.0)};
  const auto wide = complex_halves(DType::complex128, one);
  EXPECT_EQ(to_double(DType::complex128, wide[0]), 1.5);
  EXPECT_EQ(to_double(DType::complex128, wide[1]), -2.0);
  const auto half = complex_halves(DType::complex64, {0xC0000000'3FC00000u, 0});
  EXPECT_EQ(to_double(DType::complex64, half[0]), 1.5);
  EXPECT_EQ(to_double(DType::complex64, half[1]), -2.0);
  EXPECT_EQ(complex_halves(DType::float32, {5, 0})[0], (Code{5, 0}));
}

// 01-descriptor.md section 2.3.
TEST(Values, PackedElements) {
  const auto doubles = [](DType dtype, std::vector<std::uint8_t> bytes, std::size_t n) {
    std::vector<double> out(n);
    to_doubles(dtype, std::as_bytes(std::span(bytes)), 0, out);
    return out;
  };
  EXPECT_EQ(doubles(DType::bool_, {0x46, 0x03}, 10),
            (std::vector<double>{0, 1, 1, 0, 0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(doubles(DType::int4, {0x7D, 0x18, 0x02}, 5), (std::vector<double>{-3, 7, -8, 1, 2}));
  EXPECT_EQ(doubles(DType::uint2, {0x72, 0x01}, 5), (std::vector<double>{2, 0, 3, 1, 1}));
  EXPECT_EQ(doubles(DType::int2, {0x4E, 0x03}, 5), (std::vector<double>{-2, -1, 0, 1, -1}));
  const std::vector<std::uint8_t> six{0xED, 0x84, 0x1B, 0x21, 0x00, 0x00};
  EXPECT_EQ(doubles(DType::float6_e2m3, six, 5),
            (std::vector<double>{-1.625, 2.75, -4, 0.75, -0.125}));
  EXPECT_EQ(doubles(DType::float6_e3m2, six, 5),
            (std::vector<double>{-1.25, 3.5, -8, 0.375, -0.0625}));
  std::vector<float> floats(3);
  decode_floats(DType::float6_e3m2, std::as_bytes(std::span(six)), 2, floats);
  EXPECT_EQ(floats, (std::vector<float>{-8, 0.375f, -0.0625f}));
  decode_floats(DType::int8, std::as_bytes(std::span(six)), 0, floats);
  EXPECT_EQ(floats, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(doubles(DType{0x47}, {1}, 1), (std::vector<double>{0}));
}

// 02-layouts.md section 3, among them elements before the start.
TEST(Values, CodesOfNegativeElements) {
  std::vector<std::byte> bytes(16);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  const std::byte* middle = bytes.data() + 6;
  for (const unsigned width : {1u, 2u, 4u, 6u, 8u, 16u, 24u}) {
    const std::int64_t elements = 6 * 8 / static_cast<std::int64_t>(width);
    for (std::int64_t at = -elements; at < elements; ++at) {
      std::uint64_t expected = 0;
      for (unsigned k = 0; k < width; ++k) {
        const std::int64_t bit = 48 + at * static_cast<std::int64_t>(width) + k;
        const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(bit / 8)]);
        expected |= std::uint64_t{byte >> (bit % 8) & 1u} << k;
      }
      ASSERT_EQ(detail::load_code(middle, width, at), (Code{expected, 0})) << width << " " << at;
    }
  }
  const Code wide = detail::load_code(bytes.data(), 128, 0);
  EXPECT_EQ(wide.low & 0xFF, 11u);
  EXPECT_EQ(wide.high & 0xFF, (8u * 37 + 11) & 0xFF);
}

// data/values_vectors.py
TEST(Values, AsMlDtypesAndNumpy) {
  std::ifstream file(HURRAY_TEST_DATA_DIR "/values.txt");
  ASSERT_TRUE(file);
  std::size_t compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    std::string type;
    words >> what >> type;
    const DTypeInfo* row = find_name(dtypes, type);
    ASSERT_NE(row, nullptr) << type;
    SCOPED_TRACE(what + " " + type);
    words >> std::hex;
    std::uint32_t code = 0;
    for (std::uint32_t value = 0; words >> value; ++code, ++compared) {
      if (what == "decode") {
        ASSERT_EQ(bits_of(decode_float(row->tag, code)), value) << code;
      } else {
        std::uint32_t expected = 0;
        words >> expected;
        ASSERT_EQ(encode_float(row->tag, double{std::bit_cast<float>(value)}), expected)
            << std::bit_cast<float>(value);
      }
    }
  }
  EXPECT_GT(compared, 4000u);
}

}  // namespace
}  // namespace hurray
