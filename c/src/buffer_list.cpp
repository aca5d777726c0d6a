#include "handles.hpp"

using namespace hurray;
using namespace hurray::c;

namespace {

constexpr std::size_t most_buffers = 255;

/// Each handle once, by the library that it is from; the first failure counts.
HurrayStatus destroy_all(const ListState& list) noexcept {
  HurrayStatus result = HURRAY_OK;
  for (HurrayBuffer* handle : list.buffers) {
    const HurrayStatus status = is_own(handle) ? destroy(handle) : hurray_buffer_destroy(handle);
    if (result == HURRAY_OK) result = status;
  }
  return result;
}

struct Placement {
  std::uint8_t device, memory_class;
};

HurrayStatus placement_of(const HurrayBuffer* handle, Placement& out) noexcept {
  HurrayStatus status = hurray_buffer_device_tag(handle, &out.device);
  if (status == HURRAY_OK) status = hurray_buffer_memory_class(handle, &out.memory_class);
  return status;
}

HurrayStatus owned_already() noexcept {
  return fail(HURRAY_ERR_INVALID_LAYOUT, "handle: a list owns it already, and will destroy it");
}

HurrayStatus push(HurrayBufferList* list, HurrayBuffer* handle) {
  ListState& s = state(*list);
  if (std::ranges::find(s.buffers, handle) != s.buffers.end()) return owned_already();
  if (s.buffers.size() == most_buffers)
    return fail(HURRAY_ERR_INVALID_LAYOUT, "list: a tensor has at most 255 buffers");
  if (!s.buffers.empty()) {
    Placement first, next;
    HurrayStatus status = placement_of(s.buffers[0], first);
    if (status == HURRAY_OK) status = placement_of(handle, next);
    if (status != HURRAY_OK) return status;
    if (first.device != next.device || first.memory_class != next.memory_class)
      return fail(HURRAY_ERR_INVALID_LAYOUT,
                  "handle: expected the device and memory class of the list's first buffer");
  }
  s.buffers.push_back(handle);
  if (is_own(handle)) state(*handle).list = list;
  return HURRAY_OK;
}

}  // namespace

HurrayStatus hurray_buffer_list_new(uint64_t, HurrayBufferList** out_list) {
  if (out_list == nullptr) return null_pointer("out_list");
  return contained(Codes::published, [&] {
    *out_list = make<HurrayBufferList>();
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_buffer_list_push(HurrayBufferList* list, HurrayBuffer* handle) {
  if (list == nullptr) return null_pointer("list");
  if (handle == nullptr) return null_pointer("handle");
  HurrayStatus status = recognize(list, HURRAY_KIND_BUFFER_LIST, "list");
  if (status == HURRAY_OK) status = recognize(handle, HURRAY_KIND_BUFFER, "handle");
  if (status != HURRAY_OK) return status;
  if (is_own(handle) && state(*handle).list != nullptr) return owned_already();
  return dispatch(
      list, [&] { return contained(Codes::published, [&] { return push(list, handle); }); },
      &HurrayHandleFunctions::list_push, list, handle);
}

HurrayStatus hurray_buffer_list_len(const HurrayBufferList* list, uint64_t* out_len) {
  if (list == nullptr) return null_pointer("list");
  if (out_len == nullptr) return null_pointer("out_len");
  const HurrayStatus status = recognize(list, HURRAY_KIND_BUFFER_LIST, "list");
  if (status != HURRAY_OK) return status;
  return dispatch(
      list,
      [&] {
        *out_len = state(*list).buffers.size();
        return HURRAY_OK;
      },
      &HurrayHandleFunctions::list_len, list, out_len);
}

HurrayStatus hurray_buffer_list_get(const HurrayBufferList* list, uint64_t index,
                                    HurrayBuffer** out_buffer) {
  if (list == nullptr) return null_pointer("list");
  if (out_buffer == nullptr) return null_pointer("out_buffer");
  const HurrayStatus status = recognize(list, HURRAY_KIND_BUFFER_LIST, "list");
  if (status != HURRAY_OK) return status;
  return dispatch(
      list,
      [&]() -> HurrayStatus {
        const auto& buffers = state(*list).buffers;
        if (index >= buffers.size())
          return fail(HURRAY_ERR_INDEX_OUT_OF_BOUNDS,
                      "index: the list has fewer buffers; hurray_buffer_list_len tells how many");
        *out_buffer = buffers[static_cast<std::size_t>(index)];
        return HURRAY_OK;
      },
      &HurrayHandleFunctions::list_get, list, index, out_buffer);
}

HurrayStatus hurray_buffer_list_destroy(HurrayBufferList** list) {
  if (list == nullptr) return null_pointer("list");
  if (*list == nullptr) return HURRAY_OK;
  const HurrayStatus status = recognize(*list, HURRAY_KIND_BUFFER_LIST, "*list");
  if (status != HURRAY_OK) return status;
  return dispatch(
      *list,
      [&] {
        // Dead before the first callback: whoever comes back with it is told so.
        const ListState owned = std::exchange(state(**list), {});
        end(std::exchange(*list, nullptr));
        return destroy_all(owned);
      },
      &HurrayHandleFunctions::list_destroy, list);
}
