// BlockPagedLayout, and the checks of a cache before it is shipped (08-python-api.md section 8.3).

#include <array>
#include <cstring>

#include "layouts.hpp"

namespace hurray::python {
namespace {

using Self = LayoutOf<BlockPaged>;

void construct(Self* self, nb::handle page_size, nb::handle num_pages, nb::handle paged_axis,
               nb::handle num_seqs, nb::handle kv_role, nb::handle layer_index,
               nb::handle block_table_index_type) {
  BlockPaged layout;
  layout.page_size = number_argument<std::uint32_t>(page_size, "page_size");
  layout.num_pages = number_argument<std::uint64_t>(num_pages, "num_pages");
  layout.num_seqs = number_argument<std::uint32_t>(num_seqs, "num_seqs");
  layout.kv_role = name_argument(kv_role, kv_roles, "kv_role");
  layout.index_type = name_argument(block_table_index_type, index_types, "block_table_index_type");
  if (!layer_index.is_none()) {
    layout.layer_index = number_argument<std::uint32_t>(layer_index, "layer_index");
    if (layout.layer_index == BlockPaged::no_layer)
      fail(Exc::invalid_descriptor,
           "layer_index 4294967295 stands for no layer; pass None to say that");
  }
  // Which axis is paged is judged with the shape.
  check_fields(layout, info(LayoutTag::block_paged)->min_rank);
  layout.paged_axis = number_argument<std::uint32_t>(paged_axis, "paged_axis");
  new (self) Self(layout);
}

nb::object layer_or_none(const BlockPaged& layout) {
  return layout.layer_index == BlockPaged::no_layer ? nb::none()
                                                    : nb::object(nb::int_(layout.layer_index));
}

/// Values of an index array in a buffer of the core's form. What is no page and no pointer at all
/// is of the same kind as one that is wrong.
Buffer index_buffer(nb::handle value, const char* name) {
  const std::vector<nb::object> items = sequence_argument(value, name);
  Buffer buffer = unwrap(Buffer::allocate(8 * std::uint64_t{items.size()}));
  std::byte* at = buffer.data();
  for (std::size_t i = 0; i < items.size(); ++i, at += 8) {
    const std::string entry = std::string(name) + "[" + std::to_string(i) + "]";
    const nb::object number = nb::steal(PyNumber_Index(items[i].ptr()));
    if (!number.is_valid()) {
      PyErr_Clear();
      fail(PyExc_TypeError, entry + " must be an int, got " + python::type_name(items[i]));
    }
    const std::uint64_t n = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      fail(Exc::invalid_descriptor,
           entry + ": expected 0 to 18446744073709551615, found " + nb::str(number).c_str());
    }
    std::memcpy(at, &n, sizeof n);
  }
  return buffer;
}

[[noreturn]] void fail_paged(const Error& error) {
  Error placed = error;
  placed.offset = Error::no_offset;
  fail(Exc::invalid_descriptor, "this block_paged layout: " + to_string(placed));
}

void validate_index_buffers(const Self& self, nb::handle seq_ptr, nb::handle block_table) {
  std::array<Buffer, 3> buffers;
  buffers[2] = index_buffer(seq_ptr, "seq_ptr");
  buffers[1] = index_buffer(block_table, "block_table");
  const auto error = without_gil([&] {
    return self.get().check_exact(IndexBuffers(buffers), Shape{dynamic, dynamic, dynamic});
  });
  if (error) fail_paged(*error);
}

void validate_quantization_compatibility(const Self& self, nb::handle quantization) {
  const auto fits = validate(quantization_argument(quantization), &self.value);
  if (!fits) fail_paged(fits.error());
}

}  // namespace

Call call_of(const BlockPaged& layout) {
  return {"BlockPagedLayout",
          {{"page_size", nb::int_(layout.page_size)},
           {"num_pages", nb::int_(layout.num_pages)},
           {"paged_axis", nb::int_(layout.paged_axis)},
           {"num_seqs", nb::int_(layout.num_seqs)},
           {"kv_role", text_of(name(layout.kv_role))},
           {"layer_index", layer_or_none(layout)},
           {"block_table_index_type", text_of(name(layout.index_type))}}};
}

void bind_block_paged_layout(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Self, PyLayout>(
      m, "BlockPagedLayout", nb::is_final(),
      "The cache of a whole batch, shape [tokens, heads, head size]: buffer 0 is a pool of "
      "`num_pages` pages\n"
      "of `page_size` token slots, buffer 1 the block table (the pages of all sequences, one "
      "sequence after\n"
      "the other), buffer 2 where each sequence starts in it. Raises `ValueError` for an unknown "
      "role or\n"
      "index type, `InvalidDescriptorError` for a page size of 0 and for pages that the index type "
      "cannot\n"
      "name.")
      .def("__init__", &construct, "page_size"_a, "num_pages"_a, "paged_axis"_a, "num_seqs"_a,
           "kv_role"_a = "key", "layer_index"_a = nb::none(), "block_table_index_type"_a = "uint32",
           nb::sig("def __init__(self, page_size: int, num_pages: int, paged_axis: int, num_seqs: "
                   "int, kv_role: typing.Literal['key', 'value', 'fused'] = 'key', layer_index: "
                   "int | None = None, block_table_index_type: typing.Literal['uint32', 'uint64'] "
                   "= 'uint32') -> None"))
      .def_prop_ro(
          "page_size", [](const Self& self) { return self.get().page_size; },
          "Token slots of one page.")
      .def_prop_ro(
          "num_pages", [](const Self& self) { return self.get().num_pages; }, "Pages of the pool.")
      .def_prop_ro(
          "paged_axis", [](const Self& self) { return self.get().paged_axis; },
          "The dimension that is cut into pages.")
      .def_prop_ro(
          "num_seqs", [](const Self& self) { return self.get().num_seqs; },
          "Sequences of the batch.")
      .def_prop_ro(
          "kv_role", [](const Self& self) { return text_of(name(self.get().kv_role)); },
          nb::sig("def kv_role(self) -> typing.Literal['key', 'value', 'fused']"),
          "What the cache holds; \"fused\" also for what is no cache of keys or values.")
      .def_prop_ro(
          "layer_index", [](const Self& self) { return layer_or_none(self.get()); },
          nb::sig("def layer_index(self) -> int | None"), "The model's layer, where there is one.")
      .def_prop_ro(
          "block_table_index_type",
          [](const Self& self) { return text_of(name(self.get().index_type)); },
          nb::sig("def block_table_index_type(self) -> typing.Literal['uint32', 'uint64']"),
          "Type of the entries of buffers 1 and 2.")
      .def("validate_index_buffers", &validate_index_buffers, "seq_ptr"_a, "block_table"_a,
           nb::sig("def validate_index_buffers(self, "
                   "seq_ptr: collections.abc.Sequence[int] | numpy.typing.NDArray[typing.Any], "
                   "block_table: collections.abc.Sequence[int] | numpy.typing.NDArray[typing.Any]) "
                   "-> None"),
           "Returns `None` when the values suit the layout: `num_seqs + 1` pointers that start at "
           "0, do not\n"
           "decrease and end at the length of the block table, whose pages are below `num_pages` "
           "(and may\n"
           "repeat: sequences share them). Raises `InvalidDescriptorError` naming the entry.")
      .def("validate_quantization_compatibility", &validate_quantization_compatibility,
           "quantization"_a.none(),
           nb::sig("def validate_quantization_compatibility(self, quantization: PerTensorAffine | "
                   "PerChannelAffine | PerBlockAffine | NF4 | MXFP) -> None"),
           "Returns `None` when a tensor of this layout can be quantized so: per tensor, per "
           "channel along\n"
           "heads or elements of a head, per block along tokens with blocks of a page. Raises\n"
           "`InvalidDescriptorError` otherwise.");
}

}  // namespace hurray::python
