#pragma once

// What the immutable values of the module have in common: they compare by value, print and pickle
// as the call that makes an equal one, and copy as themselves.

#include "bindings.hpp"

namespace hurray::python {

/// An argument of a call. `text` is how it prints where Python's own form of `value` will not do.
struct Argument {
  const char* name;
  nb::object value;
  std::string text = {};
};

/// The call that makes an equal value: "CooLayout", "PerBlockAffine.symmetric"; arguments by name
/// in the callee's order, without those that may be left out.
struct Call {
  std::string callee;
  std::vector<Argument> arguments;
};

Call call_of(const PyLayout& layout);
Call call_of(const PyQuantization& scheme);
Call call_of(const PyStatistics& statistics);
Call call_of(const PyShard& shard);
Call call_of(const PyExtensionType& type);

/// "CooLayout(nnz=2, is_sorted=False)".
std::string to_text(const Call& call);
/// Equal for equal calls.
Py_hash_t hash_of(const Call& call);
/// What `__reduce__` returns for a value that the call makes again.
nb::tuple reduced(const Call& call);
/// The same by a function of `hurray._rebuild`.
nb::tuple reduced(const char* function, const nb::tuple& arguments);

/// `True` or `False`, NumPy's as well; `TypeError` for anything else.
bool bool_argument(nb::handle value, const char* name);

/// A float, or what converts to one; `TypeError` for anything else.
double float_argument(nb::handle value, const char* name);

/// An int in the range of `T`.
template <std::unsigned_integral T>
T number_argument(nb::handle value, const char* name) {
  return static_cast<T>(unsigned_argument(value, name, std::numeric_limits<T>::max()));
}

/// The tag of the row with that name; `ValueError` that lists the names for another one.
template <class Rows>
auto name_argument(nb::handle value, const Rows& rows, const char* argument) {
  if (!PyUnicode_Check(value.ptr()))
    fail(PyExc_TypeError,
         std::string(argument) + " must be a str, got " + python::type_name(value));
  if (const auto text = utf8(value))
    if (const auto* row = find_name(rows, *text)) return row->tag;
  std::string names;
  for (const auto& row : rows) (names += names.empty() ? "'" : ", '").append(row.name) += "'";
  fail(PyExc_ValueError, std::string("unknown ") + argument + " " + nb::repr(value).c_str() +
                             "; expected one of " + names);
}

/// Whether two values are the same to Python.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires { a.value == b.value; })
    return a.value == b.value;
  else
    return a == b;
}
bool same(const PyBufferHandle& a, const PyBufferHandle& b);
bool same(const PyDescriptor& a, const PyDescriptor& b);
bool same(const PyQuantization& a, const PyQuantization& b);
bool same(const PyStatistics& a, const PyStatistics& b);

/// What a hash slot returns for an object whose constructor never ran.
Py_hash_t no_hash() noexcept;

template <class T>
PyObject* compare_values(PyObject* self, PyObject* other, int operation) {
  const T* a = value_of<T>(self);
  const T* b = value_of<T>(other);
  if ((operation != Py_EQ && operation != Py_NE) || a == nullptr || b == nullptr)
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong(same(*a, *b) == (operation == Py_EQ));
}

template <class T>
Py_hash_t hash_value(PyObject* self) {
  const T* value = value_of<T>(self);
  if (value == nullptr) return no_hash();
  try {
    return hash_of(call_of(*value));
  } catch (nb::python_error& error) {
    error.restore();
    return -1;
  }
}

/// Slots of a class: comparison by value, and a hash or none.
template <class T>
inline const PyType_Slot value_slots[] = {
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_values<T>)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_value<T>)},
    {0, nullptr}};
template <class T>
inline const PyType_Slot unhashable_slots[] = {
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_values<T>)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {0, nullptr}};

/// A tuple of ints, and a str of a table's name.
template <class Numbers>
nb::tuple tuple_of(const Numbers& numbers) {
  nb::list list;
  for (const auto number : numbers) list.append(number);
  return nb::tuple(list);
}
inline nb::str text_of(std::string_view name) { return nb::str(name.data(), name.size()); }

/// `__copy__` and `__deepcopy__` of an immutable value. `name` is the class in the stub.
template <class Class>
void def_copy(Class& type, const std::string& name) {
  using namespace nb::literals;
  type.def(
      "__copy__", [](nb::handle self) { return nb::borrow(self); },
      nb::sig(("def __copy__(self) -> " + name).c_str()));
  type.def(
      "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, "memo"_a,
      nb::sig(("def __deepcopy__(self, memo: typing.Any) -> " + name).c_str()));
}

/// The same with `__repr__` and `__reduce__`, both of `call_of(self)`.
template <class T, class... Extra>
void def_value(nb::class_<T, Extra...>& type, const std::string& name) {
  type.def("__repr__", [](const T& self) { return to_text(call_of(self)); });
  type.def(
      "__reduce__", [](const T& self) { return reduced(call_of(self)); },
      nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  def_copy(type, name);
}

}  // namespace hurray::python
