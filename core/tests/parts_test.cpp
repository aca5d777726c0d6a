// What a layout and a scheme are judged by on their own, without the descriptor around them.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "hurray/index_buffers.hpp"
#include "random_descriptor.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

struct Random {
  std::mt19937_64 numbers;
  std::uint64_t below(std::uint64_t n) { return numbers() % n; }
};

TEST(Parts, OfValidDescriptorsHoldOnTheirOwn) {
  Random random{std::mt19937_64(20260101)};
  std::size_t schemes_seen = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto d = RandomDescriptor<Random>(random)();
    if (!d) continue;
    const auto fits = validate(d->layout, d->shape);
    EXPECT_TRUE(fits) << to_string(fits.error());
    if (const Quantization* quantization = d->quantization()) {
      ++schemes_seen;
      EXPECT_TRUE(validate(*quantization));
      EXPECT_TRUE(validate(*quantization, &d->layout));
      const auto payload = encode(*quantization);
      ASSERT_TRUE(payload);
      const auto whole = *encode(*d);
      EXPECT_NE(std::ranges::search(whole, *payload).begin(), whole.end());
      const auto again = decode_quantization(*payload, {.agreed = {.all = true}});
      ASSERT_TRUE(again) << to_string(again.error());
      EXPECT_EQ(*again, *quantization);
    }
  }
  EXPECT_GT(schemes_seen, 100u);
}

std::string_view field_of(const Result<void>& result) {
  return result ? std::string_view() : result.error().field;
}

TEST(Parts, LayoutsAreComparedWithTheShape) {
  constexpr auto any = dynamic;
  EXPECT_TRUE(validate(RowMajor{}, Shape{}));
  EXPECT_TRUE(validate(RowMajor{}, {1ull << 40, 1ull << 40}));
  EXPECT_TRUE(validate(PrivateLayout{}, Shape{}));
  EXPECT_TRUE(validate(UnknownLayout{}, {3, any}));
  EXPECT_EQ(field_of(validate(ColumnMajor{}, Shape{})), "rank");
  EXPECT_EQ(field_of(validate(Strided{{1, 1}}, {4})), "layout.strides[]");
  EXPECT_EQ(field_of(validate(Strided{{1LL << 62}}, {9})), "layout.strides");
  EXPECT_TRUE(validate(Strided{{1LL << 62}}, {any}));
  EXPECT_EQ(field_of(validate(Tiled({1ull << 32, 1ull << 32}), {1, 1})), "layout.tile_shape");
  EXPECT_EQ(field_of(validate(Tiled({2, 3}), {4})), "layout.tile_shape");
  EXPECT_EQ(field_of(validate(Morton{{1, 3}}, {2, 9})), "layout.morton_bits[]");
  EXPECT_TRUE(validate(Morton{{1, 3}}, {any, 8}));
  EXPECT_EQ(field_of(validate(Hilbert{.order = 3, .rank = 2}, {8, 7})), "layout.hilbert_order");
  EXPECT_EQ(field_of(validate(Coo{.nnz = 7}, {2, 3})), "layout.nnz");
  EXPECT_TRUE(validate(Coo{.nnz = 7}, {2, any}));
  EXPECT_EQ(field_of(validate(Csr{.nnz = 1}, {2, 3, 4})), "rank");
  EXPECT_EQ(field_of(validate(Csf{.nnz = 1, .mode_order = {0, 1, 1}}, {2, 3, 4})),
            "layout.mode_order[]");
  EXPECT_EQ(field_of(validate(BlockPaged{.paged_axis = 1}, {0, 3, 4})), "layout.paged_axis");
  const CompositeHead head{.member_count = 1, .rule = CompositionRule::partition};
  EXPECT_EQ(field_of(validate(head, {2, any})), "shape[]");
  const auto error = validate(Csr{.nnz = 9}, {2, 3}).error();
  EXPECT_EQ(error.offset, Error::no_offset);
}

TEST(Parts, TilesTellTheirRank) {
  EXPECT_EQ(Tiled({4, 4, 2}).rank(), 3u);
  Tiled nested({8, 8}, {LayoutTag::strided, LayoutTag::tiled}, {9, 1});
  EXPECT_EQ(nested.rank(), 2u);
  nested.inside(Tiled({4, 2}, {LayoutTag::row_major, LayoutTag::strided}, {}, {1, 4}));
  EXPECT_EQ(nested.rank(), 2u);
  EXPECT_EQ(nested.level(1, nested.rank()).inner_strides[1], 4);
}

Quantization scheme(Scheme value) { return {.scheme = std::move(value), .rest = {}}; }

TEST(Parts, SchemesAreJudgedWithoutATensor) {
  EXPECT_TRUE(validate(scheme(PerTensorAffine{0.5f, 1 << 30})));
  EXPECT_TRUE(validate(scheme(PerChannelAffine{.axis = 99, .scale_buffer_index = 0})));
  EXPECT_EQ(field_of(validate(scheme(PerTensorAffine{0.0f, 0}))), "quantization.scale");
  EXPECT_EQ(field_of(validate(scheme(PerChannelAffine{.scale_buffer_index = no_buffer}))),
            "quantization.scale_buffer_index");
  EXPECT_EQ(field_of(validate(scheme(PerBlockAffine{.block_size = 3}))), "quantization.block_size");
  EXPECT_EQ(field_of(validate(scheme(PerBlockAffine{.scale_type = DType::float64}))),
            "quantization.scale_type_tag");
  EXPECT_EQ(field_of(validate(scheme(Nf4{.block_size = 4}))), "quantization.block_size");
  EXPECT_EQ(field_of(validate(scheme(Mxfp{.block_size = 4096}))), "quantization.block_size");

  const Layout paged = BlockPaged{.num_pages = 6, .page_size = 2};
  EXPECT_TRUE(validate(scheme(PerTensorAffine{}), &paged));
  EXPECT_TRUE(validate(scheme(PerChannelAffine{.axis = 2}), &paged));
  EXPECT_TRUE(validate(scheme(PerBlockAffine{.axis = 0, .block_size = 2}), &paged));
  EXPECT_EQ(field_of(validate(scheme(PerChannelAffine{.axis = 0}), &paged)), "quantization.axis");
  EXPECT_EQ(field_of(validate(scheme(PerChannelAffine{.axis = 3}), &paged)), "quantization.axis");
  EXPECT_EQ(field_of(validate(scheme(PerBlockAffine{.block_size = 4}), &paged)),
            "quantization.block_size");
  EXPECT_EQ(field_of(validate(scheme(Nf4{}), &paged)), "quantization.scheme_tag");
}

TEST(Parts, PayloadsOfSchemesStandAlone) {
  const Bytes whole = hex("02 01 00 00 01 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00");
  const auto decoded = decode_quantization(whole);
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  EXPECT_EQ(decoded->scheme, Scheme(PerChannelAffine{1, 1, 2}));
  EXPECT_EQ(*encode(*decoded), whole);
  for_each_prefix(whole, [](const Bytes& bytes) {
    const auto error = decode_quantization(bytes);
    ASSERT_FALSE(error);
    EXPECT_EQ(error.error().field, "quantization_length");
  });
  for_each_bit_flip(whole, [](const Bytes& bytes) {
    const auto flipped = decode_quantization(bytes);
    if (!flipped) return;
    EXPECT_EQ(*encode(*flipped), bytes);
  });
  Bytes longer = whole;
  longer.push_back(std::byte{7});
  EXPECT_EQ(decode_quantization(longer)->rest.size(), 1u);
  EXPECT_EQ(decode_quantization(hex("F0 01 00 00")).error().field, "quantization.scheme_tag");
  EXPECT_EQ(encode(scheme(PerTensorAffine{0.0f, 0})).error().field, "quantization.scale");
  const Quantization unknown{.scheme = OpaqueScheme{.tag = SchemeTag{0x06}, .version = 9},
                             .rest = Blob(hex("AA BB"))};
  EXPECT_EQ(encode(unknown).error().field, "quantization.scheme_tag");
  EXPECT_EQ(*encode(unknown, {.permissive = true}), hex("06 09 00 00 AA BB"));
  EXPECT_EQ(*decode_quantization(hex("06 09 00 00 AA BB"), {.permissive = true}), unknown);
}

Buffer numbers(const std::vector<std::uint64_t>& values) {
  Buffer buffer = *Buffer::allocate(8 * values.size());
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), 8 * values.size());
  return buffer;
}

TEST(Parts, PageListsAreExact) {
  const auto check = [](const BlockPaged& layout, const std::vector<std::uint64_t>& seq_ptr,
                        const std::vector<std::uint64_t>& table) -> std::string {
    const std::vector<Buffer> buffers{Buffer(), numbers(table), numbers(seq_ptr)};
    const auto error = layout.check_exact(IndexBuffers(buffers), Shape{dynamic, dynamic, dynamic});
    return error ? field_name(*error) : "";
  };
  const BlockPaged layout{.num_pages = 6, .page_size = 2, .num_seqs = 3};
  EXPECT_EQ(check(layout, {0, 2, 2, 5}, {4, 1, 4, 0, 5}), "");
  EXPECT_EQ(check({.num_pages = 6}, {0}, {}), "");
  EXPECT_EQ(check(layout, {0, 2, 5}, {4, 1, 4, 0, 5}), "seq_ptr");
  EXPECT_EQ(check(layout, {0, 2, 2, 5, 5}, {4, 1, 4, 0, 5}), "seq_ptr");
  EXPECT_EQ(check(layout, {}, {}), "seq_ptr");
  EXPECT_EQ(check(layout, {1, 2, 2, 5}, {4, 1, 4, 0, 5}), "seq_ptr[0]");
  EXPECT_EQ(check(layout, {0, 3, 2, 5}, {4, 1, 4, 0, 5}), "seq_ptr[2]");
  EXPECT_EQ(check(layout, {0, 2, 2, 6}, {4, 1, 4, 0, 5}), "seq_ptr[3]");
  EXPECT_EQ(check(layout, {0, 2, 2, 4}, {4, 1, 4, 0, 5}), "block_table");
  EXPECT_EQ(check(layout, {0, 2, 2, 5}, {4, 1, 4, 0, 6}), "block_table[4]");
}

}  // namespace
}  // namespace hurray::testing
