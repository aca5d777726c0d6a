#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "handles.hpp"
#include "hurray.h"

/// What the tests of the C interface begin with.
namespace hurray::testing {

/// Counts the calls of a release callback, and keeps what it got.
struct Released {
  int calls = 0;
  void* data = nullptr;

  static void callback(void* data, void* context) {
    auto& self = *static_cast<Released*>(context);
    ++self.calls;
    self.data = data;
  }
  static void owner(void* context) { ++static_cast<Released*>(context)->calls; }
};

/// 256 bytes on 4096.
struct alignas(4096) Memory {
  std::uint8_t bytes[256] = {};
};

inline HurrayBuffer* buffer_over(Memory& memory, Released* released = nullptr,
                                 std::uint64_t size = 256, std::uint32_t alignment = 64,
                                 std::uint8_t device = HURRAY_DEVICE_CPU,
                                 std::uint8_t sync_mode = HURRAY_SYNC_PRODUCER_SYNCED) {
  HurrayBuffer* handle = nullptr;
  EXPECT_EQ(hurray_buffer_from_ptr(
                memory.bytes, size, alignment, device, sync_mode, HURRAY_MEMORY_STANDARD,
                released != nullptr ? &Released::callback : nullptr, released, &handle),
            HURRAY_OK)
      << hurray_last_error();
  return handle;
}

/// A pointer that no function may change when it fails.
template <class T>
T* sentinel() {
  return reinterpret_cast<T*>(std::uintptr_t{0x5EED5EED});
}

/// float32, row-major, shape [elements], one CPU buffer.
inline std::vector<std::uint8_t> vector_descriptor(std::uint64_t elements,
                                                   std::uint32_t alignment = 64) {
  Descriptor d;
  d.shape = Shape{elements};
  d.buffers.push_back({.byte_size = 4 * elements, .alignment = elements != 0 ? alignment : 1});
  const auto encoded = encode(d);
  EXPECT_TRUE(encoded);
  const auto* begin = reinterpret_cast<const std::uint8_t*>(encoded->data());
  return {begin, begin + encoded->size()};
}

/// The handles that are alive, of every kind that tensors are made of.
inline std::size_t live_handles() {
  return c::pool<HurrayBuffer>().live() + c::pool<HurrayBufferList>().live() +
         c::pool<HurrayTensorContext>().live() + c::pool<HurrayDescriptor>().live();
}

}  // namespace hurray::testing
