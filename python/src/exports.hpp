#pragma once

// Handing data out (08-python-api.md section 14), and the questions that all ways ask first.

#include "bindings.hpp"

namespace hurray::python {

/// A way on which bytes can leave, each with its class of refusal (section 6.6).
enum class Way : std::uint8_t { array, interface, buffer, dlpack };

[[noreturn]] void refuse(Way way, const std::string& message);

/// Raises the first reason (Y14) why this program may not read the bytes: sync mode, then a
/// declared device that is not where the memory is (D19), then memory that is not the host's. With
/// `Way::dlpack` real device memory passes.
void require_host_bytes(const PyTensor& t, Way way);

/// What `require_elements` lets pass.
struct Allowed {
  bool any_dense = false;  ///< Tiles and curves, whose elements are copied in logical order.
  bool codes = false;      ///< Stored codes of a quantized tensor, asked for on purpose (Y31).
};

/// Raises the first reason (Y14) why the elements cannot be seen as one array with strides in this
/// program's host memory: those of `require_host_bytes`, then layout, dynamic shape, quantization,
/// private element type.
void require_elements(const PyTensor& t, Way way, Allowed allowed = {});

/// Raises what `error` says about the contents of a tensor's buffers: `InvalidDescriptorError`
/// where they contradict the descriptor or each other, `MemoryError` for a shape that cannot be
/// had. `where`: the tensor inside a composite that it is about.
[[noreturn]] void throw_data_error(const Error& error, const std::string& where = {});

/// Refuses shapes that consumers cannot count: some multiply the sizes of empty arrays as well, and
/// one of them crashes when that overflows.
void require_countable(const Descriptor& d, Way way);

/// Where the elements of a tensor with strides are: the address of element [0,…,0], strides in
/// elements.
struct Elements {
  std::byte* address;
  Strides strides;
};
Elements elements(const PyTensor& t);
std::byte* first_element(const PyTensor& t) noexcept;

/// D22: a bool tensor from outside whose buffer has exactly one byte per element where packed ones
/// need fewer, so that its bytes can be read in two ways.
bool ambiguous_bool(const PyTensor& t) noexcept;
[[noreturn]] void refuse_ambiguous_bool(const PyTensor& t);

/// Makes the pages writable before somebody may write to them (Y45); fails as `way` does.
void open_for_writing(const PyTensor& t, Way way);

/// The tensor's elements as a source for the copy rule. Precondition: with strides, not narrower
/// than a byte.
HostArray host_array(const PyTensor& t);

/// Raises `UnsupportedError` for bytes that cannot be copied: those of a buffer that is not
/// producer-synced, or not in host memory.
void require_copyable(const PyTensor& t);

/// Own, writable copies of all buffers under the same descriptor. Precondition: `require_copyable`.
nb::object copy_buffers(const PyTensor& t);

/// Own, writable copy: row-major where the layout is strided (nothing between the elements is
/// copied), else buffer by buffer. `UnsupportedError` for memory that is not the host's or not
/// ready.
nb::object copy_tensor(const PyTensor& t);

/// Elements narrower than a byte as an own uint8 tensor of the same layout, one per byte, low bits.
/// `UnsupportedError` for an ambiguous bool tensor.
nb::object unpack_tensor(const PyTensor& t);

/// Buffer 0 alone, under the same layout, as elements of `dtype` that are values.
Result<hurray::Tensor> stored_tensor(const PyTensor& t, DType dtype);

/// `to_numpy(storage=True)`: the stored codes of a quantized tensor, one per item in its shape, and
/// the bytes of an ambiguous bool tensor as uint8; of any other tensor what `to_ndarray` gives.
nb::object storage_ndarray(nb::handle self, const PyTensor& t, Copy copy);

/// `__array__`, `to_numpy`: an ndarray that shares, or a fresh one; packed types unpacked when
/// `may_unpack`. `self` is the Python object of `t`.
nb::object to_ndarray(nb::handle self, const PyTensor& t, Copy copy, bool may_unpack);

/// The elements as a read-only ndarray, for the library's own reading: no page becomes writable.
nb::object look(nb::handle self, const PyTensor& t);

/// `t.__array_interface__`.
nb::dict array_interface(const PyTensor& t);

/// Slots of the buffer protocol.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

/// The keywords of `__dlpack__`, borrowed.
struct DlpackRequest {
  nb::handle stream = Py_None;
  nb::handle max_version = Py_None;
  nb::handle dl_device = Py_None;
  nb::handle copy = Py_None;
};

/// `t.__dlpack__(…)`, `t.__dlpack_device__()`, and both as methods; `from_dlpack` of an object that
/// has them.
extern PyMethodDef dlpack_methods[];
nb::object to_dlpack(nb::handle self, const PyTensor& t, const DlpackRequest& request);
nb::tuple dlpack_device(const PyTensor& t);
nb::object tensor_from_dlpack(nb::handle object, nb::handle device, Copy copy);
/// The memory of `array`, whatever it is that has it, as a tensor that declares `placement`.
/// `UnsupportedError` where the strides are not exact or the address is not on 64.
nb::object shared_tensor(const HostArray& array, const PyDevice& placement);
/// An object with `__dlpack__` over host memory as a source; none over other memory. With
/// `Copy::never` what would make a copy on the way raises.
std::optional<HostArray> host_array_from_dlpack(nb::handle object, Copy copy);

/// Raises `UnsupportedError` that names the object's class and has `error`, which its own code
/// raised in `what`, as cause. Hurray's refusals, `MemoryError` and what is no `Exception` go on as
/// they are. Call it in a handler.
[[noreturn]] void raise_foreign(nb::python_error& error, nb::handle object, const char* what);
/// Runs `body`, which calls code of the object's library.
template <class Body>
auto foreign(nb::handle object, const char* what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (nb::python_error& error) {
    raise_foreign(error, object, what);
  }
}

/// The attribute that the object's library defines there; null where there is none.
inline nb::object foreign_attribute(nb::handle object, const char* name) {
  return foreign(object, name, [&] { return attribute(object, name); });
}

/// `t.to_torch(…)`, and `from_torch`'s look at what it is given (Y26): the plain tensor to take, on
/// its own device.
nb::object to_torch(nb::handle self, const PyTensor& t, Copy copy, nb::handle device);
bool is_torch_tensor(nb::handle object);
nb::object plain_torch_tensor(nb::handle object, Copy copy);

/// Printed forms (section 5.4). Never raise.
nb::str repr(nb::handle self, const PyTensor& t);
nb::str str(nb::handle self, const PyTensor& t);

}  // namespace hurray::python
