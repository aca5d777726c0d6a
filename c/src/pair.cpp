#include <string>

#include "handles.hpp"
#include "hurray/tensor.hpp"

namespace hurray::c {

namespace {

std::span<const std::uint8_t> as_uint8(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// Takes a status over; true while it is OK.
bool passes(HurrayStatus now, HurrayStatus& status) noexcept {
  status = now;
  return now == HURRAY_OK;
}

HurrayStatus disagreement(std::size_t i, std::string_view field, std::uint64_t declared,
                          std::uint64_t found) {
  return fail(HURRAY_ERR_INVALID_LAYOUT,
              "buffers[" + std::to_string(i) + "]." + std::string(field) +
                  ": the descriptor declares " + std::to_string(declared) +
                  ", the handle in the list says " + std::to_string(found));
}

}  // namespace

hurray::Result<Pair> to_pair(const Tensor& tensor, const EncodeOptions& options) {
  std::optional<Descriptor> changed;
  // What waits for an event or a stream is relayed as it was declared.
  if (tensor.unsynced_buffer()) changed = tensor.wire_descriptor();
  if (tensor.descriptor().version != Version{}) {
    // What a newer minor version adds is not understood; what is handed over says what is.
    if (!changed) changed = tensor.descriptor();
    changed->version = {};
  }
  const Descriptor& d = changed ? *changed : tensor.descriptor();
  const auto encoded = encode(d, options);
  if (!encoded) return encoded.error();
  Pair pair;
  pair.list.reset(make<HurrayBufferList>());
  for (std::size_t i = 0; i < tensor.buffers().size(); ++i) {
    auto handle =
        to_handle(tensor.buffer(i), tensor.descriptor().buffers[i], tensor.memory_device());
    state(*pair.list).buffers.push_back(handle.get());
    state(*handle.release()).list = pair.list.get();
  }
  pair.context.reset(make<HurrayTensorContext>());
  state(*pair.context).descriptor.assign(as_uint8(*encoded));
  return pair;
}

hurray::Result<HandedOver> hand_over(const Tensor& tensor, ContextOwner owner) {
  auto pair = to_pair(tensor, {});
  if (!pair) return pair.error();
  ContextState& context = state(*pair->context);
  context.owner = owner.owner;
  context.owner_release = owner.release;
  return HandedOver{pair->list.release(), pair->context.release()};
}

HurrayStatus recognize(const HurrayBufferList* list, const HurrayTensorContext* context) noexcept {
  const HurrayStatus status = recognize(list, HURRAY_KIND_BUFFER_LIST, "list");
  return status != HURRAY_OK ? status : recognize(context, HURRAY_KIND_TENSOR_CONTEXT, "ctx");
}

std::optional<Tensor> tensor_of(const HurrayBufferList* list, const HurrayTensorContext* context,
                                const TensorOfOptions& options, HurrayStatus& status) {
  std::uint32_t version = 0;
  if (!passes(hurray_tensor_context_abi_version(context, &version), status)) return std::nullopt;
  if (version < HURRAY_C_ABI_VERSION) {
    status = fail(HURRAY_ERR_UNSUPPORTED,
                  "ctx: expected ABI version 4 or newer, found " + std::to_string(version));
    return std::nullopt;
  }
  const std::uint8_t* bytes = nullptr;
  std::uint64_t length = 0;
  std::uint64_t count = 0;
  if (!passes(hurray_tensor_context_descriptor(context, &bytes, &length), status) ||
      !passes(hurray_buffer_list_len(list, &count), status))
    return std::nullopt;
  if ((bytes == nullptr && length != 0) || !to_size(length)) {
    status = fail(HURRAY_ERR_INVALID_LAYOUT,
                  "ctx: " + std::to_string(length) + " bytes of a descriptor at no address");
    return std::nullopt;
  }
  auto descriptor =
      decode({reinterpret_cast<const std::byte*>(bytes), static_cast<std::size_t>(length)},
             {.agreed = {.all = true}});
  if (!descriptor) {
    status = fail(Codes::added, descriptor.error());
    return std::nullopt;
  }
  if (count != descriptor->buffers.size()) {
    status = fail(HURRAY_ERR_INVALID_LAYOUT, "list: the descriptor has " +
                                                 std::to_string(descriptor->buffers.size()) +
                                                 " buffers, the list " + std::to_string(count));
    return std::nullopt;
  }
  std::vector<Buffer> buffers;
  buffers.reserve(descriptor->buffers.size());
  bool host = true;
  for (std::size_t i = 0; i < descriptor->buffers.size(); ++i) {
    const BufferHandle& declared = descriptor->buffers[i];
    HurrayBuffer* handle = nullptr;
    std::uint64_t size = 0;
    std::uint8_t device = 0, memory_class = 0, sync_mode = 0;
    void* data = nullptr;
    if (!passes(hurray_buffer_list_get(list, i, &handle), status) ||
        !passes(hurray_buffer_byte_size(handle, &size), status) ||
        !passes(hurray_buffer_device_tag(handle, &device), status) ||
        !passes(hurray_buffer_memory_class(handle, &memory_class), status) ||
        !passes(hurray_buffer_sync_mode(handle, &sync_mode), status) ||
        !passes(hurray_buffer_data_ptr(handle, &data), status))
      return std::nullopt;
    const auto differs = [&](std::string_view field, std::uint64_t expected, std::uint64_t found) {
      if (expected == found) return false;
      status = disagreement(i, field, expected, found);
      return true;
    };
    if (size < declared.byte_size) {
      status = disagreement(i, "byte_size", declared.byte_size, size);
      return std::nullopt;
    }
    if (differs("device_tag", static_cast<std::uint8_t>(declared.device), device) ||
        differs("memory_class", static_cast<std::uint8_t>(declared.memory_class), memory_class) ||
        differs("sync_mode", static_cast<std::uint8_t>(declared.sync_mode), sync_mode))
      return std::nullopt;
    if (declared.byte_size != 0 && (data == nullptr || !to_size(declared.byte_size))) {
      status = fail(HURRAY_ERR_INVALID_LAYOUT,
                    "buffers[" + std::to_string(i) + "]: this machine cannot address it");
      return std::nullopt;
    }
    // Host memory that a device reaches too is the host's all the same.
    const bool reached = declared.memory_class == MemoryClass::host_pinned ||
                         declared.memory_class == MemoryClass::unified;
    host = host && (declared.device == Device::cpu || reached ||
                    (is_own(handle) && state(*handle).host_memory));
    const bool known =
        is_own(handle) && (state(*handle).owner != nullptr || declared.byte_size == 0);
    buffers.push_back(Buffer::borrow(static_cast<std::byte*>(data), declared.byte_size,
                                     known ? state(*handle).owner : options.owner,
                                     !known || state(*handle).readonly));
  }
  const Device memory_device =
      host || buffers.empty() ? Device::cpu : descriptor->buffers[0].device;
  auto tensor = bind(*std::move(descriptor), std::move(buffers),
                     {.provenance = options.provenance, .memory_device = memory_device});
  if (tensor) return *std::move(tensor);
  status = fail(Codes::added, tensor.error());
  return std::nullopt;
}

}  // namespace hurray::c
