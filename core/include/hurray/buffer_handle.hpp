#pragma once

#include <cstdint>

#include "hurray/device.hpp"
#include "hurray/memory.hpp"
#include "hurray/small_vector.hpp"

namespace hurray {

/// One row of the buffer table (01-descriptor.md section 4.1): declarations about a buffer, never
/// its address. A value of 16 bytes, freely shared between threads.
struct BufferHandle {
  std::uint64_t byte_size = 0;
  std::uint32_t alignment = 1;  ///< Bytes; a power of two, at least 64 unless the buffer is empty.
  Device device = Device::cpu;
  SyncMode sync_mode = SyncMode::producer_synced;
  MemoryClass memory_class = MemoryClass::standard;
  std::uint8_t reserved = 0;

  bool is_empty() const noexcept { return byte_size == 0; }
  friend bool operator==(const BufferHandle&, const BufferHandle&) = default;
};

using BufferTable = SmallVector<BufferHandle, 4>;

}  // namespace hurray
