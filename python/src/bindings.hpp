#pragma once

// What the files of this extension share. One .cpp per class; every class is declared before any
// function, so that signatures can name it. A binding converts, calls and unwraps; rules are the
// core's.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "hurray/composite.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"
#include "hurray/tensor.hpp"

namespace hurray::python {

namespace nb = nanobind;

// ---- exceptions.cpp
// -------------------------------------------------------------------------------

/// The exception classes of 08-python-api.md section 2.1. The last ones are private subclasses that
/// serve two contracts at once (Y1, Y52).
enum class Exc : std::uint8_t {
  invalid_descriptor,
  buffer,
  copy_required,
  unsupported,
  internal,
  file,
  stream,
  unsupported_attribute,  ///< UnsupportedError, AttributeError
  unsupported_buffer,     ///< UnsupportedError, builtins.BufferError
  copy_required_buffer,   ///< CopyRequiredError, builtins.BufferError
  stream_timeout,         ///< StreamError, TimeoutError
};

/// The class; borrowed, lives as long as the module.
PyObject* exception_class(Exc exc) noexcept;
/// The class of a `FileError` with the system's error `number` (Y52).
nb::object file_class_of(int number);

/// Raises `exc` with `message`.
[[noreturn]] void fail(Exc exc, const std::string& message);
/// Raises a built-in exception (`PyExc_TypeError` …) with `message`.
[[noreturn]] void fail(PyObject* builtin, const std::string& message);

/// Raises what `hurray::raise(error)` names. An operating-system error behind it becomes `errno`,
/// `strerror` and `filename` of a `FileError` or `StreamError`, and the class of Y52.
[[noreturn]] void throw_error(const hurray::Error& error);
[[noreturn]] void throw_error(const io::Error& error);

/// The value of a `Result`, or its error raised.
template <class T, class E>
T unwrap(Result<T, E>&& result) {
  if (!result) throw_error(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Smaller copies are over before another thread could have used the time.
inline constexpr std::uint64_t worth_releasing_bytes = 64u << 10;

/// Runs `body`, which must not touch Python, without the GIL.
template <class Body>
decltype(auto) without_gil(Body&& body) {
  const WithoutGil released;
  return std::forward<Body>(body)();
}

/// Runs `body` for a function that Python calls without nanobind in between: nothing of C++ leaves.
/// False with an exception set; one of Python's is set by `restore(error)`.
template <class Body, class Restore>
bool contained(Body&& body, Restore&& restore) noexcept {
  try {
    body();
    return true;
  } catch (nb::python_error& error) {
    try {
      restore(error);
    } catch (const std::exception&) {
      PyErr_NoMemory();
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& fault) {
    PyErr_Format(exception_class(Exc::internal), "internal error: %s", fault.what());
  }
  return false;
}
template <class Body>
bool contained(Body&& body) noexcept {
  return contained(body, [](nb::python_error& error) { error.restore(); });
}
/// The same for what returns a new reference: null with an exception set.
template <class Body>
PyObject* contained_object(Body&& body) noexcept {
  PyObject* made = nullptr;
  contained([&] { made = body().release().ptr(); });
  return made;
}

// ---- dtype.cpp, device.cpp
// ------------------------------------------------------------------------

/// `hurray.Dtype`: one Python object per tag.
struct PyDtype {
  DType tag;

  friend bool operator==(const PyDtype&, const PyDtype&) = default;
};

/// `hurray.Device`. `device_id` is known in the running program only; it is not in the format.
struct PyDevice {
  Device kind = Device::cpu;
  MemoryClass memory_class = MemoryClass::standard;
  std::int32_t device_id = 0;

  friend bool operator==(const PyDevice&, const PyDevice&) = default;
};

/// The object of a tag. Precondition: neither 0x00 nor 0xFF, which no descriptor has.
nb::object dtype_object(DType tag);
/// The core's name; "extension" for a private tag and for one that this release does not know.
std::string_view dtype_name(DType tag) noexcept;
/// The constant of `hurray.device` where there is one, else a new object.
nb::object device_object(const PyDevice& device);
/// How a `Device` prints (08-python-api.md section 4), and how it hashes.
std::string repr(const PyDevice& device);
Py_hash_t hash_of(const PyDevice& device) noexcept;

/// The C++ side of a Python object, or null for another class and for an object whose constructor
/// never ran. Borrowed.
template <class T>
const T* value_of(nb::handle object) noexcept {
  return nb::isinstance<T>(object) && nb::inst_ready(object) ? nb::inst_ptr<T>(object) : nullptr;
}

// ---- tensor.cpp
// -----------------------------------------------------------------------------------

Strides strides_in_elements(const hurray::Descriptor& descriptor);

/// `hurray.Tensor`: a core tensor and the objects that `t.dtype` and `t.device` return.
struct PyTensor {
  hurray::Tensor tensor;
  nb::object dtype;   ///< hurray.Dtype; the object that was given, where one was
  nb::object device;  ///< hurray.Device; likewise, `device_id` included
  /// In elements, of element [0,…,0] on; empty where the layout has none or a size is dynamic.
  Strides strides = strides_in_elements(tensor.descriptor());

  const hurray::Descriptor& descriptor() const noexcept { return tensor.descriptor(); }
  const PyDevice& placement() const { return *nb::inst_ptr<PyDevice>(device); }
};

/// A core tensor as `hurray.Tensor`. Without `device` the constant (or a new object) for the
/// declared placement.
nb::object wrap_tensor(hurray::Tensor&& tensor, nb::object device = {});
/// The same of a result whose error is raised.
nb::object wrap_tensor(Result<hurray::Tensor>&& tensor, nb::object device = {});
/// The tensor behind a `hurray.Tensor`, or null for any other object. Borrowed.
const PyTensor* unwrap_tensor(nb::handle object) noexcept;
/// The tensor of a method that needs its Python object as well; `TypeError` for any other object.
const PyTensor& self_of(nb::handle self);

/// Whether the layout's elements are at sums of index times stride.
bool has_strides(const hurray::Layout& layout) noexcept;

/// A row-major tensor over `buffer` that declares `device` (default: the constant for the CPU).
nb::object new_tensor(DType dtype, Shape shape, Buffer buffer, nb::object device = {});

/// The device that a buffer table declares. Precondition: it has a row.
PyDevice declared_device(const hurray::Descriptor& descriptor) noexcept;

// ---- descriptor.cpp, layout.cpp, statistics.cpp, shard.cpp, extension_type.cpp, quantization.cpp
// -----------------------------------------------------

/// `hurray.Descriptor`.
struct PyDescriptor {
  hurray::Descriptor value;
  nb::object device;        ///< hurray.Device; None where there are no buffers (Y15)
  bool permissive = false;  ///< Decoded so, and hence encoded so.
};
nb::object wrap_descriptor(hurray::Descriptor descriptor, nb::object device = {});

/// `hurray.BufferHandle`: one row of a buffer table; holds the device and nothing else.
struct PyBufferHandle {
  BufferHandle value;
  nb::object device;  ///< hurray.Device
};
/// The tuple of a table; every handle has the object `device`.
nb::tuple wrap_handles(const BufferTable& table, const nb::object& device);

/// `hurray.Layout`; the subclasses add no member. A layout without a class of its own is bare.
struct PyLayout {
  hurray::Layout value;
};
nb::object wrap_layout(const hurray::Layout& layout);
/// Raises `InvalidDescriptorError` naming the layout unless it fits the shape.
void check_layout(const hurray::Layout& layout, const Shape& shape);

/// `hurray.Statistics`, `hurray.Shard`, `hurray.ExtensionType`.
struct PyStatistics {
  Statistics value;
};
struct PyShard {
  Shard value;
};
struct PyExtensionType {
  ExtensionType value;
};
/// The section as a value object; `None` where the descriptor has none.
nb::object wrap_statistics(const hurray::Descriptor& descriptor);
nb::object wrap_shard(const hurray::Descriptor& descriptor);
nb::object wrap_extension_type(const hurray::Descriptor& descriptor);

/// The five schemes, one class each over this; a private or unknown scheme has no class and is
/// `None` (its descriptor is opaque and `encode()` has the bytes).
struct PyQuantization {
  hurray::Quantization value;
};
nb::object wrap_quantization(const hurray::Descriptor& descriptor);
/// The scheme behind a Python object; `InvalidDescriptorError` that names the classes for another.
const hurray::Quantization& quantization_argument(nb::handle value);

// ---- composite.cpp
// -------------------------------------------------------------------------------

/// `hurray.Composite`: a head with what it binds, and the Python objects of its members. One that
/// was read inside another shares the whole tree.
struct PyComposite {
  std::shared_ptr<const hurray::Item> shared;
  nb::tuple members;  ///< hurray.Tensor or hurray.Composite, the objects that were passed
  const hurray::Item& item = *shared;
};
/// A plain tensor as `hurray.Tensor`, which has no role (Y21); a head as `hurray.Composite`.
nb::object wrap_item(hurray::Item&& item);
/// What the constructor makes of a whole head, sections included; its count is that of `members`.
nb::object wrap_composite(hurray::Descriptor head, nb::tuple members);
/// The composite behind a `hurray.Composite`, or null for any other object. Borrowed.
const PyComposite* unwrap_composite(nb::handle object) noexcept;
/// `max_composite_depth=`: none for `None`, `ValueError` outside 1 to 64.
std::optional<std::uint32_t> composite_depth_argument(nb::handle value);

/// Sizes as the tuple of ints and `None` that `shape` returns, and their product.
nb::tuple wrap_shape(const Shape& shape);
nb::object wrap_size(const Shape& shape);

// ---- print_options.cpp
// ----------------------------------------------------------------------------

/// Sparse tensors print their arrays in this context (08-python-api.md section 18).
bool prints_content();

// ---- arguments.cpp
// --------------------------------------------------------------------------------

/// The name of the object's class, for messages.
std::string type_name(nb::handle value);

/// The attribute, null where there is none; what its look-up raises otherwise goes on.
nb::object attribute(nb::handle object, const char* name);

/// The pairs of a mapping, as a list; null for what is none.
nb::object mapping_items(nb::handle object);

/// The text of a str, which lives as long as it; none where it holds a lone surrogate.
std::optional<std::string_view> utf8(nb::handle text);

/// `copy=`: `None`, `False` or `True`; anything else is `TypeError`.
enum class Copy : std::uint8_t { if_needed, never, always };
Copy copy_argument(nb::handle value);

/// A sequence of ints >= 0 and, where `allow_dynamic`, `None`. `call` names the caller in messages.
Shape shape_argument(nb::handle value, bool allow_dynamic, std::string_view call);

/// The items of a sequence that is not text; `TypeError` for anything else, which says what they
/// are.
std::vector<nb::object> sequence_argument(nb::handle value, std::string_view name,
                                          std::string_view items = "ints");

/// The bytes of a C-contiguous buffer-protocol object, held until this goes; `TypeError` for
/// others.
class BytesView {
 public:
  BytesView(nb::handle object, std::string_view name);
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;
  ~BytesView() { PyBuffer_Release(&view_); }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

/// An int in range of the C type; `TypeError` for what is not an int, `OverflowError` out of range.
std::uint64_t unsigned_argument(nb::handle value, std::string_view name, std::uint64_t max);
std::int64_t signed_argument(nb::handle value, std::string_view name);

/// `os.fspath(value)` in the file system's encoding; `TypeError` for what is not a path,
/// `ValueError` for an embedded null.
std::string path_argument(nb::handle value);

/// `import module`; missing: `ImportError` that says how to install it.
nb::module_ import_optional(const char* module, const char* package);
/// The module when it was imported already, else null. Never imports.
nb::object imported(const char* module);

// ---- ingest.cpp: bringing data in (08-python-api.md sections 13, 19.4)
// ----------------------------

/// A host array of somebody else, in the one form that all sources are brought to.
struct HostArray {
  ArraySource source;            ///< where, shape, byte strides, element type, conversion
  std::shared_ptr<Owner> owner;  ///< keeps the memory alive
  bool readonly = false;
  bool packed = false;  ///< row-major elements narrower than a byte, as they are stored here
  std::string_view component = {};  ///< what messages call it, where there are several; lives on
};

/// Anything that keeps a Python object alive; gives it back with the GIL, from any thread.
std::shared_ptr<Owner> hold(nb::object object);

/// The interpreter is going away, or not there: nothing of Python may be touched.
bool finalizing() noexcept;

/// Gives a reference back from any thread; does nothing once the interpreter goes away.
void drop_reference(PyObject* object) noexcept;

/// The copy rule of section 13.1; the result declares `device` (default: the constant for the CPU).
nb::object tensor_from(const HostArray& array, Copy copy, nb::object device = {});

/// What `copy=False` raises.
[[noreturn]] void copy_required(const HostArray& array, const std::string& why);

/// The elements one after another, last dimension fastest, by the same rule: one buffer of a tensor
/// of several.
Buffer row_major_buffer(const HostArray& array, Copy copy);

/// Any source of `asarray` as an array in host memory; what `copy` forbids raises.
HostArray host_array_of(nb::handle object, Copy copy, std::string_view component);

/// What `asarray(obj, copy=…)` makes of any source.
nb::object ingest(nb::handle object, Copy copy);

/// One thing that `save` and `StreamWriter.write` can write: no intermediate copy is made.
struct WritableSource {
  hurray::Descriptor descriptor;  ///< canonical (D20), or relayed
  std::vector<io::BufferSource> buffers;
  nb::object object;  ///< keeps the memory alive, with `owner`
  std::shared_ptr<Owner> owner;
  /// The bytes were brought to the host for this call (a device's tensor): whoever needs them later
  /// may drop this source and ask again, instead of holding several.
  bool transient = false;
};

/// In this order of test: `Tensor`, `ndarray`, `torch.Tensor`, object with `__dlpack__`, object
/// with the buffer protocol; none for everything else (lists and text are not arrays). Raises when
/// the object is one of them and cannot be represented.
std::optional<WritableSource> writable_source(nb::handle object);

// ---- capsule.cpp
// ----------------------------------------------------------------------------------

/// Whether the object hands itself over by a native capsule; what `from_hurray` makes of it.
bool has_hurray(nb::handle object);
nb::object tensor_from_hurray(nb::handle object);

// ---- numpy.cpp
// ------------------------------------------------------------------------------------

/// NumPy's C API table (indices as in its `__multiarray_api.h`), imported on first use;
/// `ImportError` when it is missing. Call it with the GIL.
void** numpy_api();
/// The same when NumPy was imported already, else null.
void** loaded_numpy_api() noexcept;

// ---- one function per file of bindings
// ------------------------------------------------------------

void bind_exceptions(nb::module_& m);
void bind_dtype(nb::module_& m);
void bind_device(nb::module_& m);
void bind_buffer_handle(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_shard(nb::module_& m);
void bind_extension_type(nb::module_& m);
void bind_quantization(nb::module_& m);  // the five schemes, decode_quantization
void bind_descriptor(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_ingest(nb::module_& m);  // from_numpy, from_dlpack, from_torch, asarray
void bind_create(nb::module_& m);  // empty, zeros, ones, full
void bind_aligned_allocator(nb::module_& m);
void bind_file(nb::module_& m);
void bind_save(nb::module_& m);
void bind_file_writer(nb::module_& m);
void bind_save_async(nb::module_& m);
void bind_formats(nb::module_& m);
void bind_share(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_transport(nb::module_& m);  // what Python's objects need at the interpreter's end
void bind_stream_decoder(nb::module_& m);
void bind_composite(nb::module_& m);
void bind_sparse(nb::module_& m);         // from_scipy, sparse_coo
void bind_capsule(nb::module_& m);        // from_hurray
void bind_print_options(nb::module_& m);  // set_print_options, get_print_options, print_options
void bind_pickle(nb::module_& m);         // what rebuilds pickled objects

/// Parts of `hurray.Tensor`, each with the file that says what they do.
void def_components(nb::class_<PyTensor>& type);  // components.cpp: nnz, values, row_ptr, …
void def_transpose(nb::class_<PyTensor>& type);   // transpose.cpp: transpose, T
void def_values(nb::class_<PyTensor>& type);      // values.cpp: dequantize, to_dense, validate
void def_sparse(nb::class_<PyTensor>& type);      // sparse.cpp: to_scipy
void def_capsule(nb::class_<PyTensor>& type);     // capsule.cpp: __hurray__
void def_exchange(nb::class_<PyTensor>& type);    // exchange.cpp: __dlpack_c_exchange_api__
void def_pickle(nb::class_<PyTensor>& type);  // pickle.cpp: __reduce_ex__, __copy__, __deepcopy__
void def_html(nb::class_<PyTensor>& type);    // html.cpp: _repr_html_

}  // namespace hurray::python
