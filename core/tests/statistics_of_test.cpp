#include "hurray/statistics_of.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hurray/dequantize.hpp"
#include "hurray/to_dense.hpp"
#include "quantized_tensors.hpp"

namespace hurray {
namespace {

using namespace hurray::testing;

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

constexpr auto mask(auto... bits) { return (0u | ... | static_cast<std::uint32_t>(bits)); }
constexpr std::uint32_t counts = mask(StatisticsBit::nnz, StatisticsBit::nan_inf);
constexpr std::uint32_t with_sparsity = counts | mask(StatisticsBit::sparsity);
constexpr std::uint32_t with_range = with_sparsity | mask(StatisticsBit::value_range);
constexpr std::uint32_t everything = with_range | mask(StatisticsBit::value_stats);

Tensor doubles(const std::vector<double>& values) {
  return tensor_of(dense(DType::float64, {values.size()}), {bytes_of(values)});
}

Statistics of(const Tensor& tensor, const ElementOptions& options = {}) {
  const auto statistics = statistics_of(tensor, options);
  EXPECT_TRUE(statistics) << to_string(statistics.error());
  return statistics ? *statistics : Statistics{};
}

TEST(StatisticsOf, AFewNumbers) {
  const Statistics s = of(doubles({0, 0, 1.5, -2, 0, 4}));  // 01-descriptor.md section 7 D
  EXPECT_EQ(s.computed_mask, everything);
  EXPECT_EQ(s.nnz, 3u);
  EXPECT_EQ(s.sparsity_ratio, 0.5);
  EXPECT_EQ(s.value_min, -2);
  EXPECT_EQ(s.value_max, 4);
  EXPECT_EQ(s.value_abs_max, 4);
  EXPECT_DOUBLE_EQ(s.value_mean, 3.5 / 6);
  EXPECT_NEAR(s.value_stddev, 1.83522, 1e-5);
  EXPECT_EQ(s.has_nan, 0);
  EXPECT_EQ(s.has_inf, 0);
}

TEST(StatisticsOf, WhatIsComputedIsAValidSection) {
  for (const auto& values : std::vector<std::vector<double>>{
           {}, {0}, {1, nan}, {inf, -inf}, {1e308, -1e308}, {5e-324}}) {
    Descriptor d = dense(DType::float64, {values.size()});
    d.set_statistics(of(doubles(values)));
    EXPECT_TRUE(validate(d));
  }
}

TEST(StatisticsOf, NothingIsClaimedOfWhatIsNotThere) {
  const Statistics s = of(doubles({}));
  EXPECT_EQ(s.computed_mask, counts);
  EXPECT_EQ(s.nnz, 0u);
}

TEST(StatisticsOf, NanHidesTheValuesAndInfinityTheirMean) {
  const Statistics with_nan = of(doubles({1, nan, 0, inf}));
  EXPECT_EQ(with_nan.computed_mask, with_sparsity);
  EXPECT_EQ(with_nan.nnz, 3u);
  EXPECT_EQ(with_nan.has_nan, 1);
  EXPECT_EQ(with_nan.has_inf, 1);
  EXPECT_EQ(with_nan.value_max, 0);

  const Statistics with_inf = of(doubles({1, -inf}));
  EXPECT_EQ(with_inf.computed_mask, with_range);
  EXPECT_EQ(with_inf.value_min, -inf);
  EXPECT_EQ(with_inf.value_max, 1);
  EXPECT_EQ(with_inf.value_abs_max, inf);
  EXPECT_EQ(with_inf.has_nan, 0);
  EXPECT_EQ(with_inf.has_inf, 1);
}

TEST(StatisticsOf, NeitherOverflowsNorCancels) {
  const double large = std::numeric_limits<double>::max();
  const Statistics wide = of(doubles({large, large, -large, -large}));
  EXPECT_EQ(wide.value_mean, 0);
  EXPECT_DOUBLE_EQ(wide.value_stddev, large);

  const Statistics same = of(doubles({large, large, large}));
  EXPECT_DOUBLE_EQ(same.value_mean, large);
  EXPECT_NEAR(same.value_stddev / large, 0, 1e-15);

  const Statistics tiny = of(doubles({5e-324, 15e-324}));
  EXPECT_EQ(tiny.value_mean, 10e-324);
  EXPECT_EQ(tiny.value_stddev, 5e-324);

  const Statistics shifted = of(doubles({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}));
  EXPECT_DOUBLE_EQ(shifted.value_mean, 1e9 + 10);
  EXPECT_DOUBLE_EQ(shifted.value_stddev, std::sqrt(22.5));

  // One large value among small ones whose sum a plain addition would lose.
  std::vector<double> mixed(10001, 1.0);
  mixed[0] = 1e17;
  mixed.push_back(-1e17);
  EXPECT_NEAR(of(doubles(mixed)).value_mean, 10000.0 / 10002, 1e-3);
}

TEST(StatisticsOf, EveryKindOfElement) {
  const Statistics bools = of(tensor_of(dense(DType::bool_, {10}), {hex("46 03")}));
  EXPECT_EQ(bools.computed_mask, everything);
  EXPECT_EQ(bools.nnz, 5u);
  EXPECT_EQ(bools.value_mean, 0.5);
  EXPECT_EQ(bools.value_stddev, 0.5);

  const Statistics ints = of(tensor_of(dense(DType::int4, {5}), {hex("7D 18 02")}));
  EXPECT_EQ(ints.value_min, -8);
  EXPECT_EQ(ints.value_max, 7);
  EXPECT_EQ(ints.value_abs_max, 8);
  EXPECT_DOUBLE_EQ(ints.value_mean, -0.2);

  const Statistics eights = of(tensor_of(dense(DType::float8_e5m2, {4}), {hex("7C 80 01 BC")}));
  EXPECT_EQ(eights.computed_mask, with_range);
  EXPECT_EQ(eights.nnz, 3u);
  EXPECT_EQ(eights.value_min, -1);
  EXPECT_EQ(eights.value_max, inf);

  const Statistics powers = of(tensor_of(dense(DType::float8_e8m0, {2}), {hex("80 7F")}));
  EXPECT_EQ(powers.value_mean, 1.5);
  EXPECT_EQ(of(tensor_of(dense(DType::float8_e8m0, {1}), {hex("FF")})).has_nan, 1);
}

TEST(StatisticsOf, ComplexElementsAreOnlyCounted) {
  const Statistics s = of(
      tensor_of(dense(DType::complex64, {3}), {bytes_of<float>({0, 0, 0, -1, 2, std::nanf("")})}));
  EXPECT_EQ(s.computed_mask, with_sparsity);
  EXPECT_EQ(s.nnz, 2u);
  EXPECT_EQ(s.has_nan, 1);
  EXPECT_EQ(s.has_inf, 0);
  EXPECT_EQ(s.value_max, 0);
}

TEST(StatisticsOf, Float128BeyondFloat64) {
  const auto quad = [](const std::vector<std::uint64_t>& words) {
    return of(tensor_of(dense(DType::float128, {words.size() / 2}), {bytes_of(words)}));
  };
  const std::uint64_t one = std::uint64_t{16383} << 48;
  const Statistics plain = quad({0, one, 0, one + (std::uint64_t{1} << 48)});
  EXPECT_EQ(plain.computed_mask, everything);
  EXPECT_EQ(plain.value_mean, 1.5);
  const Statistics beyond = quad({0, one, 0, std::uint64_t{0x7FFE} << 48});
  EXPECT_EQ(beyond.computed_mask, with_sparsity);
  EXPECT_EQ(beyond.has_inf, 0);
  const Statistics infinite = quad({0, std::uint64_t{0x7FFF} << 48});
  EXPECT_EQ(infinite.computed_mask, with_range);
  EXPECT_EQ(infinite.has_inf, 1);
  EXPECT_EQ(quad({1, 0, 0, std::uint64_t{1} << 63}).nnz, 1u);
}

Tensor csr(DType dtype, const Bytes& values, std::optional<Quantization> quantization) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = {2, 5};
  d.layout = Csr{.nnz = 2};
  d.set_quantization(std::move(quantization));
  return tensor_of(std::move(d),
                   {values, bytes_of<std::uint64_t>({4, 0}), bytes_of<std::uint64_t>({0, 1, 2})});
}

TEST(StatisticsOf, WhatASparseTensorDoesNotStoreIsZero) {
  const Statistics s = of(csr(DType::float32, bytes_of<float>({3, 0}), {}));
  EXPECT_EQ(s.computed_mask, everything);
  EXPECT_EQ(s.nnz, 2u);  // the explicit zero counts
  EXPECT_EQ(s.sparsity_ratio, 0.8);
  EXPECT_EQ(s.value_min, 0);
  EXPECT_EQ(s.value_max, 3);
  EXPECT_DOUBLE_EQ(s.value_mean, 0.3);
  EXPECT_DOUBLE_EQ(s.value_stddev, 0.9);

  const Statistics q =
      of(csr(DType::uint8, hex("05 01"), Quantization{PerTensorAffine{-0.5f, 3}, {}}));
  EXPECT_EQ(q.nnz, 2u);
  EXPECT_EQ(q.value_min, -1);
  EXPECT_EQ(q.value_max, 1);
  EXPECT_EQ(q.value_mean, 0);
  EXPECT_DOUBLE_EQ(q.value_stddev, std::sqrt(0.2));

  Descriptor huge;
  huge.dtype = DType::int8;
  huge.shape = {std::uint64_t{1} << 63, std::uint64_t{1} << 63};
  huge.layout = Coo{.nnz = 1};
  const Statistics h = of(tensor_of(huge, {hex("FF"), bytes_of<std::uint64_t>({1, 2})}));
  EXPECT_EQ(h.computed_mask, everything);
  EXPECT_EQ(h.sparsity_ratio, 1);
  EXPECT_EQ(h.value_min, -1);
  EXPECT_EQ(h.value_max, 0);
  EXPECT_EQ(h.value_mean, -0x1p-126);
  EXPECT_EQ(h.value_stddev, 0x1p-63);

  Descriptor none;
  none.dtype = DType::int8;
  none.shape = {3};
  none.layout = Coo{.nnz = 0};
  const Statistics n = of(tensor_of(none, {{}, {}}));
  EXPECT_EQ(n.computed_mask, everything);
  EXPECT_EQ(n.value_min, 0);
  EXPECT_EQ(n.value_max, 0);
  EXPECT_EQ(n.has_inf, 0);
}

// Quantized tensors: the statistics of what `dequantize` gives, whatever the layout.
TEST(StatisticsOf, QuantizedTensors) {
  for (const Layout& layout :
       {Layout{RowMajor{}}, Layout{ColumnMajor{}}, Layout{Tiled{2, 4}}, Layout{Morton{{2, 3}}}}) {
    Noise noise(5);
    Bytes scales = noise.bytes(4 * 3 * 2);
    for (std::size_t i = 1; i < scales.size(); i += 2) scales[i] = std::byte{0x34};
    const Tensor tensor =
        quantized(DType::int4, {4, 5}, PerBlockAffine{1, 2, 1, no_buffer, DType::float16},
                  {noise.bytes(32), scales}, layout);
    const Statistics direct = of(tensor);
    const Statistics values = of(*dequantize(tensor));
    EXPECT_EQ(direct.computed_mask, everything);
    EXPECT_EQ(direct.nnz, values.nnz);
    EXPECT_EQ(direct.value_min, values.value_min);
    EXPECT_EQ(direct.value_max, values.value_max);
    EXPECT_DOUBLE_EQ(direct.value_mean, values.value_mean);
    EXPECT_DOUBLE_EQ(direct.value_stddev, values.value_stddev);
  }
}

void expect_same(const Statistics& a, const Statistics& b) {
  EXPECT_EQ(a.computed_mask, b.computed_mask);
  EXPECT_EQ(a.nnz, b.nnz);
  EXPECT_EQ(a.sparsity_ratio, b.sparsity_ratio);
  EXPECT_EQ(a.value_min, b.value_min);
  EXPECT_EQ(a.value_max, b.value_max);
  EXPECT_DOUBLE_EQ(a.value_mean, b.value_mean);
  EXPECT_DOUBLE_EQ(a.value_stddev, b.value_stddev);
}

TEST(StatisticsOf, RepeatedElementsAreCountedInFull) {
  Noise noise(11);
  for (const Strides& strides : {Strides{0, 5, 1}, Strides{5, 0, 1}, Strides{0, 1, 0},
                                 Strides{0, 0, 0}, Strides{0, -1, 5}}) {
    Descriptor d;
    d.dtype = DType::int4;
    d.shape = {3, 5, 4};
    d.layout = Strided{strides};
    d.byte_offset = 4;
    const Tensor plain = tensor_of(d, {noise.bytes(20)});
    expect_same(of(plain), of(*to_dense(plain)));
    for (const std::uint32_t axis : {0u, 1u, 2u}) {
      Descriptor q = d;
      q.set_quantization(Quantization{PerChannelAffine{.axis = axis, .scale_buffer_index = 1}, {}});
      std::vector<float> scales{1, 2, 0.5f, 3, 7};
      scales.resize(static_cast<std::size_t>(d.shape[axis]));
      const Tensor codes = tensor_of(q, {noise.bytes(20), bytes_of(scales)});
      expect_same(of(codes), of(*dequantize(codes)));
    }
    Descriptor q = d;
    q.set_quantization(Quantization{PerBlockAffine{2, 2, 1, no_buffer, DType::float32}, {}});
    std::vector<float> scales(3 * 5 * 2);
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i + 1);
    const Tensor blocks = tensor_of(q, {noise.bytes(20), bytes_of(scales)});
    expect_same(of(blocks), of(*dequantize(blocks)));
  }
}

TEST(StatisticsOf, OneByteForAnyNumberOfElements) {
  Descriptor d;
  d.dtype = DType::uint8;
  d.shape = {std::uint64_t{1} << 40, 3, std::uint64_t{1} << 20};
  d.layout = Strided{Strides{0, 1, 0}};
  const Statistics s =
      of(tensor_of(d, {bytes_of(std::vector<std::uint8_t>{0, 3, 6})}), {.max_elements = 3});
  EXPECT_EQ(s.computed_mask, everything);
  EXPECT_EQ(s.nnz, std::uint64_t{1} << 61);
  EXPECT_FLOAT_EQ(static_cast<float>(s.sparsity_ratio), 1.0f / 3);
  EXPECT_EQ(s.value_mean, 3);
  EXPECT_DOUBLE_EQ(s.value_stddev, std::sqrt(6.0));
}

TEST(StatisticsOf, ElementsAreLimitedBeforeTheFirst) {
  // Strides that overlap without being zero: 2^40 elements in 2^21 bytes.
  Descriptor d;
  d.dtype = DType::uint8;
  d.shape = {std::uint64_t{1} << 20, std::uint64_t{1} << 20};
  d.layout = Strided{Strides{1, 1}};
  const auto refused =
      statistics_of(tensor_of(d, {Bytes(std::size_t{1} << 21)}), {.max_elements = 1000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::limit_exceeded);
  EXPECT_EQ(refused.error().expected, 1000u);
  EXPECT_EQ(refused.error().found, std::uint64_t{1} << 40);
  EXPECT_TRUE(statistics_of(doubles({1, 2}), {.max_elements = 2}));
  EXPECT_FALSE(statistics_of(doubles({1, 2, 3}), {.max_elements = 2}));
}

TEST(StatisticsOf, PaddingOfALayoutIsNotCounted) {
  const Tensor tensor = tensor_of(
      [] {
        Descriptor d;
        d.dtype = DType::uint8;
        d.shape = {3};
        d.layout = Tiled{2};
        return d;
      }(),
      {hex("01 02 03 FF")});
  const Statistics s = of(tensor);
  EXPECT_EQ(s.value_max, 3);
  EXPECT_EQ(s.value_mean, 2);
}

TEST(StatisticsOf, SaysWhatHasNoStatistics) {
  Descriptor d;
  d.dtype = DType{0xF3};
  d.shape = {2};
  d.set_extension_type(ExtensionType{.bit_width = 8});
  const auto refused = statistics_of(tensor_of(d, {hex("01 02")}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_EQ(refused.error().field, "type_tag");

  const Tensor bad =
      quantized(DType::int8, {2}, PerChannelAffine{0}, {hex("01 02"), bytes_of<float>({1, 0})});
  EXPECT_EQ(statistics_of(bad).error().field, "scale[]");

  Descriptor head;
  head.layout = CompositeHead{};
  EXPECT_EQ(statistics_of(tensor_of(head, {})).error().code, Errc::unsupported);

  const Tensor paged = tensor_of(
      [] {
        Descriptor p;
        p.dtype = DType::uint8;
        p.shape = {3, 1, 1};
        p.layout = BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 2};
        return p;
      }(),
      {hex("01 02 03 FF"), bytes_of<std::uint32_t>({0, 1}), bytes_of<std::uint32_t>({0, 1, 2})});
  EXPECT_EQ(statistics_of(paged).error().code, Errc::unsupported);
  const std::vector<std::uint64_t> tokens{2, 1};
  EXPECT_EQ(of(paged, {.sequence_tokens = tokens}).value_max, 3);
}

}  // namespace
}  // namespace hurray
