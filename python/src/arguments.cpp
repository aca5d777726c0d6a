#include <limits>

#include "bindings.hpp"

namespace hurray::python {
namespace {

nb::object index(nb::handle value, std::string_view name) {
  if (!PyIndex_Check(value.ptr()))
    fail(PyExc_TypeError, std::string(name) + " must be an int, got " + python::type_name(value));
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  return number;
}

[[noreturn]] void out_of_range(nb::handle value, std::string_view name, const std::string& range) {
  fail(PyExc_OverflowError,
       std::string(name) + ": " + nb::str(value).c_str() + " is outside the range " + range);
}

}  // namespace

std::string type_name(nb::handle value) { return Py_TYPE(value.ptr())->tp_name; }

nb::object attribute(nb::handle object, const char* name) {
  nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (!found.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) nb::raise_python_error();
    PyErr_Clear();
  }
  return found;
}

nb::object mapping_items(nb::handle object) {
  if (PyMapping_Check(object.ptr()) == 0 || !attribute(object, "items").is_valid()) return {};
  nb::object items = nb::steal(PyMapping_Items(object.ptr()));
  if (!items.is_valid()) nb::raise_python_error();
  return items;
}

std::optional<std::string_view> utf8(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data != nullptr) return std::string_view(data, static_cast<std::size_t>(size));
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  return std::nullopt;
}

Copy copy_argument(nb::handle value) {
  if (value.is_none()) return Copy::if_needed;
  if (value.ptr() == Py_False) return Copy::never;
  if (value.ptr() == Py_True) return Copy::always;
  fail(PyExc_TypeError, "copy must be None, False or True, got " + python::type_name(value));
}

std::uint64_t unsigned_argument(nb::handle value, std::string_view name, std::uint64_t max) {
  const nb::object number = index(value, name);
  const unsigned long long n = PyLong_AsUnsignedLongLong(number.ptr());
  if (n == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    out_of_range(number, name, "0 to " + std::to_string(max));
  }
  if (n > max) out_of_range(number, name, "0 to " + std::to_string(max));
  return n;
}

std::int64_t signed_argument(nb::handle value, std::string_view name) {
  const nb::object number = index(value, name);
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) out_of_range(number, name, "of a 64-bit integer");
  return n;
}

/// More than any list of the format has.
constexpr Py_ssize_t most_items = 1 << 20;

std::vector<nb::object> sequence_argument(nb::handle value, std::string_view name,
                                          std::string_view items_are) {
  // Text is a sequence too, and never the one that was meant.
  if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()) ||
      PySequence_Check(value.ptr()) == 0)
    fail(PyExc_TypeError, std::string(name) + " must be a sequence of " + std::string(items_are) +
                              ", got " + python::type_name(value));
  // The length is asked for once, and no more than that is taken: not every object that can be
  // indexed ends somewhere.
  const Py_ssize_t length = PySequence_Size(value.ptr());
  if (length < 0) nb::raise_python_error();
  if (length > most_items)
    fail(PyExc_TypeError, std::string(name) + " must be a sequence of at most " +
                              std::to_string(most_items) + " items, got " + std::to_string(length));
  std::vector<nb::object> result;
  for (Py_ssize_t i = 0; i < length; ++i) {
    nb::object item = nb::steal(PySequence_GetItem(value.ptr(), i));
    if (!item.is_valid()) {
      if (PyErr_ExceptionMatches(PyExc_IndexError) == 0) nb::raise_python_error();
      PyErr_Clear();  // it has become shorter
      break;
    }
    result.push_back(std::move(item));
  }
  return result;
}

Shape shape_argument(nb::handle value, bool allow_dynamic, std::string_view call) {
  const auto sizes = sequence_argument(value, "shape");
  const std::string prefix = call.empty() ? "" : std::string(call) + ": ";
  if (sizes.size() > max_rank)
    fail(Exc::invalid_descriptor, prefix + "shape has " + std::to_string(sizes.size()) +
                                      " dimensions, at most " + std::to_string(max_rank) +
                                      " are possible");
  Shape shape;
  shape.resize(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::string at = " at index " + std::to_string(k);
    if (sizes[k].is_none()) {
      if (!allow_dynamic)
        fail(Exc::invalid_descriptor, prefix + "shape has a dynamic dimension (None)" + at +
                                          "; memory can only be made for a known size");
      shape[k] = dynamic;
      continue;
    }
    const nb::object size = index(sizes[k], "shape" + at);
    int overflow = 0;
    if (PyLong_AsLongLongAndOverflow(size.ptr(), &overflow) < 0 && overflow <= 0)
      fail(Exc::invalid_descriptor, prefix + "shape dimensions must be non-negative, got " +
                                        nb::str(size).c_str() +
                                        (call.empty() ? "; use None for a dynamic dimension" : at));
    shape[k] = unsigned_argument(size, "shape" + at, dynamic - 1);
  }
  return shape;
}

BytesView::BytesView(nb::handle object, std::string_view name) {
  if (PyObject_CheckBuffer(object.ptr()) == 0)
    fail(PyExc_TypeError,
         std::string(name) + " must be a bytes-like object, got " + python::type_name(object));
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
    nb::python_error refused;
    nb::raise_from(refused, PyExc_TypeError, "%s must be contiguous bytes; pass a copy: bytes(%s)",
                   std::string(name).c_str(), std::string(name).c_str());
  }
}

std::string path_argument(nb::handle value) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(value.ptr(), &encoded) == 0) throw nb::python_error();
  const nb::object bytes = nb::steal(encoded);
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

nb::module_ import_optional(const char* module, const char* package) {
  PyObject* imported_module = PyImport_ImportModule(module);
  if (imported_module != nullptr) return nb::steal<nb::module_>(imported_module);
  if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError) == 0) throw nb::python_error();
  nb::python_error cause;
  nb::raise_from(cause, PyExc_ImportError, "%s is not installed; install it with: pip install %s",
                 module, package);
}

nb::object imported(const char* module) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* found = PyDict_GetItemString(modules, module);
  return found == nullptr || found == Py_None ? nb::object() : nb::borrow(found);
}

}  // namespace hurray::python
