#include "hurray/tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "support.hpp"

namespace hurray::testing {
namespace {

bool divides(const Tensor& t) {
  for (std::size_t i = 0; i < t.buffers().size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(t.buffer(i).data());
    if (t.descriptor().buffers[i].byte_size == 0) {
      if (t.descriptor().buffers[i].alignment != 1) return false;
    } else if (address % t.descriptor().buffers[i].alignment != 0) {
      return false;
    }
  }
  return true;
}

TEST(Buffers, OwnMemoryDeclaresWhatWasAskedFor) {
  for (const std::uint32_t alignment : {64u, 128u, 4096u}) {
    const auto b = Buffer::allocate(100, true, alignment);
    ASSERT_TRUE(b);
    EXPECT_EQ(b->alignment(), alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data()) % alignment, 0u);
    for (const std::byte byte : b->bytes()) EXPECT_EQ(byte, std::byte{0});
  }
  EXPECT_EQ(Buffer::allocate(10, false, 2u << 20)->alignment(), 4096u);
  EXPECT_EQ(Buffer::allocate(0)->alignment(), 1u);
  EXPECT_EQ(Buffer::allocate(8, false, 96).error().code, Errc::invalid_value);
  EXPECT_EQ(Buffer::allocate(8, false, 32).error().code, Errc::invalid_value);
  EXPECT_EQ(Buffer::allocate(std::uint64_t{1} << 62).error().code, Errc::out_of_memory);
  EXPECT_EQ(Buffer::allocate(dynamic).error().code, Errc::out_of_memory);
}

TEST(Buffers, BorrowedMemoryIsMeasuredAndReleasedOnce) {
  alignas(8192) static std::byte memory[16384];
  int released = 0;
  for (const std::size_t offset : {0u, 64u, 192u, 1u, 4096u}) {
    {
      auto b = Buffer::borrow(memory + offset, 256, [&] { ++released; }, false);
      ASSERT_TRUE(b);
      const Buffer share = *b;
      const Buffer part = b->view(64, 64);
      EXPECT_EQ(b->alignment(), measure_alignment(memory + offset, 256));
      EXPECT_LE(b->alignment(), 4096u);
      EXPECT_EQ(part.data(), memory + offset + 64);
    }
  }
  EXPECT_EQ(released, 5);
  EXPECT_EQ(measure_alignment(memory, 1), 4096u);
  EXPECT_EQ(measure_alignment(memory + 64, 1), 64u);
  EXPECT_EQ(measure_alignment(memory + 33, 1), 1u);
  EXPECT_EQ(measure_alignment(memory + 64, 0), 1u);
}

TEST(Bind, WritesSizesAndAlignmentsFromTheMemory) {
  Descriptor lie = dense(DType::float32, {3, 4});
  lie.buffers[0].alignment = 4096;
  lie.buffers[0].byte_size = 12345;
  const auto t = bind(lie, {*Buffer::allocate(48)});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().buffers[0].byte_size, 48u);
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 64u);
  EXPECT_TRUE(divides(*t));
  EXPECT_FALSE(t->readonly());
}

TEST(Bind, RefusesWhatTheBuffersContradict) {
  const auto small = bind(dense(DType::float32, {3, 4}), {*Buffer::allocate(47)});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().origin, Origin::buffer);
  EXPECT_EQ(small.error().expected, 47u);
  EXPECT_EQ(small.error().found, 48u);

  auto memory = *Buffer::allocate(256);
  const auto odd = bind(dense(DType::uint8, {8}), {memory.view(4, 8)});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().field, "buffers[].alignment");
  EXPECT_EQ(odd.error().found, 4u);
  EXPECT_EQ(raise(odd.error()), Raise::buffer);

  const auto two = bind(dense(DType::uint8, {8}), {memory, memory});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().field, "buffer_count");

  Descriptor peer = dense(DType::uint8, {8});
  peer.buffers[0].memory_class = MemoryClass::peer;
  const auto impossible = bind(peer, {*Buffer::allocate(8)});
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().origin, Origin::buffer);
}

TEST(Bind, AnUnsyncedTensorRefusesItsBytesAndIsRelayedUnchanged) {
  Descriptor d = dense(DType::float32, {2});
  d.buffers[0].device = Device::cuda;
  d.buffers[0].sync_mode = SyncMode::event;
  d.buffers[0].alignment = 1024;
  const auto t = bind(d, {*Buffer::allocate(8)}, {.provenance = Provenance::outside});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 64u);
  EXPECT_EQ(t->wire_descriptor(), d);
  EXPECT_EQ(readable(*t).error().field, "buffers[].sync_mode");
  EXPECT_EQ(readable(*t).error().what, "event");
  EXPECT_EQ(buffer_tensor(*t, 0).error().code, Errc::unsupported);
  EXPECT_EQ(to_cpu(*t).error().code, Errc::unsupported);
}

TEST(Bind, ADeclaredDeviceIsKeptAndRelabelledOnRequest) {
  Descriptor d = dense(DType::float32, {2});
  d.buffers[0].device = Device::cuda;
  d.buffers[0].memory_class = MemoryClass::unified;
  const auto t = bind(d, {*Buffer::allocate(8)});
  ASSERT_TRUE(t);
  EXPECT_EQ(readable(*t).error().field, "buffers[].device_tag");
  const auto host = to_cpu(*t);
  ASSERT_TRUE(host);
  EXPECT_TRUE(readable(*host));
  EXPECT_EQ(host->buffer(0).data(), t->buffer(0).data());
  EXPECT_EQ(host->descriptor().buffers[0].memory_class, MemoryClass::standard);
  const auto raw = buffer_tensor(*t, 0);
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->descriptor().buffers[0].device, Device::cuda);
  EXPECT_EQ(raw->descriptor().shape, Shape{8});
  EXPECT_TRUE(divides(*raw));
}

TEST(Bind, CanonicalFormSaysNothingAboutTheMemory) {
  Descriptor d = dense(DType::uint8, {100});
  const auto t = bind(d, {*Buffer::allocate(100, false, 4096)});
  ASSERT_TRUE(t);
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 4096u);
  EXPECT_EQ(t->wire_descriptor().buffers[0].alignment, 64u);
  const auto empty = bind(dense(DType::uint8, {0}), {Buffer()});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->wire_descriptor().buffers[0].alignment, 1u);
}

TEST(Bind, SharesMemoryUntilTheLastShareIsGone) {
  int released = 0;
  alignas(64) static std::byte memory[64];
  std::optional<Tensor> kept;
  {
    auto b = Buffer::borrow(memory, 64, [&] { ++released; }, true);
    auto t = bind(dense(DType::uint8, {64}), {std::move(*b)});
    ASSERT_TRUE(t);
    EXPECT_TRUE(t->readonly());
    kept = *buffer_tensor(*t, 0);
  }
  EXPECT_EQ(released, 0);
  EXPECT_TRUE(kept->readonly());
  std::thread([&] { kept.reset(); }).join();
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace hurray::testing
