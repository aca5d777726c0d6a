#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hurray/table.hpp"

namespace hurray {

/// Devices (01-descriptor.md section 4.2). Values `0xF0`-`0xFE` are private.
enum class Device : std::uint8_t {
  cpu = 0x00,
  cuda = 0x01,
  rocm = 0x02,
  metal = 0x03,
  vulkan = 0x04,
  webgpu = 0x05,
  hexagon = 0x06,
  level_zero = 0x07,
  opencl = 0x08,
};

/// Who reaches the bytes without a copy (01-descriptor.md section 4.3).
enum class MemoryClass : std::uint8_t { standard = 0, host_pinned = 1, unified = 2, peer = 3 };

/// How a consumer's access starts (01-descriptor.md section 4.4).
enum class SyncMode : std::uint8_t { producer_synced = 0, event = 1, consumer_stream = 2 };

struct MemoryClassInfo {
  MemoryClass tag;
  std::string_view name;
};

inline constexpr auto memory_classes = std::to_array<MemoryClassInfo>({
    {MemoryClass::standard, "standard"},
    {MemoryClass::host_pinned, "host_pinned"},
    {MemoryClass::unified, "unified"},
    {MemoryClass::peer, "peer"},
});
static_assert(strictly_sorted(memory_classes));

struct SyncModeInfo {
  SyncMode tag;
  std::string_view name;
};

inline constexpr auto sync_modes = std::to_array<SyncModeInfo>({
    {SyncMode::producer_synced, "producer_synced"},
    {SyncMode::event, "event"},
    {SyncMode::consumer_stream, "consumer_stream"},
});
static_assert(strictly_sorted(sync_modes));

/// One device. `classes` has bit k set where memory class k can be; `plain_addresses` tells whether
/// a base address is one that can be measured; `dlpack` is DLPack's device type per memory class, 0
/// where there is none (08-python-api.md section 14.4).
struct DeviceInfo {
  Device tag;
  std::string_view name;
  std::uint8_t classes;
  bool plain_addresses;
  std::array<std::uint8_t, 4> dlpack;
};

inline constexpr auto devices = std::to_array<DeviceInfo>({
    {Device::cpu, "cpu", 0b0111, true, {1, 1, 1, 0}},
    {Device::cuda, "cuda", 0b1111, true, {2, 3, 13, 0}},
    {Device::rocm, "rocm", 0b1111, true, {10, 11, 0, 0}},
    {Device::metal, "metal", 0b0111, false, {8, 8, 8, 0}},
    {Device::vulkan, "vulkan", 0b1111, false, {7, 7, 7, 0}},
    {Device::webgpu, "webgpu", 0b0001, false, {15, 0, 0, 0}},
    {Device::hexagon, "hexagon", 0b0111, true, {16, 16, 16, 0}},
    {Device::level_zero, "level_zero", 0b1111, true, {14, 14, 14, 0}},
    {Device::opencl, "opencl", 0b0111, false, {4, 4, 4, 0}},
});
static_assert(strictly_sorted(devices));

constexpr const DeviceInfo* info(Device device) noexcept { return row_of<devices>(device); }

/// "cuda", "host_pinned", "event"; "private" for a private value; "" for one that is not assigned.
constexpr std::string_view name(Device device) noexcept {
  const auto* row = row_of<devices>(device);
  if (row != nullptr) return row->name;
  return is_private(static_cast<std::uint8_t>(device)) ? "private" : "";
}
constexpr std::string_view name(MemoryClass memory_class) noexcept {
  const auto* row = row_of<memory_classes>(memory_class);
  if (row != nullptr) return row->name;
  return is_private(static_cast<std::uint8_t>(memory_class)) ? "private" : "";
}
constexpr std::string_view name(SyncMode mode) noexcept {
  const auto* row = row_of<sync_modes>(mode);
  return row != nullptr ? row->name : "";
}

/// Whether the pair is possible (table of 01-descriptor.md section 4.3). A private class is
/// possible on a private device only, which otherwise has standard memory.
constexpr bool can_have(Device device, MemoryClass memory_class) noexcept {
  const auto tag = static_cast<std::uint8_t>(memory_class);
  const DeviceInfo* row = info(device);
  if (row != nullptr) return tag < 4 && ((row->classes >> tag) & 1) != 0;
  return is_private(static_cast<std::uint8_t>(device)) && (tag == 0 || is_private(tag));
}

}  // namespace hurray
