#include "hurray/materialize.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "hurray/cursor.hpp"
#include "hurray/elements.hpp"
#include "hurray/values.hpp"
#include "support.hpp"

namespace hurray {
namespace {

using testing::Bytes;
using testing::dense;
using testing::handle;
using testing::hex;

using Numbers = std::vector<std::uint64_t>;

constexpr auto partition = CompositionRule::partition;
constexpr auto overlay = CompositionRule::overlay;
constexpr auto group = CompositionRule::group;
constexpr auto none = CombineOp::none;
constexpr auto replace = CombineOp::replace;
constexpr auto add = CombineOp::add;

Tensor tensor_of(Descriptor d, const std::vector<Bytes>& data) {
  std::vector<Buffer> buffers;
  d.buffers.resize(0);
  for (const Bytes& bytes : data) {
    buffers.push_back(*Buffer::allocate(bytes.size()));
    std::ranges::copy(bytes, buffers.back().data());
  }
  auto tensor = bind(std::move(d), std::move(buffers));
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  return *std::move(tensor);
}

template <class T>
Bytes elements(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>)
      detail::store(bytes.data() + i * sizeof(T), std::bit_cast<detail::BitsOf<T>>(values[i]));
    else
      detail::store(bytes.data() + i * sizeof(T), values[i]);
  }
  return bytes;
}

Bytes bytes_of(const Tensor& tensor) {
  return {tensor.buffer(0).bytes().begin(), tensor.buffer(0).bytes().end()};
}

/// A dense part of a view.
Tensor part(DType dtype, const Numbers& parent, const Numbers& offset, const Numbers& size,
            const Bytes& data) {
  Descriptor d = dense(dtype, Shape(std::span(size)));
  d.set_shard(Shard(parent, offset));
  return tensor_of(d, {data});
}

/// A sparse part with these coordinates, one after the other.
Tensor sparse(DType dtype, const Numbers& parent, const Numbers& offset, const Numbers& size,
              const Bytes& values, const Numbers& coordinates) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = Shape(std::span(size));
  d.layout = Coo{.nnz = coordinates.size() / size.size()};
  d.set_shard(Shard(parent, offset));
  return tensor_of(d, {values, elements(coordinates)});
}

Item composed(CompositionRule rule, CombineOp op, const Numbers& shape, DType dtype,
              std::vector<Item> members) {
  auto item = compose(rule, op, Shape(std::span(shape)), dtype, std::move(members));
  EXPECT_TRUE(item) << to_string(item.error());
  return *std::move(item);
}

Bytes values(const Item& item) {
  const auto whole = materialize(item);
  EXPECT_TRUE(whole) << to_string(whole.error());
  if (!whole) return {};
  EXPECT_TRUE(std::holds_alternative<RowMajor>(whole->descriptor().layout));
  EXPECT_EQ(whole->descriptor().shape, item.tensor.descriptor().shape);
  EXPECT_EQ(whole->descriptor().dtype, item.tensor.descriptor().dtype);
  EXPECT_EQ(whole->descriptor().member_role(), nullptr);
  return bytes_of(*whole);
}

/// The error of a view that has no values, with the tensor it is about.
std::string refusal(const Item& item) {
  std::string where;
  const auto whole = materialize(item, &where);
  EXPECT_FALSE(whole);
  if (whole) return {};
  std::string text(info(whole.error().code).name);
  text += " " + field_name(whole.error());
  return where.empty() ? text : text + " " + where;
}

// -------------------------------------------------------------------------------------------
// partitions

TEST(Materialize, ThePartitionOfTheFormat) {
  const Numbers whole{6, 5};
  Bytes left(12);
  Bytes above(12);
  Bytes below(6);
  for (std::size_t i = 0; i < 12; ++i) left[i] = static_cast<std::byte>(0x10 + i);
  for (std::size_t i = 0; i < 12; ++i) above[i] = static_cast<std::byte>(0x20 + i);
  for (std::size_t i = 0; i < 6; ++i) below[i] = static_cast<std::byte>(0x30 + i);
  const Item item = composed(partition, none, whole, DType::uint8,
                             {{part(DType::uint8, whole, {0, 0}, {6, 2}, left)},
                              {part(DType::uint8, whole, {0, 2}, {4, 3}, above)},
                              {part(DType::uint8, whole, {4, 2}, {2, 3}, below)}});
  const Bytes found = values(item);
  EXPECT_EQ(found, hex("10 11 20 21 22  12 13 23 24 25  14 15 26 27 28  16 17 29 2A 2B "
                       "18 19 30 31 32  1A 1B 33 34 35"));
  EXPECT_EQ(found[5 * 5 + 3], below[1 * 3 + 1]) << "index [5,3] is local [1,1] of member 2";
}

TEST(Materialize, ScalarsAndEmptyViews) {
  EXPECT_EQ(values(composed(partition, none, {}, DType::int16,
                            {{part(DType::int16, {}, {}, {}, hex("34 12"))}})),
            hex("34 12"));
  EXPECT_EQ(values(composed(partition, none, {0, 3}, DType::int16, {})), Bytes());
  EXPECT_EQ(values(composed(partition, none, {0, 3}, DType::int16,
                            {{part(DType::int16, {0, 3}, {0, 1}, {0, 2}, {})}})),
            Bytes());
}

TEST(Materialize, NestedCompositesCountWithTheirValues) {
  const Numbers whole{2, 4};
  const Numbers half{2, 2};
  Descriptor head;
  head.dtype = DType::int8;
  head.shape = Shape(std::span(half));
  head.layout = CompositeHead{0, overlay, add};
  head.set_shard(Shard(whole, Numbers{0, 2}));
  auto right = compose(head, {{part(DType::int8, half, {0, 0}, half, hex("01 02 03 04"))},
                              {part(DType::int8, half, {1, 0}, {1, 2}, hex("10 20"))}});
  ASSERT_TRUE(right) << to_string(right.error());
  EXPECT_EQ(values(*right), hex("01 02 13 24"));
  const auto alone = materialize(*right);
  EXPECT_EQ(*alone->descriptor().shard(), *head.shard());
  const Item item =
      composed(partition, none, whole, DType::int8,
               {{part(DType::int8, whole, {0, 0}, half, hex("A0 A1 A2 A3"))}, *right});
  EXPECT_EQ(values(item), hex("A0 A1 01 02 A2 A3 13 24"));
}

TEST(Materialize, MembersOfOtherLayouts) {
  const Numbers whole{2, 4};
  Descriptor columns = dense(DType::int8, {2, 2});
  columns.layout = ColumnMajor{};
  columns.set_shard(Shard(whole, Numbers{0, 0}));
  const Item item = composed(partition, none, whole, DType::int8,
                             {{tensor_of(columns, {hex("01 02 03 04")})},
                              {sparse(DType::int8, whole, {0, 2}, {2, 2}, hex("77"), {1, 0})}});
  EXPECT_EQ(values(item), hex("01 03 00 00 02 04 77 00"));
}

/// Random guillotine partitions of every width against the elements that were cut up.
TEST(Materialize, RandomPartitionsAgainstADenseOracle) {
  std::mt19937_64 random(11);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (const DTypeInfo& row : dtypes) {
    for (int round = 0; round < 6; ++round) {
      const std::size_t rank = 1 + below(3);
      Numbers shape(rank);
      for (auto& n : shape) n = 1 + below(6);
      const std::uint64_t count = Shape(std::span(shape)).count();
      std::vector<Code> oracle(count);
      for (Code& code : oracle) {
        code.low = random();
        if (row.bits < 64) code.low &= (std::uint64_t{1} << row.bits) - 1;
        if (row.bits == 128) code.high = random();
      }
      std::vector<std::array<Numbers, 2>> boxes{{Numbers(rank, 0), shape}};
      for (std::size_t i = 0; i < 8; ++i) {
        auto& box = boxes[below(boxes.size())];
        const std::size_t k = below(rank);
        if (box[1][k] < 2) continue;
        const std::uint64_t at = 1 + below(box[1][k] - 1);
        auto rest = box;
        rest[0][k] += at;
        rest[1][k] -= at;
        box[1][k] = at;
        boxes.push_back(rest);
      }
      std::vector<Item> members;
      for (const auto& [offset, size] : boxes) {
        Descriptor d = dense(row.tag, Shape(std::span(size)));
        d.set_shard(Shard(shape, offset));
        const Tensor tensor = tensor_of(d, {Bytes(d.buffers[0].byte_size)});
        const auto to = Elements::over(tensor, {.write = true});
        ASSERT_TRUE(to);
        ASSERT_TRUE(to->for_each([&](std::span<const std::uint64_t> index, std::int64_t slot) {
          std::size_t at = 0;
          for (std::size_t k = 0; k < rank; ++k) at = at * shape[k] + offset[k] + index[k];
          return to->store(slot, oracle[at]).has_value();
        }));
        members.push_back({tensor});
      }
      const auto whole = materialize(composed(partition, none, shape, row.tag, members));
      ASSERT_TRUE(whole) << row.name << to_string(whole.error());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(
            detail::load_code(whole->buffer(0).data(), row.bits, static_cast<std::int64_t>(i)),
            oracle[i])
            << row.name;
    }
  }
}

/// Padding bits of the members are 1 here.
TEST(Materialize, BitsBehindTheLastElementAreZero) {
  for (const DType dtype : {DType::bool_, DType::uint2, DType::int4, DType::float6_e2m3}) {
    const auto ones = [&](std::uint64_t n) {
      return Bytes(*packed_bytes(bits(dtype), n), std::byte{0xFF});
    };
    const Bytes parts = values(
        composed(partition, none, {5}, dtype,
                 {{part(dtype, {5}, {0}, {3}, ones(3))}, {part(dtype, {5}, {3}, {2}, ones(2))}}));
    const Bytes corrected = values(composed(
        overlay, replace, {5}, dtype,
        {{part(dtype, {5}, {0}, {5}, ones(5))}, {sparse(dtype, {5}, {0}, {5}, ones(1), {4})}}));
    ASSERT_EQ(parts.size(), *packed_bytes(bits(dtype), 5));
    EXPECT_EQ(parts, corrected);
    for (std::size_t b = 0; b < 8 * parts.size(); ++b)
      ASSERT_EQ((parts[b / 8] >> b % 8 & std::byte{1}) != std::byte{0}, b < 5 * bits(dtype))
          << name(dtype) << b;
  }
}

TEST(Materialize, PrivateTypesAreMovedAsTheyAre) {
  ExtensionType wide{.bit_width = 24};
  Descriptor head;
  head.dtype = DType{0xF1};
  head.set_extension_type(wide);
  head.shape = {2};
  head.layout = CompositeHead{0, partition, none};
  std::vector<Item> members;
  for (std::uint64_t i = 0; i < 2; ++i) {
    Descriptor d;
    d.dtype = head.dtype;
    d.set_extension_type(wide);
    d.shape = {1};
    d.set_shard(Shard(Numbers{2}, Numbers{i}));
    members.push_back({tensor_of(d, {i == 0 ? hex("01 02 03") : hex("04 05 06")})});
  }
  const auto item = compose(head, members);
  ASSERT_TRUE(item) << to_string(item.error());
  EXPECT_EQ(values(*item), hex("01 02 03 04 05 06"));
}

// -------------------------------------------------------------------------------------------
// overlays

TEST(Materialize, ReplaceTakesTheLastThatCovers) {
  const Numbers whole{5};
  const Item item = composed(overlay, replace, whole, DType::uint8,
                             {{part(DType::uint8, whole, {0}, {5}, hex("01 02 03 04 05"))},
                              {part(DType::uint8, whole, {1}, {3}, hex("10 00 30"))},
                              // Covers what it stores (L22), an explicit zero included.
                              {sparse(DType::uint8, whole, {2}, {3}, hex("AA 00"), {0, 2})}});
  EXPECT_EQ(values(item), hex("01 10 AA 30 00"));
}

TEST(Materialize, ASparseBaseIsZeroWhereItStoresNothing) {
  const Numbers whole{4};
  EXPECT_EQ(values(composed(overlay, replace, whole, DType::uint8,
                            {{sparse(DType::uint8, whole, {0}, {4}, hex("09"), {3})},
                             {part(DType::uint8, whole, {0}, {1}, hex("05"))}})),
            hex("05 00 00 09"));
}

TEST(Materialize, ASparseCorrectionLeavesMinusZeroAlone) {
  const Numbers whole{2};
  EXPECT_EQ(
      values(composed(overlay, add, whole, DType::float32,
                      {{part(DType::float32, whole, {0}, {2}, elements<float>({-0.f, -0.f}))},
                       {sparse(DType::float32, whole, {0}, {2}, elements<float>({0.f}), {1})}})),
      elements<float>({-0.f, 0.f}));
}

TEST(Materialize, IntegersWrapAtTheirWidth) {
  for (const DTypeInfo& row : dtypes) {
    if (row.kind != Kind::integer && row.kind != Kind::unsigned_integer) continue;
    // All ones plus all ones is all ones but the lowest.
    const Numbers whole{3};
    const Bytes ones(*packed_bytes(row.bits, 3), std::byte{0xFF});
    const auto sum = materialize(
        composed(overlay, add, whole, row.tag,
                 {{part(row.tag, whole, {0}, {3}, ones)}, {part(row.tag, whole, {0}, {3}, ones)}}));
    ASSERT_TRUE(sum) << row.name;
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - row.bits);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(detail::load_code(sum->buffer(0).data(), row.bits, i).low, mask - 1) << row.name;
  }
}

/// Every pair of codes of the narrow floats, against exact sums in double.
TEST(Materialize, NarrowFloatsAreRoundedOnce) {
  for (const DType dtype : {DType::float4_e2m1, DType::float6_e2m3, DType::float6_e3m2,
                            DType::float8_e4m3, DType::float8_e5m2}) {
    const unsigned width = bits(dtype);
    const std::uint64_t codes = std::uint64_t{1} << width;
    const Numbers whole{codes * codes};
    Bytes a(*packed_bytes(width, whole[0]));
    Bytes b(a.size());
    const Tensor x = part(dtype, whole, {0}, whole, a);
    const Tensor y = part(dtype, whole, {0}, whole, b);
    const auto to_x = Elements::over(x, {.write = true});
    const auto to_y = Elements::over(y, {.write = true});
    for (std::uint64_t i = 0; i < whole[0]; ++i) {
      ASSERT_TRUE(to_x->store(static_cast<std::int64_t>(i), {.low = i / codes}));
      ASSERT_TRUE(to_y->store(static_cast<std::int64_t>(i), {.low = i % codes}));
    }
    const auto sum = materialize(composed(overlay, add, whole, dtype, {{x}, {y}}));
    ASSERT_TRUE(sum) << name(dtype);
    for (std::uint64_t i = 0; i < whole[0]; ++i) {
      const double exact = double{decode_float(dtype, static_cast<std::uint32_t>(i / codes))} +
                           double{decode_float(dtype, static_cast<std::uint32_t>(i % codes))};
      const Code found =
          detail::load_code(sum->buffer(0).data(), width, static_cast<std::int64_t>(i));
      if (std::isnan(exact))
        ASSERT_EQ(classify(dtype, found), FloatClass::nan);
      else
        ASSERT_EQ(found.low, *encode_float(dtype, exact)) << name(dtype) << " " << i;
    }
  }
}

TEST(Materialize, EveryStepIsRoundedToTheType) {
  const Numbers whole{1};
  // 2048 + 1 is 2048 in float16 (ties to even), twice; 2048 + 2 would be 2050.
  const auto half = [](double value) {
    return elements<std::uint16_t>(
        {static_cast<std::uint16_t>(*encode_float(DType::float16, value))});
  };
  const auto item = [&](DType dtype, const Bytes& base, const Bytes& correction) {
    return composed(overlay, add, whole, dtype,
                    {{part(dtype, whole, {0}, {1}, base)},
                     {part(dtype, whole, {0}, {1}, correction)},
                     {part(dtype, whole, {0}, {1}, correction)}});
  };
  EXPECT_EQ(values(item(DType::float16, half(2048), half(1))), half(2048));
  EXPECT_EQ(values(item(DType::float16, half(65504), half(65504))),
            half(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(values(item(DType::float32, elements<float>({16777216.f}), elements<float>({1.f}))),
            elements<float>({16777216.f}));
  EXPECT_EQ(values(item(DType::float64, elements<double>({0.1}), elements<double>({0.2}))),
            elements<double>({0.1 + 0.2 + 0.2}));
  EXPECT_EQ(values(item(DType::complex64, elements<float>({1.f, 16777216.f}),
                        elements<float>({.5f, 1.f}))),
            elements<float>({2.f, 16777216.f}));
  EXPECT_EQ(
      values(item(DType::complex128, elements<double>({1., -2.}), elements<double>({.25, 1.}))),
      elements<double>({1.5, 0.}));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      values(composed(overlay, add, whole, DType::float32,
                      {{part(DType::float32, whole, {0}, {1}, elements<float>({infinity}))},
                       {part(DType::float32, whole, {0}, {1}, elements<float>({-infinity}))}})),
      hex("00 00 C0 7F"));
}

TEST(Materialize, QuantizedMembersAreRoundedToTheHead) {
  const Numbers whole{4};
  const auto quantized = [&](float scale, const Numbers& offset, const Numbers& size,
                             const Bytes& codes) {
    Descriptor d = dense(DType::int8, Shape(std::span(size)));
    d.set_shard(Shard(whole, offset));
    d.set_quantization(Quantization{.scheme = PerTensorAffine{.scale = scale}, .rest = {}});
    return tensor_of(d, {codes});
  };
  // 1.0009765625 * 3 = 3.0029296875 lies halfway between two float16: ties to even.
  const Tensor member = quantized(1.0009765625f, {0}, {4}, hex("01 02 03 FF"));
  const std::vector<double> exact{1.0009765625, 2.001953125, 3.0029296875, -1.0009765625};
  for (const DType head : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    const auto whole_view = materialize(composed(partition, none, whole, head, {{member}}));
    ASSERT_TRUE(whole_view) << name(head);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(
          detail::load_code(whole_view->buffer(0).data(), bits(head), static_cast<std::int64_t>(i)),
          *from_double(head, exact[i]))
          << name(head) << i;
  }
  // The outlier example: a quantized base, sparse corrections in the head's type.
  EXPECT_EQ(
      values(composed(overlay, add, whole, DType::float32,
                      {{quantized(.5f, {0}, {4}, hex("02 04 06 08"))},
                       {sparse(DType::float32, whole, {0}, {4}, elements<float>({100.f}), {2})},
                       {quantized(.25f, {3}, {1}, hex("01"))}})),
      elements<float>({1.f, 2.f, 103.f, 4.25f}));
}

/// Each entry is found where it is stored: looking it up by its coordinates would take 5e9 steps.
TEST(Materialize, ALargeUnsortedQuantizedCorrection) {
  constexpr std::uint64_t n = 100'000;
  Numbers coordinates(n);
  Bytes codes(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    coordinates[i] = n - 1 - i;
    codes[i] = static_cast<std::byte>(i % 100);
  }
  const Tensor base = part(DType::float32, {n}, {0}, {n}, Bytes(4 * n));
  Tensor correction = sparse(DType::int8, {n}, {0}, {n}, codes, coordinates);
  Descriptor d = correction.descriptor();
  d.set_quantization(Quantization{.scheme = PerTensorAffine{.scale = .5f}, .rest = {}});
  correction = *bind(d, correction.buffers());
  const Bytes whole =
      values(composed(overlay, replace, {n}, DType::float32, {{base}, {correction}}));
  std::vector<float> expected(n);
  for (std::uint64_t i = 0; i < n; ++i) expected[n - 1 - i] = .5f * static_cast<float>(i % 100);
  EXPECT_EQ(whole, elements(expected));
}

TEST(Materialize, ParametersOfAQuantizedCorrectionAreJudgedWhereTheyAreUsed) {
  Descriptor d;
  d.dtype = DType::int8;
  d.shape = {3};
  d.layout = Coo{.nnz = 2};
  d.set_shard(Shard(Numbers{3}, Numbers{0}));
  d.set_quantization(
      Quantization{.scheme = PerChannelAffine{.axis = 0, .scale_buffer_index = 2}, .rest = {}});
  const auto corrected = [&](const std::vector<float>& scales) {
    return composed(overlay, replace, {3}, DType::float32,
                    {{part(DType::float32, {3}, {0}, {3}, Bytes(12))},
                     {tensor_of(d, {hex("03 02"), elements(Numbers{2, 0}), elements(scales)})}});
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(values(corrected({.5f, nan, 2})), elements<float>({1, 0, 6}));
  EXPECT_EQ(refusal(corrected({.5f, 1, nan})), "invalid value scale[2] members[1]");
}

// -------------------------------------------------------------------------------------------
// what has no values

TEST(Materialize, GroupsPlainTensorsAndTypesThatCannotBeAdded) {
  const Numbers whole{2};
  EXPECT_EQ(refusal({part(DType::int8, whole, {0}, {2}, Bytes(2))}), "unsupported layout_tag");
  EXPECT_EQ(refusal(composed(group, none, {}, DType::int8, {})),
            "unsupported layout.composition_rule");
  for (const DTypeInfo& row : dtypes) {
    const Bytes data(*packed_bytes(row.bits, 2));
    const Item item =
        composed(overlay, add, whole, row.tag, {{part(row.tag, whole, {0}, {2}, data)}});
    const bool addable =
        row.tag != DType::bool_ && row.tag != DType::float8_e8m0 && row.tag != DType::float128;
    if (addable)
      EXPECT_EQ(values(item), data) << row.name;
    else
      EXPECT_EQ(refusal(item), "unsupported layout.combine_op") << row.name;
    // Replacing needs no arithmetic.
    EXPECT_EQ(values(composed(overlay, replace, whole, row.tag,
                              {{part(row.tag, whole, {0}, {2}, data)}})),
              data);
  }
  Descriptor inner;
  inner.dtype = DType::int8;
  inner.shape = {2};
  inner.layout = CompositeHead{0, group, none};
  inner.set_shard(Shard(whole, Numbers{0}));
  EXPECT_EQ(refusal(composed(partition, none, whole, DType::int8, {*compose(inner, {})})),
            "unsupported layout.composition_rule members[0]");
}

TEST(Materialize, RulesAndDataAreJudgedFirst) {
  const Numbers whole{3};
  const Tensor two = part(DType::int8, whole, {0}, {2}, Bytes(2));
  Descriptor head;
  head.dtype = DType::int8;
  head.shape = {3};
  head.layout = CompositeHead{1, partition, none};
  EXPECT_EQ(refusal({tensor_of(head, {}), {{two}}}), "inconsistent members");
  head.layout = CompositeHead{2, partition, none};
  EXPECT_EQ(refusal({tensor_of(head, {}), {{two}}}), "inconsistent layout.member_count");

  const Tensor base = part(DType::int8, whole, {0}, {3}, Bytes(3));
  EXPECT_EQ(refusal(composed(overlay, add, whole, DType::int8,
                             {{base}, {sparse(DType::int8, whole, {0}, {3}, Bytes(1), {3})}})),
            "out of bounds indices[0] members[1]");
  EXPECT_EQ(refusal(composed(overlay, add, whole, DType::int8,
                             {{base}, {sparse(DType::int8, whole, {0}, {3}, Bytes(2), {1, 1})}})),
            "duplicate indices[1] members[1]");
  Descriptor waiting = dense(DType::int8, {3});
  waiting.set_shard(Shard(whole, Numbers{0}));
  waiting.buffers[0].device = Device::cuda;
  waiting.buffers[0].sync_mode = SyncMode::event;
  auto bound = bind(waiting, {*Buffer::allocate(3)});
  ASSERT_TRUE(bound);
  EXPECT_EQ(refusal(composed(partition, none, whole, DType::int8, {{*bound}})),
            "unsupported buffers[0].sync_mode members[0]");
}

TEST(Materialize, AShapeThatCannotBeHadIsRefused) {
  const std::uint64_t top = std::uint64_t{1} << 62;
  const Numbers huge{top, 8};
  EXPECT_EQ(refusal(composed(overlay, replace, huge, DType::float64,
                             {{sparse(DType::float64, huge, {0, 0}, huge, {}, {})}})),
            "overflow buffers[0].byte_size");
  const Numbers large{std::uint64_t{1} << 58};
  EXPECT_EQ(refusal(composed(overlay, replace, large, DType::float64,
                             {{sparse(DType::float64, large, {0}, large, {}, {})}})),
            "out of memory byte_size");
}

}  // namespace
}  // namespace hurray
