#pragma once

#include <cstddef>
#include <span>

#include "bindings.hpp"
#include "hurray/selection.hpp"

namespace hurray::python {

/// What `index` takes of a tensor of this shape (08-python-api.md section 19.2): ints, slices and
/// `...`, one or a tuple of them, negative positions as in Python. `IndexError` for too many and
/// for an int out of range, `ValueError` for a step below 1, `TypeError` for anything else.
Selection selection_argument(nb::handle index, const Shape& shape);

/// Somebody's memory that is to be filled with row-major elements.
struct Target {
  std::span<std::byte> bytes;
  std::shared_ptr<Owner> owner;
};
/// `out=`: contiguous writable host memory for exactly these elements. `TypeError` for another
/// type, `ValueError` for another shape, for memory that is not contiguous or not writable.
Target target_argument(nb::handle out, const hurray::Descriptor& wanted, std::uint64_t size_bytes);

}  // namespace hurray::python
