#include <algorithm>
#include <functional>

#include "bindings.hpp"

namespace hurray::python {
namespace {

struct RowMajorLayout : PyLayout {};
struct ColMajorLayout : PyLayout {};
struct StridedLayout : PyLayout {};

std::string tuple_text(const Strides& strides) {
  std::string text = "(";
  for (std::size_t k = 0; k < strides.size(); ++k) {
    if (k != 0) text += ", ";
    text += std::to_string(strides[k]);
  }
  return text + (strides.size() == 1 ? ",)" : ")");
}

std::string layout_text(const PyLayout& self) {
  if (std::holds_alternative<RowMajor>(self.value)) return "RowMajorLayout()";
  if (std::holds_alternative<ColumnMajor>(self.value)) return "ColMajorLayout()";
  if (const auto* strided = std::get_if<Strided>(&self.value))
    return "StridedLayout(strides=" + tuple_text(strided->strides) + ")";
  return "Layout(name='" + std::string(name(self.value)) + "')";
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !nb::isinstance<PyLayout>(other))
    Py_RETURN_NOTIMPLEMENTED;
  const bool equal = nb::inst_ptr<PyLayout>(self)->value == nb::inst_ptr<PyLayout>(other)->value;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) {
  const Layout& layout = nb::inst_ptr<PyLayout>(self)->value;
  auto mixed = static_cast<Py_uhash_t>(tag(layout));
  if (const auto* strided = std::get_if<Strided>(&layout))
    for (const std::int64_t stride : strided->strides)
      mixed = mixed * 1000003u + static_cast<Py_uhash_t>(stride);
  const auto value = static_cast<Py_hash_t>(mixed);
  return value == -1 ? -2 : value;
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(hash)},
                             {0, nullptr}};

void construct_strided(StridedLayout* self, nb::handle strides) {
  Strided strided;
  const auto items = sequence_argument(strides, "strides");
  if (items.size() > max_rank)
    fail(Exc::invalid_descriptor, "strides has " + std::to_string(items.size()) +
                                      " entries, at most " + std::to_string(max_rank) +
                                      " are possible");
  strided.strides.resize(items.size());
  for (std::size_t k = 0; k < items.size(); ++k)
    strided.strides[k] = signed_argument(items[k], "strides");
  new (self) StridedLayout{{std::move(strided)}};
}

nb::tuple strides(const StridedLayout& self) {
  const auto& values = std::get<Strided>(self.value).strides;
  nb::list list;
  for (const std::int64_t stride : values) list.append(stride);
  return nb::tuple(list);
}

}  // namespace

void check_layout(const Layout& layout, const Shape& shape) {
  const LayoutInfo& row = info(layout);
  const std::string layout_name(row.name);
  if (shape.rank() < row.min_rank || shape.rank() > row.max_rank)
    fail(Exc::invalid_descriptor,
         "a " + layout_name + " layout needs rank " + std::to_string(row.min_rank) + " to " +
             std::to_string(row.max_rank) + ", the shape has rank " + std::to_string(shape.rank()));
  if (const auto* strided = std::get_if<Strided>(&layout);
      strided != nullptr && strided->strides.size() != shape.rank())
    fail(Exc::invalid_descriptor, "a strided layout needs one stride per dimension, it has " +
                                      std::to_string(strided->strides.size()) +
                                      " and the shape has rank " + std::to_string(shape.rank()));
  Sizer io;
  std::visit(
      [&]<class T>(const T& alternative) {
        if constexpr (!std::is_same_v<T, UnknownLayout>)
          alternative.fields(alternative, io, FieldContext{shape, {.agreed = {.all = true}}});
      },
      layout);
  if (io.ok()) return;
  Error error = io.error();
  error.offset = Error::no_offset;
  fail(Exc::invalid_descriptor,
       "this " + layout_name + " layout does not fit the shape: " + to_string(error));
}

nb::object wrap_layout(const Layout& layout) {
  switch (tag(layout)) {
    case LayoutTag::row_major:
      return nb::cast(RowMajorLayout{{layout}});
    case LayoutTag::col_major:
      return nb::cast(ColMajorLayout{{layout}});
    case LayoutTag::strided:
      return nb::cast(StridedLayout{{layout}});
    default:
      return nb::cast(PyLayout{layout});
  }
}

void bind_layout(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyLayout>(m, "Layout", nb::is_weak_referenceable(), nb::type_slots(slots),
                       "How a tensor's logical indices find their place in its buffers: an "
                       "immutable value that refers\n"
                       "to no tensor. A layout for which this module has no class is an instance "
                       "of `Layout` itself.")
      .def_prop_ro(
          "tag",
          [](const PyLayout& self) { return static_cast<unsigned>(hurray::tag(self.value)); },
          "The wire byte.")
      .def_prop_ro(
          "name", [](const PyLayout& self) { return nb::str(name(self.value).data()); },
          nb::sig("def name(self) -> str"), "\"row_major\", \"col_major\", \"strided\", …")
      .def_prop_ro(
          "buffer_count",
          [](const PyLayout& self) -> nb::object {
            const LayoutInfo& row = info(self.value);
            const bool known =
                row.layout_class != LayoutClass::opaque && row.buffers_per_dimension == 0;
            return known ? nb::object(nb::int_(row.buffers)) : nb::none();
          },
          nb::sig("def buffer_count(self) -> int | None"),
          "The layout's own buffers; `None` where they depend on more than the layout.")
      .def_prop_ro(
          "is_dense", [](const PyLayout& self) { return is_dense(self.value); },
          "Every element is stored, at a place that its index gives.")
      .def_prop_ro(
          "is_virtual",
          [](const PyLayout& self) {
            return info(self.value).layout_class == LayoutClass::virtual_;
          },
          "The layout owns no buffers.")
      .def(
          "validate_against_shape",
          [](const PyLayout& self, nb::handle shape) {
            check_layout(self.value, shape_argument(shape, true, ""));
          },
          "shape"_a,
          nb::sig("def validate_against_shape(self, shape: collections.abc.Sequence[int | None]) "
                  "-> None"),
          "Returns `None` when the layout fits the shape; sizes that are `None` are not checked.\n"
          "Raises `InvalidDescriptorError` naming the layout otherwise.")
      .def("__repr__", [](const PyLayout& self) { return layout_text(self); });

  nb::class_<RowMajorLayout, PyLayout>(m, "RowMajorLayout", nb::is_final(),
                                       "The last dimension varies fastest (C order).")
      .def("__init__", [](RowMajorLayout* self) { new (self) RowMajorLayout{{RowMajor{}}}; });
  nb::class_<ColMajorLayout, PyLayout>(m, "ColMajorLayout", nb::is_final(),
                                       "The first dimension varies fastest (Fortran order).")
      .def("__init__", [](ColMajorLayout* self) { new (self) ColMajorLayout{{ColumnMajor{}}}; });
  nb::class_<StridedLayout, PyLayout>(
      m, "StridedLayout", nb::is_final(),
      "Any strides: one per dimension, in logical elements (not bytes), 0 and negative included.")
      .def("__init__", &construct_strided, "strides"_a,
           nb::sig("def __init__(self, strides: collections.abc.Sequence[int]) -> None"))
      .def_prop_ro("strides", &strides, nb::sig("def strides(self) -> tuple[int, ...]"),
                   "Logical elements from one index to the next, per dimension.");

  m.def(
      "layout_tag_kind",
      [](nb::handle tag) {
        return nb::str(
            layout_tag_kind(static_cast<std::uint8_t>(unsigned_argument(tag, "tag", 0xFF))).data());
      },
      "tag"_a,
      nb::sig("def layout_tag_kind(tag: int) -> typing.Literal['named', 'reserved', 'private', "
              "'invalid']"),
      "What a layout's wire byte is to a reader: \"named\" (assigned), \"reserved\" (not yet),\n"
      "\"private\" (agreed between two parties) or \"invalid\". Raises `OverflowError` outside 0 "
      "to 255.");
}

}  // namespace hurray::python
