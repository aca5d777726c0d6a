#include <algorithm>
#include <array>
#include <cstring>

#include "exports.hpp"

namespace hurray::python {
namespace {

PyObject* tensor_type = nullptr;  // borrowed from the module

// ---- construction
// ---------------------------------------------------------------------------------

/// Holds a buffer-protocol export for the time of a copy.
struct ExportedBytes {
  Py_buffer view{};
  ExportedBytes() = default;
  ExportedBytes(ExportedBytes&& other) noexcept : view(std::exchange(other.view, {})) {}
  ExportedBytes& operator=(ExportedBytes&&) = delete;
  ~ExportedBytes() { PyBuffer_Release(&view); }
};

ExportedBytes exported(nb::handle source, const std::string& prefix) {
  constexpr const char* expected = "expected bytes, bytearray, or buffer-compatible object";
  ExportedBytes result;
  if (PyObject_CheckBuffer(source.ptr()) == 0)
    fail(Exc::buffer, prefix + expected + ", got " + python::type_name(source));
  if (PyObject_GetBuffer(source.ptr(), &result.view, PyBUF_SIMPLE) != 0) {
    nb::python_error cause;
    if (!cause.matches(PyExc_Exception)) throw nb::python_error(cause);
    nb::raise_from(cause, exception_class(Exc::buffer),
                   "%s%s that is C-contiguous; this %s gives no such view", prefix.c_str(),
                   expected, python::type_name(source).c_str());
  }
  return result;
}

Buffer copied(const ExportedBytes& source) {
  const auto size = static_cast<std::size_t>(source.view.len);
  Buffer buffer = unwrap(Buffer::allocate(size));
  if (size >= worth_releasing_bytes)
    without_gil([&] { std::memcpy(buffer.data(), source.view.buf, size); });
  else if (size != 0)
    std::memcpy(buffer.data(), source.view.buf, size);
  return buffer;
}

template <class T>
const T& instance(nb::handle value, const char* message) {
  // What `__new__` alone has made is an instance without a value.
  if (!nb::isinstance<T>(value) || !nb::inst_ready(value))
    fail(PyExc_TypeError, std::string(message) + python::type_name(value));
  return *nb::inst_ptr<T>(value);
}

/// Check 1.
void check_owns_buffers(const Descriptor& d) {
  if (info(d.layout).layout_class == LayoutClass::virtual_)
    fail(Exc::unsupported, "a " + std::string(name(d.layout)) +
                               " layout owns no buffers, so it is none of a tensor; put the"
                               " members together with hurray.Composite(...)");
}

/// Check 2: a private element type is described, and nothing else is.
void check_extension_type(const Descriptor& d) {
  const bool agreed = is_private(static_cast<std::uint8_t>(d.dtype));
  if (agreed == (d.extension_type() != nullptr)) return;
  if (agreed)
    fail(Exc::invalid_descriptor,
         "a tensor of a private element type must describe itself; pass"
         " extension_type=hurray.ExtensionType(…)");
  fail(Exc::invalid_descriptor,
       std::string(name(d.dtype)) + " is not a private extension type; leave extension_type out");
}

/// Elements that strides bring to places of their own; more where they share some.
bool shares_places(const Strided& layout, const Shape& shape, std::uint64_t count) {
  const auto range = layout.range(shape);
  return range &&
         static_cast<std::uint64_t>(range->hi) - static_cast<std::uint64_t>(range->lo) < count - 1;
}

/// Check 3: buffer 0 of a dense layout holds every element; those that share their places are
/// judged by their extent (check 6).
void check_elements(const Descriptor& d) {
  if (!is_dense(d.layout) || d.shape.is_dynamic() || d.shape.is_empty()) return;
  const std::uint64_t count = d.shape.count();
  const auto* strided = std::get_if<Strided>(&d.layout);
  if (strided != nullptr && shares_places(*strided, d.shape, count)) return;
  const auto need = packed_bytes(element_bits(d), count);
  if (need && *need <= d.buffers[0].byte_size) return;
  fail(Exc::buffer,
       "buffer too small: need at least " + (need ? std::to_string(*need) : std::string("2**64")) +
           " bytes for " + std::string(nb::str(wrap_size(d.shape)).c_str()) + " elements of " +
           std::string(name(d.dtype)) + ", got " + std::to_string(d.buffers[0].byte_size));
}

/// Checks 5 and 6: enough buffers, each as large as the layout implies.
void check_buffers(const Descriptor& d) {
  const std::string layout(name(d.layout));
  const std::size_t need = own_buffers(info(d.layout), d.shape.rank());
  if (d.buffers.size() < need)
    fail(Exc::invalid_descriptor, "a " + layout + " layout needs " + std::to_string(need) +
                                      " buffer(s), but " + std::to_string(d.buffers.size()) +
                                      " were supplied; pass the rest via aux_buffers=[...]");
  for (std::size_t i = 0; i < need; ++i) {
    const std::uint64_t bytes = unwrap(required_bytes(d, i));
    if (bytes > d.buffers[i].byte_size)
      fail(Exc::buffer, "buffer " + std::to_string(i) + " (" + std::string(role(d.layout, i)) +
                            ") is " + std::to_string(d.buffers[i].byte_size) + " bytes, but this " +
                            layout + " layout implies at least " + std::to_string(bytes));
  }
}

/// Checks 7 and 8: the scheme's buffers are there and its own; then nothing is left over (Y8).
void check_parameter_buffers(const Descriptor& d) {
  const Quantization* quantization = d.quantization();
  const SchemeParameters of =
      quantization != nullptr ? parameters(quantization->scheme) : SchemeParameters{};
  const auto named = std::to_array<std::pair<std::string_view, std::uint32_t>>(
      {{"scale_buffer_index", of.scale_buffer}, {"zero_point_buffer_index", of.zero_point_buffer}});
  const std::string count = std::to_string(d.buffers.size());
  for (const auto& [field, i] : named) {
    if (i == no_buffer || (i != 0 && i < d.buffers.size())) continue;
    fail(Exc::invalid_descriptor, "invalid quantization: " + std::string(field) + " is " +
                                      std::to_string(i) +
                                      (i == 0 ? ", the buffer of the elements"
                                              : ", but " + count +
                                                    " buffer(s) were supplied; pass the rest via"
                                                    " aux_buffers=[...]"));
  }
  const std::string layout(name(d.layout));
  const std::size_t own = own_buffers(info(d.layout), d.shape.rank());
  for (const auto& [field, i] : named)
    if (i != no_buffer && i < own)
      fail(Exc::invalid_descriptor,
           "quantization buffer index " + std::to_string(i) + " is inside the " + layout +
               " layout's own buffers (indices 0.." + std::to_string(own - 1) + ")");
  if (info(d.layout).layout_class == LayoutClass::opaque) return;
  for (std::size_t i = own; i < d.buffers.size(); ++i)
    if (i != of.scale_buffer && i != of.zero_point_buffer)
      fail(Exc::invalid_descriptor, count + " buffer(s) were supplied, but a " + layout +
                                        " layout has " + std::to_string(own) +
                                        " and no quantization names buffer " + std::to_string(i));
}

void construct(PyTensor* self, nb::handle buffer, nb::handle dtype, nb::handle shape,
               nb::handle device, nb::handle aux_buffers, nb::handle layout,
               nb::handle quantization, nb::handle statistics, nb::handle shard,
               nb::handle extension_type, nb::handle byte_offset) {
  Descriptor d;
  d.dtype = instance<PyDtype>(dtype, "dtype must be a hurray.Dtype, got ").tag;
  d.shape = shape_argument(shape, true, "");
  const nb::object placement = device.is_none() ? device_object({}) : nb::borrow(device);
  const PyDevice& declared = instance<PyDevice>(placement, "device must be a hurray.Device, got ");
  if (!layout.is_none())
    d.layout = instance<PyLayout>(layout, "layout must be a hurray.Layout instance, got ").value;
  if (!quantization.is_none()) {
    if (!nb::isinstance<PyQuantization>(quantization) || !nb::inst_ready(quantization))
      fail(Exc::invalid_descriptor,
           "expected a quantization descriptor (PerTensorAffine, PerChannelAffine, PerBlockAffine,"
           " NF4 or MXFP), got " +
               python::type_name(quantization));
    d.set_quantization(nb::inst_ptr<PyQuantization>(quantization)->value);
  }
  if (!statistics.is_none())
    d.set_statistics(
        instance<PyStatistics>(statistics, "statistics must be a hurray.Statistics, got ").value);
  if (!shard.is_none())
    d.set_shard(instance<PyShard>(shard, "shard must be a hurray.Shard, got ").value);
  if (!extension_type.is_none())
    d.set_extension_type(instance<PyExtensionType>(
                             extension_type, "extension_type must be a hurray.ExtensionType, got ")
                             .value);
  d.byte_offset = unsigned_argument(byte_offset, "byte_offset", dynamic);

  std::vector<ExportedBytes> sources;
  sources.push_back(exported(buffer, ""));
  if (!aux_buffers.is_none())
    for (const nb::object& item : sequence_argument(aux_buffers, "aux_buffers", "buffers"))
      sources.push_back(
          exported(item, "aux_buffers[" + std::to_string(sources.size() - 1) + "]: "));
  if (sources.size() > BufferTable::max_size)
    fail(Exc::invalid_descriptor, "a tensor has at most 255 buffers");
  d.buffers.resize(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    d.buffers[i] = {.byte_size = static_cast<std::uint64_t>(sources[i].view.len),
                    .device = declared.kind,
                    .memory_class = declared.memory_class};
  check_owns_buffers(d);
  check_extension_type(d);
  check_elements(d);
  check_layout(d.layout, d.shape);
  check_buffers(d);
  check_parameter_buffers(d);

  std::vector<Buffer> buffers;
  for (const ExportedBytes& source : sources) buffers.push_back(copied(source));
  const BindOptions options{.provenance = Provenance::outside,
                            .permissive = std::holds_alternative<UnknownLayout>(d.layout),
                            .unfit_scheme = true};  // judged when the tensor leaves (Y7)
  auto bound = bind(std::move(d), std::move(buffers), options);
  if (!bound) {
    if (hurray::raise(bound.error()) == Raise::buffer)
      fail(Exc::buffer, "invalid buffer parameters: " + to_string(bound.error()));
    throw_error(bound.error());
  }
  new (self) PyTensor{*std::move(bound), nb::borrow(dtype), placement};
}

// ---- members
// --------------------------------------------------------------------------------------

nb::object missing_attribute(nb::handle self, nb::handle wanted) {
  if (PyUnicode_Check(wanted.ptr()) == 0)
    fail(PyExc_TypeError, "attribute name must be a str, got " + python::type_name(wanted));
  // A property that raises an AttributeError is asked for here once more; its own reason stands.
  const nb::object own =
      nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(self.ptr())), wanted.ptr()));
  if (!own.is_valid()) PyErr_Clear();
  if (own.is_valid() && Py_TYPE(own.ptr()) == &PyProperty_Type) return own.attr("fget")(self);
  const bool is_numpy = PyUnicode_CompareWithASCIIString(wanted.ptr(), "numpy") == 0;
  PyErr_Format(PyExc_AttributeError, "'Tensor' object has no attribute '%U'%s", wanted.ptr(),
               is_numpy ? "; use to_numpy()" : "");
  throw nb::python_error();
}

/// What Python does for a class with `__getattr__`, without the detour by its name.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
  PyErr_Clear();
  return contained_object([&] { return missing_attribute(self, name); });
}

std::uint64_t nbytes(const PyTensor& t) noexcept {
  std::uint64_t sum = 0;
  for (const Buffer& buffer : t.tensor.buffers()) sum += buffer.size();
  return sum;
}

nb::object buffer(const PyTensor& t, nb::handle index) {
  if (!PyIndex_Check(index.ptr()))
    fail(PyExc_TypeError, "index must be an int, got " + python::type_name(index));
  const Py_ssize_t i = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (i == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (i < 0 || static_cast<std::size_t>(i) >= t.tensor.buffers().size())
    fail(PyExc_IndexError, "buffer index " + std::to_string(i) + " is outside 0 to " +
                               std::to_string(t.tensor.buffers().size()) + " (exclusive)");
  if (t.tensor.unsynced_buffer()) require_elements(t, Way::array);
  return wrap_tensor(buffer_tensor(t.tensor, static_cast<std::size_t>(i)), t.device);
}

nb::object to_cpu_of(nb::handle self) {
  const PyTensor& t = self_of(self);
  if (t.tensor.unsynced_buffer()) require_elements(t, Way::array);
  if (t.placement().kind == Device::cpu && t.tensor.memory_device() == Device::cpu)
    return nb::borrow(self);
  return wrap_tensor(to_cpu(t.tensor));
}

nb::object array(nb::handle self, nb::handle dtype, nb::handle copy_value) {
  const PyTensor& t = self_of(self);
  const Copy copy = copy_argument(copy_value);
  if (dtype.is_none()) return to_ndarray(self, t, copy, false);
  // A cast makes its own copy, so the array that it starts from may share.
  const bool shares = !is_sub_byte(t.descriptor().dtype) && has_strides(t.descriptor().layout);
  nb::object values =
      to_ndarray(self, t, copy == Copy::always && shares ? Copy::if_needed : copy, false);
  const nb::object wanted = nb::module_::import_("numpy").attr("dtype")(dtype);
  if (values.attr("dtype").equal(wanted))
    return copy == Copy::always && shares ? nb::object(values.attr("copy")("K")) : values;
  if (copy == Copy::never)
    fail(Exc::copy_required,
         "copy=False: a cast to " + std::string(nb::str(wanted).c_str()) + " makes a copy");
  return values.attr("astype")(wanted);
}

nb::object to_numpy(nb::handle self, nb::handle copy_value, bool storage) {
  const PyTensor& t = self_of(self);
  const Copy copy = copy_argument(copy_value);
  numpy_api();
  return storage ? storage_ndarray(self, t, copy) : to_ndarray(self, t, copy, true);
}

// ---- what a tensor is not
// -----------------------------------------------------------------------------------

PyObject* subscript(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "'Tensor' object is not subscriptable; index its array: np.asarray(t)[...]");
  return nullptr;
}

PyObject* iterate(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "'Tensor' object is not iterable; iterate over its array, np.asarray(t)");
  return nullptr;
}

Py_ssize_t length(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "object of type 'Tensor' has no len(); take t.shape[0], t.size or t.nbytes");
  return -1;
}

PyObject* compare(PyObject*, PyObject* other, int operation) {
  if (operation == Py_EQ || operation == Py_NE) Py_RETURN_NOTIMPLEMENTED;  // identity
  PyErr_Format(PyExc_TypeError,
               "tensors have no order ('Tensor' beside '%s'); compare their arrays, np.asarray(t)",
               Py_TYPE(other)->tp_name);
  return nullptr;
}

int truth(PyObject*) { return 1; }

/// Without it Python reads a tensor's bytes as the text of a number.
PyObject* number(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "a 'Tensor' is no number; take one from its array, np.asarray(t).item()");
  return nullptr;
}

const PyType_Slot slots[] = {{Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                             {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {Py_tp_methods, dlpack_methods},
                             {0, nullptr}};

/// Explains `t[i]`, `len(t)`, iteration, order, `int(t)` and `float(t)` where Python asks for them,
/// and leaves
/// `__getitem__`, `__len__` and the others absent: `hasattr`, the abstract base classes and type
/// checkers tell the truth. Without `truth` a `len` that is refused would take `bool(t)` along.
void explain_absent_protocols(PyObject* object) {
  auto* type = reinterpret_cast<PyHeapTypeObject*>(object);
  type->ht_type.tp_iter = iterate;
  type->ht_type.tp_richcompare = compare;
  type->as_number.nb_bool = truth;
  type->as_number.nb_int = number;
  type->as_number.nb_float = number;
  type->as_mapping.mp_subscript = subscript;
  type->as_mapping.mp_length = length;
  PyType_Modified(&type->ht_type);
}

}  // namespace

bool has_strides(const Layout& layout) noexcept {
  return std::visit([]<class T>(const T&) { return StridedLayout<T>; }, layout);
}

Strides strides_in_elements(const hurray::Descriptor& descriptor) {
  if (!has_strides(descriptor.layout) || descriptor.shape.is_dynamic()) return {};
  return strides_of(descriptor.layout, descriptor.shape).value_or(Strides{});
}

nb::object wrap_tensor(Result<hurray::Tensor>&& tensor, nb::object device) {
  if (!tensor) throw_error(tensor.error());
  return wrap_tensor(*std::move(tensor), std::move(device));
}

nb::object wrap_tensor(hurray::Tensor&& tensor, nb::object device) {
  if (!device.is_valid()) device = device_object(declared_device(tensor.descriptor()));
  nb::object dtype = dtype_object(tensor.descriptor().dtype);
  nb::object object = nb::inst_alloc(tensor_type);
  new (nb::inst_ptr<PyTensor>(object))
      PyTensor{std::move(tensor), std::move(dtype), std::move(device)};
  nb::inst_mark_ready(object);
  return object;
}

const PyTensor* unwrap_tensor(nb::handle object) noexcept {
  if (PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(tensor_type)) == 0 ||
      !nb::inst_ready(object))
    return nullptr;
  return nb::inst_ptr<PyTensor>(object);
}

const PyTensor& self_of(nb::handle self) {
  const PyTensor* t = unwrap_tensor(self);
  if (t == nullptr)
    fail(PyExc_TypeError, "expected a hurray.Tensor, got " + python::type_name(self));
  return *t;
}

nb::object new_tensor(DType dtype, Shape shape, Buffer buffer, nb::object device) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  if (device.is_valid()) {
    const PyDevice& declared = *nb::inst_ptr<PyDevice>(device);
    d.buffers =
        BufferTable{BufferHandle{.device = declared.kind, .memory_class = declared.memory_class}};
  }
  std::vector<Buffer> buffers;
  buffers.push_back(std::move(buffer));
  auto bound = bind(std::move(d), std::move(buffers));
  if (!bound && hurray::raise(bound.error()) == Raise::buffer)
    fail(Exc::buffer, "invalid buffer parameters: " + to_string(bound.error()));
  return wrap_tensor(std::move(bound), std::move(device));
}

void bind_tensor(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyTensor> type(
      m, "Tensor", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "Elements of one type in one or more buffers, with what is declared about them. Immutable "
      "but for\n"
      "the bytes; compared by identity; not hashable.\n\n"
      "`Tensor(...)` copies every buffer into own, writable memory on a multiple of 64 bytes. "
      "`buffer`\n"
      "and `aux_buffers` are bytes-like objects; `shape` counts logical elements, `None` for a "
      "size that\n"
      "is not known; `layout` is a `Layout` (default row-major); `quantization` names parameter "
      "buffers\n"
      "by index among `buffer` (0) and `aux_buffers`; `extension_type` describes a private "
      "`dtype`;\n"
      "`byte_offset` is where element [0, ..., 0] starts in buffer 0, in bytes. Nothing is "
      "inferred: what\n"
      "is declared is checked against the buffers. Whether a scheme fits type and shape is checked "
      "when the\n"
      "tensor leaves, the content of index and scale buffers when something relies on it. Raises\n"
      "`InvalidDescriptorError` for metadata that contradict each other, `BufferError` for buffers "
      "that\n"
      "are missing, too small or in an impossible place, and `UnsupportedError` for a layout that "
      "owns no\n"
      "buffers.");
  tensor_type = type.ptr();
  explain_absent_protocols(tensor_type);
  type.def(
      "__init__", &construct, "buffer"_a.none(), "dtype"_a, "shape"_a, "device"_a = nb::none(),
      nb::kw_only(), "aux_buffers"_a = nb::none(), "layout"_a = nb::none(),
      "quantization"_a = nb::none(), "statistics"_a = nb::none(), "shard"_a = nb::none(),
      "extension_type"_a = nb::none(), "byte_offset"_a = 0,
      nb::sig("def __init__(self, buffer: typing.Any, dtype: Dtype, shape: "
              "collections.abc.Sequence[int | None], device: Device | None = None, *, aux_buffers: "
              "collections.abc.Sequence[typing.Any] | None = None, layout: "
              "Layout | None = "
              "None, quantization: PerTensorAffine | PerChannelAffine | PerBlockAffine | NF4 | "
              "MXFP | None = None, statistics: Statistics | None = None, shard: Shard | None = "
              "None, extension_type: ExtensionType | None = None, byte_offset: int = 0) -> None"));
  type.def_prop_ro(
          "dtype", [](const PyTensor& t) { return t.dtype; }, nb::sig("def dtype(self) -> Dtype"),
          "The element type.")
      .def_prop_ro(
          "device", [](const PyTensor& t) { return t.device; },
          nb::sig("def device(self) -> Device"), "The declared placement of all buffers.")
      .def_prop_ro(
          "shape", [](const PyTensor& t) { return wrap_shape(t.descriptor().shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"),
          "Sizes in logical elements; `None` for one that is not known.")
      .def_prop_ro(
          "ndim", [](const PyTensor& t) { return t.descriptor().shape.rank(); },
          "Number of dimensions.")
      .def_prop_ro(
          "size", [](const PyTensor& t) { return wrap_size(t.descriptor().shape); },
          nb::sig("def size(self) -> int | None"),
          "Number of logical elements; `None` while a dimension is not known.")
      .def_prop_ro(
          "layout", [](const PyTensor& t) { return wrap_layout(t.descriptor().layout); },
          nb::sig("def layout(self) -> Layout"), "The layout, a fresh object per access.")
      .def_prop_ro(
          "buffer_count", [](const PyTensor& t) { return t.tensor.buffers().size(); },
          "Number of buffers.")
      .def_prop_ro("nbytes", &nbytes, "Sum of the buffers' sizes in bytes.")
      .def_prop_ro(
          "buffer_handles",
          [](const PyTensor& t) { return wrap_handles(t.descriptor().buffers, t.device); },
          nb::sig("def buffer_handles(self) -> tuple[BufferHandle, ...]"),
          "What is declared about each buffer. Touches no byte and keeps nothing alive.")
      .def_prop_ro(
          "descriptor", [](const PyTensor& t) { return wrap_descriptor(t.descriptor(), t.device); },
          nb::sig("def descriptor(self) -> Descriptor"), "The metadata as the value that travels.")
      .def_prop_ro(
          "statistics", [](const PyTensor& t) { return wrap_statistics(t.descriptor()); },
          nb::sig("def statistics(self) -> Statistics | None"), "Statistics, where there are any.")
      .def_prop_ro(
          "quantization", [](const PyTensor& t) { return wrap_quantization(t.descriptor()); },
          nb::sig("def quantization(self) -> PerTensorAffine | PerChannelAffine | PerBlockAffine | "
                  "NF4 | MXFP | None"),
          "How stored codes become real numbers, where they do.")
      .def_prop_ro(
          "extension_type", [](const PyTensor& t) { return wrap_extension_type(t.descriptor()); },
          nb::sig("def extension_type(self) -> ExtensionType | None"),
          "What a private element type is made of; `None` for the named types.")
      .def_prop_ro(
          "shard", [](const PyTensor& t) { return wrap_shard(t.descriptor()); },
          nb::sig("def shard(self) -> Shard | None"),
          "Place in a larger tensor, where there is one.")
      .def_prop_ro(
          "readonly", [](const PyTensor& t) { return t.tensor.readonly(); },
          "Whether writes are refused by everything that hands out the bytes.")
      .def("buffer", &buffer, "index"_a, nb::sig("def buffer(self, index: int) -> Tensor"),
           "Rank-1 uint8 view of exactly the bytes of that buffer, on the tensor's device. Raises\n"
           "`IndexError` where there is none, negative indices included.")
      .def("to_cpu", &to_cpu_of, nb::sig("def to_cpu(self) -> Tensor"),
           "The same memory declared as the CPU's, without a copy; itself when it is already. "
           "Raises\n"
           "`UnsupportedError` for memory of a device.")
      .def("to_numpy", &to_numpy, nb::kw_only(), "copy"_a = nb::none(), "storage"_a = false,
           nb::sig("def to_numpy(self, *, copy: bool | None = None, storage: bool = False) -> "
                   "numpy.typing.NDArray[typing.Any]"),
           "The elements as a `numpy.ndarray` that shares the memory; packed types are unpacked, "
           "and "
           "tiles\n"
           "and curves put in logical order, which is a copy (`copy=False`: `CopyRequiredError`). "
           "A\n"
           "quantized tensor is refused, since its codes are not its values (`dequantize`): "
           "`storage=True`\n"
           "gives them, one per item; and the bytes of a bool tensor that can be read in two ways, "
           "one per\n"
           "element.")
      .def(
          "to_torch",
          [](nb::handle self, nb::handle copy, nb::handle device) {
            return to_torch(self, self_of(self), copy_argument(copy), device);
          },
          nb::kw_only(), "copy"_a = nb::none(), "device"_a = nb::none(),
          nb::sig("def to_torch(self, *, copy: bool | None = None, device: object = None) -> "
                  "torch.Tensor"),
          "The elements as a `torch.Tensor` that shares the memory. What PyTorch cannot honour (a\n"
          "read-only tensor, negative strides) is copied; `copy=False` raises instead. bool needs\n"
          "`copy=True`. `device` moves the result, by PyTorch.")
      .def(
          "__array__", &array, "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> "
                  "numpy.typing.NDArray[typing.Any]"),
          "NumPy's protocol: an array that shares the memory, or a copy where a cast asks for one.")
      .def_prop_ro(
          "__array_interface__", [](const PyTensor& t) { return array_interface(t); },
          nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"),
          "NumPy's protocol, version 3.")
      .def("__getattr__", &missing_attribute, "name"_a,
           nb::sig("def __getattr__(self, name: str) -> typing.NoReturn"))
      .def(
          "__repr__", [](nb::handle self) { return repr(self, self_of(self)); },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "__str__", [](nb::handle self) { return str(self, self_of(self)); },
          nb::sig("def __str__(self) -> str"));
  def_components(type);
  def_transpose(type);
  def_values(type);
  def_sparse(type);
  def_capsule(type);
  def_exchange(type);
  def_pickle(type);
  def_html(type);
  auto* direct = reinterpret_cast<PyTypeObject*>(tensor_type);
  direct->tp_getattro = get_attribute;
  PyType_Modified(direct);
}

}  // namespace hurray::python
