#include "bindings.hpp"

namespace hurray::python {
namespace {

const PyDevice& device_of(const PyBufferHandle& self) {
  return *nb::inst_ptr<PyDevice>(self.device);
}

bool equal(const PyBufferHandle& a, const PyBufferHandle& b) {
  return a.value == b.value && device_of(a) == device_of(b);
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !nb::isinstance<PyBufferHandle>(other))
    Py_RETURN_NOTIMPLEMENTED;
  const bool same =
      equal(*nb::inst_ptr<PyBufferHandle>(self), *nb::inst_ptr<PyBufferHandle>(other));
  return PyBool_FromLong(same == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) {
  const auto& handle = *nb::inst_ptr<PyBufferHandle>(self);
  const auto mixed = static_cast<Py_hash_t>(handle.value.byte_size * 31 + handle.value.alignment) ^
                     hash_of(device_of(handle)) ^ static_cast<Py_hash_t>(handle.value.sync_mode);
  return mixed == -1 ? -2 : mixed;
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(hash)},
                             {0, nullptr}};

std::string handle_text(const PyBufferHandle& self) {
  return "BufferHandle(byte_size=" + std::to_string(self.value.byte_size) +
         ", alignment=" + std::to_string(self.value.alignment) + ", sync_mode='" +
         std::string(name(self.value.sync_mode)) + "', device=" + repr(device_of(self)) + ")";
}

}  // namespace

nb::tuple wrap_handles(const BufferTable& table, const nb::object& device) {
  nb::object handles = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(table.size())));
  if (!handles.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < table.size(); ++i)
    PyTuple_SET_ITEM(handles.ptr(), static_cast<Py_ssize_t>(i),
                     nb::cast(PyBufferHandle{table[i], device}).release().ptr());
  return nb::borrow<nb::tuple>(handles);
}

void bind_buffer_handle(nb::module_& m) {
  nb::class_<PyBufferHandle>(
      m, "BufferHandle", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "One row of a tensor's buffer table: what is declared about one buffer. Immutable, compared "
      "by\n"
      "value, and without any reference to the tensor or its memory. Made by `t.buffer_handles` "
      "and\n"
      "`d.buffer_handles` only: every field is evidence, or a promise that Python cannot make.")
      .def_prop_ro(
          "byte_size", [](const PyBufferHandle& self) { return self.value.byte_size; },
          "Size in bytes.")
      .def_prop_ro(
          "alignment", [](const PyBufferHandle& self) { return self.value.alignment; },
          "A power of two that divides the base address: 64 for the library's own memory (or\n"
          "what was asked for), the measured value up to 4096 otherwise, 1 when empty.")
      .def_prop_ro(
          "sync_mode",
          [](const PyBufferHandle& self) { return nb::str(name(self.value.sync_mode).data()); },
          nb::sig("def sync_mode(self) -> typing.Literal['producer_synced', 'event', "
                  "'consumer_stream']"),
          "\"producer_synced\", \"event\" or \"consumer_stream\": what must happen before the\n"
          "first byte is touched.")
      .def_prop_ro(
          "device", [](const PyBufferHandle& self) { return self.device; },
          nb::sig("def device(self) -> Device"),
          "The tensor's device: the same object for every buffer.")
      .def_prop_ro(
          "is_empty", [](const PyBufferHandle& self) { return self.value.is_empty(); },
          "Whether `byte_size` is 0.")
      .def("__repr__", &handle_text);
}

}  // namespace hurray::python
