#include <array>
#include <limits>

#include "hurray/printer.hpp"
#include "value_object.hpp"

namespace hurray::python {
namespace {

/// Borrowed from the module's `_devices`, in the order of the table.
std::array<PyObject*, devices.size()> objects{};

nb::object index(nb::handle value) {
  nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  return number;
}

/// A name of `table` or the wire byte of a row or of a private value.
template <class Table>
auto tag_argument(nb::handle value, const Table& table, std::string_view what) {
  using Tag = decltype(Table::value_type::tag);
  std::string names;
  for (const auto& row : table) (names += names.empty() ? "" : ", ") += row.name;
  const std::string hint = "; expected one of " + names + ", or a wire byte";

  if (PyUnicode_Check(value.ptr())) {
    const auto wanted = utf8(value);
    if (wanted)
      if (const auto* row = find_name(table, *wanted)) return row->tag;
    fail(Exc::invalid_descriptor,
         "unknown " + std::string(what) + " " + nb::repr(value).c_str() +
             (wanted == "private" ? ", which does not say which one" : "") + hint);
  }
  if (PyIndex_Check(value.ptr()) == 0 || PyBool_Check(value.ptr()))
    fail(Exc::invalid_descriptor,
         std::string(what) + " cannot be a " + python::type_name(value) + hint);
  const nb::object number = index(value);
  int overflow = 0;
  const long long byte = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || byte < 0 || byte > 0xFF || name(static_cast<Tag>(byte)).empty())
    fail(Exc::invalid_descriptor,
         "no " + std::string(what) + " has wire byte " + nb::str(value).c_str() + hint);
  return static_cast<Tag>(byte);
}

void construct(PyDevice* self, nb::handle kind, nb::handle device_id, nb::handle memory_class) {
  PyDevice device;
  device.kind = tag_argument(kind, devices, "device kind");
  if (!device_id.is_none()) {
    if (PyBool_Check(device_id.ptr()) || PyIndex_Check(device_id.ptr()) == 0)
      fail(PyExc_TypeError, "device_id must be an int, got " + python::type_name(device_id));
    const nb::object number = index(device_id);
    int overflow = 0;
    const long long id = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow < 0 || (overflow == 0 && id < 0))
      fail(Exc::invalid_descriptor,
           std::string("device_id must be 0 or more, got ") + nb::str(number).c_str());
    if (overflow > 0 || id > std::numeric_limits<std::int32_t>::max())
      fail(PyExc_OverflowError,
           std::string("device_id must fit in 31 bits, got ") + nb::str(number).c_str());
    device.device_id = static_cast<std::int32_t>(id);
  }
  if (!memory_class.is_none())
    device.memory_class = tag_argument(memory_class, memory_classes, "memory class");
  new (self) PyDevice(device);
}

Py_hash_t hash(PyObject* self) {
  const auto* device = value_of<PyDevice>(self);
  return device == nullptr ? no_hash() : hash_of(*device);
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare_values<PyDevice>)},
                             {Py_tp_hash, reinterpret_cast<void*>(hash)},
                             {0, nullptr}};

}  // namespace

Py_hash_t hash_of(const PyDevice& device) noexcept {
  return (static_cast<Py_hash_t>(device.device_id) << 16) |
         (static_cast<Py_hash_t>(device.kind) << 8) | static_cast<Py_hash_t>(device.memory_class);
}

nb::object device_object(const PyDevice& device) {
  if (device.device_id == 0 && device.memory_class == MemoryClass::standard)
    if (const DeviceInfo* row = info(device.kind))
      return nb::borrow(objects[static_cast<std::size_t>(row - devices.data())]);
  return nb::cast(device);
}

std::string repr(const PyDevice& device) {
  std::string text = "hurray.Device(kind='";
  text.append(name(device.kind)) += "'";
  if (info(device.kind) == nullptr)
    text += " (" + to_hex(static_cast<std::uint8_t>(device.kind)) + ")";
  text += ", device_id=" + std::to_string(device.device_id) + ", memory_class='";
  text.append(name(device.memory_class)) += "'";
  if (is_private(static_cast<std::uint8_t>(device.memory_class)))
    text += " (" + to_hex(static_cast<std::uint8_t>(device.memory_class)) + ")";
  return text + ")";
}

void bind_device(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyDevice> type(
      m, "Device", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "Where a tensor's memory is declared to be: immutable, hashable, compared "
      "by all three fields.\n\n"
      "`kind` and `memory_class` are each a name or the wire byte; `device_id` is "
      "known in the running\n"
      "program only. Raises `InvalidDescriptorError` for names and bytes that do "
      "not exist. Whether the\n"
      "pair is possible is judged when a tensor is built.");
  type.def("__init__", &construct, "kind"_a.none(), "device_id"_a = nb::none(),
           "memory_class"_a = nb::none(),
           nb::sig("def __init__(self, kind: str | int, device_id: int | None = None, "
                   "memory_class: str | int | None = None) -> None"))
      .def_prop_ro(
          "kind", [](const PyDevice& self) { return nb::str(name(self.kind).data()); },
          nb::sig("def kind(self) -> typing.Literal['cpu', 'cuda', 'rocm', 'metal', 'vulkan', "
                  "'webgpu', 'hexagon', 'level_zero', 'opencl', 'private']"),
          "The name of the device; \"private\" for 0xF0 to 0xFE.")
      .def_prop_ro(
          "tag", [](const PyDevice& self) { return static_cast<unsigned>(self.kind); },
          "The wire byte of the device.")
      .def_prop_ro(
          "is_private",
          [](const PyDevice& self) { return is_private(static_cast<std::uint8_t>(self.kind)); },
          "Whether the device is one that two parties agreed on.")
      .def_prop_ro(
          "device_id", [](const PyDevice& self) { return self.device_id; },
          "Which of several devices; 0 after decoding, since the format does not hold it.")
      .def_prop_ro(
          "memory_class",
          [](const PyDevice& self) { return nb::str(name(self.memory_class).data()); },
          nb::sig("def memory_class(self) -> typing.Literal['standard', 'host_pinned', "
                  "'unified', 'peer', 'private']"),
          "\"standard\", \"host_pinned\", \"unified\", \"peer\" or \"private\".")
      .def_prop_ro(
          "memory_class_tag",
          [](const PyDevice& self) { return static_cast<unsigned>(self.memory_class); },
          "The wire byte of the memory class.")
      .def("__repr__", [](const PyDevice& self) { return repr(self); })
      .def(
          "__reduce__",
          [](const PyDevice& self) {
            return reduced("device",
                           nb::make_tuple(static_cast<unsigned>(self.kind), self.device_id,
                                          static_cast<unsigned>(self.memory_class)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
  def_copy(type, "Device");

  nb::list all;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const nb::object made = nb::cast(PyDevice{.kind = devices[i].tag});
    all.append(made);
    objects[i] = made.ptr();
  }
  m.attr("_devices") = nb::tuple(all);
  m.def(
      "_device",
      [](nb::handle kind, nb::handle device_id, nb::handle memory_class) {
        PyDevice device;
        construct(&device, kind, device_id, memory_class);
        return device_object(device);
      },
      "kind"_a, "device_id"_a, "memory_class"_a,
      nb::sig("def _device(kind: int, device_id: int, memory_class: int) -> Device"));
}

}  // namespace hurray::python
