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
  if (t.placement().kind != Device::cpu || d.shape.is_dynamic() || d.quantization() != nullptr ||
      ambiguous_bool(t))
    return {};
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

/// The arrays of a COO, CSR or CSC tensor, each behind ", name=", COO's indices first; none where
/// one of them cannot be shown.
std::optional<std::string> content_text(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  const std::size_t count = own_buffers(info(d.layout), d.shape.rank());
  const bool indices_first = std::holds_alternative<Coo>(d.layout);
  std::string text;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = indices_first ? count - 1 - k : k;
    auto part = component_tensor(t.tensor, i);
    if (!part) return std::nullopt;
    const nb::object view = wrap_tensor(*std::move(part), t.device);
    const nb::object values = values_text(view, *unwrap_tensor(view));
    if (!values.is_valid()) return std::nullopt;
    text += ", " + std::string(role(d.layout, i)) + "=" + nb::str(values).c_str();
  }
  return text;
}

/// The form of tensors that have no array of all their elements; none for the others, and where
/// only the plain metadata may be shown.
std::optional<std::string> stored_text(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  const LayoutClass kind = info(d.layout).layout_class;
  if (kind != LayoutClass::sparse && kind != LayoutClass::indirect) return std::nullopt;
  if (d.shape.is_dynamic() || d.quantization() != nullptr) return std::nullopt;
  std::string text = "hurray.Tensor(layout='" + std::string(name(d.layout)) +
                     "', shape=" + nb::repr(wrap_shape(d.shape)).c_str();
  if (const auto nnz = nnz_of(d.layout)) text += ", nnz=" + std::to_string(*nnz);
  text += ", dtype=" + std::string(name(d.dtype));
  if (has_components(d.layout) && prints_content()) {
    const auto content = content_text(t);
    if (!content) return std::nullopt;
    text += *content;
  }
  return text + ")";
}

}  // namespace

nb::str repr(nb::handle self, const PyTensor& t) {
  if (const auto text = stored_text(t)) return nb::str(text->c_str(), text->size());
  const nb::object values = values_text(self, t);
  if (!values.is_valid()) return metadata(t);
  return nb::str((std::string("hurray.Tensor(") + nb::str(values).c_str() +
                  ", dtype=" + std::string(name(t.descriptor().dtype)) + ")")
                     .c_str());
}

nb::str str(nb::handle self, const PyTensor& t) {
  if (const auto text = stored_text(t)) return nb::str(text->c_str(), text->size());
  const nb::object values = values_text(self, t);
  return values.is_valid() ? nb::str(values) : metadata(t);
}

}  // namespace hurray::python
