// CooLayout, CsrLayout, CscLayout, CsfLayout.

#include "layouts.hpp"

namespace hurray::python {
namespace {

std::uint64_t nnz_argument(nb::handle value) {
  return number_argument<std::uint64_t>(value, "nnz");
}

/// A class over a layout that has `nnz`.
template <class T>
nb::class_<LayoutOf<T>, PyLayout> sparse_class(nb::module_& m, const char* name, const char* doc) {
  nb::class_<LayoutOf<T>, PyLayout> type(m, name, nb::is_final(), doc);
  type.def_prop_ro(
      "nnz", [](const LayoutOf<T>& self) { return self.get().nnz; },
      "Stored elements, explicit zeros included.");
  return type;
}

template <class T>
void bind_compressed(nb::module_& m, const char* name, const char* doc) {
  using namespace nb::literals;
  sparse_class<T>(m, name, doc)
      .def(
          "__init__",
          [](LayoutOf<T>* self, nb::handle nnz) {
            new (self) LayoutOf<T>(T{.nnz = nnz_argument(nnz)});
          },
          "nnz"_a, nb::sig("def __init__(self, nnz: int) -> None"));
}

void construct_coo(LayoutOf<Coo>* self, nb::handle nnz, nb::handle is_sorted) {
  new (self) LayoutOf<Coo>(
      Coo{.nnz = nnz_argument(nnz), .is_sorted = bool_argument(is_sorted, "is_sorted")});
}

void construct_csf(LayoutOf<Csf>* self, nb::handle nnz, nb::handle mode_order) {
  Csf layout;
  layout.nnz = nnz_argument(nnz);
  layout.mode_order = list_argument<decltype(layout.mode_order)>(mode_order, "mode_order");
  new (self) LayoutOf<Csf>(std::move(layout));
}

}  // namespace

Call call_of(const Coo& layout) {
  return {"CooLayout",
          {{"nnz", nb::int_(layout.nnz)}, {"is_sorted", nb::bool_(layout.is_sorted != 0)}}};
}
Call call_of(const Csr& layout) { return {"CsrLayout", {{"nnz", nb::int_(layout.nnz)}}}; }
Call call_of(const Csc& layout) { return {"CscLayout", {{"nnz", nb::int_(layout.nnz)}}}; }
Call call_of(const Csf& layout) {
  return {"CsfLayout",
          {{"nnz", nb::int_(layout.nnz)}, {"mode_order", tuple_of(layout.mode_order)}}};
}

void bind_sparse_layouts(nb::module_& m) {
  using namespace nb::literals;
  sparse_class<Coo>(m, "CooLayout",
                    "Coordinates beside values: buffer 0 holds `nnz` values, buffer 1 `nnz` tuples "
                    "of uint64\n"
                    "coordinates. `is_sorted` says that the tuples ascend; `False` claims nothing.")
      .def("__init__", &construct_coo, "nnz"_a, "is_sorted"_a = false,
           nb::sig("def __init__(self, nnz: int, is_sorted: bool = False) -> None"))
      .def_prop_ro(
          "is_sorted", [](const LayoutOf<Coo>& self) { return self.get().is_sorted != 0; },
          "The coordinates ascend strictly, dimension 0 first.");
  bind_compressed<Csr>(m, "CsrLayout",
                       "A sparse matrix stored row by row: buffer 0 holds values, buffer 1 their "
                       "columns, buffer 2\n"
                       "where each row starts (uint64).");
  bind_compressed<Csc>(m, "CscLayout",
                       "A sparse matrix stored column by column: buffer 0 holds values, buffer 1 "
                       "their rows, buffer 2\n"
                       "where each column starts (uint64).");
  sparse_class<Csf>(m, "CsfLayout",
                    "A tree with one compressed level per dimension, at least 3 of them. "
                    "`mode_order` names the\n"
                    "dimension of each level, root side first.")
      .def("__init__", &construct_csf, "nnz"_a, "mode_order"_a,
           nb::sig(
               "def __init__(self, nnz: int, mode_order: collections.abc.Sequence[int]) -> None"))
      .def_prop_ro(
          "mode_order", [](const LayoutOf<Csf>& self) { return tuple_of(self.get().mode_order); },
          nb::sig("def mode_order(self) -> tuple[int, ...]"),
          "The dimension of each level, root side first.");
}

}  // namespace hurray::python
