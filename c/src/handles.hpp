#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "handle.hpp"
#include "hurray/buffer.hpp"
#include "hurray/c/pair.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/small_vector.hpp"
#include "hurray/tensor.hpp"

/// The insides of the handles that tensors are made of.
namespace hurray::c {

using Encoded = SmallVector<std::uint8_t, 192, std::uint32_t>;

struct BufferState {
#ifdef HURRAY_C_TWIN
  std::shared_ptr<Owner> owner;
  const void* list = nullptr;
  bool host_memory = false;
  bool readonly = false;
  void* release_context = nullptr;
  HurrayReleaseCallback release = nullptr;
  BufferHandle handle;
  void* data = nullptr;
#else
  void* data = nullptr;
  BufferHandle handle;
  HurrayReleaseCallback release = nullptr;
  void* release_context = nullptr;
  const void* list = nullptr;  ///< The list that will destroy this.
  std::shared_ptr<Owner> owner;
  bool host_memory = false;  ///< Known to be the host's, whatever the handle declares (D19).
  bool readonly = false;     ///< `Buffer::readonly`, for consumers of the same library.
#endif
};

struct ListState {
  SmallVector<HurrayBuffer*, 4> buffers;
};

struct ContextState {
#ifdef HURRAY_C_TWIN
  HurrayOwnerReleaseFn owner_release = nullptr;
  void* owner = nullptr;
  std::uint32_t abi_version = HURRAY_C_ABI_VERSION;
  Encoded descriptor;
#else
  Encoded descriptor;
  std::uint32_t abi_version = HURRAY_C_ABI_VERSION;
  void* owner = nullptr;
  HurrayOwnerReleaseFn owner_release = nullptr;
#endif
};

struct DescriptorState {
  Descriptor value;
  Encoded bytes;  ///< What `value` was decoded from.
};

/// A tensor as the pair that passes this interface.
struct Pair {
  Owned<HurrayBufferList> list;
  Owned<HurrayTensorContext> context;
};

/// Handles that share the tensor's memory; throws `std::bad_alloc`.
hurray::Result<Pair> to_pair(const Tensor& tensor, const EncodeOptions& options);

/// Runs the release callback and ends a handle of this library, whoever owns it.
HurrayStatus destroy(HurrayBuffer* handle) noexcept;

/// A handle over memory of `memory_device` whose owner `buffer` shares.
Owned<HurrayBuffer> to_handle(const Buffer& buffer, const BufferHandle& declared,
                              Device memory_device = Device::cpu);

/// A handle over a decoded descriptor.
Owned<HurrayDescriptor> to_handle(Descriptor value, std::span<const std::byte> bytes);

}  // namespace hurray::c

struct HurrayBuffer : hurray::c::Handle<hurray::c::BufferState, HURRAY_KIND_BUFFER> {};
struct HurrayBufferList : hurray::c::FilledHandle<hurray::c::ListState, HURRAY_KIND_BUFFER_LIST> {};
struct HurrayTensorContext
    : hurray::c::FilledHandle<hurray::c::ContextState, HURRAY_KIND_TENSOR_CONTEXT> {};
struct HurrayDescriptor : hurray::c::Handle<hurray::c::DescriptorState, HURRAY_KIND_DESCRIPTOR> {};
