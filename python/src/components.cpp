// Component views of sparse tensors (08-python-api.md section 5.3).

#include <array>

#include "exports.hpp"

namespace hurray::python {
namespace {

[[noreturn]] void no_such_part(const PyTensor& t, std::string_view wanted) {
  fail(PyExc_AttributeError, "'Tensor' object has no attribute '" + std::string(wanted) +
                                 "'; this is a " + std::string(name(t.descriptor().layout)) +
                                 " tensor");
}

std::uint64_t nnz(const PyTensor& t) {
  const auto count = nnz_of(t.descriptor().layout);
  if (!count) no_such_part(t, "nnz");
  return *count;
}

/// The view of the buffer whose role is `wanted`.
nb::object component(const PyTensor& t, std::string_view wanted) {
  const Descriptor& d = t.descriptor();
  const std::size_t own =
      has_components(d.layout) ? own_buffers(info(d.layout), d.shape.rank()) : 0;
  std::size_t i = 0;
  while (i < own && role(d.layout, i) != wanted) ++i;
  if (i == own) no_such_part(t, wanted);
  if (t.tensor.unsynced_buffer()) require_elements(t, Way::array);
  auto part = component_tensor(t.tensor, i);
  if (!part && part.error().field == "quantization.scheme_tag")
    fail(Exc::unsupported_attribute,
         std::string(wanted) + ": this tensor is quantized (" +
             std::string(name(d.quantization()->scheme)) +
             "), and which parameters belong to a stored code follows from its place in the whole"
             " tensor; buffer(0) has the codes");
  return wrap_tensor(std::move(part), t.device);
}

struct Component {
  const char* name;
  const char* signature;
  const char* doc;
};

constexpr auto components = std::to_array<Component>({
    {"values", "def values(self) -> Tensor",
     "Stored elements of a COO, CSR or CSC tensor: `(nnz,)`, the tensor's type and device, shared\n"
     "memory. `AttributeError` naming the layout for others, and for codes whose parameters belong "
     "to\nplaces in the whole tensor."},
    {"indices", "def indices(self) -> Tensor",
     "Coordinates of a COO tensor: `(nnz, ndim)`, uint64, shared memory. `AttributeError` for\n"
     "other layouts."},
    {"col_indices", "def col_indices(self) -> Tensor",
     "Column of each stored element of a CSR tensor: `(nnz,)`, uint64, shared memory.\n"
     "`AttributeError` for other layouts."},
    {"row_ptr", "def row_ptr(self) -> Tensor",
     "Where the rows of a CSR tensor start among its stored elements: `(rows + 1,)`, uint64, "
     "shared\nmemory. `AttributeError` for other layouts."},
    {"row_indices", "def row_indices(self) -> Tensor",
     "Row of each stored element of a CSC tensor: `(nnz,)`, uint64, shared memory.\n"
     "`AttributeError` for other layouts."},
    {"col_ptr", "def col_ptr(self) -> Tensor",
     "Where the columns of a CSC tensor start among its stored elements: `(columns + 1,)`, "
     "uint64,\nshared memory. `AttributeError` for other layouts."},
});

}  // namespace

void def_components(nb::class_<PyTensor>& type) {
  type.def_prop_ro("nnz", &nnz, nb::sig("def nnz(self) -> int"),
                   "Number of stored elements of a COO, CSR, CSC or CSF tensor; `AttributeError` "
                   "naming the layout\nfor others.");
  for (const Component& part : components)
    type.def_prop_ro(
        part.name, [wanted = part.name](const PyTensor& t) { return component(t, wanted); },
        nb::sig(part.signature), part.doc);
}

}  // namespace hurray::python
