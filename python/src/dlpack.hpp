#pragma once

// The C structures of DLPack 1.3 (dlpack.h): an ABI, so names and order are DLPack's; and what the
// files that use them share.

#include <cstdint>
#include <memory>
#include <optional>

#include "bindings.hpp"

namespace hurray::python::dlpack {

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;    ///< Elements.
  std::int64_t* strides;  ///< Elements; null: row-major.
  std::uint64_t byte_offset;
};

/// Behind a capsule named "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor* self);
};

/// Behind a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

inline constexpr std::uint64_t flag_read_only = 1;
inline constexpr std::uint64_t flag_is_copied = 2;
inline constexpr std::uint64_t flag_subbyte_padded = 4;

/// The newest version of the structures above that is written here.
inline constexpr Version newest{1, 1};

inline constexpr std::int32_t cpu_type = 1;
inline constexpr std::int32_t cuda_host_type = 3;

/// What a capsule is called until, and once, its content has been taken.
template <class Managed>
inline constexpr const char* capsule_name = "dltensor";
template <>
inline constexpr const char* capsule_name<ManagedTensorVersioned> = "dltensor_versioned";
template <class Managed>
inline constexpr const char* used_name = "used_dltensor";
template <>
inline constexpr const char* used_name<ManagedTensorVersioned> = "used_dltensor_versioned";

/// The table behind `type.__dlpack_c_exchange_api__`, a capsule named "dlpack_exchange_api". Its
/// functions return 0, or -1 with a Python exception set (`managed_tensor_allocator`: reported to
/// `set_error`, and without the GIL). None of them waits for a stream.
struct ExchangeApiHeader {
  Version version;
  const ExchangeApiHeader* prev_api;  ///< The table of an older major version, or null.
};
struct ExchangeApi {
  ExchangeApiHeader header;
  int (*managed_tensor_allocator)(Tensor* prototype, ManagedTensorVersioned** out,
                                  void* error_context,
                                  void (*set_error)(void* error_context, const char* kind,
                                                    const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* object, ManagedTensorVersioned** out);
  /// Takes `tensor` over, also where it fails.
  int (*managed_tensor_to_py_object_no_sync)(ManagedTensorVersioned* tensor, void** out_object);
  int (*dltensor_from_py_object_no_sync)(void* object, Tensor* out);  ///< May be null.
  int (*current_work_stream)(std::int32_t device_type, std::int32_t device_id, void** out_stream);
};
inline constexpr const char* exchange_capsule_name = "dlpack_exchange_api";

/// `Head` with the sizes and strides of `rank` dimensions behind it, in one block.
template <class Head>
struct WithArrays final : Head {
  static WithArrays* make(std::size_t rank) {
    static_assert(sizeof(WithArrays) % alignof(std::int64_t) == 0);
    void* block = ::operator new(sizeof(WithArrays) + 2 * rank * sizeof(std::int64_t));
    return ::new (block) WithArrays();
  }
  void destroy() noexcept {
    this->~WithArrays();
    ::operator delete(static_cast<void*>(this));
  }
  std::int64_t* shape() noexcept { return reinterpret_cast<std::int64_t*>(this + 1); }
  std::int64_t* strides(std::size_t rank) noexcept { return shape() + rank; }
};

}  // namespace hurray::python::dlpack

namespace hurray::python {

// ---- dlpack.cpp

/// The element type that DLPack writes so; none for one that has no counterpart.
std::optional<DType> dtype_of(dlpack::DataType type) noexcept;

/// Own memory with the elements alone, the first of them at its start; those narrower than a byte
/// as they lie. Precondition: `require_elements`, and in host memory.
nb::object copy_elements(const PyTensor& t);

/// What `t.__dlpack__(max_version=(1, 1))` puts into its capsule. Raises as it does. `self` is the
/// Python object of `t`.
dlpack::ManagedTensorVersioned* export_managed(nb::handle self, const PyTensor& t);
/// The same without ownership: arrays and elements are the tensor's. A read-only tensor is refused,
/// as nothing here could say that it is.
dlpack::Tensor export_borrowed(const PyTensor& t);
/// `from_dlpack` of a structure that is taken over, whatever comes of it.
nb::object import_managed(dlpack::ManagedTensorVersioned* managed);

// ---- exchange.cpp

/// What is known about the objects of one class. Found once per class.
struct SourceClass {
  const dlpack::ExchangeApi* api = nullptr;  ///< Of major version 1; null where there is none.
  bool torch = false;                        ///< `torch.Tensor` and what derives from it.
  bool plain_torch = false;                  ///< `torch.Tensor` or `torch.nn.Parameter` itself.
};
SourceClass source_class(PyTypeObject* type);

// ---- torch.cpp

/// Whether a tensor of a class that is `plain_torch`, of which the exchange table gave `tensor`,
/// has these bytes as its values: nothing is pending, and the type is what its code says.
bool has_plain_values(nb::handle object, const dlpack::Tensor& tensor);

}  // namespace hurray::python
