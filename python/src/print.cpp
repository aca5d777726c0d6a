#include <algorithm>

#include "exports.hpp"
#include "numpy.hpp"

namespace hurray::python {
namespace {

/// Bool tensors up to this many elements are unpacked whole to be printed.
constexpr std::uint64_t small_elements = 1u << 16;

nb::str metadata(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  return nb::str((std::string("hurray.Tensor(shape=") + nb::repr(wrap_shape(d.shape)).c_str() +
                  ", dtype=" + std::string(name(d.dtype)) + ", device=" + repr(t.placement()) + ")")
                     .c_str());
}

/// The elements that NumPy shows of a large array: at most `edge` from both ends of each dimension,
/// and one more where it writes dots. Unpacked one by one.
nb::object edges(const PyTensor& t, std::uint64_t edge) {
  const Descriptor& d = t.descriptor();
  const Elements view = elements(t);
  Shape shape = d.shape;
  for (std::uint64_t& size : shape) size = std::min(size, 2 * edge + 1);
  const std::uint64_t count = shape.count();
  if (count > small_elements * 16) return {};
  Buffer buffer = unwrap(Buffer::allocate(count));
  const unsigned width = bits(d.dtype);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = i;
    std::int64_t at = 0;
    for (std::size_t k = shape.rank(); k-- > 0;) {
      std::uint64_t index = rest % shape[k];
      rest /= shape[k];
      if (index > edge) index += d.shape[k] - shape[k];
      at += static_cast<std::int64_t>(index) * view.strides[k];
    }
    const std::int64_t groups = at / 8 - (at % 8 < 0 ? 1 : 0);
    unpack(view.address + groups * static_cast<std::int64_t>(width), width,
           static_cast<std::uint64_t>(at - groups * 8), buffer.bytes().subspan(i, 1));
  }
  const nb::object bytes = new_tensor(DType::uint8, shape, std::move(buffer));
  const PyTensor& items = *unwrap_tensor(bytes);
  const Elements shown = elements(items);
  return make_ndarray(numpy_dtype(d.dtype), shape, shown.strides, shown.address, true, bytes);
}

/// The array text, or none where only metadata can be shown.
nb::object array_text(nb::handle self, const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  if (numpy_type(d.dtype) == nullptr && d.dtype != DType::bfloat16) return {};
  if (t.placement().kind != Device::cpu || d.shape.is_dynamic() || ambiguous_bool(t)) return {};
  require_elements(t, Way::array);
  numpy_api();
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object text = numpy.attr("array2string");
  if (!is_sub_byte(d.dtype) || d.shape.count() <= small_elements) return text(look(self, t));
  const nb::object options = numpy.attr("get_printoptions")();
  const nb::object limit = options["threshold"];  // an int, or inf
  const double threshold = PyFloat_AsDouble(limit.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (static_cast<double>(d.shape.count()) <= threshold) return {};
  const auto edge = nb::cast<std::uint64_t>(options["edgeitems"]);
  const nb::object shown = edges(t, edge);
  if (!shown.is_valid()) return {};
  using namespace nb::literals;
  return text(shown, "threshold"_a = 0);
}

nb::object values_text(nb::handle self, const PyTensor& t) {
  try {
    return array_text(self, t);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C
    return {};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

nb::str repr(nb::handle self, const PyTensor& t) {
  const nb::object values = values_text(self, t);
  if (!values.is_valid()) return metadata(t);
  return nb::str((std::string("hurray.Tensor(") + nb::str(values).c_str() +
                  ", dtype=" + std::string(name(t.descriptor().dtype)) + ")")
                     .c_str());
}

nb::str str(nb::handle self, const PyTensor& t) {
  const nb::object values = values_text(self, t);
  return values.is_valid() ? nb::str(values) : metadata(t);
}

}  // namespace hurray::python
