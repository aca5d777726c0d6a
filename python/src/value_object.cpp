#include "value_object.hpp"

#include <functional>

namespace hurray::python {

std::string to_text(const Call& call) {
  std::string text = call.callee + "(";
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    text.append(i == 0 ? "" : ", ").append(argument.name).append("=");
    text += argument.text.empty() ? nb::repr(argument.value).c_str() : argument.text;
  }
  return text + ")";
}

Py_hash_t hash_of(const Call& call) {
  nb::list values;
  for (const Argument& argument : call.arguments)
    values.append(nb::make_tuple(argument.name, argument.value));
  const Py_hash_t hash = PyObject_Hash(nb::tuple(values).ptr());
  if (hash == -1) throw nb::python_error();
  const auto mixed =
      static_cast<Py_hash_t>(static_cast<Py_uhash_t>(hash) ^ std::hash<std::string>{}(call.callee));
  return mixed == -1 ? -2 : mixed;
}

Py_hash_t no_hash() noexcept {
  PyErr_SetString(PyExc_TypeError, "this object's constructor never ran");
  return -1;
}

nb::tuple reduced(const char* function, const nb::tuple& arguments) {
  return nb::make_tuple(nb::module_::import_("hurray._rebuild").attr(function), arguments);
}

nb::tuple reduced(const Call& call) {
  nb::dict arguments;
  for (const Argument& argument : call.arguments) arguments[argument.name] = argument.value;
  return reduced("construct", nb::make_tuple(call.callee, arguments));
}

bool bool_argument(nb::handle value, const char* name) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  const nb::object numpy = imported("numpy");
  if (numpy.is_valid() && PyObject_IsInstance(value.ptr(), numpy.attr("bool_").ptr()) == 1)
    return PyObject_IsTrue(value.ptr()) == 1;
  PyErr_Clear();
  fail(PyExc_TypeError, std::string(name) + " must be a bool, got " + python::type_name(value));
}

double float_argument(nb::handle value, const char* name) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number != -1.0 || PyErr_Occurred() == nullptr) return number;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  PyErr_Clear();
  fail(PyExc_TypeError, std::string(name) + " must be a float, got " + python::type_name(value));
}

}  // namespace hurray::python
