#include "hurray/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "dense_support.hpp"
#include "hurray/elements.hpp"

namespace hurray::testing {
namespace {

using Range = std::pair<std::uint64_t, std::uint64_t>;

struct Gathered {
  std::vector<std::byte> bytes;
  std::vector<Range> pieces;
};

/// All pieces, each from memory that ends where it does.
Gathered gather_pieces(const SelectionPlan& plan, const Tensor& tensor,
                       const PieceOptions& options) {
  Gathered all;
  all.bytes.resize(plan.size_bytes());
  auto pieces = plan.pieces(options);
  ReadPiece piece;
  for (;;) {
    const auto more = pieces->next(piece);
    EXPECT_TRUE(more) << to_string(more.error());
    if (!more || !*more) return all;
    all.pieces.emplace_back(piece.offset, piece.size);
    const auto from = tensor.buffer(0).bytes().subspan(piece.offset, piece.size);
    if (piece.target) {
      EXPECT_LE(*piece.target + piece.size, all.bytes.size());
      std::ranges::copy(from, all.bytes.begin() + static_cast<std::ptrdiff_t>(*piece.target));
    } else {
      const Buffer own = exact(from);
      plan.scatter(piece, own.bytes(), all.bytes);
    }
  }
}

TEST(Selection, EveryDenseLayoutAndWidth) {
  std::mt19937 random(5);
  for (int round = 0; round < 6000; ++round) {
    Descriptor d = random_dense(random);
    set_width(d, widths[pick(random, std::size(widths))]);
    const Tensor tensor = filled(d, random, pick(random, 3) != 0);
    const Selection selection = random_selection(d.shape, random);
    const auto plan = SelectionPlan::of(tensor.descriptor(), selection, Provenance::own);
    ASSERT_TRUE(plan) << to_string(plan.error());
    const std::vector<bool> expected = selected_bits(tensor, selection);
    const unsigned width = element_bits(d);
    ASSERT_EQ(plan->descriptor().shape.count() * width, expected.size());
    PieceOptions options;
    options.max_gap_bytes = std::array{0u, 1u, 7u, 65536u}[pick(random, 4)];
    options.piece_bytes = std::array{1u, 16u, 64u, 1u << 20}[pick(random, 4)];
    if (pick(random, 3) == 0) {
      options.chunk_bytes = 16;
      options.piece_bytes = 16 * (1 + pick(random, 4));
    }
    const Gathered found = gather_pieces(*plan, tensor, options);
    ASSERT_EQ(found.bytes.size(), *packed_bytes(width, plan->descriptor().shape.count()));
    for (std::uint64_t b = 0; b < 8 * found.bytes.size(); ++b)
      ASSERT_EQ(bit(found.bytes, b), b < expected.size() && expected[b])
          << "bit " << b << ", round " << round << ", " << name(d.layout);
    if (const auto at = plan->contiguous()) {
      const auto there = tensor.buffer(0).bytes().subspan(*at, plan->size_bytes());
      for (std::uint64_t b = 0; b < expected.size(); ++b)
        ASSERT_EQ(bit(there, b), expected[b]) << "round " << round;
    }
  }
}

Descriptor dense(DType dtype, Shape shape, Layout layout) {
  Descriptor d = described(dtype, std::move(shape), std::move(layout));
  d.buffers.push_back({.byte_size = 0});
  d.buffers[0].byte_size = *required_bytes(d, 0);
  return d;
}

std::vector<Range> ranges(const Descriptor& d, const Selection& selection,
                          const PieceOptions& options = {}) {
  const auto plan = SelectionPlan::of(d, selection);
  EXPECT_TRUE(plan) << to_string(plan.error());
  auto pieces = plan->pieces(options);
  ReadPiece piece;
  std::vector<Range> found;
  for (;;) {
    const auto more = pieces->next(piece);
    EXPECT_TRUE(more);
    if (!more || !*more) return found;
    EXPECT_LE(piece.runs.size(), 16384u);
    found.emplace_back(piece.offset, piece.size);
  }
}

TEST(Selection, LeadingPartsOfRowMajorAreOneRangeOfTheResult) {
  const Descriptor d = dense(DType::float32, {1 << 20, 1 << 20}, RowMajor{});
  const auto plan = SelectionPlan::of(d, Selection{{.start = 1000, .stop = 1 << 19}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->contiguous(), std::uint64_t{1000} << 22);
  auto pieces = plan->pieces();
  ReadPiece piece;
  ASSERT_TRUE(*pieces->next(piece));
  EXPECT_EQ(piece.offset, std::uint64_t{1000} << 22);
  EXPECT_EQ(piece.size, plan->size_bytes());
  EXPECT_EQ(piece.target, 0u);
  EXPECT_FALSE(*pieces->next(piece));
}

TEST(Selection, TrailingPartsAreReadWithTheGapsBetweenThem) {
  const Descriptor d = dense(DType::float32, {8, 1024}, RowMajor{});
  const Selection columns{{}, {.start = 128, .stop = 256}};
  EXPECT_EQ(ranges(d, columns), (std::vector<Range>{{512, 7 * 4096 + 512}}));
  const auto apart = ranges(d, columns, {.max_gap_bytes = 3583});
  ASSERT_EQ(apart.size(), 8u);
  for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_EQ(apart[i], Range(512 + 4096 * i, 512));
  // One number of each row is an element by itself, or a range with all between.
  EXPECT_EQ(ranges(d, {{}, Along::index(3)}), (std::vector<Range>{{12, 7 * 4096 + 4}}));
  EXPECT_EQ(ranges(d, {{}, Along::index(3)}, {.max_gap_bytes = 4091}).size(), 8u);
}

TEST(Selection, WholeTilesAreReadAlone) {
  for (const DType dtype : {DType::float32, DType::uint4, DType::bool_}) {
    const unsigned width = info(dtype)->bits;
    const Descriptor d = dense(dtype, {1024, 1024}, Tiled({256, 256}));
    const std::uint64_t tile = 256 * 256 * width / 8;
    const Selection middle{{.start = 256, .stop = 768}, {.start = 512, .stop = 768}};
    EXPECT_EQ(ranges(d, middle), (std::vector<Range>{{6 * tile, tile}, {10 * tile, tile}}));
    const Selection row{{.start = 512, .stop = 768}};
    EXPECT_EQ(ranges(d, row), (std::vector<Range>{{8 * tile, 4 * tile}}));
  }
  const Descriptor morton = dense(DType::float32, {1024, 1024}, Morton{{10, 10}});
  EXPECT_EQ(
      ranges(morton, {{.start = 512, .stop = 1024}, {.start = 512}}, {.piece_bytes = 1 << 23}),
      (std::vector<Range>{{3 << 20, 1 << 20}}));
}

TEST(Selection, PiecesAreBoundedWhateverTheSelection) {
  // 2^61 elements: nothing is as long as the tensor.
  const std::uint64_t side = std::uint64_t{1} << 30;
  const Descriptor d = dense(DType::uint8, {side, side}, ColumnMajor{});
  const auto plan = SelectionPlan::of(d, Selection{{.step = 3}, {.start = 5}});
  ASSERT_TRUE(plan);
  auto pieces = plan->pieces();
  ReadPiece piece;
  std::uint64_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(*pieces->next(piece));
    EXPECT_LE(piece.size, std::uint64_t{2} << 20);
    EXPECT_LE(piece.runs.size(), 16384u);
    EXPECT_GE(piece.offset, last);
    last = piece.offset + piece.size;
  }
}

TEST(Selection, ChunksAreInOnePieceEach) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Descriptor d = dense(DType::uint8, {1 + pick(random, 40), 1 + pick(random, 40)}, RowMajor{});
    set_width(d, widths[pick(random, std::size(widths))]);
    d.buffers[0].byte_size = *required_bytes(d, 0);
    const PieceOptions options{.max_gap_bytes = 0, .piece_bytes = 128, .chunk_bytes = 64};
    std::uint64_t next = 0;  // chunk
    for (const auto& [offset, size] : ranges(d, random_selection(d.shape, random), options)) {
      const bool across =
          element_bits(d) == 6 || element_bits(d) % 3 == 0 || element_bits(d) % 5 == 0;
      EXPECT_GE(offset / 64 + (across ? 1 : 0), next);
      EXPECT_LE(size, 128u + 32);
      next = (offset + size - 1) / 64 + 1;
    }
  }
}

TEST(Selection, SaysWhatTheResultIs) {
  Descriptor d = dense(DType::int8, {4, 6}, ColumnMajor{});
  d.set_quantization(Quantization{PerTensorAffine{.scale = 0.5f, .zero_point = 3}, {}});
  d.set_statistics(Statistics{});
  d.set_shard(Shard{});
  d.buffers[0].device = Device::cuda;
  const auto plan = SelectionPlan::of(d, Selection{Along::index(2), {.start = 1, .step = 2}});
  ASSERT_TRUE(plan);
  const Descriptor& result = plan->descriptor();
  EXPECT_EQ(result.shape, (Shape{3}));
  EXPECT_TRUE(std::holds_alternative<RowMajor>(result.layout));
  EXPECT_EQ(*result.quantization(), *d.quantization());
  EXPECT_EQ(result.statistics(), nullptr);
  EXPECT_EQ(result.shard(), nullptr);
  EXPECT_EQ(result.buffers[0].device, Device::cuda);
  EXPECT_EQ(result.buffers[0].byte_size, 3u);
  EXPECT_FALSE(plan->whole());
  EXPECT_TRUE(SelectionPlan::of(d, {})->whole());
}

void expect_error(const Result<SelectionPlan>& plan, Errc code, const std::string& text) {
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, code);
  EXPECT_NE(to_string(plan.error()).find(text), std::string::npos) << to_string(plan.error());
}

TEST(Selection, Refuses) {
  const Descriptor d = dense(DType::float32, {4, 6}, RowMajor{});
  const auto of = [&](const Selection& selection) { return SelectionPlan::of(d, selection); };
  expect_error(of({{}, {}, {}}), Errc::inconsistent, "selection: expected at most 2");
  expect_error(of({Along::index(4)}), Errc::out_of_bounds, "selection[0]");
  expect_error(of({{}, {.stop = 7}}), Errc::out_of_bounds, "selection[1]: expected at most 6");
  expect_error(of({{.step = 0}}), Errc::invalid_value, "expected at least 1 as step");
  Descriptor other = d;
  other.shape = {dynamic, 6};
  expect_error(SelectionPlan::of(other, {}), Errc::unsupported, "dynamic");
  other = d;
  other.set_quantization(Quantization{PerChannelAffine{}, {}});
  other.dtype = DType::int8;
  other.buffers.push_back({.byte_size = 16});
  expect_error(SelectionPlan::of(other, {}), Errc::unsupported, "per_channel_affine");
  other = d;
  other.layout = Csr{};
  expect_error(SelectionPlan::of(other, {}), Errc::unsupported, "csr");
  other = d;
  other.buffers[0].sync_mode = SyncMode::event;
  expect_error(SelectionPlan::of(other, {}), Errc::unsupported, "sync_mode");
  other = dense(DType::bool_, {4, 6}, RowMajor{});
  other.buffers[0].byte_size = 24;
  expect_error(SelectionPlan::of(other, {}), Errc::unsupported, "one byte for each element");
  EXPECT_TRUE(SelectionPlan::of(other, {}, Provenance::own));
  // Zero strides make more elements than there are bytes.
  const auto big = std::int64_t{1} << 40;
  other = dense(DType::float32, {std::uint64_t(big), std::uint64_t(big)}, Strided{Strides{0, 0}});
  expect_error(SelectionPlan::of(other, {}), Errc::overflow, "bytes of selected elements");
  EXPECT_TRUE(SelectionPlan::of(other, Selection{Along::index(7), {.stop = 4}}));
}

TEST(Selection, ElementsOutsideTheBufferAreAnError) {
  Descriptor d = dense(DType::float32, {4, 6}, RowMajor{});
  d.buffers[0].byte_size = 95;  // what no decoder lets through
  const auto plan = SelectionPlan::of(d, {});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->contiguous());
  auto pieces = plan->pieces();
  ReadPiece piece;
  const auto more = pieces->next(piece);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::out_of_bounds);
}

}  // namespace
}  // namespace hurray::testing
