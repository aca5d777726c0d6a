#include <array>
#include <limits>

#include "hurray/printer.hpp"
#include "value_object.hpp"

namespace hurray::python {
namespace {

/// Borrowed from the module's `_dtypes`: one object per tag (Y3), made with the module. Tags that
/// are not assigned have one as well, which permissive decoding shows and no name leads to.
std::array<PyObject*, 256> objects{};

nb::object from_tag(nb::handle value) {
  const auto tag = number_argument<std::uint8_t>(value, "tag");
  const auto dtype = static_cast<DType>(tag);
  if (name(dtype).empty())
    fail(Exc::invalid_descriptor, "no element type has tag " + to_hex(tag) +
                                      "; see hurray.dtype for those that exist, 0xF0 to 0xFE are "
                                      "private");
  return dtype_object(dtype);
}

nb::object from_name(nb::handle wanted) {
  if (!PyUnicode_Check(wanted.ptr()))
    fail(PyExc_TypeError, "name must be a str, got " + python::type_name(wanted));
  if (const auto text = utf8(wanted))
    if (const DTypeInfo* row = find_name(dtypes, *text)) return dtype_object(row->tag);
  std::string names;
  for (const DTypeInfo& row : dtypes) (names += names.empty() ? "" : ", ") += row.name;
  fail(Exc::invalid_descriptor, std::string("no element type is named ") +
                                    nb::repr(wanted).c_str() + "; the names are " + names);
}

bool is_integer(DType dtype) {
  const DTypeInfo* row = info(dtype);
  return row != nullptr && (row->kind == Kind::integer || row->kind == Kind::unsigned_integer);
}

bool is_float(DType dtype) {
  const DTypeInfo* row = info(dtype);
  return row != nullptr &&
         (row->kind == Kind::floating || row->kind == Kind::exponent || row->kind == Kind::complex);
}

bool is_signed(DType dtype) {
  const DTypeInfo* row = info(dtype);
  return row != nullptr &&
         (row->kind == Kind::integer || row->kind == Kind::floating || row->kind == Kind::complex);
}

std::string dtype_text(const PyDtype& self) {
  if (info(self.tag) == nullptr)
    return "hurray.Dtype.from_tag(" + to_hex(static_cast<std::uint8_t>(self.tag)) + ")";
  return std::string(tier(self.tag) == 1 ? "hurray." : "hurray.dtype.").append(name(self.tag));
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) {
    PyErr_SetString(PyExc_NotImplementedError, "element types have no order");
    return nullptr;
  }
  return compare_values<PyDtype>(self, other, operation);
}

Py_hash_t hash(PyObject* self) {
  const auto* dtype = value_of<PyDtype>(self);
  return dtype == nullptr ? no_hash() : static_cast<Py_hash_t>(dtype->tag);
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(hash)},
                             {0, nullptr}};

nb::int_ buffer_size_bytes(const PyDtype& dtype, nb::handle count) {
  const std::uint64_t elements =
      unsigned_argument(count, "count", std::numeric_limits<std::uint64_t>::max());
  const unsigned width = bits(dtype.tag);
  if (width == 0)
    fail(Exc::invalid_descriptor,
         "an extension dtype does not say how wide its elements are; its ExtensionType does, see "
         "ExtensionType.buffer_size_bytes");
  const auto bytes = packed_bytes(width, elements);
  if (!bytes) fail(PyExc_OverflowError, "the size of the elements exceeds 2**64 - 1 bytes");
  return nb::int_(*bytes);
}

}  // namespace

nb::object dtype_object(DType tag) { return nb::borrow(objects[static_cast<std::size_t>(tag)]); }

std::string_view dtype_name(DType tag) noexcept {
  const std::string_view found = name(tag);
  return found.empty() ? name(DType{0xF0}) : found;
}

void bind_dtype(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyDtype> type(
      m, "Dtype", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "An element type: immutable, hashable, one object per type. The types are the\n"
      "constants of `hurray.dtype`; there is no constructor.");
  type.def_prop_ro(
          "name", [](const PyDtype& self) { return text_of(dtype_name(self.tag)); },
          nb::sig("def name(self) -> str"),
          "The name, as in `hurray.dtype`; \"extension\" for a private type, and for one that "
          "permissive\n"
          "decoding let through.")
      .def_prop_ro(
          "tag", [](const PyDtype& self) { return static_cast<unsigned>(self.tag); },
          "The wire byte.")
      .def_prop_ro(
          "bit_width", [](const PyDtype& self) { return bits(self.tag); },
          "Stored bits of one element; 0 where the type does not say.")
      .def_prop_ro(
          "tier", [](const PyDtype& self) { return tier(self.tag); },
          "1 for the core types, 2 for the others; a label only.")
      .def_prop_ro(
          "element_alignment",
          [](const PyDtype& self) {
            const DTypeInfo* row = info(self.tag);
            return row != nullptr ? unsigned{row->alignment} : 1u;
          },
          "Natural alignment of one element in bytes: 1 for packed types, that of a half for "
          "complex.")
      .def_prop_ro(
          "is_integer", [](const PyDtype& self) { return is_integer(self.tag); },
          "Signed and unsigned integers; not bool.")
      .def_prop_ro(
          "is_float", [](const PyDtype& self) { return is_float(self.tag); },
          "Floating-point and complex types.")
      .def_prop_ro(
          "is_signed", [](const PyDtype& self) { return is_signed(self.tag); },
          "Whether an element can be negative.")
      .def_prop_ro(
          "is_sub_byte", [](const PyDtype& self) { return is_sub_byte(self.tag); },
          "Stored packed, in fewer than 8 bits.")
      .def_prop_ro(
          "is_array_api", [](const PyDtype& self) { return tier(self.tag) == 1; },
          "Whether `tier` is 1.")
      .def("__repr__", &dtype_text)
      .def("__str__", [](const PyDtype& self) { return text_of(dtype_name(self.tag)); })
      .def(
          "__reduce__",
          [](const PyDtype& self) {
            return reduced("dtype", nb::make_tuple(static_cast<unsigned>(self.tag)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def_static("from_name", &from_name, "name"_a.none(),
                  nb::sig("def from_name(name: str) -> Dtype"),
                  "The type of that name. Raises `InvalidDescriptorError` for an unknown one.")
      .def_static("from_tag", &from_tag, "tag"_a, nb::sig("def from_tag(tag: int) -> Dtype"),
                  "The type of that wire byte, private ones (0xF0 to 0xFE) included. Raises\n"
                  "`InvalidDescriptorError` for a byte that no type has.");
  def_copy(type, "Dtype");

  nb::list all;
  for (std::size_t tag = 0x01; tag < 0xFF; ++tag) {
    const nb::object made = nb::cast(PyDtype{static_cast<DType>(tag)});
    all.append(made);
    objects[tag] = made.ptr();
  }
  m.attr("_dtypes") = nb::tuple(all);
  m.def(
      "_dtype",
      [](nb::handle value) {
        const auto tag = number_argument<std::uint8_t>(value, "tag");
        if (tag == 0x00 || tag == 0xFF)
          fail(Exc::invalid_descriptor, "no element type has tag " + to_hex(tag));
        return dtype_object(static_cast<DType>(tag));
      },
      "tag"_a, nb::sig("def _dtype(tag: int) -> Dtype"));

  m.def(
      "buffer_size_bytes", &buffer_size_bytes, "dtype"_a, "count"_a,
      nb::sig("def buffer_size_bytes(dtype: Dtype, count: int) -> int"),
      "Bytes that `count` packed elements of `dtype` occupy: 2-, 4- and 1-bit elements share "
      "bytes,\n"
      "6-bit ones come in groups of four. Raises `InvalidDescriptorError` for an extension dtype.");
}

}  // namespace hurray::python
