#include <limits>

#include "handles.hpp"

using namespace hurray;
using namespace hurray::c;

HurrayStatus hurray_tensor_context_new(uint32_t abi_version, const uint8_t* descriptor_bytes,
                                       uint64_t descriptor_len, void* owner,
                                       HurrayOwnerReleaseFn owner_release,
                                       HurrayTensorContext** out_ctx) {
  if (descriptor_bytes == nullptr && descriptor_len != 0) return null_pointer("descriptor_bytes");
  if (out_ctx == nullptr) return null_pointer("out_ctx");
  return contained(Codes::published, [&] {
    if (descriptor_len > std::numeric_limits<std::uint32_t>::max())
      return fail(HURRAY_ERR_INVALID_LAYOUT,
                  "descriptor_len: a descriptor has fewer than 4294967296 bytes");
    Owned<HurrayTensorContext> context(make<HurrayTensorContext>());
    ContextState& s = state(*context);
    s.descriptor.assign({descriptor_bytes, static_cast<std::size_t>(descriptor_len)});
    s.abi_version = abi_version;
    s.owner = owner;
    s.owner_release = owner_release;
    *out_ctx = context.release();
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_tensor_context_abi_version(const HurrayTensorContext* ctx, uint32_t* out) {
  if (ctx == nullptr) return null_pointer("ctx");
  if (out == nullptr) return null_pointer("out");
  const HurrayStatus status = recognize(ctx, HURRAY_KIND_TENSOR_CONTEXT, "ctx");
  if (status != HURRAY_OK) return status;
  return dispatch(
      ctx,
      [&] {
        *out = state(*ctx).abi_version;
        return HURRAY_OK;
      },
      &HurrayHandleFunctions::context_abi_version, ctx, out);
}

HurrayStatus hurray_tensor_context_descriptor(const HurrayTensorContext* ctx,
                                              const uint8_t** out_bytes, uint64_t* out_len) {
  if (ctx == nullptr) return null_pointer("ctx");
  if (out_bytes == nullptr) return null_pointer("out_bytes");
  if (out_len == nullptr) return null_pointer("out_len");
  const HurrayStatus status = recognize(ctx, HURRAY_KIND_TENSOR_CONTEXT, "ctx");
  if (status != HURRAY_OK) return status;
  return dispatch(
      ctx,
      [&] {
        const Encoded& bytes = state(*ctx).descriptor;
        *out_bytes = bytes.empty() ? nullptr : bytes.data();
        *out_len = bytes.size();
        return HURRAY_OK;
      },
      &HurrayHandleFunctions::context_descriptor, ctx, out_bytes, out_len);
}

HurrayStatus hurray_tensor_context_destroy(HurrayTensorContext** ctx) {
  if (ctx == nullptr) return null_pointer("ctx");
  if (*ctx == nullptr) return HURRAY_OK;
  const HurrayStatus status = recognize(*ctx, HURRAY_KIND_TENSOR_CONTEXT, "*ctx");
  if (status != HURRAY_OK) return status;
  return dispatch(
      *ctx,
      [&]() -> HurrayStatus {
        HurrayTensorContext* dying = std::exchange(*ctx, nullptr);
        void* const owner = state(*dying).owner;
        const HurrayOwnerReleaseFn owner_release = state(*dying).owner_release;
        end(dying);
        if (owner_release != nullptr && !call_back(owner_release, owner)) return callback_threw();
        return HURRAY_OK;
      },
      &HurrayHandleFunctions::context_destroy, ctx);
}
