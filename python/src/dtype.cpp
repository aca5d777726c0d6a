#include <array>
#include <limits>

#include "bindings.hpp"

namespace hurray::python {
namespace {

/// Borrowed from the module's `_dtypes`: one object per assigned or private tag (Y3), made with the
/// module.
std::array<PyObject*, 256> objects{};

nb::object from_tag(nb::handle value) {
  const std::uint64_t tag = unsigned_argument(value, "tag", 0xFF);
  const auto dtype = static_cast<DType>(tag);
  if (name(dtype).empty())
    fail(Exc::invalid_descriptor, "no element type has tag " + std::to_string(tag) +
                                      "; see hurray.dtype for those that exist");
  return dtype_object(dtype);
}

nb::object from_name(std::string_view wanted) {
  if (const DTypeInfo* row = find_name(dtypes, wanted)) return dtype_object(row->tag);
  std::string names;
  for (const DTypeInfo& row : dtypes) (names += names.empty() ? "" : ", ") += row.name;
  fail(Exc::invalid_descriptor,
       "no element type is named '" + std::string(wanted) + "'; the names are " + names);
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
  if (is_private(static_cast<std::uint8_t>(self.tag))) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto tag = static_cast<std::uint8_t>(self.tag);
    return std::string("hurray.Dtype.from_tag(0x") + digits[tag >> 4] + digits[tag & 15] + ")";
  }
  return std::string(tier(self.tag) == 1 ? "hurray." : "hurray.dtype.").append(name(self.tag));
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) {
    PyErr_SetString(PyExc_NotImplementedError, "element types have no order");
    return nullptr;
  }
  if (!nb::isinstance<PyDtype>(other)) Py_RETURN_NOTIMPLEMENTED;
  const bool equal = nb::inst_ptr<PyDtype>(self)->tag == nb::inst_ptr<PyDtype>(other)->tag;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(nb::inst_ptr<PyDtype>(self)->tag); }

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(hash)},
                             {0, nullptr}};

nb::int_ buffer_size_bytes(const PyDtype& dtype, nb::handle count) {
  const std::uint64_t elements =
      unsigned_argument(count, "count", std::numeric_limits<std::uint64_t>::max());
  const unsigned width = bits(dtype.tag);
  if (width == 0)
    fail(Exc::invalid_descriptor,
         "an extension dtype does not say how wide its elements are, so their size is not known");
  const auto bytes = packed_bytes(width, elements);
  if (!bytes) fail(PyExc_OverflowError, "the size of the elements exceeds 2**64 - 1 bytes");
  return nb::int_(*bytes);
}

}  // namespace

nb::object dtype_object(DType tag) { return nb::borrow(objects[static_cast<std::size_t>(tag)]); }

void bind_dtype(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyDtype>(
      m, "Dtype", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "An element type: immutable, hashable, one object per type. The types are the\n"
      "constants of `hurray.dtype`; there is no constructor.")
      .def_prop_ro(
          "name", [](const PyDtype& self) { return nb::str(name(self.tag).data()); },
          nb::sig("def name(self) -> str"),
          "The name, as in `hurray.dtype`; \"extension\" for a private type.")
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
      .def("__str__", [](const PyDtype& self) { return nb::str(name(self.tag).data()); })
      .def_static("from_name", &from_name, "name"_a, nb::sig("def from_name(name: str) -> Dtype"),
                  "The type of that name. Raises `InvalidDescriptorError` for an unknown one.")
      .def_static("from_tag", &from_tag, "tag"_a, nb::sig("def from_tag(tag: int) -> Dtype"),
                  "The type of that wire byte, private ones (0xF0 to 0xFE) included. Raises\n"
                  "`InvalidDescriptorError` for a byte that no type has.");

  nb::list all;
  for (std::size_t tag = 0; tag < objects.size(); ++tag) {
    const auto dtype = static_cast<DType>(tag);
    if (name(dtype).empty()) continue;
    const nb::object made = nb::cast(PyDtype{dtype});
    all.append(made);
    objects[tag] = made.ptr();
  }
  m.attr("_dtypes") = nb::tuple(all);

  m.def(
      "buffer_size_bytes", &buffer_size_bytes, "dtype"_a, "count"_a,
      nb::sig("def buffer_size_bytes(dtype: Dtype, count: int) -> int"),
      "Bytes that `count` packed elements of `dtype` occupy: 2-, 4- and 1-bit elements share "
      "bytes,\n"
      "6-bit ones come in groups of four. Raises `InvalidDescriptorError` for an extension dtype.");
}

}  // namespace hurray::python
