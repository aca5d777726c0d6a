// RowMajorLayout, ColMajorLayout, StridedLayout, MortonLayout, HilbertLayout.

#include "layouts.hpp"

namespace hurray::python {
namespace {

void construct_strided(LayoutOf<Strided>* self, nb::handle strides) {
  new (self) LayoutOf<Strided>(Strided{list_argument<Strides>(strides, "strides")});
}

void construct_morton(LayoutOf<Morton>* self, nb::handle morton_bits) {
  Morton layout;
  layout.bits = list_argument<decltype(layout.bits)>(morton_bits, "morton_bits");
  check_fields(layout, layout.bits.size());
  new (self) LayoutOf<Morton>(std::move(layout));
}

void construct_hilbert(LayoutOf<Hilbert>* self, nb::handle order, nb::handle rank) {
  const Hilbert layout{.order = number_argument<std::uint32_t>(order, "hilbert_order"),
                       .rank = number_argument<std::uint32_t>(rank, "hilbert_rank")};
  const LayoutInfo& row = *info(LayoutTag::hilbert);
  if (layout.rank < row.min_rank || layout.rank > row.max_rank)
    fail(Exc::invalid_descriptor, "hilbert_rank must be " + std::to_string(row.min_rank) + " to " +
                                      std::to_string(row.max_rank) + ", got " +
                                      std::to_string(layout.rank));
  check_fields(layout, layout.rank);
  new (self) LayoutOf<Hilbert>(layout);
}

}  // namespace

Call call_of(const RowMajor&) { return {"RowMajorLayout", {}}; }
Call call_of(const ColumnMajor&) { return {"ColMajorLayout", {}}; }
Call call_of(const Strided& layout) {
  return {"StridedLayout", {{"strides", tuple_of(layout.strides)}}};
}
Call call_of(const Morton& layout) {
  return {"MortonLayout", {{"morton_bits", tuple_of(layout.bits)}}};
}
Call call_of(const Hilbert& layout) {
  return {"HilbertLayout",
          {{"hilbert_order", nb::int_(layout.order)}, {"hilbert_rank", nb::int_(layout.rank)}}};
}

void bind_dense_layouts(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<LayoutOf<RowMajor>, PyLayout>(m, "RowMajorLayout", nb::is_final(),
                                           "The last dimension varies fastest (C order).")
      .def("__init__", [](LayoutOf<RowMajor>* self) { new (self) LayoutOf<RowMajor>({}); });
  nb::class_<LayoutOf<ColumnMajor>, PyLayout>(m, "ColMajorLayout", nb::is_final(),
                                              "The first dimension varies fastest (Fortran order).")
      .def("__init__", [](LayoutOf<ColumnMajor>* self) { new (self) LayoutOf<ColumnMajor>({}); });

  nb::class_<LayoutOf<Strided>, PyLayout>(
      m, "StridedLayout", nb::is_final(),
      "Any strides: one per dimension, in logical elements (not bytes), 0 and negative included.")
      .def("__init__", &construct_strided, "strides"_a,
           nb::sig("def __init__(self, strides: collections.abc.Sequence[int]) -> None"))
      .def_prop_ro(
          "strides", [](const LayoutOf<Strided>& self) { return tuple_of(self.get().strides); },
          nb::sig("def strides(self) -> tuple[int, ...]"),
          "Logical elements from one index to the next, per dimension.");

  nb::class_<LayoutOf<Morton>, PyLayout>(
      m, "MortonLayout", nb::is_final(),
      "Elements in the order of their interleaved index bits, dimension 0 first at each bit\n"
      "position: 2**sum(morton_bits) places. Raises `InvalidDescriptorError` for no bits in some\n"
      "dimension and for more than 63 in all.")
      .def("__init__", &construct_morton, "morton_bits"_a,
           nb::sig("def __init__(self, morton_bits: collections.abc.Sequence[int]) -> None"))
      .def_prop_ro(
          "morton_bits", [](const LayoutOf<Morton>& self) { return tuple_of(self.get().bits); },
          nb::sig("def morton_bits(self) -> tuple[int, ...]"), "Index bits of each dimension.");

  nb::class_<LayoutOf<Hilbert>, PyLayout>(
      m, "HilbertLayout", nb::is_final(),
      "Elements along a Hilbert curve through a cube of side 2**hilbert_order. Raises\n"
      "`InvalidDescriptorError` for an order below 1, a rank outside 2 to 63, and more than 63 "
      "bits\n"
      "(order times rank).")
      .def("__init__", &construct_hilbert, "hilbert_order"_a, "hilbert_rank"_a,
           nb::sig("def __init__(self, hilbert_order: int, hilbert_rank: int) -> None"))
      .def_prop_ro(
          "hilbert_order", [](const LayoutOf<Hilbert>& self) { return self.get().order; },
          "Index bits of every dimension.")
      .def_prop_ro(
          "hilbert_rank", [](const LayoutOf<Hilbert>& self) { return self.get().rank; },
          "The tensor's rank.");
}

}  // namespace hurray::python
