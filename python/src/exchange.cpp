// The C exchange table of DLPack (08-python-api.md section 14.7), offered and used.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <new>

#include "dlpack.hpp"
#include "exports.hpp"

namespace hurray::python {
namespace {

using dlpack::ExchangeApi;
using dlpack::ManagedTensorVersioned;

// ---- offered
// --------------------------------------------------------------------------------------

/// Raises what went wrong again as a `BufferError`, which is what consumers expect. What is one
/// already stays, and so do a lack of memory and what is no `Exception`.
void restore_as_buffer_error(nb::python_error& error) noexcept {
  const bool kept = error.matches(PyExc_BufferError) || error.matches(PyExc_MemoryError) ||
                    !error.matches(PyExc_Exception);
  if (kept) return error.restore();
  PyObject* exc = error.matches(exception_class(Exc::unsupported))
                      ? exception_class(Exc::unsupported_buffer)
                      : PyExc_BufferError;
  const nb::object value = nb::borrow(error.value());
  PyErr_SetObject(exc, nb::str(value).ptr());
}

/// 0, or -1 with an exception set.
template <class Body>
int status_of(Body&& body) noexcept {
  return contained(body, restore_as_buffer_error) ? 0 : -1;
}

const PyTensor& tensor_argument(nb::handle object) {
  const PyTensor* t = unwrap_tensor(object);
  if (t == nullptr)
    fail(PyExc_BufferError, "expected a hurray.Tensor, got " + python::type_name(object));
  return *t;
}

int managed_from_object(void* object, ManagedTensorVersioned** out) {
  return status_of([&] {
    const nb::handle self(static_cast<PyObject*>(object));
    *out = export_managed(self, tensor_argument(self));
  });
}

int managed_to_object(ManagedTensorVersioned* tensor, void** out) {
  return status_of([&] {
    if (tensor == nullptr) fail(PyExc_BufferError, "no managed tensor was given");
    *out = import_managed(tensor).release().ptr();
  });
}

int borrowed_from_object(void* object, dlpack::Tensor* out) {
  return status_of(
      [&] { *out = export_borrowed(tensor_argument(static_cast<PyObject*>(object))); });
}

/// The data is complete (Y34): whoever works on a stream can start at once, on any.
int current_work_stream(std::int32_t, std::int32_t, void** out) {
  *out = nullptr;
  return 0;
}

/// Memory that was asked for by somebody else.
struct Allocation {
  ManagedTensorVersioned managed{};
  Buffer buffer;
};
using AllocationBlock = dlpack::WithArrays<Allocation>;

void delete_allocation(ManagedTensorVersioned* managed) {
  if (managed != nullptr) static_cast<AllocationBlock*>(managed->manager)->destroy();
}

/// The bytes of a row-major tensor, or why there is none.
struct Room {
  std::uint64_t bytes = 0;
  const char* refusal = nullptr;
};
Room room_of(const dlpack::Tensor& prototype) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (prototype.device.type != dlpack::cpu_type) return {0, "only memory of the CPU is made here"};
  const auto dtype = dtype_of(prototype.dtype);
  if (!dtype) return {0, "the DLPack type has no counterpart here"};
  if (prototype.ndim < 0 || prototype.ndim > static_cast<std::int32_t>(max_rank))
    return {0, "a tensor has 0 to 64 dimensions"};
  if (prototype.ndim > 0 && prototype.shape == nullptr) return {0, "the sizes are missing"};
  std::uint64_t count = 1;
  std::uint64_t steps = 1;  // consumers multiply sizes of empty tensors as well
  for (std::int32_t k = 0; k < prototype.ndim; ++k) {
    if (prototype.shape[k] < 0) return {0, "a size is negative"};
    const auto size = static_cast<std::uint64_t>(prototype.shape[k]);
    const auto product = checked_mul<std::uint64_t>(steps, std::max<std::uint64_t>(size, 1));
    if (!product || *product > most / 16) return {0, "the elements exceed 2**63 bytes"};
    steps = *product;
    count *= size;
  }
  // DLPack's bool takes a byte.
  return {*packed_bytes(*dtype == DType::bool_ ? 8 : bits(*dtype), count), nullptr};
}

/// Needs no Python.
int allocate(dlpack::Tensor* prototype, ManagedTensorVersioned** out, void* error_context,
             void (*set_error)(void* error_context, const char* kind, const char* message)) {
  const auto refused = [&](const char* kind, const char* message) {
    if (set_error != nullptr) set_error(error_context, kind, message);
    return -1;
  };
  const Room room = room_of(*prototype);
  if (room.refusal != nullptr) return refused("BufferError", room.refusal);
  auto buffer = Buffer::allocate(room.bytes);
  if (!buffer) return refused("MemoryError", "there is no memory for the tensor");
  const auto rank = static_cast<std::size_t>(prototype->ndim);
  AllocationBlock* block = nullptr;
  try {
    block = AllocationBlock::make(rank);
  } catch (const std::bad_alloc&) {
    return refused("MemoryError", "there is no memory for the tensor");
  }
  block->buffer = *std::move(buffer);
  std::copy_n(prototype->shape, rank, block->shape());
  std::int64_t stride = 1;
  for (std::size_t k = rank; k-- > 0;) {
    block->strides(rank)[k] = stride;
    stride *= std::max<std::int64_t>(prototype->shape[k], 1);
  }
  ManagedTensorVersioned& managed = block->managed;
  managed.version = dlpack::newest;
  managed.manager = block;
  managed.deleter = delete_allocation;
  managed.tensor = {.data = block->buffer.data(),
                    .device = {dlpack::cpu_type, 0},
                    .ndim = prototype->ndim,
                    .dtype = prototype->dtype,
                    .shape = block->shape(),
                    .strides = block->strides(rank),
                    .byte_offset = 0};
  *out = &managed;
  return 0;
}

constexpr ExchangeApi exchange_api = {
    .header = {.version = {1, 3}, .prev_api = nullptr},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = managed_from_object,
    .managed_tensor_to_py_object_no_sync = managed_to_object,
    .dltensor_from_py_object_no_sync = borrowed_from_object,
    .current_work_stream = current_work_stream,
};

// ---- used
// -----------------------------------------------------------------------------------------

constexpr const char* table_attribute = "__dlpack_c_exchange_api__";

/// The table of the class, or an older one that is of major version 1.
const ExchangeApi* table_of(PyTypeObject* type) {
  const nb::object capsule = attribute(reinterpret_cast<PyObject*>(type), table_attribute);
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::exchange_capsule_name) == 0) return nullptr;
  const auto* header = static_cast<const dlpack::ExchangeApiHeader*>(
      PyCapsule_GetPointer(capsule.ptr(), dlpack::exchange_capsule_name));
  while (header != nullptr && header->version.major != exchange_api.header.version.major)
    header = header->prev_api;
  const auto* api = reinterpret_cast<const ExchangeApi*>(header);
  return api != nullptr && api->managed_tensor_from_py_object_no_sync != nullptr ? api : nullptr;
}

SourceClass look_at(PyTypeObject* type) {
  SourceClass known;
  known.api = table_of(type);
  const nb::object torch = imported("torch");
  if (!torch.is_valid()) return known;
  const auto is = [&](nb::handle module, const char* name) {
    return nb::getattr(module, name, nb::none()).ptr() == reinterpret_cast<PyObject*>(type);
  };
  const nb::object base = nb::getattr(torch, "Tensor", nb::none());
  known.torch = PyType_Check(base.ptr()) &&
                PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.ptr())) != 0;
  known.plain_torch = is(torch, "Tensor") || is(nb::getattr(torch, "nn", nb::none()), "Parameter");
  return known;
}

/// The classes seen last. A dead class is noticed by its weak reference, so that a new one at the
/// same address is not taken for it.
class SourceClasses {
 public:
  SourceClass find(PyTypeObject* type) {
    {
      const nb::ft_lock_guard lock(mutex_);
      for (const Entry& entry : entries_)
        if (entry.type == type && entry.is_alive()) return entry.known;
    }
    const SourceClass known = look_at(type);
    PyObject* watch = PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), nullptr);
    if (watch == nullptr) throw nb::python_error();
    Entry entry{type, watch, known};
    {
      const nb::ft_lock_guard lock(mutex_);
      std::swap(entries_[next_], entry);
      next_ = (next_ + 1) % entries_.size();
    }
    Py_XDECREF(entry.watch);
    return known;
  }

 private:
  struct Entry {
    PyTypeObject* type = nullptr;
    PyObject* watch = nullptr;
    SourceClass known;

    bool is_alive() const {
#if PY_VERSION_HEX >= 0x030D0000
      PyObject* found = nullptr;
      const int alive = PyWeakref_GetRef(watch, &found);
      Py_XDECREF(found);
      return alive > 0;
#else
      return PyWeakref_GetObject(watch) != Py_None;
#endif
    }
  };

  nb::ft_mutex mutex_;
  std::array<Entry, 16> entries_;
  std::size_t next_ = 0;
};

}  // namespace

SourceClass source_class(PyTypeObject* type) {
  static SourceClasses classes;
  return classes.find(type);
}

void def_exchange(nb::class_<PyTensor>& type) {
  const nb::object capsule = nb::steal(PyCapsule_New(const_cast<ExchangeApi*>(&exchange_api),
                                                     dlpack::exchange_capsule_name, nullptr));
  if (!capsule.is_valid()) throw nb::python_error();
  type.attr(table_attribute) = capsule;
}

}  // namespace hurray::python
