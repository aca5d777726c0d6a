#include <algorithm>
#include <array>

#include "value_object.hpp"

namespace hurray::python {
namespace {

const PyType_Slot slots[] = {
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_values<PyDescriptor>)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {0, nullptr}};

[[noreturn]] void fail_coding(const char* what, const Error& error) {
  const Raise kind = hurray::raise(error);
  if (kind == Raise::memory) throw_error(error);
  fail(kind == Raise::unsupported ? Exc::unsupported : Exc::invalid_descriptor,
       std::string("cannot ") + what + ": " + to_string(error));
}

constexpr auto private_classes = [] {
  std::array<std::uint8_t, 15> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(0xF0 + i);
  return bytes;
}();

/// Private layouts, schemes and memory classes are shown, not understood (Y16). Permissive mode
/// lets the first two through by itself, and private composition rules only if they are agreed on.
DecodeOptions options(bool permissive) noexcept {
  if (!permissive) return {.agreed = {.all = true}};
  return {.permissive = true, .agreed = {.memory_classes = private_classes}};
}

nb::object decode(nb::handle data, bool permissive) {
  const BytesView view(data, "data");
  auto decoded = hurray::decode(view.bytes(), options(permissive));
  if (!decoded) fail_coding("decode", decoded.error());
  nb::object descriptor = wrap_descriptor(*std::move(decoded));
  nb::inst_ptr<PyDescriptor>(descriptor)->permissive = permissive;
  return descriptor;
}

nb::bytes encode(const PyDescriptor& self) {
  const auto encoded = hurray::encode(self.value, {.permissive = self.permissive});
  if (!encoded) fail_coding("encode", encoded.error());
  return nb::bytes(encoded->data(), encoded->size());
}

std::uint32_t encoded_len(const PyDescriptor& self) {
  const auto size = encoded_size(self.value, {.permissive = self.permissive});
  if (!size) fail_coding("encode", size.error());
  return *size;
}

std::string descriptor_text(const PyDescriptor& self) {
  return "hurray.Descriptor(dtype=" + std::string(dtype_name(self.value.dtype)) +
         ", shape=" + nb::repr(wrap_shape(self.value.shape)).c_str() + ", layout='" +
         std::string(name(self.value.layout)) +
         "', buffers=" + std::to_string(self.value.buffers.size()) + ")";
}

nb::object version_of(const PyDescriptor& self) {
  return nb::make_tuple(static_cast<unsigned>(self.value.version.major),
                        static_cast<unsigned>(self.value.version.minor));
}
nb::object dtype_of(const PyDescriptor& self) { return dtype_object(self.value.dtype); }
nb::object shape_of(const PyDescriptor& self) { return wrap_shape(self.value.shape); }
nb::object byte_offset_of(const PyDescriptor& self) { return nb::int_(self.value.byte_offset); }
nb::object layout_of(const PyDescriptor& self) { return wrap_layout(self.value.layout); }
nb::object handles_of(const PyDescriptor& self) {
  return wrap_handles(self.value.buffers, self.device);
}
nb::object count_of(const PyDescriptor& self) { return nb::int_(self.value.buffers.size()); }
nb::object device_of(const PyDescriptor& self) { return self.device; }
nb::object quantization_of(const PyDescriptor& self) { return wrap_quantization(self.value); }
nb::object shard_of(const PyDescriptor& self) { return wrap_shard(self.value); }
nb::object statistics_of(const PyDescriptor& self) { return wrap_statistics(self.value); }
nb::object extension_type_of(const PyDescriptor& self) { return wrap_extension_type(self.value); }

/// The role of a member of an overlay that was decoded on its own.
nb::object role_of(const PyDescriptor& self) {
  const MemberRole* role = self.value.member_role();
  return role == nullptr ? nb::none() : nb::object(text_of(name(*role)));
}

bool has_opaque_scheme(const Descriptor& d) noexcept {
  const Quantization* quantization = d.quantization();
  return quantization != nullptr && std::holds_alternative<OpaqueScheme>(quantization->scheme);
}

/// The scheme, or the bytes of the payload where it has no class.
nb::object scheme_of(const PyDescriptor& self) {
  if (!has_opaque_scheme(self.value)) return quantization_of(self);
  const auto payload = unwrap(hurray::encode(*self.value.quantization(), {.permissive = true}));
  return nb::bytes(payload.data(), payload.size());
}

/// What an unknown layout's header says of the sections in its tail; none for other layouts, whose
/// sections are fields of their own.
nb::object flags_of(const PyDescriptor& self) {
  const auto* unknown = std::get_if<UnknownLayout>(&self.value.layout);
  return unknown == nullptr ? nb::none() : nb::object(nb::int_(unknown->flags));
}

// ---- differences
// ----------------------------------------------------------------------------------

struct DescriptorField {
  const char* name;
  nb::object (*get)(const PyDescriptor&);
};
constexpr auto fields = std::to_array<DescriptorField>({
    {"version", version_of},
    {"flags", flags_of},
    {"dtype", dtype_of},
    {"shape", shape_of},
    {"byte_offset", byte_offset_of},
    {"layout", layout_of},
    {"buffer_count", count_of},
    {"device", device_of},
    {"quantization", scheme_of},
    {"shard", shard_of},
    {"statistics", statistics_of},
    {"extension_type", extension_type_of},
    {"member_role", role_of},
});

struct BufferField {
  const char* name;
  nb::object (*get)(const BufferHandle&);
};
constexpr auto buffer_fields = std::to_array<BufferField>({
    {"byte_size", [](const BufferHandle& row) -> nb::object { return nb::int_(row.byte_size); }},
    {"alignment", [](const BufferHandle& row) -> nb::object { return nb::int_(row.alignment); }},
    {"sync_mode",
     [](const BufferHandle& row) -> nb::object { return text_of(name(row.sync_mode)); }},
});

std::vector<std::string> ignored_fields(nb::handle ignore) {
  if (PyUnicode_Check(ignore.ptr()))
    fail(PyExc_TypeError, "ignore must be a collection of field names, not one string");
  std::vector<std::string> ignored;
  for (nb::handle item : nb::iter(ignore)) {
    const auto named = [&](const auto& field) { return item.equal(nb::str(field.name)); };
    if (std::ranges::none_of(fields, named) && std::ranges::none_of(buffer_fields, named))
      fail(PyExc_ValueError, std::string("ignore: no field is named ") + nb::repr(item).c_str());
    ignored.push_back(nb::cast<std::string>(item));
  }
  return ignored;
}

/// The fields that two descriptors differ in, in wire order; buffers one by one.
nb::tuple differences(const PyDescriptor& self, nb::handle other, nb::handle ignore) {
  const auto* theirs = value_of<PyDescriptor>(other);
  if (theirs == nullptr)
    fail(PyExc_TypeError, "other must be a hurray.Descriptor, got " + python::type_name(other));
  const std::vector<std::string> ignored = ignored_fields(ignore);
  nb::list found;
  const auto compare = [&](const auto& field, const std::string& prefix, const auto& a,
                           const auto& b) {
    if (std::ranges::find(ignored, field.name) != ignored.end()) return;
    const nb::object mine = field.get(a);
    const nb::object other_one = field.get(b);
    if (!mine.equal(other_one)) found.append(nb::make_tuple(prefix + field.name, mine, other_one));
  };
  for (const DescriptorField& field : fields) compare(field, "", self, *theirs);
  const BufferTable& rows = self.value.buffers;
  const BufferTable& other_rows = theirs->value.buffers;
  for (std::size_t i = 0; i < std::min(rows.size(), other_rows.size()); ++i)
    for (const BufferField& field : buffer_fields)
      compare(field, "buffer_handles[" + std::to_string(i) + "].", rows[i], other_rows[i]);
  return nb::tuple(found);
}

// ---- pickling
// -------------------------------------------------------------------------------------

/// As bytes where those say everything. A descriptor that breaks a rule which only `encode` judges
/// (Y7) goes in parts: whatever it has is an object of this module then.
nb::tuple reduce(const PyDescriptor& self) {
  Descriptor known = self.value;  // bytes of a newer minor version are not written
  known.version.minor = Version{}.minor;
  const auto encoded = hurray::encode(known, {.permissive = true});
  if (encoded) {
    const auto again = hurray::decode(*encoded, options(true));
    if (again && *again == known)
      return reduced("descriptor", nb::make_tuple(nb::bytes(encoded->data(), encoded->size()),
                                                  self.device, self.permissive,
                                                  static_cast<unsigned>(self.value.version.minor)));
  } else if (has_opaque_scheme(self.value)) {
    fail_coding("encode", encoded.error());
  }
  return reduced(
      "descriptor_of",
      nb::make_tuple(version_of(self), dtype_of(self), shape_of(self), byte_offset_of(self),
                     layout_of(self), handles_of(self), quantization_of(self), shard_of(self),
                     statistics_of(self), extension_type_of(self), role_of(self), self.device));
}

template <class T>
const T& part(nb::handle value, const char* name) {
  const T* found = value_of<T>(value);
  if (found == nullptr)
    fail(PyExc_TypeError, std::string(name) + " cannot be a " + python::type_name(value));
  return *found;
}

/// `device` is the placement that the buffer table declares.
nb::object with_device(Descriptor descriptor, nb::object device, bool permissive) {
  if (!descriptor.buffers.empty()) {
    const PyDevice& given = part<PyDevice>(device, "device");
    const PyDevice declared = declared_device(descriptor);
    if (given.kind != declared.kind || given.memory_class != declared.memory_class)
      fail(Exc::invalid_descriptor, "device is not the one that the buffers declare");
  } else if (!device.is_none()) {
    fail(Exc::invalid_descriptor, "device goes with buffers");
  }
  return nb::cast(PyDescriptor{std::move(descriptor), std::move(device), permissive});
}

nb::object from_bytes(nb::handle data, nb::object device, bool permissive, nb::handle minor) {
  const BytesView view(data, "data");
  auto decoded = hurray::decode(view.bytes(), options(true));
  if (!decoded) fail_coding("decode", decoded.error());
  decoded->version.minor = number_argument<std::uint8_t>(minor, "minor");
  return with_device(*std::move(decoded), std::move(device), permissive);
}

nb::object from_parts(nb::handle version, nb::handle dtype, nb::handle shape,
                      nb::handle byte_offset, nb::handle layout, nb::handle handles,
                      nb::handle quantization, nb::handle shard, nb::handle statistics,
                      nb::handle extension_type, nb::handle member_role, nb::object device) {
  Descriptor d;
  const auto numbers = sequence_argument(version, "version");
  if (numbers.size() != 2) fail(PyExc_ValueError, "version has two numbers");
  d.version = {.major = number_argument<std::uint8_t>(numbers[0], "version"),
               .minor = number_argument<std::uint8_t>(numbers[1], "version")};
  d.dtype = part<PyDtype>(dtype, "dtype").tag;
  d.shape = shape_argument(shape, true, "");
  d.byte_offset = number_argument<std::uint64_t>(byte_offset, "byte_offset");
  d.layout = part<PyLayout>(layout, "layout").value;
  const auto rows = sequence_argument(handles, "buffer_handles", "handles");
  if (rows.size() > BufferTable::max_size)
    fail(Exc::invalid_descriptor, "a tensor has at most 255 buffers");
  for (const nb::object& row : rows)
    d.buffers.push_back(part<PyBufferHandle>(row, "buffer_handles").value);
  if (!quantization.is_none()) d.set_quantization(quantization_argument(quantization));
  if (!shard.is_none()) d.set_shard(part<PyShard>(shard, "shard").value);
  if (!statistics.is_none()) d.set_statistics(part<PyStatistics>(statistics, "statistics").value);
  if (!extension_type.is_none())
    d.set_extension_type(part<PyExtensionType>(extension_type, "extension_type").value);
  if (!member_role.is_none())
    d.set_member_role(name_argument(member_role, member_roles, "member_role"));
  return with_device(std::move(d), std::move(device), false);
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

bool same(const PyDescriptor& a, const PyDescriptor& b) {
  return a.value == b.value && a.device.equal(b.device);
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
  nb::class_<PyDescriptor> type(
      m, "Descriptor", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "What travels ahead of a tensor's buffers: element type, shape, layout, sections and buffer "
      "table.\n"
      "An immutable value, compared by value, without any reference to memory. Made by "
      "`t.descriptor`\n"
      "and `Descriptor.decode` only.");
  type.def_static(
          "decode", &decode, "data"_a, nb::kw_only(), "permissive"_a = false,
          nb::sig("def decode(data: typing.Any, *, permissive: bool = False) -> Descriptor"),
          "The descriptor that the bytes begin with; bytes after it are ignored. Raises\n"
          "`InvalidDescriptorError` naming the field, its offset, what was expected and what was "
          "found.\n"
          "Private layouts, types, schemes and memory classes are shown, not understood.\n\n"
          "`permissive` also lets tags through that this release does not know, to look at and to "
          "relay:\n"
          "an unknown layout is an `UnknownLayout`, and nothing behind it can be told apart.")
      .def("encode", &encode, nb::sig("def encode(self) -> bytes"),
           "The descriptor's bytes. Raises `InvalidDescriptorError` for the first rule\n"
           "that it breaks.")
      .def_prop_ro("encoded_len", &encoded_len, "Number of bytes that `encode` returns.")
      .def("differences", &differences, "other"_a.none(), nb::kw_only(),
           "ignore"_a = nb::make_tuple("alignment"),
           nb::sig("def differences(self, other: Descriptor, *, ignore: "
                   "collections.abc.Iterable[str] = ('alignment',)) "
                   "-> tuple[tuple[str, object, object], ...]"),
           "Tuple of `(field, mine, theirs)`; empty when the bytes mean the same. `ignore` names "
           "fields\n"
           "that may differ.")
      .def_prop_ro("dtype", &dtype_of, nb::sig("def dtype(self) -> Dtype"), "The element type.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int | None, ...]"),
                   "Sizes in logical elements; `None` for one that is not known.")
      .def_prop_ro(
          "ndim", [](const PyDescriptor& self) { return self.value.shape.rank(); },
          "Number of dimensions.")
      .def_prop_ro(
          "size", [](const PyDescriptor& self) { return wrap_size(self.value.shape); },
          nb::sig("def size(self) -> int | None"),
          "Number of logical elements; `None` while a dimension is not known.")
      .def_prop_ro("layout", &layout_of, nb::sig("def layout(self) -> Layout"),
                   "The layout, a fresh object per access.")
      .def_prop_ro("buffer_handles", &handles_of,
                   nb::sig("def buffer_handles(self) -> tuple[BufferHandle, ...]"),
                   "The buffer table, row by row.")
      .def_prop_ro("buffer_count", &count_of, nb::sig("def buffer_count(self) -> int"),
                   "Number of buffers.")
      .def_prop_ro("device", &device_of, nb::sig("def device(self) -> Device | None"),
                   "The declared placement of all buffers; `None` for the head of a composite, "
                   "which has\n"
                   "none, and behind an unknown layout.")
      .def_prop_ro("quantization", &quantization_of,
                   nb::sig("def quantization(self) -> PerTensorAffine | PerChannelAffine | "
                           "PerBlockAffine | NF4 | MXFP | None"),
                   "How stored codes become real numbers, where they do; `None` as well for a "
                   "scheme that two\n"
                   "parties agreed on, which `encode()` has.")
      .def_prop_ro("statistics", &statistics_of,
                   nb::sig("def statistics(self) -> Statistics | None"),
                   "Statistics, where there are any.")
      .def_prop_ro("shard", &shard_of, nb::sig("def shard(self) -> Shard | None"),
                   "Place in a larger tensor, where there is one.")
      .def_prop_ro("extension_type", &extension_type_of,
                   nb::sig("def extension_type(self) -> ExtensionType | None"),
                   "What a private element type is made of; `None` for the named types.")
      .def_prop_ro("byte_offset", &byte_offset_of, nb::sig("def byte_offset(self) -> int"),
                   "Bytes from the start of buffer 0 to element [0, …, 0].")
      .def_prop_ro("version", &version_of, nb::sig("def version(self) -> tuple[int, int]"),
                   "Format version, (major, minor).")
      .def("__repr__", &descriptor_text)
      .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  def_copy(type, "Descriptor");
  m.def("_descriptor", &from_bytes, "data"_a, "device"_a.none(), "permissive"_a, "minor"_a,
        nb::sig("def _descriptor(data: bytes, device: Device | None, permissive: bool, minor: int) "
                "-> Descriptor"));
  m.def("_descriptor_of", &from_parts, "version"_a, "dtype"_a, "shape"_a, "byte_offset"_a,
        "layout"_a, "buffer_handles"_a, "quantization"_a.none(), "shard"_a.none(),
        "statistics"_a.none(), "extension_type"_a.none(), "member_role"_a.none(), "device"_a.none(),
        nb::sig("def _descriptor_of(version: tuple[int, int], dtype: Dtype, shape: tuple[int | "
                "None, ...], byte_offset: int, layout: Layout, buffer_handles: "
                "tuple[BufferHandle, ...], quantization: typing.Any, shard: Shard | None, "
                "statistics: Statistics | None, extension_type: ExtensionType | None, member_role: "
                "str | None, device: Device | None) -> Descriptor"));

  m.def(
      "validate_colocation",
      [](nb::handle handles) {
        std::size_t i = 0;
        nb::object first;
        for (nb::handle handle : nb::iter(handles)) {
          const auto* row = value_of<PyBufferHandle>(handle);
          if (row == nullptr)
            fail(PyExc_TypeError,
                 "handles must hold hurray.BufferHandle objects, got " + python::type_name(handle));
          const nb::object& device = row->device;
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
