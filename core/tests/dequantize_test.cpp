#include "hurray/dequantize.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "hurray/quantization_checks.hpp"
#include "quantized_tensors.hpp"
#include "row_dequantizer.hpp"

namespace hurray {
namespace {

using namespace hurray::testing;

using Bits = std::vector<std::uint32_t>;
using Index = std::vector<std::uint64_t>;

constexpr std::uint32_t any_nan = 0x7FC00000;

std::uint32_t bits(float value) {
  return std::isnan(value) ? any_nan : std::bit_cast<std::uint32_t>(value);
}

Bits bits(std::span<const float> values) {
  Bits all;
  for (const float value : values) all.push_back(bits(value));
  return all;
}

/// One quantized tensor of data/quantized.txt.
struct Case {
  std::string name;
  Bytes descriptor;
  std::vector<Bytes> buffers;
  Index tokens;
  Bits expected;
};

std::vector<Case> read_cases() {
  std::ifstream file(HURRAY_TEST_DATA_DIR "/quantized.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "case") words >> cases.emplace_back().name;
    if (what == "descriptor") cases.back().descriptor = hex(line.substr(what.size()));
    if (what == "buffer") cases.back().buffers.push_back(hex(line.substr(what.size())));
    std::string word;
    while (what == "tokens" && words >> word) cases.back().tokens.push_back(std::stoull(word));
    while (what == "expected" && words >> word)
      cases.back().expected.push_back(
          word == "nan" ? any_nan : static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
  }
  return cases;
}

/// Calls `each(index)` row by row; of a block-paged tensor token by token.
template <class Each>
void for_each_index(const Shape& shape, const Index& tokens, Each each) {
  if (!tokens.empty()) {
    for (std::uint64_t s = 0; s < tokens.size(); ++s)
      for (std::uint64_t t = 0; t < tokens[static_cast<std::size_t>(s)]; ++t)
        for (std::uint64_t h = 0; h < shape[1]; ++h)
          for (std::uint64_t d = 0; d < shape[2]; ++d) each(Index{s, t, h, d});
    return;
  }
  Index index(shape.rank());
  for (std::uint64_t n = shape.count(); n > 0; --n) {
    each(index);
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
}

// data/quantized_vectors.py
TEST(Dequantize, AsTheOracle) {
  const auto cases = read_cases();
  ASSERT_GT(cases.size(), 100u);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    auto descriptor = decode(one.descriptor);
    ASSERT_TRUE(descriptor) << to_string(descriptor.error());
    const Tensor tensor = tensor_of(*descriptor, one.buffers);
    const ElementOptions options{.sequence_tokens = one.tokens};

    const auto whole = dequantize(tensor, options);
    ASSERT_TRUE(whole) << to_string(whole.error());
    EXPECT_EQ(whole->descriptor().dtype, DType::float32);
    EXPECT_EQ(whole->descriptor().shape, tensor.descriptor().shape);
    EXPECT_TRUE(std::holds_alternative<RowMajor>(whole->descriptor().layout));
    Bits found;
    for (const std::uint32_t value : bits_of(*whole))
      found.push_back(bits(std::bit_cast<float>(value)));
    EXPECT_EQ(found, one.expected);

    std::vector<float> into(one.expected.size(), 99.0f);
    ASSERT_TRUE(dequantize_into(tensor, into, options));
    EXPECT_EQ(bits(into), one.expected);

    const auto elements = Elements::over(tensor, options);
    ASSERT_TRUE(elements);
    Bits single;
    for_each_index(tensor.descriptor().shape, one.tokens, [&](const Index& index) {
      const auto value = dequantize(*elements, index);
      ASSERT_TRUE(value) << to_string(value.error());
      single.push_back(bits(*value));
    });
    EXPECT_EQ(single, one.expected);
  }
}

TEST(Dequantize, BlocksOfTheOracleMakeUpTheTensor) {
  std::size_t compared = 0;
  for (const Case& one : read_cases()) {
    SCOPED_TRACE(one.name);
    const Tensor tensor = tensor_of(*decode(one.descriptor), one.buffers);
    const Descriptor& d = tensor.descriptor();
    const SchemeParameters of = parameters(d.quantization()->scheme);
    const auto elements = Elements::over(tensor, {.sequence_tokens = one.tokens});
    ASSERT_TRUE(elements);
    std::vector<float> block(2048);
    if (of.block_size == 0 || !one.tokens.empty()) {
      const auto refused = dequantize_block(*elements, 0, block);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Errc::unsupported);
      continue;
    }
    const std::uint64_t blocks = *parameter_entries(d.quantization()->scheme, d.shape, d.layout);
    std::vector<Bits> found;
    for (std::uint64_t b = 0; b < blocks; ++b) {
      const auto length = dequantize_block(*elements, b, block);
      ASSERT_TRUE(length) << to_string(length.error());
      found.push_back(bits(std::span(block).first(*length)));
      EXPECT_EQ(dequantize_block(*elements, b, std::span(block).first(*length - 1)).error().code,
                Errc::inconsistent);
    }
    EXPECT_EQ(dequantize_block(*elements, blocks, block).error().code, Errc::out_of_bounds);
    const Quantized quantized(tensor);
    std::size_t at = 0;
    for_each_index(d.shape, {}, [&](const Index& index) {
      const auto b = static_cast<std::size_t>(quantized.entry(index, 0));
      const auto k = static_cast<std::size_t>(index[*of.axis] % of.block_size);
      ASSERT_LT(k, found[b].size());
      ASSERT_EQ(found[b][k], one.expected[at++]);
      ++compared;
    });
  }
  EXPECT_GT(compared, 1000u);
}

// The examples of 03-quantization.md.

std::uint32_t only_element(const Tensor& tensor, const Index& index) {
  const auto value = dequantize(*Elements::over(tensor), index);
  EXPECT_TRUE(value) << to_string(value.error());
  return value ? bits(*value) : 0;
}

TEST(Dequantize, PerTensorExample) {
  const Tensor tensor = quantized(DType::uint8, {1}, PerTensorAffine{0.0625f, 120}, {hex("C8")});
  EXPECT_EQ(bits_of(*dequantize(tensor)), (Bits{0x40A00000}));  // 5.0
}

TEST(Dequantize, DifferencesOf64Bits) {
  const auto value = [](DType dtype, std::uint32_t code, std::int32_t zero) {
    const Tensor tensor =
        quantized(dtype, {1}, PerTensorAffine{1, zero}, {bytes_of<std::uint32_t>({code})});
    return std::bit_cast<float>(bits_of(*dequantize(tensor))[0]);
  };
  EXPECT_EQ(value(DType::int32, 2147483647, std::numeric_limits<std::int32_t>::min()),
            4294967296.0f);
  EXPECT_EQ(value(DType::uint32, 4000000000, 5), static_cast<float>(3999999995));
  EXPECT_EQ(value(DType::int32, 16777217, 0), 16777216.0f);
  EXPECT_EQ(value(DType::int32, 16777219, 0), 16777220.0f);
}

TEST(Dequantize, BlockIndexExample) {
  // n = [2,5,3], axis 1, K = 2: the scale of block b is b + 1.
  std::vector<float> scales;
  for (int b = 0; b < 18; ++b) scales.push_back(static_cast<float>(b + 1));
  const Tensor tensor =
      quantized(DType::int8, {2, 5, 3}, PerBlockAffine{1, 2, 1, no_buffer, DType::float32},
                {Bytes(30, std::byte{1}), bytes_of(scales)});
  EXPECT_EQ(only_element(tensor, {0, 4, 0}), bits(3.0f));
  EXPECT_EQ(only_element(tensor, {0, 0, 1}), bits(4.0f));
  EXPECT_EQ(only_element(tensor, {1, 3, 0}), bits(11.0f));
  EXPECT_EQ(only_element(tensor, {1, 4, 2}), bits(18.0f));
}

TEST(Dequantize, BlocksAlongTheFirstAxisOfAMatrix) {
  const Tensor tensor =
      quantized(DType::int8, {4, 3}, PerBlockAffine{0, 2, 1, no_buffer, DType::float32},
                {Bytes(12, std::byte{1}), bytes_of<float>({1, 2, 3, 4, 5, 6})});
  Bits expected;
  for (const float value : {1.f, 3.f, 5.f, 1.f, 3.f, 5.f, 2.f, 4.f, 6.f, 2.f, 4.f, 6.f})
    expected.push_back(bits(value));
  EXPECT_EQ(bits_of(*dequantize(tensor)), expected);
}

TEST(Dequantize, Nf4ExampleAndTable) {
  Bytes codes;
  for (unsigned k = 0; k < 8; ++k)
    codes.push_back(static_cast<std::byte>(2 * k | (2 * k + 1) << 4));
  const Tensor plain = quantized(DType::uint4, {16}, Nf4{0, 16, 1}, {codes, bytes_of<float>({1})});
  EXPECT_EQ(bits_of(*dequantize(plain)),
            (Bits{0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F,
                  0xBDBA7871, 0x00000000, 0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A,
                  0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000}));
  const Tensor scaled =
      quantized(DType::uint4, {16}, Nf4{0, 16, 1}, {codes, bytes_of<float>({2.5f})});
  EXPECT_EQ(bits_of(*dequantize(scaled))[12], 0x3F8D06F3u);
}

TEST(Dequantize, MxfpExample) {
  Bytes codes(8, std::byte{0});
  codes[0] = std::byte{0xB6};
  const Tensor tensor = quantized(DType::float4_e2m1, {16}, Mxfp{0, 16, 1}, {codes, hex("7D")});
  const Bits values = bits_of(*dequantize(tensor));
  EXPECT_EQ(values[0], bits(1.0f));
  EXPECT_EQ(values[1], bits(-0.375f));
  EXPECT_EQ(values[2], 0u);
}

TEST(Dequantize, TheSmallestMxfpScaleIsTwoToTheMinus127) {
  Bytes codes = hex("01 FF 02 80 00 40");
  codes.resize(16);
  const Tensor tensor = quantized(DType::int8, {16}, Mxfp{0, 16, 1}, {codes, hex("00")});
  const Bits values = bits_of(*dequantize(tensor));
  EXPECT_EQ(values[0], 0x00400000u);
  EXPECT_EQ(values[1], 0x80400000u);
  EXPECT_EQ(values[2], 0x00800000u);
  EXPECT_EQ(values[3], bits(-0x1p-120f));
  EXPECT_EQ(values[4], 0u);
  EXPECT_EQ(values[5], bits(0x1p-121f));
}

TEST(Dequantize, SharedParameterBufferAtAnOddOffset) {
  // Five float16 scales of 1, then zero points from byte 10 on (Q5).
  Bytes shared;
  for (int k = 0; k < 5; ++k) {
    shared.push_back(std::byte{0x00});
    shared.push_back(std::byte{0x3C});
  }
  for (const std::byte b : bytes_of<std::int32_t>({1, 2, 3, 4, 5})) shared.push_back(b);
  ASSERT_EQ(shared.size(), 30u);
  const Tensor tensor = quantized(DType::uint8, {5, 2}, PerBlockAffine{1, 2, 1, 1, DType::float16},
                                  {Bytes(10, std::byte{10}), shared});
  Bits expected;
  for (const float value : {9.f, 9.f, 8.f, 8.f, 7.f, 7.f, 6.f, 6.f, 5.f, 5.f})
    expected.push_back(bits(value));
  EXPECT_EQ(bits_of(*dequantize(tensor)), expected);
}

TEST(Dequantize, UnstoredElementsAreZeroNotTheZeroPoint) {
  const Tensor tensor = quantized(
      DType::uint8, {2, 3}, PerTensorAffine{1, 100},
      {hex("69"), bytes_of<std::uint64_t>({2}), bytes_of<std::uint64_t>({0, 0, 1})}, Csr{.nnz = 1});
  EXPECT_EQ(bits_of(*dequantize(tensor)), (Bits{0, 0, 0, 0, 0, bits(5.0f)}));
  EXPECT_EQ(only_element(tensor, {0, 0}), 0u);
}

TEST(Dequantize, SectionsThatStayTrueAreKept) {
  Descriptor d;
  d.dtype = DType::int8;
  d.shape = {2, 2};
  d.set_quantization(Quantization{PerTensorAffine{0.5f, 0}, {}});
  d.set_shard(Shard{Shape{4, 2}, Shape{2, 0}});
  Statistics statistics;
  statistics.computed_mask = 0b000111;
  statistics.nnz = 4;
  statistics.value_max = 2;
  d.set_statistics(statistics);
  const auto values = dequantize(tensor_of(d, {hex("01 02 03 04")}));
  ASSERT_TRUE(values);
  EXPECT_EQ(values->descriptor().quantization(), nullptr);
  ASSERT_NE(values->descriptor().shard(), nullptr);
  EXPECT_EQ(*values->descriptor().shard(), *d.shard());
  ASSERT_NE(values->descriptor().statistics(), nullptr);
  EXPECT_EQ(*values->descriptor().statistics(), statistics);

  Descriptor sparse;
  sparse.dtype = DType::int8;
  sparse.shape = {4};
  sparse.layout = Coo{.nnz = 1};
  sparse.set_quantization(Quantization{PerTensorAffine{0.5f, 0}, {}});
  statistics.nnz = 1;
  sparse.set_statistics(statistics);
  const auto dense = dequantize(tensor_of(sparse, {hex("00"), bytes_of<std::uint64_t>({3})}));
  ASSERT_TRUE(dense);
  ASSERT_NE(dense->descriptor().statistics(), nullptr);
  EXPECT_EQ(dense->descriptor().statistics()->computed_mask, 0b000100u);
}

TEST(Dequantize, ScalarsAndEmptyTensors) {
  const Tensor scalar = quantized(DType::int4, {}, PerTensorAffine{3, -1}, {hex("08")});
  EXPECT_EQ(bits_of(*dequantize(scalar)), (Bits{bits(-21.0f)}));
  const Tensor empty = quantized(DType::int4, {0, 4}, PerBlockAffine{0, 2, 1}, {{}, {}});
  const auto values = dequantize(empty);
  ASSERT_TRUE(values) << to_string(values.error());
  EXPECT_EQ(values->buffer(0).size(), 0u);
  const Tensor channels =
      quantized(DType::int8, {0, 2}, PerChannelAffine{1}, {{}, bytes_of<float>({1, 2})});
  EXPECT_TRUE(dequantize(channels));
}

TEST(Dequantize, SaysWhatCannotBeDequantized) {
  const Tensor plain = tensor_of(dense(DType::float32, {2}), {Bytes(8)});
  const auto refused = dequantize(plain);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_EQ(to_string(refused.error()),
            "quantization: not there: the elements are values already (unsupported)");
  const Index index{0};
  EXPECT_EQ(dequantize(*Elements::over(plain), index).error().code, Errc::unsupported);
  std::vector<float> out(2);
  EXPECT_EQ(dequantize_block(*Elements::over(plain), 0, out).error().code, Errc::unsupported);

  const Tensor tensor = quantized(DType::uint8, {1}, PerTensorAffine{1, 0}, {hex("01")});
  const auto wrong = dequantize_into(tensor, out);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::inconsistent);
  EXPECT_EQ(wrong.error().expected, 1u);
  EXPECT_EQ(wrong.error().found, 2u);
  const Index outside{1};
  EXPECT_EQ(dequantize(*Elements::over(tensor), outside).error().code, Errc::out_of_bounds);

  // A shape that only a sparse tensor can have: no memory is asked for.
  const Tensor huge = quantized(DType::uint8, {std::uint64_t{1} << 32, std::uint64_t{1} << 31},
                                PerTensorAffine{1, 0}, {{}, {}}, Coo{.nnz = 0});
  EXPECT_EQ(dequantize(huge).error().code, Errc::overflow);
}

TEST(Dequantize, PagedNeedsTheTokensWhereTheyAreOpen) {
  const Tensor tensor = quantized(
      DType::uint8, {3, 1, 1}, PerTensorAffine{1, 0},
      {hex("01 02 03 04"), bytes_of<std::uint32_t>({0, 1}), bytes_of<std::uint32_t>({0, 1, 2})},
      BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 2});
  EXPECT_EQ(dequantize(tensor).error().code, Errc::unsupported);
  const Index tokens{1, 2};
  const auto values = dequantize(tensor, {.sequence_tokens = tokens});
  ASSERT_TRUE(values) << to_string(values.error());
  EXPECT_EQ(bits_of(*values), (Bits{bits(1.0f), bits(3.0f), bits(4.0f)}));
}

// Parameters: B7 and B8.

void expect_bad(const Tensor& tensor, std::string_view field, std::uint64_t entry,
                std::uint64_t offset) {
  const auto checked = check_parameters(tensor);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::invalid_value);
  EXPECT_EQ(checked.error().origin, Origin::buffer);
  EXPECT_EQ(checked.error().field, field);
  EXPECT_EQ(checked.error().index, entry);
  EXPECT_EQ(checked.error().offset, offset);
  const auto whole = dequantize(tensor);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error(), checked.error());
}

TEST(CheckParameters, AffineScalesAreFiniteAndNotZero) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {0.0f, -0.0f, inf, -inf, nan}) {
    expect_bad(quantized(DType::int8, {3, 1}, PerChannelAffine{0},
                         {Bytes(3), bytes_of<float>({1, -2, bad})}),
               "scale[]", 2, 8);
    expect_bad(quantized(DType::int8, {2, 2}, PerBlockAffine{1, 2, 1, no_buffer, DType::float32},
                         {Bytes(4), bytes_of<float>({1e-45f, bad})}),
               "scale[]", 1, 4);
  }
  for (const int bad : {0x0000, 0x8000, 0x7C00, 0xFC00, 0x7C01})
    expect_bad(
        quantized(DType::int8, {2, 2}, PerBlockAffine{1, 2, 1, no_buffer, DType::float16},
                  {Bytes(4), bytes_of<std::uint16_t>({0x8001, static_cast<std::uint16_t>(bad)})}),
        "scale[]", 1, 2);
  for (const int bad : {0x0000, 0x8000, 0x7F80, 0xFF81})
    expect_bad(
        quantized(DType::int8, {2, 2}, PerBlockAffine{1, 2, 1, no_buffer, DType::bfloat16},
                  {Bytes(4), bytes_of<std::uint16_t>({0x7F7F, static_cast<std::uint16_t>(bad)})}),
        "scale[]", 1, 2);
}

TEST(CheckParameters, TheFirstOfManyIsFound) {
  for (const std::size_t bad : {0u, 63u, 64u, 100u, 199u}) {
    std::vector<float> scales(200, 1.0f);
    scales[bad] = 0;
    scales[199] = 0;
    expect_bad(quantized(DType::int8, {200}, PerChannelAffine{0}, {Bytes(200), bytes_of(scales)}),
               "scale[]", bad, 4 * bad);
  }
}

TEST(CheckParameters, Nf4ScalesAreFiniteAndNotNegative) {
  const auto with = [](float scale) {
    return quantized(DType::uint4, {8}, Nf4{0, 8, 1}, {Bytes(4), bytes_of<float>({scale})});
  };
  for (const float good : {0.0f, -0.0f, 1e-45f, 3e38f}) EXPECT_TRUE(check_parameters(with(good)));
  for (const float bad : {-1e-45f, -1.0f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    expect_bad(with(bad), "scale[]", 0, 0);
}

TEST(CheckParameters, MxfpScalesAreNumbers) {
  const auto with = [](const std::string& scales) {
    return quantized(DType::int4, {2, 16}, Mxfp{1, 16, 1}, {Bytes(16), hex(scales)});
  };
  EXPECT_TRUE(check_parameters(with("00 FE")));
  expect_bad(with("00 FF"), "scale[]", 1, 1);
}

TEST(CheckParameters, ZeroPointsOfChannelsLieInRange) {
  const auto with = [](DType dtype, std::int32_t zero) {
    return quantized(dtype, {2}, PerChannelAffine{0, 1, 2},
                     {Bytes(8), bytes_of<float>({1, 1}), bytes_of<std::int32_t>({0, zero})});
  };
  EXPECT_TRUE(check_parameters(with(DType::int4, -8)));
  EXPECT_TRUE(check_parameters(with(DType::uint32, 2147483647)));
  expect_bad(with(DType::int4, 8), "zero_point[]", 1, 4);
  expect_bad(with(DType::uint32, -1), "zero_point[]", 1, 4);
  // In a shared buffer they follow two scales.
  expect_bad(quantized(DType::uint2, {2}, PerChannelAffine{0, 1, 1},
                       {Bytes(1), hex("00 00 80 3F 00 00 80 3F 00 00 00 00 04 00 00 00")}),
             "zero_point[]", 1, 12);
}

TEST(CheckParameters, ZeroPointsOfBlocksMayBeAnything) {
  const Tensor tensor = quantized(DType::uint4, {2}, PerBlockAffine{0, 2, 1, 2, DType::float32},
                                  {hex("F0"), bytes_of<float>({1}), bytes_of<std::int32_t>({16})});
  EXPECT_TRUE(check_parameters(tensor));
  EXPECT_EQ(bits_of(*dequantize(tensor)), (Bits{bits(-16.0f), bits(-1.0f)}));
}

TEST(CheckParameters, OnlyPageSlotsThatHoldATokenCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto with = [](std::uint64_t tokens, const std::vector<float>& scales) {
    return quantized(DType::uint8, {tokens, 1, 1},
                     PerBlockAffine{0, 2, 3, no_buffer, DType::float32},
                     {hex("01 02 03 04"), bytes_of<std::uint32_t>({1}),
                      bytes_of<std::uint32_t>({0, 1, 1}), bytes_of(scales)},
                     BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 2});
  };
  EXPECT_TRUE(check_parameters(with(2, {nan, nan, 1, 1})));
  expect_bad(with(2, {nan, nan, 1, nan}), "scale[]", 3, 12);
  const Tensor open = with(1, {nan, nan, 1, nan});
  EXPECT_TRUE(check_parameters(open));  // one sequence owns all pages: token 1 is not there
  const auto values = dequantize(open);
  ASSERT_TRUE(values) << to_string(values.error());
  EXPECT_EQ(bits_of(*values), (Bits{bits(3.0f)}));
  const Index tokens{1, 0};
  EXPECT_TRUE(check_parameters(open, tokens));
}

TEST(CheckParameters, OneElementOrBlockJudgesItsOwn) {
  const Tensor tensor =
      quantized(DType::int8, {2, 2}, PerBlockAffine{1, 2, 1, no_buffer, DType::float32},
                {hex("01 02 03 04"), bytes_of<float>({1, 0})});
  EXPECT_EQ(only_element(tensor, {0, 1}), bits(2.0f));
  const Index index{1, 0};
  EXPECT_EQ(dequantize(*Elements::over(tensor), index).error(), check_parameters(tensor).error());
  std::vector<float> out(2);
  EXPECT_TRUE(dequantize_block(*Elements::over(tensor), 0, out));
  EXPECT_FALSE(dequantize_block(*Elements::over(tensor), 1, out));
}

TEST(CheckParameters, NothingIsWrongWithoutQuantization) {
  EXPECT_TRUE(check_parameters(tensor_of(dense(DType::float32, {2}), {Bytes(8)})));
}

// Every path, every stretch: the same bits as one element at a time.

struct Sample {
  DType dtype;
  Shape shape;
  Scheme scheme;
};

Tensor draw(const Sample& sample, std::uint64_t seed) {
  Noise noise(seed);
  Descriptor d;
  d.dtype = sample.dtype;
  d.shape = sample.shape;
  d.byte_offset = seed % 4;
  d.set_quantization(Quantization{sample.scheme, {}});
  std::vector<Bytes> buffers{noise.bytes(static_cast<std::size_t>(
      d.byte_offset + *packed_bytes(hurray::bits(d.dtype), d.shape.count())))};
  const SchemeParameters of = parameters(sample.scheme);
  if (of.axis) {
    const auto entries =
        static_cast<std::size_t>(*parameter_entries(sample.scheme, d.shape, RowMajor{}));
    const unsigned width = hurray::bits(of.scale_type) / 8;
    Bytes scales = noise.bytes(entries * width);
    for (std::size_t i = 0; i < entries; ++i) {  // small exponents and large ones, no NaN
      std::byte& top = scales[i * width + width - 1];
      top &= std::byte{0x7B};
      if (width > 1) top |= std::byte{1};
    }
    buffers.push_back(scales);
    if (of.zero_point_buffer != no_buffer) {
      std::vector<std::int32_t> zeros(entries);
      const auto range = *zero_point_range(sample.dtype);
      const auto span =
          static_cast<std::uint32_t>(range.most) - static_cast<std::uint32_t>(range.least);
      for (std::int32_t& zero : zeros)
        zero = static_cast<std::int32_t>(static_cast<std::uint32_t>(range.least) +
                                         noise.next() % (span == ~0u ? span : span + 1));
      if (tag(sample.scheme) == SchemeTag::per_block_affine && seed % 3 == 0)
        for (std::int32_t& zero : zeros) zero = static_cast<std::int32_t>(noise.next());
      buffers.push_back(bytes_of(zeros));
    }
  }
  return tensor_of(std::move(d), buffers);
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DTypeInfo& type : dtypes) {
    const auto add = [&](const Scheme& scheme, std::initializer_list<Shape> shapes) {
      if (!info(tag(scheme))->stores(type.tag)) return;
      for (const Shape& shape : shapes) all.push_back({type.tag, shape, scheme});
    };
    add(PerTensorAffine{0.37f, 1}, {{5, 77}, {1}});
    add(PerTensorAffine{-2.5f, 1}, {{16}, {8, 150}});
    add(PerChannelAffine{0, 1, 2}, {{7, 43}, {9, 5, 3}});
    add(PerChannelAffine{1, 1, no_buffer}, {{4, 100}, {3, 5, 40}, {3, 5, 4}});
    for (const DType scale : {DType::float16, DType::bfloat16, DType::float32}) {
      add(PerBlockAffine{1, 32, 1, 2, scale}, {{3, 64}, {3, 77}, {2, 33, 19}});
      add(PerBlockAffine{1, 8, 1, no_buffer, scale}, {{5, 24}, {5, 29}});
      add(PerBlockAffine{0, 2, 1, 2, scale}, {{9, 21}, {64}});
    }
    add(Nf4{1, 16, 1}, {{3, 48}, {3, 49}, {2, 17, 23}});
    add(Mxfp{1, 32, 1}, {{3, 64}, {2, 32, 19}});
    add(Mxfp{0, 16, 1}, {{48, 3}, {64}});
  }
  return all;
}

TEST(RowDequantizer, AllPathsAndStretchesAgreeWithSingleElements) {
  std::uint64_t seed = 0;
  for (const Sample& sample : samples()) {
    const Tensor tensor = draw(sample, ++seed);
    SCOPED_TRACE(std::string(name(sample.dtype)) + " " + std::string(name(sample.scheme)) + " " +
                 std::to_string(seed));
    ASSERT_TRUE(check_parameters(tensor));
    const Quantized one(tensor);
    const Elements elements = *Elements::over(tensor);
    Bits expected;
    for_each_index(sample.shape, {}, [&](const Index& index) {
      const auto slot = **elements.slot(index);
      expected.push_back(bits(one.value(*elements.load(slot), one.entry(index, slot))));
    });
    for (const DequantizePath& path : dequantize_paths()) {
      SCOPED_TRACE(path.name);
      const auto rows = RowDequantizer::over(tensor, path);
      ASSERT_TRUE(rows);
      std::vector<float> all(expected.size());
      rows->fill(0, all);
      ASSERT_EQ(bits(all), expected);
      Noise noise(seed);
      for (int stretch = 0; stretch < 12; ++stretch) {
        const std::size_t first = noise.next() % expected.size();
        std::vector<float> part(noise.next() % (expected.size() - first) + 1);
        rows->fill(first, part);
        const auto from = expected.begin() + static_cast<std::ptrdiff_t>(first);
        ASSERT_EQ(bits(part), Bits(from, from + static_cast<std::ptrdiff_t>(part.size()))) << first;
      }
    }
  }
}

TEST(RowDequantizer, CopiesAtEveryAlignment) {
  std::vector<float> from(100);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for (const DequantizePath& path : dequantize_paths())
    for (std::size_t at = 0; at < 17; ++at)
      for (const std::size_t count : {0u, 1u, 7u, 8u, 50u}) {
        std::vector<float> to(120, -1.0f);
        path.copy(to.data() + at, from.data() + 3, count);
        for (std::size_t i = 0; i < to.size(); ++i)
          ASSERT_EQ(to[i], i >= at && i < at + count ? static_cast<float>(i - at + 3) : -1.0f);
      }
}

// Results in fresh memory, and past the caches into memory that is there, in pieces that do not end
// with a line.
TEST(Dequantize, LargeResults) {
  const Sample sample{DType::int4, {701, 3001}, PerBlockAffine{1, 32, 1, 2, DType::float16}};
  const Tensor tensor = draw(sample, 4);
  std::vector<float> expected(701 * 3001);
  RowDequantizer::over(tensor, dequantize_paths().back())->fill(0, expected);
  const auto values = dequantize(tensor);
  ASSERT_TRUE(values);
  const Bits found = bits_of(*values);
  std::vector<float> written(expected.size());
  ASSERT_TRUE(dequantize_into(tensor, written));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found[i], std::bit_cast<std::uint32_t>(expected[i])) << i;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(written[i]), found[i]) << i;
  }
}

}  // namespace
}  // namespace hurray
