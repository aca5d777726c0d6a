// Fails the n-th allocation, for every n, until the call succeeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "fail_everywhere.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/materialize.hpp"
#include "hurray/quantization_checks.hpp"
#include "hurray/selection.hpp"
#include "hurray/statistics_of.hpp"
#include "hurray/tensor.hpp"
#include "hurray/to_dense.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

Descriptor oversized() {
  Descriptor d = dense(DType::uint8, {});
  d.shape.resize(9);
  for (auto& n : d.shape) n = 1;
  Strided strided;
  strided.strides.resize(9);
  d.layout = strided;
  d.set_shard(Shard(std::vector<std::uint64_t>(9, 2), std::vector<std::uint64_t>(9, 1)));
  d.buffers = {handle(1)};
  return d;
}

TEST(Allocation, EveryFailureIsOutOfMemory) {
  const Bytes bytes = *encode(oversized());
  EXPECT_GT(fail_everywhere([&] { return decode(bytes); }), 0);
  const Descriptor d = oversized();
  EXPECT_GT(fail_everywhere([&] { return encode(d); }), 0);
  EXPECT_GT(fail_everywhere([&] { return Buffer::allocate(100, true); }), 0);
  const Buffer buffer = *Buffer::allocate(64);
  EXPECT_GT(fail_everywhere([&]() -> Result<Tensor> {
              return contain(Origin::buffer, [&] { return bind(oversized(), {buffer}); });
            }),
            0);
  EXPECT_GT(fail_everywhere([&] { return describe(bytes, [](const FieldRow&) {}); }), 0);
  int released = 0;
  static std::byte memory[64];
  fail_everywhere([&] {
    const int before = released;
    auto b = Buffer::borrow(memory, 64, std::function<void()>([&] { ++released; }), false);
    if (!b) {
      EXPECT_EQ(released, before + 1);
    }
    return b;
  });
}

TEST(Allocation, ElementsAndDenseCopiesRunOutCleanly) {
  const auto tensor = [](DType dtype, Shape shape, Layout layout, std::vector<Buffer> buffers) {
    Descriptor d;
    d.dtype = dtype;
    d.shape = std::move(shape);
    d.layout = std::move(layout);
    return *bind(std::move(d), std::move(buffers));
  };
  const auto zeros = [](std::uint64_t size) { return *Buffer::allocate(size, true); };
  Buffer indices = zeros(16);
  detail::store<std::uint64_t>(indices.data(), 1);  // entries 1 and 0: unsorted, so sorted aside
  const Tensor coo = tensor(DType::int8, {4}, Coo{.nnz = 2}, {zeros(2), indices});
  const Tensor strided = tensor(DType::int4, {2, 3}, Strided{{3, 2}}, {zeros(4)});
  Buffer pointers = zeros(8);
  detail::store<std::uint32_t>(pointers.data() + 4, 1);
  const Tensor paged =
      tensor(DType::int8, {2, 1, 1}, BlockPaged{.num_pages = 1, .page_size = 2, .num_seqs = 1},
             {zeros(2), zeros(4), pointers});
  for (const Tensor& t : {coo, strided, paged}) {
    EXPECT_GT(fail_everywhere([&] { return Elements::over(t, {.write = true}); }), 0);
    EXPECT_GT(fail_everywhere([&] { return to_dense(t); }), 0);
  }
  EXPECT_GT(fail_everywhere([&] { return check_data(coo); }), 0);
}

TEST(Allocation, CopyingAnOversizedValueThrowsAndLeavesTheOriginal) {
  const Descriptor d = oversized();
  fail_after = 0;
  EXPECT_THROW(Descriptor{d}, std::bad_alloc);
  fail_after = -1;
  EXPECT_EQ(*encode(d), *encode(oversized()));
}

TEST(Allocation, SmallDescriptorsTakeNone) {
  Descriptor d = dense(DType::float32, {1, 1, 1, 1, 1, 1, 1, 2});
  d.layout = Strided{{1, 1, 1, 1, 1, 1, 1, 1}};
  d.set_shard(Shard(std::vector<std::uint64_t>(8, 4), std::vector<std::uint64_t>(8, 0)));
  d.set_statistics(Statistics{});
  const Bytes bytes = *encode(d);
  allocations = 0;
  const auto decoded = decode(bytes);
  const Descriptor copy = *decoded;
  Bytes room(bytes.size());
  const auto written = encode_into(copy, room);
  EXPECT_EQ(allocations, 1);  // `room`
  EXPECT_EQ(*written, bytes.size());
  EXPECT_EQ(room, bytes);
}

TEST(Allocation, ADecoderTakesNothingFromADeclaredCount) {
  // 255 buffers declared, none there.
  Bytes bytes = *encode(dense(DType::uint8, {2}));
  bytes.resize(37);
  bytes[6] = std::byte{37};
  bytes[36] = std::byte{255};
  allocations = 0;
  EXPECT_EQ(decode(bytes).error().code, Errc::truncated);
  EXPECT_EQ(allocations, 0);
}

TEST(Allocation, ValuesOfQuantizedTensorsRunOutCleanly) {
  const auto ones = [](std::uint64_t n) {
    Buffer buffer = *Buffer::allocate(4 * n);
    for (std::uint64_t i = 0; i < n; ++i)
      detail::store<std::uint32_t>(buffer.data() + 4 * i, 0x3F800000);
    return buffer;
  };
  Descriptor d = dense(DType::int8, {4, 2});
  d.set_quantization(Quantization{PerBlockAffine{0, 2, 1, 2, DType::float32}, {}});
  d.buffers = {};
  const Tensor blocks = *bind(d, {*Buffer::allocate(8, true), ones(4), ones(4)});
  EXPECT_GT(fail_everywhere([&] { return dequantize(blocks); }), 0);
  EXPECT_GT(fail_everywhere([&] { return statistics_of(blocks); }), 0);

  d.layout = BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 1};
  d.shape = {4, 1, 1};
  d.set_quantization(Quantization{PerBlockAffine{0, 2, 3, no_buffer, DType::float32}, {}});
  Buffer table = *Buffer::allocate(8, true);
  Buffer starts = *Buffer::allocate(8, true);
  detail::store<std::uint32_t>(table.data() + 4, 1);
  detail::store<std::uint32_t>(starts.data() + 4, 2);
  const Tensor paged = *bind(d, {*Buffer::allocate(4, true), table, starts, ones(4)});
  EXPECT_GT(fail_everywhere([&] { return check_parameters(paged); }), 0);
  EXPECT_GT(fail_everywhere([&] { return dequantize(paged); }), 0);
}

// Every allocation of a call is a moment between its reads of the index bytes: whatever these are
// from then on, the call ends and stays inside the memory.
struct Shared {
  Buffer bytes;
  std::size_t entry = 0;
  std::size_t width = 8;
  std::uint64_t value = 0;
} shared;

void overwrite() {
  std::byte* at = shared.bytes.data() + shared.width * shared.entry;
  if (shared.width == 8)
    detail::store(at, shared.value);
  else
    detail::store(at, static_cast<std::uint32_t>(shared.value));
}

/// `call` with every entry of the tensor's index buffers changed at every allocation; how often it
/// noticed.
template <class Call>
long change_everywhere(const Tensor& tensor, std::size_t width, Call call) {
  long noticed = 0;
  change = overwrite;
  for (std::size_t b = 1; b < tensor.buffers().size(); ++b)
    for (std::size_t entry = 0; entry < tensor.buffer(b).size() / width; ++entry)
      for (const std::uint64_t value :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 31,
            std::uint64_t{1} << 61, std::uint64_t{1} << 63, dynamic - 7, dynamic})
        for (long n = 0;; ++n) {
          const Bytes before(tensor.buffer(b).bytes().begin(), tensor.buffer(b).bytes().end());
          shared = {tensor.buffer(b), entry, width, value};
          change_after = n;
          const auto result = call();
          const bool reached = change_after < 0;
          change_after = -1;
          std::ranges::copy(before, shared.bytes.data());
          if (!result) {
            EXPECT_NE(result.error().what, "");
            ++noticed;
          }
          if (!reached) break;
        }
  change = nullptr;
  return noticed;
}

template <class T>
T must(Result<T> result) {
  if (!result) throw std::logic_error(to_string(result.error()));
  return *std::move(result);
}

TEST(Allocation, IndexBytesThatChangeDuringACallAreNotFollowed) {
  const auto u64s = [](const std::vector<std::uint64_t>& values) {
    Buffer buffer = *Buffer::allocate(8 * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) detail::store(buffer.data() + 8 * i, values[i]);
    return buffer;
  };
  const auto u32s = [](const std::vector<std::uint32_t>& values) {
    Buffer buffer = *Buffer::allocate(4 * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) detail::store(buffer.data() + 4 * i, values[i]);
    return buffer;
  };
  Csf csf{.nnz = 3, .mode_order = {}};
  csf.mode_order.assign(std::vector<std::uint32_t>{2, 1, 0});
  struct Case {
    Layout layout;
    std::vector<Buffer> buffers;
    std::size_t width = 8;
  };
  const std::vector<Case> cases{
      {Coo{.nnz = 3, .is_sorted = 1}, {u64s({0, 0, 1, 2, 3, 3})}},
      {Coo{.nnz = 3}, {u64s({1, 2, 0, 0, 3, 3})}},
      {Csr{.nnz = 3}, {u64s({0, 3, 2}), u64s({0, 2, 2, 3, 3})}},
      {Csc{.nnz = 3}, {u64s({0, 3, 2}), u64s({0, 2, 2, 3, 3})}},
      {csf,
       {u64s({0, 1}), u64s({0}), u64s({0, 2}), u64s({1, 3}), u64s({0, 2, 3}), u64s({0, 1, 2})}},
      {BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 1}, {u32s({1, 0}), u32s({0, 2})}, 4},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.layout.index());
    const bool paged = std::holds_alternative<BlockPaged>(one.layout);
    const bool shards = std::holds_alternative<Coo>(one.layout);  // the others are for groups
    const std::vector<std::uint64_t> sizes = paged ? std::vector<std::uint64_t>{4, 2, 1}
                                             : std::holds_alternative<Csf>(one.layout)
                                                 ? std::vector<std::uint64_t>{4, 4, 1}
                                                 : std::vector<std::uint64_t>{4, 4};
    const Shape shape{std::span<const std::uint64_t>(sizes)};
    const auto tensor = [&](DType dtype, bool quantized) {
      Descriptor d;
      d.dtype = dtype;
      d.shape = shape;
      d.layout = one.layout;
      if (quantized) d.set_quantization(Quantization{PerTensorAffine{.scale = 1.0f}, {}});
      if (shards) d.set_shard(Shard(sizes, std::vector<std::uint64_t>(sizes.size())));
      std::vector<Buffer> buffers = one.buffers;
      buffers.insert(buffers.begin(), *Buffer::allocate(paged ? 64 : 3 * 4, true));
      return must(bind(std::move(d), std::move(buffers)));
    };
    const Tensor plain = tensor(DType::float32, false);
    const Tensor packed = tensor(DType::int4, false);
    const Tensor codes = tensor(DType::int8, true);
    for (const bool canonical : {true, false}) {
      const ElementOptions options{.canonical = canonical};
      EXPECT_GT(change_everywhere(plain, one.width, [&] { return to_dense(plain, options); }), 0);
      EXPECT_GT(change_everywhere(packed, one.width, [&] { return to_dense(packed, options); }), 0);
      EXPECT_GT(change_everywhere(codes, one.width, [&] { return dequantize(codes, options); }), 0);
      EXPECT_GT(change_everywhere(codes, one.width, [&] { return statistics_of(codes, options); }),
                0);
    }
    change_everywhere(plain, one.width, [&] { return Elements::over(plain, {.write = true}); });
    change_everywhere(codes, one.width, [&] { return check_data(codes); });
    if (!shards) continue;
    Descriptor base = dense(DType::float32, shape);
    base.set_shard(*plain.descriptor().shard());
    base.buffers = {};
    const Tensor zeros = must(bind(base, {*Buffer::allocate(64, true)}));
    for (const Tensor& correction : {plain, codes})
      for (const CombineOp op : {CombineOp::replace, CombineOp::add}) {
        const Item item =
            *compose(CompositionRule::overlay, op, shape, DType::float32, {{zeros}, {correction}});
        EXPECT_GT(change_everywhere(correction, one.width, [&] { return materialize(item); }), 0);
      }
  }
}

TEST(Allocation, AWideTypeTakesNothingBeforeThereIsAnElement) {
  ExtensionType type;
  type.bit_width = 0xFFFFFFF8;
  Descriptor d;
  d.dtype = static_cast<DType>(0xF0);
  d.shape = {0};
  d.layout = Coo{};
  d.set_extension_type(type);
  d.set_shard(Shard(std::vector<std::uint64_t>{0}, std::vector<std::uint64_t>{0}));
  const Tensor empty = *bind(d, {Buffer(), Buffer()});
  Descriptor head;
  head.dtype = d.dtype;
  head.shape = {0};
  head.set_extension_type(type);
  head.layout = CompositeHead{.rule = CompositionRule::overlay, .combine_op = CombineOp::replace};
  const Item item = *compose(head, {{empty}, {empty}});
  largest = 0;
  EXPECT_TRUE(materialize(item));
  EXPECT_LT(largest, 1u << 16);
}

TEST(Allocation, LimitsComeBeforeTheMemory) {
  Descriptor d;
  d.dtype = DType::float64;
  d.shape = {std::uint64_t{1} << 30};
  d.layout = Coo{};
  d.set_shard(Shard(std::vector<std::uint64_t>{d.shape[0]}, std::vector<std::uint64_t>{0}));
  const Tensor sparse = *bind(d, {Buffer(), Buffer()});
  d.dtype = DType::int8;
  d.set_quantization(Quantization{PerTensorAffine{.scale = 1.0f}, {}});
  const Tensor codes = *bind(d, {Buffer(), Buffer()});
  const Item item = *compose(CompositionRule::partition, {d.shape[0]}, DType::float64, {{sparse}});
  const auto refused = [](const Result<Tensor>& result, std::uint64_t bytes) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::limit_exceeded);
    EXPECT_EQ(result.error().expected, bytes - 1);
    EXPECT_EQ(result.error().found, bytes);
    EXPECT_LT(largest, 1u << 16);
  };
  const std::uint64_t gib = std::uint64_t{1} << 30;
  largest = 0;
  refused(to_dense(sparse, {.max_bytes = 8 * gib - 1}), 8 * gib);
  refused(dequantize(codes, {.max_bytes = 4 * gib - 1}), 4 * gib);
  refused(materialize(item, nullptr, {.max_bytes = 8 * gib - 1}), 8 * gib);
}

TEST(Allocation, PlansOfSelectionsRunOutCleanly) {
  const Layout layouts[] = {RowMajor{}, Tiled({4, 4}), Morton{{4, 4}},
                            Hilbert{.order = 4, .rank = 2}};
  for (const Layout& layout : layouts) {
    Descriptor d = dense(DType::uint4, {16, 16});
    d.layout = layout;
    d.buffers = {handle(128)};
    const Selection selection{{.start = 1, .step = 2}, {.stop = 9}};
    EXPECT_GT(fail_everywhere([&]() -> Result<bool> {
                auto plan = SelectionPlan::of(d, selection);
                if (!plan) return plan.error();
                auto pieces = plan->pieces({.piece_bytes = 64});
                if (!pieces) return pieces.error();
                ReadPiece piece;
                for (;;) {
                  const auto more = pieces->next(piece);
                  if (!more || !*more) return more;
                }
              }),
              4);
  }
}

}  // namespace
}  // namespace hurray::testing
