// Fails the n-th allocation, for every n, until the call succeeds.
#include <gtest/gtest.h>

#include "fail_everywhere.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/quantization_checks.hpp"
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

}  // namespace
}  // namespace hurray::testing
