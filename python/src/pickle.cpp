// Pickling and copying (08-python-api.md section 19.9).

#include <cstring>
#include <limits>

#include "exports.hpp"
#include "value_object.hpp"

namespace hurray::python {
namespace {

void copy_bytes(void* to, const void* from, std::size_t size) {
  if (size >= worth_releasing_bytes)
    without_gil([&] { std::memcpy(to, from, size); });
  else if (size != 0)
    std::memcpy(to, from, size);
}

nb::object bytes_of(std::span<const std::byte> data) {
  nb::object bytes =
      nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(data.size())));
  if (!bytes.is_valid()) throw nb::python_error();
  copy_bytes(PyBytes_AS_STRING(bytes.ptr()), data.data(), data.size());
  return bytes;
}

nb::object encoded(const Descriptor& descriptor) {
  const auto bytes = encode(descriptor, {.permissive = true});
  if (!bytes)
    fail(bytes.error().code == Errc::unsupported ? Exc::unsupported : Exc::invalid_descriptor,
         "cannot encode: " + to_string(bytes.error()));
  return bytes_of(*bytes);
}

// ---- Tensor
// ---------------------------------------------------------------------------------------

/// The bytes of one buffer as a `PickleBuffer` over the same memory, whatever device is declared.
nb::object pickle_buffer(const Buffer& buffer) {
  Descriptor d;
  d.dtype = DType::uint8;
  d.shape = Shape{buffer.size()};
  const nb::object bytes = wrap_tensor(bind(std::move(d), {buffer}));
  nb::object pickled = nb::steal(PyPickleBuffer_FromObject(bytes.ptr()));
  if (!pickled.is_valid()) throw nb::python_error();
  return pickled;
}

nb::tuple reduce_tensor(nb::handle self, nb::handle protocol) {
  const PyTensor& t = self_of(self);
  const std::uint64_t number =
      unsigned_argument(protocol, "protocol", std::numeric_limits<std::uint8_t>::max());
  require_copyable(t);
  nb::object descriptor = encoded(t.descriptor());
  nb::list buffers;
  nb::list readonly;
  for (const Buffer& buffer : t.tensor.buffers()) {
    buffers.append(number >= 5 ? pickle_buffer(buffer) : bytes_of(buffer.bytes()));
    readonly.append(nb::bool_(buffer.readonly()));
  }
  return reduced("tensor", nb::make_tuple(descriptor, nb::tuple(buffers), nb::tuple(readonly),
                                          nb::int_(t.placement().device_id),
                                          nb::bool_(t.tensor.provenance() == Provenance::outside)));
}

[[noreturn]] void damaged(Exc exc, const std::string& what) {
  fail(exc, "cannot rebuild from this pickle: " + what);
}

Descriptor decoded(nb::handle bytes) {
  const BytesView view(bytes, "descriptor");
  auto descriptor = decode(view.bytes(), {.permissive = true, .agreed = {.all = true}});
  if (!descriptor) damaged(Exc::invalid_descriptor, to_string(descriptor.error()));
  return *std::move(descriptor);
}

/// The memory of a bytes-like object: shared where it lies on 64 and allows what the tensor's
/// buffer allowed, else an own copy.
Buffer rebuilt(nb::handle object, std::uint64_t size, bool readonly, std::size_t i) {
  const std::string which = "buffer " + std::to_string(i);
  if (PyObject_CheckBuffer(object.ptr()) == 0)
    fail(PyExc_TypeError, "cannot rebuild from this pickle: " + which +
                              " must be a bytes-like object, got " + python::type_name(object));
  nb::object memory = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!memory.is_valid()) throw nb::python_error();
  const Py_buffer& view = *PyMemoryView_GET_BUFFER(memory.ptr());
  if (PyBuffer_IsContiguous(&view, 'C') == 0) damaged(Exc::buffer, which + " is not contiguous");
  if (static_cast<std::uint64_t>(view.len) != size)
    damaged(Exc::buffer, which + " has " + std::to_string(view.len) +
                             " bytes, and the descriptor " + std::to_string(size));
  auto* data = static_cast<std::byte*>(view.buf);
  const bool aligned = measure_alignment(data, size) >= min_buffer_alignment || size == 0;
  if (aligned && (readonly || view.readonly == 0))
    return Buffer::borrow(data, size, hold(std::move(memory)), readonly);
  Buffer copy = unwrap(Buffer::allocate(size));
  copy_bytes(copy.data(), data, static_cast<std::size_t>(size));
  return readonly ? copy.sealed() : copy;
}

bool flag(nb::handle value, const char* name) {
  if (!PyBool_Check(value.ptr()))
    fail(PyExc_TypeError, std::string(name) + " must be a bool, got " + python::type_name(value));
  return value.ptr() == Py_True;
}

nb::object rebuild_tensor(nb::handle descriptor, nb::handle buffers, nb::handle readonly,
                          nb::handle device_id, nb::handle outside) {
  Descriptor d = decoded(descriptor);
  if (std::holds_alternative<CompositeHead>(d.layout))
    damaged(Exc::invalid_descriptor, "the descriptor is that of a composite head");
  const auto memories = sequence_argument(buffers, "buffers", "buffers");
  const auto flags = sequence_argument(readonly, "readonly", "bools");
  if (memories.size() != d.buffers.size() || flags.size() != d.buffers.size())
    damaged(Exc::invalid_descriptor, "the descriptor has " + std::to_string(d.buffers.size()) +
                                         " buffers, and the pickle " +
                                         std::to_string(memories.size()) + " (" +
                                         std::to_string(flags.size()) + " read-only flags)");
  std::vector<Buffer> rebuilt_buffers;
  for (std::size_t i = 0; i < memories.size(); ++i)
    rebuilt_buffers.push_back(
        rebuilt(memories[i], d.buffers[i].byte_size, flag(flags[i], "readonly"), i));
  nb::object device;
  if (!d.buffers.empty()) {
    PyDevice placement = declared_device(d);
    placement.device_id = static_cast<std::int32_t>(
        unsigned_argument(device_id, "device_id", std::numeric_limits<std::int32_t>::max()));
    device = device_object(placement);
  }
  const Provenance provenance = flag(outside, "outside") ? Provenance::outside : Provenance::own;
  auto bound = bind(std::move(d), std::move(rebuilt_buffers),
                    {.provenance = provenance, .permissive = true});
  if (!bound)
    damaged(hurray::raise(bound.error()) == Raise::buffer ? Exc::buffer : Exc::invalid_descriptor,
            to_string(bound.error()));
  return wrap_tensor(*std::move(bound), std::move(device));
}

nb::object copy_of(nb::handle self) {
  const PyTensor& t = self_of(self);
  return wrap_tensor(hurray::Tensor(t.tensor), t.device);
}

/// `memo[id(self)] = made`, so that what is in one structure twice is so in its copy.
void remember(nb::handle memo, nb::handle self, nb::handle made) {
  if (memo.is_none()) return;
  const nb::object key = nb::steal(PyLong_FromVoidPtr(self.ptr()));
  if (!key.is_valid() || PyObject_SetItem(memo.ptr(), key.ptr(), made.ptr()) != 0)
    throw nb::python_error();
}

nb::object deep_copy_of(nb::handle self, nb::handle memo) {
  const PyTensor& t = self_of(self);
  require_copyable(t);
  nb::object made = copy_buffers(t);
  remember(memo, self, made);
  return made;
}

// ---- Composite
// ------------------------------------------------------------------------------------

const PyComposite& composite_of(nb::handle self) {
  const PyComposite* composite = unwrap_composite(self);
  if (composite == nullptr)
    fail(PyExc_TypeError, "expected a hurray.Composite, got " + python::type_name(self));
  return *composite;
}

nb::tuple reduce_composite(nb::handle self, nb::handle) {
  const PyComposite& composite = composite_of(self);
  return reduced("composite",
                 nb::make_tuple(encoded(composite.item.tensor.descriptor()), composite.members));
}

nb::object rebuild_composite(nb::handle descriptor, nb::handle members) {
  Descriptor head = decoded(descriptor);
  const auto* layout = std::get_if<CompositeHead>(&head.layout);
  if (!PyTuple_Check(members.ptr()))
    fail(PyExc_TypeError, "members must be a tuple, got " + python::type_name(members));
  const std::size_t count = nb::len(members);
  if (layout == nullptr || layout->member_count != count)
    damaged(Exc::invalid_descriptor,
            layout == nullptr ? std::string("the descriptor is not that of a composite head")
                              : "the head has " + std::to_string(layout->member_count) +
                                    " members, and the pickle " + std::to_string(count));
  return wrap_composite(std::move(head), nb::borrow<nb::tuple>(members));
}

nb::object copy_of_composite(nb::handle self) { return nb::cast(PyComposite(composite_of(self))); }

nb::object deep_copy_of_composite(nb::handle self, nb::handle memo) {
  const PyComposite& composite = composite_of(self);
  const nb::object deepcopy = nb::module_::import_("copy").attr("deepcopy");
  nb::list members;
  for (const nb::handle member : composite.members) members.append(deepcopy(member, memo));
  nb::object made = wrap_composite(composite.item.tensor.descriptor(), nb::tuple(members));
  remember(memo, self, made);
  return made;
}

// ---- what cannot be pickled
// -----------------------------------------------------------------------

/// A class whose objects stand for something outside of the program: `TypeError` that says so.
void refuse_pickling(const nb::module_& m, const char* type, const char* instead) {
  if (!nb::hasattr(m, type)) return;
  nb::object scope = m.attr(type);
  const std::string message =
      std::string("a ") + type + " can be neither pickled nor copied; " + instead;
  nb::cpp_function_def(
      [message](nb::handle, nb::handle) -> nb::object { fail(PyExc_TypeError, message); },
      nb::scope(scope), nb::name("__reduce_ex__"), nb::is_method(),
      nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> typing.NoReturn"));
}

}  // namespace

void bind_pickle(nb::module_& m) {
  m.def("_rebuild_tensor", &rebuild_tensor,
        nb::sig("def _rebuild_tensor(descriptor: bytes, buffers: tuple[typing.Any, ...], readonly: "
                "tuple[bool, ...], device_id: int, outside: bool, /) -> Tensor"));
  m.def("_rebuild_composite", &rebuild_composite,
        nb::sig("def _rebuild_composite(descriptor: bytes, members: tuple[Tensor | Composite, ...],"
                " /) -> Composite"));

  nb::borrow<nb::class_<PyComposite>>(nb::type<PyComposite>())
      .def("__reduce_ex__", &reduce_composite,
           nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> "
                   "tuple[typing.Any, ...]"))
      .def("__copy__", &copy_of_composite, nb::sig("def __copy__(self) -> Composite"),
           "A new composite of the same members.")
      .def("__deepcopy__", &deep_copy_of_composite, nb::arg("memo"),
           nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any]) -> Composite"),
           "A new composite of own, writable copies of all members.");

  refuse_pickling(m, "StreamReader", "read the items, and pickle these");
  refuse_pickling(m, "StreamWriter", "pickle the items that it writes, or its getvalue()");
  refuse_pickling(m, "AlignedAllocatorCtx", "call hurray.aligned_allocator() where it is needed");
  refuse_pickling(m, "PrintOptionsCtx", "call hurray.print_options() where it is needed");
}

void def_pickle(nb::class_<PyTensor>& type) {
  type.def(
          "__reduce_ex__", &reduce_tensor,
          nb::sig("def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> "
                  "tuple[typing.Any, ...]"),
          "For `pickle`: all metadata, `device_id` and `readonly`. From protocol 5 on every buffer "
          "is a\n"
          "`PickleBuffer` over the tensor's memory, below it bytes. A rebuilt tensor shares the "
          "memory it\n"
          "is given where that lies on a multiple of 64 bytes, and copies it otherwise. Raises\n"
          "`UnsupportedError` for buffers that are not producer-synced or not in host memory.")
      .def("__copy__", &copy_of, nb::sig("def __copy__(self) -> Tensor"),
           "A new object over the same memory.")
      .def("__deepcopy__", &deep_copy_of, nb::arg("memo"),
           nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any]) -> Tensor"),
           "An own, writable copy of all buffers. Raises as `__reduce_ex__` does.");
}

}  // namespace hurray::python
