// PrivateExtensionLayout and UnknownLayout: layouts that are carried along.

#include "hurray/printer.hpp"
#include "layouts.hpp"

namespace hurray::python {
namespace {

using Private = LayoutOf<PrivateLayout>;
using Unknown = LayoutOf<UnknownLayout>;

Blob blob_argument(nb::handle value, const char* name) {
  if (value.is_none()) return {};
  const BytesView view(value, name);
  if (view.bytes().size() > std::numeric_limits<std::uint32_t>::max())
    fail(Exc::invalid_descriptor, std::string(name) + " has at most 4294967295 bytes");
  return Blob(view.bytes());
}

nb::bytes bytes_of(const Blob& blob) { return nb::bytes(blob.bytes().data(), blob.bytes().size()); }

std::string size_text(const Blob& blob) { return std::to_string(blob.size()) + " bytes"; }

nb::int_ number_of(LayoutTag tag) { return nb::int_(static_cast<unsigned>(tag)); }

/// The name of the class that a named tag has.
std::string class_of(LayoutTag tag) {
  std::string found;
  const auto look = [&]<class T>(const T&) {
    if (detail::tag_of<T>() == tag)
      found = nb::cast<std::string>(nb::type<LayoutOf<T>>().attr("__name__"));
  };
  const auto each = [&]<class... T>(const std::variant<T...>*) { (look(T{}), ...); };
  each(static_cast<const hurray::Layout*>(nullptr));
  return found;
}

void construct_private(Private* self, nb::handle tag, nb::handle id, nb::handle data) {
  const auto raw = number_argument<std::uint8_t>(tag, "tag");
  if (!is_private(raw))
    fail(Exc::invalid_descriptor,
         "tag " + to_hex(raw) + " is not private; private layouts have 0xF0 to 0xFE");
  new (self) Private(PrivateLayout{LayoutTag{raw},
                                   number_argument<std::uint64_t>(id, "extension_layout_id"),
                                   blob_argument(data, "extension_data")});
}

void construct_unknown(Unknown* self, nb::handle tag, nb::handle raw_bytes) {
  const auto raw = number_argument<std::uint8_t>(tag, "tag");
  const LayoutTag layout_tag{raw};
  const std::string_view kind = layout_tag_kind(raw);
  if (kind == "invalid") fail(Exc::invalid_descriptor, "tag " + to_hex(raw) + " is never valid");
  if (kind == "private")
    fail(PyExc_ValueError, "tag " + to_hex(raw) +
                               " is a private layout, not an unknown one; use "
                               "hurray.PrivateExtensionLayout instead");
  if (kind == "named")
    fail(PyExc_ValueError, "tag " + to_hex(raw) + " is the " + std::string(name(layout_tag)) +
                               " layout, not an unknown one; use hurray." + class_of(layout_tag) +
                               " instead");
  UnknownLayout layout;
  layout.tag = layout_tag;
  layout.tail = blob_argument(raw_bytes, "raw_bytes");
  new (self) Unknown(std::move(layout));
}

}  // namespace

Call call_of(const PrivateLayout& layout) {
  return {"PrivateExtensionLayout",
          {{"tag", number_of(layout.tag), to_hex(static_cast<std::uint8_t>(layout.tag))},
           {"extension_layout_id", nb::int_(layout.id)},
           {"extension_data", bytes_of(layout.data), size_text(layout.data)}}};
}

Call call_of(const UnknownLayout& layout) {
  return {"UnknownLayout",
          {{"tag", number_of(layout.tag), to_hex(static_cast<std::uint8_t>(layout.tag))},
           {"raw_bytes", bytes_of(layout.tail), size_text(layout.tail)}}};
}

void bind_opaque_layouts(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Private, PyLayout>(
      m, "PrivateExtensionLayout", nb::is_final(),
      "A layout that two parties agreed on, known by its tag (0xF0 to 0xFE) and id: its fields and "
      "buffers\n"
      "are carried along, elements cannot be addressed. Raises `InvalidDescriptorError` for other "
      "tags.")
      .def("__init__", &construct_private, "tag"_a, "extension_layout_id"_a,
           "extension_data"_a = nb::none(),
           nb::sig("def __init__(self, tag: int, extension_layout_id: int, extension_data: "
                   "typing.Any | None = None) -> None"))
      .def_prop_ro(
          "extension_layout_id", [](const Private& self) { return self.get().id; },
          "Which of the layouts under this tag.")
      .def_prop_ro(
          "extension_data", [](const Private& self) { return bytes_of(self.get().data); },
          nb::sig("def extension_data(self) -> bytes"), "Fields that only its owner understands.");
  nb::class_<Unknown, PyLayout>(
      m, "UnknownLayout", nb::is_final(),
      "A layout whose tag this release does not know: what stands in a descriptor from its fields "
      "on is\n"
      "one piece, since unknown fields do not say how long they are. Raises `ValueError` for a tag "
      "that\n"
      "is known or private, `InvalidDescriptorError` for one that is never valid.")
      .def("__init__", &construct_unknown, "tag"_a, "raw_bytes"_a = nb::none(),
           nb::sig("def __init__(self, tag: int, raw_bytes: typing.Any | None = None) -> None"))
      .def_prop_ro(
          "raw_bytes", [](const Unknown& self) { return bytes_of(self.get().tail); },
          nb::sig("def raw_bytes(self) -> bytes"), "The descriptor's bytes from the fields on.");
}

}  // namespace hurray::python
