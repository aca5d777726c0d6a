// Print options (08-python-api.md section 18).

#include <array>

#include "bindings.hpp"

namespace hurray::python {
namespace {

PyObject* variable = nullptr;  // the context variable; lives as long as the process

enum class SparseDisplay : std::uint8_t { metadata, content };

struct SparseDisplayInfo {
  SparseDisplay value;
  std::string_view name;
};

constexpr auto sparse_displays = std::to_array<SparseDisplayInfo>({
    {SparseDisplay::metadata, "metadata"},
    {SparseDisplay::content, "content"},
});

/// The name in the table that `value` equals; `None` stays.
nb::object sparse_display_argument(nb::handle value) {
  if (value.is_none()) return nb::none();
  std::string names;
  for (const SparseDisplayInfo& row : sparse_displays) {
    if (PyUnicode_Check(value.ptr()) != 0 &&
        PyUnicode_CompareWithASCIIString(value.ptr(), row.name.data()) == 0)
      return nb::str(row.name.data(), row.name.size());
    names += (names.empty() ? "'" : " or '") + std::string(row.name) + "'";
  }
  fail(PyExc_ValueError, "sparse_display must be " + names + ", got " + nb::repr(value).c_str());
}

/// What holds in this context: (sparse_display, the block that set it or None, what held outside of
/// that block or None). Blocks are kept here and not in their objects, so that one object can be
/// entered by several tasks.
nb::tuple state() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(variable, nullptr, &value) != 0) throw nb::python_error();
  if (value != nullptr) return nb::steal<nb::tuple>(value);
  return nb::make_tuple(nb::str(sparse_displays[0].name.data()), nb::none(), nb::none());
}

void set_state(const nb::object& value) {
  const nb::object token = nb::steal(PyContextVar_Set(variable, value.ptr()));
  if (!token.is_valid()) throw nb::python_error();
}

struct PrintOptionsCtx {
  nb::object sparse_display;  ///< str or None
};

using Self = nb::pointer_and_handle<PrintOptionsCtx>;

void enter(Self self) {
  const nb::tuple outer = state();
  const nb::object& wanted = self.p->sparse_display;
  set_state(nb::make_tuple(wanted.is_none() ? nb::object(outer[0]) : wanted, self.h, outer));
}

void leave(Self self) {
  nb::object inner = state();
  while (!inner.is_none() && !nb::object(inner[1]).is(self.h)) inner = nb::object(inner[2]);
  if (inner.is_none())
    fail(PyExc_RuntimeError, "this print_options() is not active in this thread or context");
  set_state(nb::object(inner[2]));
}

PrintOptionsCtx print_options(nb::handle sparse_display) {
  return {sparse_display_argument(sparse_display)};
}

}  // namespace

bool prints_content() {
  return nb::str(state()[0])
      .equal(
          nb::str(sparse_displays[static_cast<std::size_t>(SparseDisplay::content)].name.data()));
}

void bind_print_options(nb::module_& m) {
  using namespace nb::literals;
  variable = PyContextVar_New("hurray.print_options", nullptr);
  if (variable == nullptr) throw nb::python_error();

  nb::class_<PrintOptionsCtx>(
      m, "PrintOptionsCtx", nb::is_final(),
      "Context manager of `print_options()`: sets print options in this context and puts back what "
      "held\nbefore. Blocks nest; one object may serve several. Raises `ValueError` for an unknown "
      "value.")
      .def(
          "__init__",
          [](PrintOptionsCtx* self, nb::handle sparse_display) {
            new (self) PrintOptionsCtx(print_options(sparse_display));
          },
          nb::kw_only(), "sparse_display"_a = nb::none(),
          nb::sig("def __init__(self, *, sparse_display: typing.Literal['metadata', 'content'] | "
                  "None = None) -> None"))
      .def("__enter__", &enter, nb::sig("def __enter__(self) -> None"))
      .def(
          "__exit__", [](Self self, nb::handle, nb::handle, nb::handle) { leave(self); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> "
                  "None"),
          "Raises `RuntimeError` in a thread or context where this block is not active.");

  m.def(
      "set_print_options",
      [](nb::handle sparse_display) {
        const nb::object wanted = sparse_display_argument(sparse_display);
        if (wanted.is_none()) return;
        const nb::tuple now = state();
        set_state(nb::make_tuple(wanted, now[1], now[2]));
      },
      nb::kw_only(), "sparse_display"_a = nb::none(),
      nb::sig("def set_print_options(*, sparse_display: typing.Literal['metadata', 'content'] | "
              "None = None) -> None"),
      "Sets what is not `None`, for this thread or asyncio task; new threads start with the "
      "default.\n"
      "`sparse_display`: whether COO, CSR and CSC tensors print their \"metadata\" (the default) "
      "or their\n"
      "\"content\", the arrays, as well. Raises `ValueError` for another value.");
  m.def(
      "get_print_options",
      [] {
        nb::dict options;
        options["sparse_display"] = nb::object(state()[0]);
        return options;
      },
      nb::sig("def get_print_options() -> dict[typing.Literal['sparse_display'], "
              "typing.Literal['metadata', 'content']]"),
      "The print options of this thread or asyncio task, by name.");
  m.def("print_options", &print_options, nb::kw_only(), "sparse_display"_a = nb::none(),
        nb::sig("def print_options(*, sparse_display: typing.Literal['metadata', 'content'] | None "
                "= None) -> PrintOptionsCtx"),
        "Context manager: `set_print_options` for one block.");
}

}  // namespace hurray::python
