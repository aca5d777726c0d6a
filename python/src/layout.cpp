// Layout: what all layouts have in common, and the way from the core's to Python's.

#include "layouts.hpp"

namespace hurray::python {
namespace {

/// Core's value as it shows: an unknown layout's flags announce sections, they are no part of it.
hurray::Layout shown(const hurray::Layout& layout) {
  hurray::Layout value = layout;
  if (auto* unknown = std::get_if<UnknownLayout>(&value)) unknown->flags = 0;
  return value;
}

/// A head by a rule that two parties agreed on: the format has a name for the layout only.
bool has_class(const hurray::Layout& layout) noexcept {
  const auto* head = std::get_if<CompositeHead>(&layout);
  return head == nullptr || find_row(composition_rules, head->rule) != nullptr;
}

nb::object buffer_count(const PyLayout& self) {
  const LayoutInfo& row = info(self.value);
  if (row.layout_class == LayoutClass::opaque) return nb::none();
  const auto* csf = std::get_if<Csf>(&self.value);
  return nb::int_(own_buffers(row, csf == nullptr ? 0 : csf->mode_order.size()));
}

[[noreturn]] void fail_layout(const hurray::Layout& layout, std::string_view what, Error error) {
  error.offset = Error::no_offset;
  fail(Exc::invalid_descriptor, "this " + std::string(name(layout)) + " layout " +
                                    std::string(what) + ": " + to_string(error));
}

}  // namespace

void check_layout(const hurray::Layout& layout, const Shape& shape) {
  if (auto fits = validate(layout, shape); !fits)
    fail_layout(layout, "does not fit the shape", fits.error());
}

void check_fields(const hurray::Layout& layout, std::size_t rank) {
  Shape shape;
  shape.resize(rank);
  for (std::uint64_t& size : shape) size = dynamic;
  if (auto holds = validate(layout, shape); !holds) fail_layout(layout, "cannot be", holds.error());
}

Call call_of(const PyLayout& layout) {
  if (!has_class(layout.value)) return {"Layout", {{"name", text_of(name(layout.value))}}};
  return std::visit([](const auto& alternative) { return call_of(alternative); }, layout.value);
}

nb::object wrap_layout(const hurray::Layout& layout) {
  if (!has_class(layout)) return nb::cast(PyLayout{layout});
  return std::visit(
      []<class T>(T&& alternative) {
        return nb::cast(LayoutOf<std::remove_cvref_t<T>>(std::forward<T>(alternative)));
      },
      shown(layout));
}

void bind_layout(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyLayout> type(
      m, "Layout", nb::is_weak_referenceable(), nb::type_slots(value_slots<PyLayout>),
      "How a tensor's logical indices find their place in its buffers: an immutable value that "
      "refers\n"
      "to no tensor. A layout for which this module has no class is an instance of `Layout` "
      "itself.");
  type.def_prop_ro(
          "tag",
          [](const PyLayout& self) { return static_cast<unsigned>(hurray::tag(self.value)); },
          "The wire byte.")
      .def_prop_ro(
          "name", [](const PyLayout& self) { return text_of(name(self.value)); },
          nb::sig("def name(self) -> typing.Literal['row_major', 'col_major', 'strided', 'tiled', "
                  "'morton', 'hilbert', 'coo', 'csr', 'csc', 'csf', 'block_paged', 'composite', "
                  "'extension']"),
          "The format's name; \"extension\" for a private tag and for an unknown one.")
      .def_prop_ro(
          "buffer_count", &buffer_count, nb::sig("def buffer_count(self) -> int | None"),
          "The layout's own buffers: 0 for the head of a composite; `None` for private and "
          "unknown\n"
          "layouts, which do not say.")
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
          "Raises `InvalidDescriptorError` naming the layout otherwise.");
  def_value(type, "Layout");

  bind_dense_layouts(m);
  bind_tiled_layout(m);
  bind_sparse_layouts(m);
  bind_block_paged_layout(m);
  bind_composite_layout(m);
  bind_opaque_layouts(m);

  m.def(
      "layout_tag_kind",
      [](nb::handle tag) {
        return text_of(layout_tag_kind(number_argument<std::uint8_t>(tag, "tag")));
      },
      "tag"_a,
      nb::sig("def layout_tag_kind(tag: int) -> typing.Literal['named', 'reserved', 'private', "
              "'invalid']"),
      "What a layout's wire byte is to a reader: \"named\" (assigned), \"reserved\" (not yet),\n"
      "\"private\" (agreed between two parties) or \"invalid\". Raises `OverflowError` outside 0 "
      "to 255.");
}

}  // namespace hurray::python
