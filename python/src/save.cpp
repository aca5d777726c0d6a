#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/io/file_writer.hpp"
#include "key_values.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

struct Item {
  std::string name;
  nb::object value;
  std::optional<WritableSource> source = std::nullopt;

  const WritableSource& ready() {
    if (!source) {
      try {
        source = writable_source(value);
      } catch (nb::python_error& error) {
        put_name_before(error);
        throw;
      }
    }
    if (!source) {
      fail(Exc::unsupported, "tensor \"" + name +
                                 "\": expected a hurray.Tensor, an array (NumPy, PyTorch, DLPack) "
                                 "or an object with the "
                                 "buffer protocol, found a " +
                                 python::type_name(value) +
                                 "; make an array of it first, or put text and numbers into kv=");
    }
    return *source;
  }
  /// The class, the cause and the traceback stay; an exception that is more than a text (an
  /// `errno`) stays whole.
  void put_name_before(nb::python_error& error) const {
    const nb::object exception = nb::borrow(error.value());
    const nb::object arguments = nb::getattr(exception, "args", nb::none());
    if (!PyTuple_Check(arguments.ptr()) || nb::len(arguments) != 1) return;
    const nb::object words = arguments[0];
    if (!PyUnicode_Check(words.ptr())) return;
    const std::string prefix = "tensor \"" + name + "\": ";
    exception.attr("args") = nb::make_tuple(nb::str(prefix.c_str(), prefix.size()) + words);
  }
  /// What was brought to the host only to be written: one at a time.
  void forget_transient() {
    if (source->transient) source.reset();
  }
};

std::vector<Item> items_argument(nb::handle tensors) {
  if (PyMapping_Check(tensors.ptr()) == 0 || PyObject_HasAttrString(tensors.ptr(), "items") == 0)
    fail(PyExc_TypeError, "tensors must be a mapping of names to tensors, such as {\"w\": array}");
  nb::object pairs = nb::steal(PyMapping_Items(tensors.ptr()));
  if (!pairs.is_valid()) nb::raise_python_error();
  std::vector<Item> items;
  for (nb::handle pair : pairs) {
    nb::object name = pair[0];
    if (!PyUnicode_Check(name.ptr())) {
      fail(PyExc_TypeError,
           "a tensor's name must be a str, not " + nb::cast<std::string>(nb::repr(name)));
    }
    items.push_back({std::string(utf8_argument(name, "the name")), pair[1]});
  }
  return items;
}

void save(nb::handle path, nb::handle tensors, nb::handle kv, bool sync, bool checksums) {
  const std::string file = path_argument(path);
  std::vector<Item> items = items_argument(tensors);
  const io::KeyValues key_values = key_values_argument(kv);
  unwrap(io::encode_kv(key_values));

  io::WriteOptions options;
  options.sync = sync;
  options.checksums = checksums;
  options.interrupted = signal_raised;
  if (checksums) options.tensor_count = items.size();
  for (Item& item : items) {
    for (const io::BufferSource& buffer : item.ready().buffers)
      options.expected_bytes += buffer.size();
    item.forget_transient();
  }

  auto created = without_gil([&] { return io::FileWriter::create(file, options); });
  io::FileWriter writer = unwrap_waited(std::move(created));
  for (Item& item : items) {
    const WritableSource& source = item.ready();
    unwrap(writer.check(item.name, source.descriptor, source.buffers));
    item.forget_transient();
  }
  for (Item& item : items) {
    const WritableSource& source = item.ready();
    auto written =
        without_gil([&] { return writer.write(item.name, source.descriptor, source.buffers); });
    unwrap_waited(std::move(written));
    item.forget_transient();
  }
  auto finished = without_gil([&] { return writer.finish(key_values); });
  unwrap_waited(std::move(finished));
}

}  // namespace

void bind_save(nb::module_& m) {
  m.def(
      "save", save, nb::arg("path"), nb::arg("tensors"), nb::kw_only(),
      nb::arg("kv").none() = nb::none(), nb::arg("sync") = true, nb::arg("checksums") = true,
      nb::sig("def save(path: str | os.PathLike[str], tensors: collections.abc.Mapping[str, "
              "typing.Any], "
              "*, kv: collections.abc.Mapping[str, typing.Any] | None = None, sync: bool = True, "
              "checksums: bool = True) -> None"),
      "Write a `.hrry` file: `tensors` in their order, then `kv`.\n\n"
      "Values are hurray tensors, arrays (NumPy, PyTorch, DLPack) and objects with the buffer\n"
      "protocol; contiguous memory is written from where it is, other arrays are converted "
      "through\n"
      "at most 16 MiB. Do not change them meanwhile. `kv` holds bool, int, float, str, bytes and\n"
      "lists of one of these.\n\n"
      "Everything is validated before the first byte. The file appears whole, in place of an "
      "older\n"
      "one, or not at all; `sync=False` does not wait for the disk. Open files and tensors loaded\n"
      "from an older one keep their content. `checksums=False` leaves out the sums by which "
      "damage\n"
      "is found later.\n\n"
      "Raises FileError (names, kv, the system's refusals), UnsupportedError (values that the "
      "format\n"
      "cannot hold), InvalidDescriptorError, TypeError (`tensors` is no mapping, a name no str).");
}

}  // namespace hurray::python
