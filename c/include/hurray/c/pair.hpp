#pragma once

#include <memory>
#include <optional>

#include "hurray.h"
#include "hurray/buffer.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

/// Tensors as the pair (list, context) that passes the C interface, for what is built together with
/// it (hurray_c_objects). Not installed.
namespace hurray::c {

/// What the context of a pair keeps for consumers that keep nothing else (07-c-abi.md section 7).
struct ContextOwner {
  void* owner = nullptr;
  HurrayOwnerReleaseFn release = nullptr;
};

struct HandedOver {
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* context = nullptr;
};

/// A pair over the tensor's memory, in which each handle has a share; the caller destroys both. On
/// failure, which may be `std::bad_alloc`, the owner stays with the caller.
hurray::Result<HandedOver> hand_over(const Tensor& tensor, ContextOwner owner);

/// Whether both handles can be asked at all: live ones of their kind, of whichever library
/// (07-c-abi.md section 9, step 2).
HurrayStatus recognize(const HurrayBufferList* list, const HurrayTensorContext* context) noexcept;

struct TensorOfOptions {
  /// Keeps what handles do not keep themselves.
  std::shared_ptr<Owner> owner = nullptr;
  Provenance provenance = Provenance::own;
};

/// The tensor that a pair describes, over the list's memory, of whichever library (07-c-abi.md
/// section 9, steps 3 and 4). Buffers of handles that `hand_over` made share the true owner and are
/// read-only where that tensor's were; all others share `options.owner`, and nobody writes to them
/// (05-stream.md section 8). None: the status and this thread's last error say why not.
std::optional<Tensor> tensor_of(const HurrayBufferList* list, const HurrayTensorContext* context,
                                const TensorOfOptions& options, HurrayStatus& status);

}  // namespace hurray::c
