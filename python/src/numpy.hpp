#pragma once

#include "bindings.hpp"

namespace hurray::python {

/// The element type as NumPy knows it by itself: its type number, the letters of the buffer
/// protocol, and the kind letter of `typestr`.
struct NumpyType {
  DType dtype;
  int number;
  const char* format;
  char kind;
};
/// Null for types that NumPy does not have; bool is there, one byte per element.
const NumpyType* numpy_type(DType dtype) noexcept;

/// The name that `ml_dtypes` gives an element type, or null.
const char* ml_dtypes_name(DType dtype) noexcept;

/// The NumPy dtype with one element per item, little-endian. `UnsupportedError` naming the type
/// where neither NumPy nor ml_dtypes has it.
nb::object numpy_dtype(DType dtype);

/// Whether the object is an `ndarray`, subclasses included; or a NumPy scalar. False while NumPy
/// has not been imported.
bool is_ndarray(nb::handle object) noexcept;
bool is_numpy_scalar(nb::handle object) noexcept;

/// An `ndarray` as a source. `UnsupportedError` naming the dtype or the mask.
HostArray host_array(nb::handle ndarray);

/// `UnsupportedError` for a masked array; anything else passes.
void refuse_masked(nb::handle object);

/// An `ndarray` over memory that `base` keeps alive: strides in bytes.
nb::object make_ndarray(nb::object dtype, const Shape& shape, const Strides& strides, void* data,
                        bool writable, nb::object base);

}  // namespace hurray::python
