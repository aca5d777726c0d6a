#include "key_values.hpp"

#include <nanobind/stl/string.h>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace hurray::python {
namespace {

template <class T>
struct ListOf : std::false_type {};
template <class T>
struct ListOf<std::vector<T>> : std::bool_constant<!std::same_as<T, std::byte>> {};

bool is_exactly(nb::handle value, PyTypeObject& type) { return Py_TYPE(value.ptr()) == &type; }

/// What a refusal advises for a value that has no type of its own in a file.
const char* cure(nb::handle value) {
  if (value.is_none()) return "leave the key out";
  if (attribute(value, "item").is_valid())
    return "pass its .item(), or its .tolist() where it holds several values";
  if (PyDict_Check(value.ptr())) return "store text: json.dumps(value)";
  if (PyTuple_Check(value.ptr()) || PyAnySet_Check(value.ptr())) return "pass list(value)";
  if (PyLong_Check(value.ptr())) return "pass int(value)";
  if (PyFloat_Check(value.ptr())) return "pass float(value)";
  if (PyUnicode_Check(value.ptr())) return "pass str(value) or its .value";
  if (PyObject_CheckBuffer(value.ptr()) != 0) return "pass bytes(value)";
  return "store text: json.dumps(value) or str(value)";
}

[[noreturn]] void refuse(std::string_view key, const std::string& found, const char* advice) {
  fail(Exc::file,
       "kv[\"" + std::string(key) +
           "\"]: expected a bool, int, float, str, bytes or a list of one of these, found " +
           found + "; " + advice);
}

/// An int as the format's preferred type (F6), none where neither holds it.
std::optional<std::variant<std::int64_t, std::uint64_t>> integer(nb::handle value) {
  int overflow = 0;
  const long long fits = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) return std::int64_t{fits};
  if (overflow > 0) {
    const std::uint64_t large = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() == nullptr) return large;
    PyErr_Clear();
  }
  return std::nullopt;
}

io::Bytes bytes_of(nb::handle value) {
  const auto* data = reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(value.ptr()));
  return {data, data + PyBytes_GET_SIZE(value.ptr())};
}

/// One value that is no list; none for every other type.
std::optional<io::KvValue> scalar(std::string_view key, nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(nb::handle(Py_True));
  if (is_exactly(value, PyLong_Type)) {
    const auto number = integer(value);
    if (!number) refuse(key, "an int beyond 64 bits", "store text: str(value)");
    return std::visit([](auto n) -> io::KvValue { return n; }, *number);
  }
  if (is_exactly(value, PyFloat_Type)) return PyFloat_AS_DOUBLE(value.ptr());
  if (is_exactly(value, PyUnicode_Type)) return std::string(utf8_argument(value, "a kv value"));
  if (is_exactly(value, PyBytes_Type)) return bytes_of(value);
  return std::nullopt;
}

/// Appends `value` to a list of its type. Among ints, int64 gives way to uint64 where all of them
/// fit.
bool append(io::KvValue& list, io::KvValue&& value) {
  if (std::holds_alternative<std::vector<std::uint64_t>>(list)) {
    if (const auto* n = std::get_if<std::int64_t>(&value); n != nullptr && *n >= 0)
      value = static_cast<std::uint64_t>(*n);
  } else if (auto* small = std::get_if<std::vector<std::int64_t>>(&list);
             small != nullptr && std::holds_alternative<std::uint64_t>(value)) {
    for (const std::int64_t n : *small)
      if (n < 0) return false;
    list = std::vector<std::uint64_t>(small->begin(), small->end());
  }
  return std::visit(
      [&](auto& items) {
        using Items = std::remove_reference_t<decltype(items)>;
        if constexpr (ListOf<Items>::value) {
          auto* item = std::get_if<typename Items::value_type>(&value);
          if (item == nullptr) return false;
          items.push_back(std::move(*item));
          return true;
        } else {
          return false;
        }
      },
      list);
}

io::KvValue list_of(io::KvValue&& first) {
  return std::visit(
      [](auto&& item) -> io::KvValue {
        using Item = std::remove_cvref_t<decltype(item)>;
        if constexpr (ListOf<Item>::value) {
          return std::move(item);  // never: a scalar is none
        } else {
          std::vector<Item> items;
          items.push_back(std::move(item));
          return items;
        }
      },
      std::move(first));
}

io::KvValue value_argument(std::string_view key, nb::handle value) {
  if (auto one = scalar(key, value)) return *std::move(one);
  if (!is_exactly(value, PyList_Type)) refuse(key, "a " + python::type_name(value), cure(value));
  std::optional<io::KvValue> list;
  for (nb::handle item : nb::borrow<nb::list>(value)) {
    auto one = scalar(key, item);
    if (!one) refuse(key, "a list that holds a " + python::type_name(item), cure(item));
    if (!list) {
      list = list_of(*std::move(one));
    } else if (!append(*list, *std::move(one))) {
      refuse(key, "a list of several types",
             "store one list for each type, or text: json.dumps(value)");
    }
  }
  if (!list) {
    fail(Exc::file,
         "kv[\"" + std::string(key) +
             "\"]: a list must not be empty, since its elements tell its type; leave the "
             "key out");
  }
  return *std::move(list);
}

nb::object wrap(const std::string& text) { return wrap_utf8(text); }
nb::object wrap(bool value) { return nb::bool_(value); }
nb::object wrap(std::int64_t value) { return nb::int_(value); }
nb::object wrap(std::uint64_t value) { return nb::int_(value); }
nb::object wrap(double value) { return nb::float_(value); }
nb::object wrap(const io::Bytes& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
template <class T>
  requires(ListOf<std::vector<T>>::value)
nb::object wrap(const std::vector<T>& items) {
  nb::list list;
  for (const T& item : items) list.append(wrap(item));
  return list;
}

}  // namespace

std::string_view utf8_argument(nb::handle text, const char* what) {
  if (const auto valid = utf8(text)) return *valid;
  fail(Exc::file, std::string(what) + " " + nb::cast<std::string>(nb::repr(text)) +
                      " is not valid UTF-8: it holds a lone surrogate; pass text, or bytes for "
                      "what is none");
}

nb::str wrap_utf8(std::string_view text) { return nb::str(text.data(), text.size()); }

io::KeyValues key_values_argument(nb::handle kv) {
  io::KeyValues values;
  if (!kv.is_valid() || kv.is_none()) return values;
  const nb::object items = mapping_items(kv);
  if (!items.is_valid())
    fail(PyExc_TypeError, "kv must be a mapping of str to values, not " + python::type_name(kv));
  for (nb::handle item : items) {
    nb::object key = item[0];
    if (!PyUnicode_Check(key.ptr()))
      fail(PyExc_TypeError, "a kv key must be a str, not " + python::type_name(key));
    const std::string_view name = utf8_argument(key, "a kv key");
    nb::object value = item[1];
    values.emplace_back(name, value_argument(name, value));
  }
  return values;
}

nb::dict wrap_key_values(const io::KeyValues& kv) {
  nb::dict values;
  for (const auto& [key, value] : kv)
    values[wrap_utf8(key)] = std::visit([](const auto& v) { return wrap(v); }, value);
  return values;
}

}  // namespace hurray::python
