#include <array>
#include <cerrno>
#include <system_error>

#include "bindings.hpp"

namespace hurray::python {
namespace {

/// The names in `hurray._errors`, in the order of `Exc`.
constexpr auto exception_names = std::to_array<const char*>({
    "InvalidDescriptorError",
    "BufferError",
    "CopyRequiredError",
    "UnsupportedError",
    "InternalError",
    "FileError",
    "StreamError",
    "_UnsupportedAttributeError",
    "_UnsupportedBufferError",
    "_CopyRequiredBufferError",
    "_StreamTimeoutError",
});

/// Borrowed from `hurray._errors`, which the module keeps alive.
std::array<PyObject*, exception_names.size()> classes{};

PyObject* class_for(Raise raise) noexcept {
  switch (raise) {
    case Raise::by_origin:
      break;  // the origin's row never says so
    case Raise::invalid_descriptor:
      return exception_class(Exc::invalid_descriptor);
    case Raise::buffer:
      return exception_class(Exc::buffer);
    case Raise::file:
      return exception_class(Exc::file);
    case Raise::stream:
      return exception_class(Exc::stream);
    case Raise::unsupported:
      return exception_class(Exc::unsupported);
    case Raise::copy_required:
      return exception_class(Exc::copy_required);
    case Raise::memory:
      return PyExc_MemoryError;
  }
  return exception_class(Exc::internal);
}

nb::object text(const std::string& message) {
  // Names of tensors and files may hold bytes that are not UTF-8.
  return nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                                        "backslashreplace"));
}

/// Faults that nobody meant to raise. Everything else goes to the translators of nanobind.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {
    PyErr_Format(exception_class(Exc::internal), "internal error: %s", fault.what());
  }
}

}  // namespace

PyObject* exception_class(Exc exc) noexcept { return classes[static_cast<std::size_t>(exc)]; }

nb::object file_class_of(int number) {
  return nb::module_::import_("hurray._errors").attr("file_class_of")(number);
}

void fail(PyObject* builtin, const std::string& message) {
  PyErr_SetObject(builtin, text(message).ptr());
  throw nb::python_error();
}

void fail(Exc exc, const std::string& message) { fail(exception_class(exc), message); }

void throw_error(const hurray::Error& error) {
  fail(class_for(hurray::raise(error)), to_string(error));
}

void throw_error(const io::Error& error) {
  const Raise kind = hurray::raise(error);
  if (error.system_errno == 0 || (kind != Raise::file && kind != Raise::stream))
    fail(class_for(kind), to_string(error));
  const nb::object type =
      kind == Raise::file
          ? file_class_of(error.system_errno)
          : nb::borrow(exception_class(error.system_errno == ETIMEDOUT ? Exc::stream_timeout
                                                                       : Exc::stream));
  std::string words = std::generic_category().message(error.system_errno);
  if (!error.tensor.empty()) words.append("; tensor ").append(error.tensor);
  if (!error.detail.empty()) words.append("; ").append(error.detail);
  nb::object arguments =
      error.path.empty()
          ? nb::make_tuple(error.system_errno, text(words))
          : nb::make_tuple(error.system_errno, text(words),
                           nb::steal(PyUnicode_DecodeFSDefaultAndSize(
                               error.path.data(), static_cast<Py_ssize_t>(error.path.size()))));
  PyErr_SetObject(type.ptr(), arguments.ptr());
  throw nb::python_error();
}

void bind_exceptions(nb::module_&) {
  const nb::module_ errors = nb::module_::import_("hurray._errors");
  for (std::size_t i = 0; i < classes.size(); ++i)
    classes[i] = errors.attr(exception_names[i]).ptr();
  nb::register_exception_translator(translate);
}

}  // namespace hurray::python
