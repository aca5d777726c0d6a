#include <string>

#include "handles.hpp"
#include "hurray/device.hpp"

using namespace hurray;
using namespace hurray::c;

namespace {

HurrayStatus mismatch(std::string_view what) noexcept {
  return fail(HURRAY_ERR_SYNC_MODE_MISMATCH, what);
}

/// Whether the handle declares `mode`.
HurrayStatus expect(const HurrayBuffer* handle, SyncMode mode) noexcept {
  std::uint8_t found = 0;
  const HurrayStatus status = hurray_buffer_sync_mode(handle, &found);
  if (status != HURRAY_OK) return status;
  if (found == static_cast<std::uint8_t>(mode)) return HURRAY_OK;
  return contained(Codes::published, [&] {
    return mismatch("sync_mode: expected " + std::string(name(mode)) + " for this payload, found " +
                    std::string(name(static_cast<SyncMode>(found))));
  });
}

HurrayStatus expect_device(const HurrayBuffer* handle, std::uint8_t tag) noexcept {
  std::uint8_t found = 0;
  const HurrayStatus status = hurray_buffer_device_tag(handle, &found);
  if (status != HURRAY_OK || found == tag) return status;
  return mismatch("the payload's device tag is not that of the buffer");
}

}  // namespace

HurrayStatus hurray_buffer_handoff_producer_synced(const HurrayBuffer* handle) {
  if (handle == nullptr) return null_pointer("handle");
  return expect(handle, SyncMode::producer_synced);
}

HurrayStatus hurray_buffer_handoff_event(const HurrayBuffer* handle,
                                         const HurraySyncEventPayload* payload) {
  if (handle == nullptr) return null_pointer("handle");
  if (payload == nullptr) return null_pointer("payload");
  const HurrayStatus status = expect(handle, SyncMode::event);
  if (status != HURRAY_OK) return status;
  if (payload->sync_handle == nullptr) return mismatch("payload->sync_handle is null");
  if (payload->event_release_fn == nullptr) return mismatch("payload->event_release_fn is null");
  return expect_device(handle, payload->sync_handle_device_tag);
}

HurrayStatus hurray_buffer_handoff_consumer_stream(const HurrayBuffer* handle,
                                                   const HurraySyncConsumerStreamPayload* payload) {
  if (handle == nullptr) return null_pointer("handle");
  if (payload == nullptr) return null_pointer("payload");
  const HurrayStatus status = expect(handle, SyncMode::consumer_stream);
  if (status != HURRAY_OK) return status;
  if (payload->consumer_stream == nullptr) return mismatch("payload->consumer_stream is null");
  return expect_device(handle, payload->consumer_stream_device_tag);
}
