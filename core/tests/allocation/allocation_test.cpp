// Fails the n-th allocation, for every n, until the call succeeds: once for `hurray::allocate`, which
// this executable replaces, and once for `operator new`.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "hurray/tensor.hpp"
#include "support.hpp"

namespace {
long fail_after = -1;  // allocations left until one fails; -1: never
long allocations = 0;

bool fails() {
  ++allocations;
  return fail_after >= 0 && fail_after-- == 0;
}
}  // namespace

namespace hurray {
void* allocate(std::uint64_t size, std::size_t alignment, bool zeroed) noexcept {
  if (fails() || size > (std::uint64_t{1} << 40)) return nullptr;
  const std::size_t rounded = (static_cast<std::size_t>(size) + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded);
  if (zeroed && block != nullptr) std::memset(block, 0, rounded);
  return block;
}
void deallocate(void* block, std::uint64_t, std::size_t) noexcept { std::free(block); }
}  // namespace hurray

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // new and delete are both replaced here
#endif
void* operator new(std::size_t size) {
  if (fails()) throw std::bad_alloc();
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace hurray::testing {
namespace {

/// Runs `call`, which returns a Result, with every allocation failing in turn.
template <class Call>
long fail_everywhere(Call call) {
  for (long n = 0;; ++n) {
    fail_after = n;
    auto result = call();
    fail_after = -1;
    if (result) return n;
    EXPECT_EQ(result.error().code, Errc::out_of_memory) << to_string(result.error());
    if (result.error().code != Errc::out_of_memory || n > 1000) return n;
  }
}

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
