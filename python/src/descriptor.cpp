#include <algorithm>
#include <array>

#include "bindings.hpp"

namespace hurray::python {
namespace {

bool equal(const PyDescriptor& a, const PyDescriptor& b) {
  return a.value == b.value && a.device.equal(b.device);
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !nb::isinstance<PyDescriptor>(other))
    Py_RETURN_NOTIMPLEMENTED;
  const bool same = equal(*nb::inst_ptr<PyDescriptor>(self), *nb::inst_ptr<PyDescriptor>(other));
  return PyBool_FromLong(same == (operation == Py_EQ));
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                             {0, nullptr}};

[[noreturn]] void fail_coding(const char* what, const Error& error) {
  const Raise kind = hurray::raise(error);
  if (kind == Raise::unsupported || kind == Raise::memory) throw_error(error);
  fail(Exc::invalid_descriptor, std::string("cannot ") + what + ": " + to_string(error));
}

nb::object decode(nb::handle data) {
  const BytesView view(data, "data");
  auto decoded = hurray::decode(view.bytes(), {.agreed = {.all = true}});
  if (!decoded) fail_coding("decode", decoded.error());
  return wrap_descriptor(*std::move(decoded));
}

nb::bytes encode(const PyDescriptor& self) {
  const auto encoded = hurray::encode(self.value);
  if (!encoded) fail_coding("encode", encoded.error());
  return nb::bytes(encoded->data(), encoded->size());
}

std::uint32_t encoded_len(const PyDescriptor& self) {
  const auto size = encoded_size(self.value);
  if (!size) fail_coding("encode", size.error());
  return *size;
}

std::string descriptor_text(const PyDescriptor& self) {
  return "hurray.Descriptor(dtype=" + std::string(name(self.value.dtype)) +
         ", shape=" + nb::repr(wrap_shape(self.value.shape)).c_str() + ", layout='" +
         std::string(name(self.value.layout)) +
         "', buffers=" + std::to_string(self.value.buffers.size()) + ")";
}

/// None where there is no such section; it has no class yet.
template <class T>
nb::object no_class(const T* section, const char* what) {
  if (section == nullptr) return nb::none();
  fail(Exc::unsupported, std::string("this release has no class for ") + what +
                             "; the descriptor's encode() has its bytes");
}
nb::object quantization(const PyDescriptor& self) {
  return no_class(self.value.quantization(), "quantization");
}
nb::object extension_type(const PyDescriptor& self) {
  return no_class(self.value.extension_type(), "extension types");
}

/// `UnsupportedError` where sections differ that have no class to show how.
void require_equal_sections(const Descriptor& mine, const Descriptor& theirs) {
  const auto same = [](const auto* a, const auto* b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  };
  const auto require = [](bool holds, const char* what) {
    if (!holds)
      fail(Exc::unsupported, std::string("the two differ in their ") + what +
                                 ", which this release has no class to show");
  };
  require(same(mine.quantization(), theirs.quantization()), "quantization");
  require(same(mine.extension_type(), theirs.extension_type()), "extension type");
  require(same(mine.member_role(), theirs.member_role()), "role in a composite");
}

/// The fields that two descriptors can differ in, in wire order; buffers one by one.
nb::tuple differences(nb::handle self, nb::handle other, nb::handle ignore) {
  if (!nb::isinstance<PyDescriptor>(self) || !nb::isinstance<PyDescriptor>(other))
    fail(PyExc_TypeError, "other must be a hurray.Descriptor, got " + python::type_name(other));
  constexpr auto plain =
      std::to_array<const char*>({"version", "dtype", "shape", "byte_offset", "layout",
                                  "buffer_count", "device", "shard", "statistics"});
  constexpr auto per_buffer = std::to_array<const char*>({"byte_size", "alignment", "sync_mode"});
  std::vector<std::string> ignored;
  if (PyUnicode_Check(ignore.ptr()))
    fail(PyExc_TypeError, "ignore must be a collection of field names, not one string");
  for (nb::handle item : nb::iter(ignore)) {
    bool known = false;
    for (const char* field : plain) known |= item.equal(nb::str(field));
    for (const char* field : per_buffer) known |= item.equal(nb::str(field));
    if (!known)
      fail(PyExc_ValueError, std::string("ignore: no field is named ") + nb::repr(item).c_str());
    ignored.push_back(nb::cast<std::string>(item));
  }

  const auto counts = [&](const char* field) {
    return std::ranges::find(ignored, field) == ignored.end();
  };
  nb::list found;
  const auto note = [&](const std::string& field, const nb::object& mine,
                        const nb::object& theirs) {
    if (!mine.equal(theirs)) found.append(nb::make_tuple(field, mine, theirs));
  };
  for (const char* field : plain)
    if (counts(field)) note(field, self.attr(field), other.attr(field));
  require_equal_sections(nb::inst_ptr<PyDescriptor>(self)->value,
                         nb::inst_ptr<PyDescriptor>(other)->value);
  const nb::object mine = self.attr("buffer_handles");
  const nb::object theirs = other.attr("buffer_handles");
  const std::size_t both = std::min(nb::len(mine), nb::len(theirs));
  for (std::size_t i = 0; i < both; ++i)
    for (const char* field : per_buffer)
      if (counts(field))
        note("buffer_handles[" + std::to_string(i) + "]." + field, mine[i].attr(field),
             theirs[i].attr(field));
  return nb::tuple(found);
}

}  // namespace

nb::tuple wrap_shape(const Shape& shape) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.rank())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t k = 0; k < shape.rank(); ++k) {
    nb::object size = shape[k] == dynamic ? nb::none() : nb::object(nb::int_(shape[k]));
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(k), size.release().ptr());
  }
  return nb::borrow<nb::tuple>(tuple);
}

nb::object wrap_size(const Shape& shape) {
  if (shape.is_dynamic()) return nb::none();
  nb::object size = nb::int_(1);
  for (const std::uint64_t n : shape) size = size * nb::int_(n);
  return size;
}

nb::object wrap_statistics(const Descriptor& descriptor) {
  const Statistics* statistics = descriptor.statistics();
  return statistics == nullptr ? nb::none() : nb::cast(PyStatistics{*statistics});
}

nb::object wrap_shard(const Descriptor& descriptor) {
  const Shard* shard = descriptor.shard();
  return shard == nullptr ? nb::none() : nb::cast(PyShard{*shard});
}

PyDevice declared_device(const Descriptor& descriptor) noexcept {
  return {.kind = descriptor.buffers[0].device, .memory_class = descriptor.buffers[0].memory_class};
}

nb::object wrap_descriptor(Descriptor descriptor, nb::object device) {
  if (!device.is_valid())
    device = descriptor.buffers.empty() ? nb::none() : device_object(declared_device(descriptor));
  return nb::cast(PyDescriptor{std::move(descriptor), std::move(device)});
}

void bind_descriptor(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyDescriptor>(m, "Descriptor", nb::is_final(), nb::is_weak_referenceable(),
                           nb::type_slots(slots),
                           "What travels ahead of a tensor's buffers: element type, shape, layout, "
                           "sections and buffer table.\n"
                           "An immutable value, compared by value, without any reference to "
                           "memory. Made by `t.descriptor`\n"
                           "and `Descriptor.decode` only.")
      .def_static(
          "decode", &decode, "data"_a, nb::sig("def decode(data: typing.Any) -> Descriptor"),
          "The descriptor that the bytes begin with; bytes after it are ignored. Raises\n"
          "`InvalidDescriptorError` naming the field, its offset, what was expected and found,\n"
          "found. Private layouts, types, schemes and memory classes are shown, not understood.")
      .def("encode", &encode,
           "The descriptor's bytes. Raises `InvalidDescriptorError` for the first rule\n"
           "that it breaks.")
      .def_prop_ro("encoded_len", &encoded_len, "Number of bytes that `encode` returns.")
      .def("differences", &differences, "other"_a, nb::kw_only(),
           "ignore"_a = nb::make_tuple("alignment"),
           nb::sig("def differences(self, other: Descriptor, *, ignore: "
                   "collections.abc.Iterable[str] = ('alignment',)) "
                   "-> tuple[tuple[str, object, object], ...]"),
           "Tuple of `(field, mine, theirs)`; empty when the bytes mean the same. `ignore` names "
           "fields\n"
           "that may differ.")
      .def_prop_ro(
          "dtype", [](const PyDescriptor& self) { return dtype_object(self.value.dtype); },
          nb::sig("def dtype(self) -> Dtype"), "The element type.")
      .def_prop_ro(
          "shape", [](const PyDescriptor& self) { return wrap_shape(self.value.shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"),
          "Sizes in logical elements; `None` for one that is not known.")
      .def_prop_ro(
          "ndim", [](const PyDescriptor& self) { return self.value.shape.rank(); },
          "Number of dimensions.")
      .def_prop_ro(
          "size", [](const PyDescriptor& self) { return wrap_size(self.value.shape); },
          nb::sig("def size(self) -> int | None"),
          "Number of logical elements; `None` while a dimension is not known.")
      .def_prop_ro(
          "layout", [](const PyDescriptor& self) { return wrap_layout(self.value.layout); },
          nb::sig("def layout(self) -> Layout"), "The layout, a fresh object per access.")
      .def_prop_ro(
          "buffer_handles",
          [](const PyDescriptor& self) { return wrap_handles(self.value.buffers, self.device); },
          nb::sig("def buffer_handles(self) -> tuple[BufferHandle, ...]"),
          "The buffer table, row by row.")
      .def_prop_ro(
          "buffer_count", [](const PyDescriptor& self) { return self.value.buffers.size(); },
          "Number of buffers.")
      .def_prop_ro(
          "device", [](const PyDescriptor& self) { return self.device; },
          nb::sig("def device(self) -> Device | None"),
          "The declared placement of all buffers; `None` for the head of a composite, which has "
          "none.")
      .def_prop_ro(
          "statistics", [](const PyDescriptor& self) { return wrap_statistics(self.value); },
          nb::sig("def statistics(self) -> Statistics | None"), "Statistics, where there are any.")
      .def_prop_ro(
          "quantization", &quantization, nb::sig("def quantization(self) -> None"),
          "`None` where the tensor is not quantized. Raises `UnsupportedError` where it is: this\n"
          "release has no class to show it.")
      .def_prop_ro(
          "extension_type", &extension_type, nb::sig("def extension_type(self) -> None"),
          "`None` unless the element type is private. Raises `UnsupportedError` where it is: this\n"
          "release has no class to show it.")
      .def_prop_ro(
          "shard", [](const PyDescriptor& self) { return wrap_shard(self.value); },
          nb::sig("def shard(self) -> Shard | None"),
          "Place in a larger tensor, where there is one.")
      .def_prop_ro(
          "byte_offset", [](const PyDescriptor& self) { return self.value.byte_offset; },
          "Bytes from the start of buffer 0 to element [0, …, 0].")
      .def_prop_ro(
          "version",
          [](const PyDescriptor& self) {
            return nb::make_tuple(static_cast<unsigned>(self.value.version.major),
                                  static_cast<unsigned>(self.value.version.minor));
          },
          nb::sig("def version(self) -> tuple[int, int]"), "Format version, (major, minor).")
      .def("__repr__", &descriptor_text);

  m.def(
      "validate_colocation",
      [](nb::handle handles) {
        std::size_t i = 0;
        nb::object first;
        for (nb::handle handle : nb::iter(handles)) {
          if (!nb::isinstance<PyBufferHandle>(handle))
            fail(PyExc_TypeError,
                 "handles must hold hurray.BufferHandle objects, got " + python::type_name(handle));
          const nb::object& device = nb::inst_ptr<PyBufferHandle>(handle)->device;
          if (!first.is_valid()) first = device;
          if (!first.equal(device))
            fail(Exc::invalid_descriptor, "handle " + std::to_string(i) + " is on " +
                                              nb::repr(device).c_str() + ", handle 0 on " +
                                              nb::repr(first).c_str() +
                                              "; all buffers of a tensor are on one device");
          ++i;
        }
      },
      "handles"_a,
      nb::sig("def validate_colocation(handles: collections.abc.Iterable[BufferHandle]) -> None"),
      "Returns `None` when all handles have the same device, id and memory class included. Raises\n"
      "`InvalidDescriptorError` naming the first that differs.");
}

}  // namespace hurray::python
