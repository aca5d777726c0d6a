// Matrices with their dimensions exchanged, over the same memory (08-python-api.md section 19.5).

#include "bindings.hpp"

namespace hurray::python {
namespace {

nb::object transpose_of(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  if (d.shape.rank() != 2)
    fail(PyExc_ValueError, "transpose() exchanges the dimensions of a matrix; this tensor has " +
                               std::to_string(d.shape.rank()) + ", not 2");
  auto result = transpose(t.tensor);
  if (!result && result.error().field == "layout_tag")
    fail(Exc::unsupported, "the bytes of a " + std::string(name(d.layout)) +
                               " tensor are not those of its transpose; use"
                               " np.asarray(t).T or to_dense() first");
  if (!result && result.error().field == "quantization.scheme_tag" &&
      result.error().code == Errc::unsupported)
    fail(Exc::unsupported, "the parameters of a " + std::string(name(d.quantization()->scheme)) +
                               " scheme follow the rows, so the transpose needs others;"
                               " dequantize first");
  return wrap_tensor(std::move(result), t.device);
}

}  // namespace

void def_transpose(nb::class_<PyTensor>& type) {
  type.def("transpose", &transpose_of, nb::sig("def transpose(self) -> Tensor"),
           "The matrix with rows and columns exchanged, over the same memory: row-major and "
           "column-major\n"
           "become each other, CSR and CSC likewise, strides are reversed. Shard and per-channel "
           "axis\n"
           "follow. Raises `ValueError` for another rank and `UnsupportedError` for layouts and "
           "schemes\n"
           "whose bytes would have to move.")
      .def_prop_ro(
          "T",
          [](const PyTensor&) -> nb::object {
            fail(Exc::unsupported_attribute, "tensors have no T; use transpose(), which is a view");
          },
          nb::sig("def T(self) -> typing.NoReturn"),
          "Not offered (`UnsupportedError`, also `AttributeError`): use `transpose()`.");
}

}  // namespace hurray::python
