#include "hurray/builder.hpp"

#include <gtest/gtest.h>

#include "hurray/dense_view.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/elements.hpp"
#include "hurray/to_dense.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

using Sizes = std::vector<std::uint64_t>;

Sizes sizes(const Descriptor& d) {
  Sizes all;
  for (const BufferHandle& handle : d.buffers) all.push_back(handle.byte_size);
  return all;
}

/// A builder's descriptor encodes and comes back as it was.
Descriptor built(const DescriptorBuilder& builder) {
  auto d = builder.build();
  EXPECT_TRUE(d) << (d ? "" : to_string(d.error()));
  if (!d) return {};
  const auto bytes = encode(*d);
  EXPECT_TRUE(bytes);
  const auto again = decode(*bytes, {.permissive = true, .agreed = {.all = true}});
  EXPECT_TRUE(again) << (again ? "" : to_string(again.error()));
  EXPECT_EQ(*again, *d);
  return *d;
}

TEST(Builder, EveryLayoutGetsTheSizesOfItsBuffers) {
  using B = DescriptorBuilder;
  EXPECT_EQ(sizes(built(B::row_major(DType::float32, {5, 7, 2}))), Sizes{280});
  EXPECT_EQ(sizes(built(B::row_major(DType::float32, {5, 7, 2}).byte_offset(64).alignment(128))),
            Sizes{344});
  EXPECT_EQ(sizes(built(B::col_major(DType::float6_e2m3, {5}))), Sizes{6});
  const Descriptor reversed = built(B::strided(DType::float32, {5, 2}, {-3, 1}));
  EXPECT_EQ(reversed.byte_offset, 48u);  // 02-layouts.md section 6, example (a)
  EXPECT_EQ(sizes(reversed), Sizes{56});
  EXPECT_EQ(sizes(built(B::tiled(DType::int8, {5, 7}, Tiled({2, 3})))), Sizes{54});
  EXPECT_EQ(sizes(built(B::morton(DType::int16, {2, 6}))), Sizes{32});
  EXPECT_EQ(sizes(built(B::hilbert(DType::int16, 3, 2))), Sizes{128});
  EXPECT_EQ(sizes(built(B::coo(DType::int16, {4, 6}, 5, true))), (Sizes{10, 80}));
  EXPECT_EQ(sizes(built(B::csr(DType::int16, {4, 6}, 5))), (Sizes{10, 40, 40}));
  EXPECT_EQ(sizes(built(B::csc(DType::int16, {4, 6}, 5))), (Sizes{10, 40, 56}));
  EXPECT_EQ(sizes(built(B::csf(DType::int32, {3, 4, 5}, {2, 0, 1}, {2, 4, 5}))),
            (Sizes{20, 16, 16, 24, 32, 40, 40}));
  EXPECT_EQ(sizes(built(B::block_paged(
                DType::float16, {8, 3, 4},
                {.num_pages = 6, .page_size = 2, .num_seqs = 3, .kv_role = KvRole::value}, 5))),
            (Sizes{288, 20, 16}));
  EXPECT_EQ(sizes(built(B::partition(DType::float32, {6, 5}, 3))), Sizes{});
  EXPECT_EQ(sizes(built(B::overlay(DType::float32, {6, 5}, CombineOp::add, 2))), Sizes{});
  EXPECT_EQ(sizes(built(B::group(DType::float32, {}, 0))), Sizes{});
  PrivateLayout layout;
  layout.id = 7;
  const std::uint64_t own[] = {10, 20};
  EXPECT_EQ(sizes(built(B::agreed(DType::int8, {3}, layout, own))), (Sizes{10, 20}));
}

TEST(Builder, QuantizationNumbersAndSizesItsBuffers) {
  using B = DescriptorBuilder;
  EXPECT_EQ(sizes(built(B::row_major(DType::uint8, {3, 4}).per_tensor_affine(0.0625f, 120))),
            Sizes{12});
  const Descriptor channels =
      built(B::csr(DType::int8, {4, 6}, 5).per_channel_affine(1, ZeroPoints::stored));
  EXPECT_EQ(sizes(channels), (Sizes{5, 40, 40, 24, 24}));
  const auto& scheme = std::get<PerChannelAffine>(channels.quantization()->scheme);
  EXPECT_EQ(scheme.scale_buffer_index, 3u);
  EXPECT_EQ(scheme.zero_point_buffer_index, 4u);
  // 03-quantization.md section 8: 30 elements in 15 bytes, 16 written.
  EXPECT_EQ(
      sizes(built(B::row_major(DType::int4, {2, 5, 3}).per_block_affine(1, 2, DType::float16))),
      (Sizes{16, 36}));
  EXPECT_EQ(sizes(built(B::row_major(DType::uint4, {128}).nf4(0, 64))), (Sizes{64, 8}));
  EXPECT_EQ(sizes(built(B::row_major(DType::float4_e2m1, {2, 64}).mxfp(1))), (Sizes{64, 4}));
  EXPECT_EQ(sizes(built(B::block_paged(DType::int8, {8, 3, 4},
                                       {.num_pages = 6, .page_size = 2, .num_seqs = 3}, 5)
                            .per_block_affine(0, 2, DType::float32))),
            (Sizes{144, 20, 16, 48}));
  const std::uint64_t own[] = {5};
  const Descriptor agreed = built(B::row_major(DType::int8, {3}).agreed_scheme({}, {}, own));
  EXPECT_EQ(sizes(agreed), (Sizes{3, 5}));
}

TEST(Builder, SectionsAndPlacement) {
  const Descriptor d = built(DescriptorBuilder::row_major(DType{0xF3}, {6})
                                 .extension_type({.bit_width = 24,
                                                  .is_float = 1,
                                                  .sign_bits = 1,
                                                  .exponent_bits = 8,
                                                  .mantissa_bits = 15,
                                                  .has_nan = 1,
                                                  .has_inf = 1,
                                                  .exponent_bias = 127})
                                 .shard_of({6}, {0})
                                 .statistics({.computed_mask = 1, .nnz = 3})
                                 .member(MemberRole::base)
                                 .on(Device::cuda, MemoryClass::unified));
  EXPECT_EQ(sizes(d), Sizes{18});
  EXPECT_EQ(d.buffers[0].device, Device::cuda);
  EXPECT_EQ(*d.member_role(), MemberRole::base);
  EXPECT_EQ(d.sections(), 0x1Eu);
}

TEST(Builder, WhatDoesNotHoldTogetherIsNamed) {
  using B = DescriptorBuilder;
  const auto field = [](const DescriptorBuilder& builder) {
    const auto d = builder.build();
    return d ? std::string("(built)") : field_name(d.error());
  };
  EXPECT_EQ(field(B::csr(DType::float32, {4, 6, 2}, 5)), "rank");
  EXPECT_EQ(field(B::csr(DType::float32, {4, 6}, 25)), "layout.nnz");
  EXPECT_EQ(field(B::strided(DType::float32, {4, 6}, {1})), "layout.strides");
  EXPECT_EQ(field(B::tiled(DType::int8, {5, 7}, Tiled({2, 0}))), "layout.tile_shape[1]");
  EXPECT_EQ(field(B::tiled(DType::int8, {5, 7}, Tiled({2}))), "layout.tile_shape");
  EXPECT_EQ(field(B::morton(DType::int8, {5, 7}, Morton{{2, 3}})), "layout.morton_bits[0]");
  EXPECT_EQ(field(B::hilbert(DType::int8, 32, 2)), "layout.hilbert_order");
  EXPECT_EQ(field(B::csf(DType::int8, {3, 4, 5}, {2, 0, 0}, {2, 4, 5})), "layout.mode_order[2]");
  EXPECT_EQ(field(B::csf(DType::int8, {3, 4, 5}, {2, 0, 1}, {2, 5})), "nodes");
  EXPECT_EQ(field(B::overlay(DType::int8, {3}, CombineOp::none, 2)), "layout.combine_op");
  EXPECT_EQ(field(B::row_major(DType::float32, {4}).per_tensor_affine(1, 0)),
            "quantization.scheme_tag");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).per_tensor_affine(0, 0)), "quantization.scale");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).per_tensor_affine(1, 128)),
            "quantization.zero_point");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).per_channel_affine(1)), "quantization.axis");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).per_block_affine(0, 3, DType::float16)),
            "quantization.block_size");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).per_block_affine(0, 2, DType::float64)),
            "quantization.scale_type_tag");
  EXPECT_EQ(field(B::row_major(DType{0xF3}, {4})), "flags");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).buffer_bytes(0, 3)), "byte_offset");
  EXPECT_EQ(field(B::row_major(DType::int8, {4}).buffer_bytes(1, 3)), "buffers[1].byte_size");
  EXPECT_EQ(field(B::row_major(DType::int8, {std::uint64_t{1} << 62, 4})), "shape");
  EXPECT_EQ(
      field(B::csf(DType::int8, {3, 4, 5}, {2, 0, 1}, {2, 4, 5}).shard_of({3, 4, 5}, {0, 0, 0})),
      "flags");
}

TEST(Builder, DynamicSizesAreGivenRoom) {
  const Descriptor d =
      built(DescriptorBuilder::row_major(DType::float16, {dynamic, 8}).buffer_bytes(0, 160));
  EXPECT_EQ(sizes(d), Sizes{160});
}

template <class T>
Tensor tensor_of(const DescriptorBuilder& builder, const std::vector<T>& values) {
  auto buffer = Buffer::allocate(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(buffer->data() + i * sizeof(T), &values[i], sizeof(T));
  auto bound = bind(*builder.build(), {*buffer});
  EXPECT_TRUE(bound) << (bound ? "" : to_string(bound.error()));
  return *bound;
}

TEST(DenseView, ReadsByIndex) {
  const std::vector<std::int16_t> values = {0, 1, 2, 3, 4, 5};
  const Tensor rows = tensor_of(DescriptorBuilder::row_major(DType::int16, {2, 3}), values);
  const auto view = DenseView<const std::int16_t, 2>::over(rows);
  ASSERT_TRUE(view);
  EXPECT_EQ((*view)(1, 2), 5);
  EXPECT_EQ(((*view)[{1, 0}]), 3);
  EXPECT_EQ(view->extent(1), 3u);
  EXPECT_EQ(view->size(), 6u);
  const Tensor columns = tensor_of(DescriptorBuilder::col_major(DType::int16, {2, 3}), values);
  EXPECT_EQ((*DenseView<const std::int16_t, 2>::over(columns))(1, 2), 5);
  EXPECT_EQ((*DenseView<const std::int16_t, 2>::over(columns))(1, 0), 1);
  const Tensor reversed = tensor_of(DescriptorBuilder::strided(DType::int16, {6}, {-1}), values);
  EXPECT_EQ((*DenseView<const std::int16_t, 1>::over(reversed))(0), 5);
}

TEST(DenseView, WritesWhereItMay) {
  const Tensor t =
      tensor_of(DescriptorBuilder::row_major(DType::float32, {2, 2}), std::vector<float>(4));
  const auto view = DenseView<float, 2>::over(t);
  ASSERT_TRUE(view);
  (*view)(1, 0) = 2.5f;
  EXPECT_EQ((*DenseView<const float, 2>::over(t))(1, 0), 2.5f);
}

TEST(DenseView, RefusesWhatItWouldMisread) {
  const Tensor t = tensor_of(DescriptorBuilder::row_major(DType::int8, {4}).per_tensor_affine(2, 0),
                             std::vector<std::int8_t>{1, 2, 3, 4});
  EXPECT_EQ((DenseView<const std::int8_t, 1>::over(t).error().code), Errc::unsupported);
  EXPECT_EQ((*DenseView<const std::int8_t, 1>::over(t, View::codes))(3), 4);
  EXPECT_EQ((DenseView<const std::uint8_t, 1>::over(t, View::codes).error().field), "type_tag");
  EXPECT_EQ((DenseView<const std::int8_t, 2>::over(t, View::codes).error().field), "rank");
  const Tensor curve =
      tensor_of(DescriptorBuilder::hilbert(DType::int8, 1, 2), std::vector<std::int8_t>(4));
  EXPECT_EQ((DenseView<const std::int8_t, 2>::over(curve).error().field), "layout_tag");
  const Tensor overlapping = tensor_of(DescriptorBuilder::strided(DType::int8, {3, 4}, {0, 1}),
                                       std::vector<std::int8_t>(4));
  EXPECT_TRUE((DenseView<const std::int8_t, 2>::over(overlapping)));
  EXPECT_EQ((DenseView<std::int8_t, 2>::over(overlapping).error().field), "layout.strides");
}

TEST(DenseView, SaysWhatToDoInstead) {
  const Tensor codes =
      tensor_of(DescriptorBuilder::row_major(DType::int8, {4}).per_tensor_affine(2, 0),
                std::vector<std::int8_t>(4));
  EXPECT_EQ(to_string((DenseView<const float, 1>::over(codes).error())),
            "quantization: a view shows codes, not values: dequantize, or ask for View::codes "
            "(unsupported)");
  EXPECT_EQ(to_string((DenseView<const float, 1>::over(codes, View::codes).error())),
            "type_tag: expected float32 (3), found int8 (16) (inconsistent); two fields contradict "
            "each other");
  const Tensor head = *bind(*DescriptorBuilder::group(DType::float32, {2}, 1).build(), {});
  for (const Error& error :
       {DenseView<const float, 1>::over(head).error(), Elements::over(head).error(),
        to_dense(head).error(), dequantize(head).error()}) {
    EXPECT_EQ(error.code, Errc::unsupported);
    EXPECT_EQ(error.field, "layout_tag");
    EXPECT_NE(error.what.find("materialize"), error.what.npos) << error.what;
  }
}

TEST(DenseView, CodesAreWritableBesideReadOnlyScales) {
  const auto d = DescriptorBuilder::row_major(DType::int8, {4}).per_channel_affine(0).build();
  ASSERT_TRUE(d);
  const Buffer memory = *Buffer::allocate(16, true);
  const Buffer readonly = *Buffer::borrow(memory.data(), 16, [memory] {}, true);
  const Tensor scales = *bind(*d, {*Buffer::allocate(4, true), readonly});
  const auto view = DenseView<std::int8_t, 1>::over(scales, View::codes);
  ASSERT_TRUE(view) << to_string(view.error());
  (*view)(3) = 7;
  EXPECT_EQ((*DenseView<const std::int8_t, 1>::over(scales, View::codes))(3), 7);
  const Tensor elements = *bind(*d, {readonly.view(0, 4), memory});
  EXPECT_EQ((DenseView<std::int8_t, 1>::over(elements, View::codes).error().field), "buffers[]");
}

template <class T>
void expect_integer(DType dtype) {
  const Tensor t = tensor_of(DescriptorBuilder::row_major(dtype, {2}), std::vector<T>{1, T(-1)});
  const auto view = DenseView<T, 1>::over(t);
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_EQ((*view)(1), T(-1));
  EXPECT_EQ((*DenseView<const T, 1>::over(t))(1), T(-1));
}

TEST(DenseView, IntegersGoBySizeAndSign) {
  constexpr DType longs[] = {sizeof(long) == 8 ? DType::int64 : DType::int32,
                             sizeof(long) == 8 ? DType::uint64 : DType::uint32};
  expect_integer<signed char>(DType::int8);
  expect_integer<unsigned char>(DType::uint8);
  expect_integer<short>(DType::int16);
  expect_integer<unsigned short>(DType::uint16);
  expect_integer<int>(DType::int32);
  expect_integer<unsigned>(DType::uint32);
  expect_integer<long>(longs[0]);
  expect_integer<unsigned long>(longs[1]);
  expect_integer<long long>(DType::int64);
  expect_integer<unsigned long long>(DType::uint64);
  static_assert(!StoredInteger<bool> && !StoredInteger<char> && !StoredInteger<wchar_t>);
}

template <class From>
concept Viewable =
    requires(From&& from) { DenseView<const float, 1>::over(std::forward<From>(from)); };
static_assert(Viewable<const Tensor&> && Viewable<Tensor&>);
static_assert(!Viewable<Tensor> && !Viewable<const Tensor>);

TEST(DenseView, MemoryThatIsNotTheHostsIsNotFollowed) {
  const auto buffer = Buffer::allocate(16);
  const auto d = DescriptorBuilder::row_major(DType::float32, {4}).on(Device::cuda).build();
  const auto t = bind(*d, {*buffer}, {.memory_device = Device::cuda});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ((DenseView<const float, 1>::over(*t).error().field), "buffers[].device_tag");
  EXPECT_EQ((DenseView<float, 1>::over(*t).error().code), Errc::unsupported);
}

TEST(DenseView, MisalignedElementsAreReadAndNotReferredTo) {
  std::vector<std::byte> bytes(32);
  const float value = 1.5f;
  std::memcpy(bytes.data() + 5, &value, sizeof value);
  auto buffer = Buffer::allocate(32);
  std::memcpy(buffer->data(), bytes.data(), 32);
  const auto t =
      bind(*DescriptorBuilder::row_major(DType::float32, {2}).byte_offset(1).build(), {*buffer});
  ASSERT_TRUE(t);
  EXPECT_EQ((*DenseView<const float, 1>::over(*t))(1), value);
  EXPECT_EQ((DenseView<float, 1>::over(*t).error().field), "buffers[].alignment");
}

TEST(DenseView, AnOpaqueTensorIsNotLookedAt) {
  Descriptor d = dense(DType::uint8, {4});
  d.buffers = {};
  d.set_quantization(Quantization{OpaqueScheme{.tag = static_cast<SchemeTag>(0x66)}, {}});
  const auto tensor = bind(d, {*Buffer::allocate(4, true)}, {.permissive = true});
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  const auto why = opaque(tensor->descriptor());
  ASSERT_TRUE(why);
  const auto view = DenseView<std::uint8_t, 1>::over(*tensor, View::codes);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error(), *why);
}

}  // namespace
}  // namespace hurray::testing
