#include "value_object.hpp"

namespace hurray::python {
namespace {

const PyDevice& device_of(const PyBufferHandle& self) {
  return *nb::inst_ptr<PyDevice>(self.device);
}

Py_hash_t hash(PyObject* self) {
  const auto* handle = value_of<PyBufferHandle>(self);
  if (handle == nullptr) return no_hash();
  const BufferHandle& row = handle->value;
  const auto mixed = static_cast<Py_hash_t>(row.byte_size * 31 + row.alignment) ^
                     hash_of(device_of(*handle)) ^ static_cast<Py_hash_t>(row.sync_mode);
  return mixed == -1 ? -2 : mixed;
}

const PyType_Slot slots[] = {
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_values<PyBufferHandle>)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {0, nullptr}};

std::string handle_text(const PyBufferHandle& self) {
  return "BufferHandle(byte_size=" + std::to_string(self.value.byte_size) +
         ", alignment=" + std::to_string(self.value.alignment) + ", sync_mode='" +
         std::string(name(self.value.sync_mode)) + "', device=" + repr(device_of(self)) + ")";
}

nb::object made(nb::handle byte_size, nb::handle alignment, nb::handle sync_mode,
                nb::handle device) {
  if (value_of<PyDevice>(device) == nullptr)
    fail(PyExc_TypeError, "device must be a hurray.Device, got " + python::type_name(device));
  const PyDevice& placement = *value_of<PyDevice>(device);
  const BufferHandle row{.byte_size = number_argument<std::uint64_t>(byte_size, "byte_size"),
                         .alignment = number_argument<std::uint32_t>(alignment, "alignment"),
                         .device = placement.kind,
                         .sync_mode = name_argument(sync_mode, sync_modes, "sync_mode"),
                         .memory_class = placement.memory_class};
  return nb::cast(PyBufferHandle{row, nb::borrow(device)});
}

}  // namespace

bool same(const PyBufferHandle& a, const PyBufferHandle& b) {
  return a.value == b.value && device_of(a) == device_of(b);
}

nb::tuple wrap_handles(const BufferTable& table, const nb::object& device) {
  nb::object handles = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(table.size())));
  if (!handles.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < table.size(); ++i)
    PyTuple_SET_ITEM(handles.ptr(), static_cast<Py_ssize_t>(i),
                     nb::cast(PyBufferHandle{table[i], device}).release().ptr());
  return nb::borrow<nb::tuple>(handles);
}

void bind_buffer_handle(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyBufferHandle> type(
      m, "BufferHandle", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "One row of a tensor's buffer table: what is declared about one buffer. Immutable, compared "
      "by\n"
      "value, and without any reference to the tensor or its memory. Made by `t.buffer_handles` "
      "and\n"
      "`d.buffer_handles` only: every field is evidence, or a promise that Python cannot make.");
  type.def_prop_ro(
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
      .def("__repr__", &handle_text)
      .def(
          "__reduce__",
          [](const PyBufferHandle& self) {
            return reduced("buffer_handle",
                           nb::make_tuple(self.value.byte_size, self.value.alignment,
                                          text_of(name(self.value.sync_mode)), self.device));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  def_copy(type, "BufferHandle");
  m.def(
      "_buffer_handle", &made, "byte_size"_a, "alignment"_a, "sync_mode"_a, "device"_a,
      nb::sig("def _buffer_handle(byte_size: int, alignment: int, sync_mode: str, device: Device) "
              "-> BufferHandle"));
}

}  // namespace hurray::python
