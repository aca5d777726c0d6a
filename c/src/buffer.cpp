#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>

#include "handles.hpp"
#include "hurray/printer.hpp"

using namespace hurray;
using namespace hurray::c;

namespace {

/// Past this, addresses of one buffer would wrap.
bool addressable(const void* data, std::uint64_t size) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return size <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) &&
         size <= std::numeric_limits<std::uintptr_t>::max() - address;
}

HurrayStatus invalid(HurrayStatus status, const std::string& message) {
  return fail(status, message);
}

HurrayStatus check_placement(std::uint8_t device_tag, std::uint8_t sync_mode,
                             std::uint8_t memory_class) {
  const auto device = static_cast<Device>(device_tag);
  if (info(device) == nullptr && !is_private(device_tag))
    return invalid(HURRAY_ERR_INVALID_TYPE,
                   "device_tag: expected a known or private device, found " + to_hex(device_tag));
  if (!can_have(device, static_cast<MemoryClass>(memory_class)))
    return invalid(HURRAY_ERR_INVALID_TYPE, "memory_class: expected one that " +
                                                std::string(name(device)) + " can have, found " +
                                                to_hex(memory_class));
  if (find_row(sync_modes, static_cast<SyncMode>(sync_mode)) == nullptr)
    return invalid(HURRAY_ERR_INVALID_SYNC_MODE,
                   "sync_mode: expected 0 (producer_synced), 1 (event) or 2 (consumer_stream), "
                   "found " +
                       to_hex(sync_mode));
  if (device == Device::cpu && sync_mode != 0)
    return invalid(HURRAY_ERR_INVALID_SYNC_MODE,
                   "sync_mode: expected 0 (producer_synced) on the CPU, found " +
                       std::string(name(static_cast<SyncMode>(sync_mode))));
  return HURRAY_OK;
}

HurrayStatus check_alignment(const void* data, std::uint64_t byte_size, std::uint32_t alignment,
                             Device device) {
  const std::uint32_t least = byte_size != 0 ? min_buffer_alignment : 1;
  if (!std::has_single_bit(alignment) || alignment < least)
    return invalid(HURRAY_ERR_INVALID_LAYOUT, "alignment: expected a power of two of at least " +
                                                  std::to_string(least) + ", found " +
                                                  std::to_string(alignment) +
                                                  "; hurray_buffer_copy makes an aligned copy");
  if (byte_size == 0) return HURRAY_OK;
  if (!addressable(data, byte_size))
    return invalid(HURRAY_ERR_INVALID_LAYOUT,
                   "byte_size: " + std::to_string(byte_size) +
                       " bytes from this address on leave the range of addresses");
  const DeviceInfo* row = info(device);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (row == nullptr || !row->plain_addresses || address % alignment == 0) return HURRAY_OK;
  return invalid(HURRAY_ERR_INVALID_LAYOUT,
                 "alignment: declared " + std::to_string(alignment) + ", but address " +
                     to_hex(address) + " measures " +
                     std::to_string(measure_alignment(data, byte_size)) +
                     "; declare what hurray_measure_alignment says, or copy with "
                     "hurray_buffer_copy");
}

/// Calls `read` on the state of a handle of ours, or asks the handle's own library.
template <class Out, class Read>
HurrayStatus get(const HurrayBuffer* handle, Out* out, Read read,
                 HurrayStatus (*HurrayHandleFunctions::*entry)(const HurrayBuffer*,
                                                               Out*)) noexcept {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = recognize(handle, HURRAY_KIND_BUFFER, "handle");
  if (status != HURRAY_OK) return status;
  return dispatch(
      handle,
      [&] {
        *out = static_cast<Out>(read(state(*handle)));
        return HURRAY_OK;
      },
      entry, handle, out);
}

}  // namespace

namespace hurray::c {

HurrayStatus destroy(HurrayBuffer* handle) noexcept {
  const auto [release, data, context] = [&] {
    const BufferState& s = state(*handle);
    return std::tuple(s.release, s.data, s.release_context);
  }();
  end(handle);
  if (release != nullptr && !call_back(release, data, context)) return callback_threw();
  return HURRAY_OK;
}

Owned<HurrayBuffer> to_handle(const Buffer& buffer, const BufferHandle& declared,
                              Device memory_device) {
  Owned<HurrayBuffer> handle(make<HurrayBuffer>());
  BufferState& s = state(*handle);
  s.data = buffer.data();
  s.handle = declared;
  s.owner = buffer.owner();
  s.host_memory = memory_device == Device::cpu;
  s.readonly = buffer.readonly();
  return handle;
}

}  // namespace hurray::c

HurrayStatus hurray_buffer_from_ptr(void* data, uint64_t byte_size, uint32_t alignment,
                                    uint8_t device_tag, uint8_t sync_mode, uint8_t memory_class,
                                    HurrayReleaseCallback release, void* release_context,
                                    HurrayBuffer** out_handle) {
  if (data == nullptr && byte_size != 0) return null_pointer("data");
  if (out_handle == nullptr) return null_pointer("out_handle");
  return contained(Codes::published, [&] {
    HurrayStatus status = check_placement(device_tag, sync_mode, memory_class);
    if (status != HURRAY_OK) return status;
    status = check_alignment(data, byte_size, alignment, static_cast<Device>(device_tag));
    if (status != HURRAY_OK) return status;
    HurrayBuffer* handle = make<HurrayBuffer>();
    BufferState& s = state(*handle);
    s.data = data;
    s.handle = {.byte_size = byte_size,
                .alignment = alignment,
                .device = static_cast<Device>(device_tag),
                .sync_mode = static_cast<SyncMode>(sync_mode),
                .memory_class = static_cast<MemoryClass>(memory_class)};
    s.release = release;
    s.release_context = release_context;
    s.host_memory = s.handle.device == Device::cpu;
    *out_handle = handle;
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_buffer_copy(const void* data, uint64_t byte_size, uint32_t alignment,
                                HurrayBuffer** out_handle) {
  if (data == nullptr && byte_size != 0) return null_pointer("data");
  if (out_handle == nullptr) return null_pointer("out_handle");
  return contained(Codes::added, [&] {
    constexpr std::uint32_t most = 2u << 20;
    if (!std::has_single_bit(alignment) || alignment < min_buffer_alignment || alignment > most)
      return invalid(HURRAY_ERR_INVALID_ARGUMENT,
                     "alignment: expected a power of two from 64 to 2097152, found " +
                         std::to_string(alignment));
    if (!addressable(data, byte_size))
      return invalid(HURRAY_ERR_INVALID_ARGUMENT,
                     "byte_size: " + std::to_string(byte_size) +
                         " bytes from this address on leave the range of addresses");
    const auto memory = Buffer::allocate(byte_size, false, alignment);
    if (!memory) return fail(Codes::added, memory.error());
    if (byte_size != 0) std::memcpy(memory->data(), data, static_cast<std::size_t>(byte_size));
    *out_handle =
        to_handle(*memory, {.byte_size = byte_size, .alignment = byte_size != 0 ? alignment : 1})
            .release();
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_buffer_destroy(HurrayBuffer* handle) {
  HurrayStatus status = recognize(handle, HURRAY_KIND_BUFFER, "handle");
  if (status != HURRAY_OK) return status;
  return dispatch(
      handle,
      [&]() -> HurrayStatus {
        if (state(*handle).list != nullptr)
          return fail(HURRAY_ERR_INTERNAL,
                      "handle is borrowed: the list that owns it will destroy it");
        return destroy(handle);
      },
      &HurrayHandleFunctions::buffer_destroy, handle);
}

HurrayStatus hurray_buffer_byte_size(const HurrayBuffer* handle, uint64_t* out) {
  return get(
      handle, out, [](const BufferState& s) { return s.handle.byte_size; },
      &HurrayHandleFunctions::buffer_byte_size);
}

HurrayStatus hurray_buffer_alignment(const HurrayBuffer* handle, uint32_t* out) {
  return get(
      handle, out, [](const BufferState& s) { return s.handle.alignment; },
      &HurrayHandleFunctions::buffer_alignment);
}

HurrayStatus hurray_buffer_device_tag(const HurrayBuffer* handle, uint8_t* out) {
  return get(
      handle, out, [](const BufferState& s) { return s.handle.device; },
      &HurrayHandleFunctions::buffer_device_tag);
}

HurrayStatus hurray_buffer_sync_mode(const HurrayBuffer* handle, uint8_t* out) {
  return get(
      handle, out, [](const BufferState& s) { return s.handle.sync_mode; },
      &HurrayHandleFunctions::buffer_sync_mode);
}

HurrayStatus hurray_buffer_memory_class(const HurrayBuffer* handle, uint8_t* out) {
  return get(
      handle, out, [](const BufferState& s) { return s.handle.memory_class; },
      &HurrayHandleFunctions::buffer_memory_class);
}

HurrayStatus hurray_buffer_data_ptr(const HurrayBuffer* handle, void** out) {
  return get(
      handle, out, [](const BufferState& s) { return s.data; },
      &HurrayHandleFunctions::buffer_data_ptr);
}

HurrayStatus hurray_measure_alignment(const void* data, uint64_t byte_size, uint32_t* out) {
  if (data == nullptr && byte_size != 0) return null_pointer("data");
  if (out == nullptr) return null_pointer("out");
  *out = measure_alignment(data, byte_size);
  return HURRAY_OK;
}
