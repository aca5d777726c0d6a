#include "selection.hpp"

#include "exports.hpp"

namespace hurray::python {
namespace {

std::string shape_text(const Shape& shape) { return nb::str(wrap_shape(shape)).c_str(); }

Along along_argument(nb::handle item, std::uint64_t size, std::size_t k) {
  const std::string where = "index[" + std::to_string(k) + "]";
  const auto length = static_cast<Py_ssize_t>(size);  // below 2^63 in every descriptor
  if (PySlice_Check(item.ptr())) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Unpack(item.ptr(), &start, &stop, &step) != 0) nb::raise_python_error();
    if (step < 1)
      fail(PyExc_ValueError, where + ": a step of 1 or more is possible, found " +
                                 std::to_string(step) + "; reverse what you get");
    const Py_ssize_t count = PySlice_AdjustIndices(length, &start, &stop, step);
    if (count == 0) return {.start = 0, .stop = 0};
    return {.start = static_cast<std::uint64_t>(start),
            .stop = static_cast<std::uint64_t>(stop),
            .step = static_cast<std::uint64_t>(step)};
  }
  if (PyBool_Check(item.ptr()) || PyIndex_Check(item.ptr()) == 0)
    fail(PyExc_TypeError, where + ": expected an int, a slice or ..., got " +
                              python::type_name(item) +
                              "; other selections are made of what was read, with NumPy");
  const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
  if (!number.is_valid()) nb::raise_python_error();
  int overflow = 0;
  const long long at = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || at >= length || at < -length)
    fail(PyExc_IndexError, where + ": " + nb::str(number).c_str() +
                               " is out of range for a dimension of " + std::to_string(size));
  return Along::index(static_cast<std::uint64_t>(at < 0 ? at + length : at));
}

}  // namespace

Selection selection_argument(nb::handle index, const Shape& shape) {
  std::vector<nb::object> parts;
  if (PyTuple_Check(index.ptr()))
    for (nb::handle part : nb::borrow<nb::tuple>(index)) parts.push_back(nb::borrow(part));
  else
    parts.push_back(nb::borrow(index));
  std::size_t ellipses = 0;
  for (const nb::object& part : parts) ellipses += part.is(nb::ellipsis()) ? 1u : 0u;
  if (ellipses > 1) fail(PyExc_IndexError, "index: ... can stand there once only");
  if (parts.size() - ellipses > shape.rank())
    fail(PyExc_IndexError, "index: " + std::to_string(parts.size() - ellipses) +
                               " parts for a tensor of " + std::to_string(shape.rank()) +
                               " dimension(s), " + shape_text(shape));
  Selection selection;
  for (const nb::object& part : parts) {
    if (part.ptr() == Py_Ellipsis) {
      selection.resize(selection.size() + shape.rank() - (parts.size() - 1));
      continue;
    }
    // A dynamic size has no elements; the plan says so.
    const std::uint64_t size = shape[selection.size()];
    selection.push_back(size == dynamic ? Along{} : along_argument(part, size, selection.size()));
  }
  return selection;
}

Target target_argument(nb::handle out, const hurray::Descriptor& wanted, std::uint64_t size_bytes) {
  const std::string needed = "out: expected writable, contiguous memory for " +
                             std::string(dtype_name(wanted.dtype)) + " of shape " +
                             shape_text(wanted.shape);
  const PyTensor* t = unwrap_tensor(out);
  if (const Quantization* q = wanted.quantization();
      q != nullptr && (t == nullptr || t->descriptor().quantization() == nullptr ||
                       *t->descriptor().quantization() != *q))
    fail(Exc::unsupported,
         "out: the tensor is quantized (" + std::string(name(q->scheme)) +
             "), and its stored codes are not its values; only a hurray.Tensor of the same "
             "quantization takes them; leave out= away, and dequantize() gives the values");
  if (t != nullptr) {
    if (t->tensor.readonly()) fail(PyExc_ValueError, needed + ", found a read-only tensor");
    open_for_writing(*t, Way::array);
  }
  const nb::object filled = wanted.quantization() == nullptr
                                ? nb::borrow(out)
                                : wrap_tensor(stored_tensor(*t, wanted.dtype));
  const HostArray array = [&] {
    try {
      return host_array_of(filled, Copy::never, "out");
    } catch (nb::python_error& error) {
      if (!error.matches(exception_class(Exc::copy_required))) throw;
      nb::raise_from(error, PyExc_TypeError, "%s",
                     (needed + ", found a " + python::type_name(out) +
                      " that has none; pass an array, a hurray.Tensor or a torch tensor")
                         .c_str());
    }
  }();
  const ArraySource& source = array.source;
  if (source.dtype != wanted.dtype)
    fail(PyExc_TypeError, needed + ", found " + std::string(dtype_name(source.dtype)) +
                              "; pass one of that type, or leave out= away and convert the result");
  if (source.transcode != Transcode::copy || (is_sub_byte(wanted.dtype) && !array.packed))
    fail(PyExc_TypeError, needed + " as the format stores them, found a " + python::type_name(out) +
                              " that stores them otherwise; pass a hurray.Tensor, or leave out= "
                              "away and convert the result");
  if (source.shape != wanted.shape)
    fail(PyExc_ValueError, needed + ", found shape " + shape_text(source.shape));
  if (array.readonly)
    fail(PyExc_ValueError, needed + ", found a read-only " + python::type_name(out));
  auto expected = static_cast<std::int64_t>(source.item_bytes);
  for (std::size_t k = source.shape.rank(); !array.packed && size_bytes != 0 && k-- > 0;) {
    if (source.shape[k] != 1 && source.strides[k] != expected)
      fail(PyExc_ValueError,
           needed + ", found strides that leave gaps or another order; pass a contiguous array");
    expected *= static_cast<std::int64_t>(source.shape[k]);
  }
  return {{const_cast<std::byte*>(source.origin), static_cast<std::size_t>(size_bytes)},
          array.owner};
}

}  // namespace hurray::python
