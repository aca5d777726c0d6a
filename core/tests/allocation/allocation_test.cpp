// Fails the n-th allocation, for every n, until the call succeeds.
#include <gtest/gtest.h>

#include "fail_everywhere.hpp"
#include "hurray/tensor.hpp"
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

}  // namespace
}  // namespace hurray::testing
