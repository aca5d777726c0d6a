#include <nanobind/stl/string.h>

#include <algorithm>
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

/// One name and what is written under it: a composite with all of its members, or one tensor.
struct Entry {
  std::string name;
  nb::object value;
  const PyComposite* composite = nullptr;
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
      fail(
          Exc::unsupported,
          "tensor \"" + name +
              "\": expected a hurray.Tensor, a hurray.Composite, an array (NumPy, PyTorch, DLPack) "
              "or an object with the buffer protocol, found a " +
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
    if (source && source->transient) source.reset();
  }

  std::uint64_t bytes() {
    std::uint64_t bytes = 0;
    if (composite == nullptr) {
      for (const io::BufferSource& buffer : ready().buffers) bytes += buffer.size();
    } else {
      for_each_item(composite->item, [&](const hurray::Item& part, auto) {
        for (const Buffer& buffer : part.tensor.buffers()) bytes += buffer.size();
        return true;
      });
    }
    return bytes;
  }
  io::Result<void> check(const io::FileWriter& writer) {
    if (composite != nullptr) return writer.check_item(name, composite->item);
    const WritableSource& tensor = ready();
    return writer.check(name, tensor.descriptor, tensor.buffers);
  }
  io::Result<void> write(io::FileWriter& writer) {
    if (composite != nullptr)
      return without_gil([&] { return writer.write_item(name, composite->item); });
    const WritableSource& tensor = ready();
    return without_gil([&] { return writer.write(name, tensor.descriptor, tensor.buffers); });
  }
};

std::vector<Entry> entries_argument(nb::handle tensors) {
  if (PyMapping_Check(tensors.ptr()) == 0 || PyObject_HasAttrString(tensors.ptr(), "items") == 0)
    fail(PyExc_TypeError, "tensors must be a mapping of names to tensors, such as {\"w\": array}");
  nb::object pairs = nb::steal(PyMapping_Items(tensors.ptr()));
  if (!pairs.is_valid()) nb::raise_python_error();
  std::vector<Entry> entries;
  for (nb::handle pair : pairs) {
    nb::object name = pair[0];
    if (!PyUnicode_Check(name.ptr())) {
      fail(PyExc_TypeError,
           "a tensor's name must be a str, not " + nb::cast<std::string>(nb::repr(name)));
    }
    nb::object value = pair[1];
    const PyComposite* composite = unwrap_composite(value);
    entries.push_back({std::string(utf8_argument(name, "the name")), std::move(value), composite});
  }
  return entries;
}

/// The number of tensors that `entries` become, members of composites included, whose names are
/// derived. No two may have one name.
std::uint64_t check_names(const std::vector<Entry>& entries) {
  struct Named {
    std::string name;
    const Entry* head;  ///< Of the composite that it belongs to; null for a name that was given.
  };
  std::vector<Named> all;
  for (const Entry& entry : entries) {
    all.push_back({entry.name, nullptr});
    if (entry.composite != nullptr)
      for (std::string& name : io::member_names(entry.name, entry.composite->item))
        all.push_back({std::move(name), &entry});
  }
  std::ranges::sort(all, {}, &Named::name);
  const auto same = std::ranges::adjacent_find(all, {}, &Named::name);
  if (same == all.end()) return all.size();
  const Entry* head = same->head != nullptr ? same->head : std::next(same)->head;
  fail(Exc::file, "tensor \"" + same->name + "\": two tensors have this name" +
                      (head == nullptr ? ""
                                       : "; one is a member of the composite \"" + head->name +
                                             "\", so give the other, or the composite, another"));
}

void save(nb::handle path, nb::handle tensors, nb::handle kv, bool sync, bool checksums) {
  const std::string file = path_argument(path);
  std::vector<Entry> entries = entries_argument(tensors);
  const io::KeyValues key_values = key_values_argument(kv);
  unwrap(io::encode_kv(key_values));

  io::WriteOptions options;
  options.sync = sync;
  options.checksums = checksums;
  options.interrupted = signal_raised;
  const std::uint64_t count = check_names(entries);
  if (checksums) options.tensor_count = count;
  for (Entry& entry : entries) {
    options.expected_bytes += entry.bytes();
    entry.forget_transient();
  }

  auto created = without_gil([&] { return io::FileWriter::create(file, options); });
  io::FileWriter writer = unwrap_waited(std::move(created));
  for (Entry& entry : entries) {
    unwrap(entry.check(writer));
    entry.forget_transient();
  }
  for (Entry& entry : entries) {
    unwrap_waited(entry.write(writer));
    entry.forget_transient();
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
      "Values are hurray tensors and composites, arrays (NumPy, PyTorch, DLPack) and objects with "
      "the\n"
      "buffer protocol; contiguous memory is written from where it is, other arrays are converted\n"
      "through at most 16 MiB. Do not change them meanwhile. Members of a composite `c` are named\n"
      "`c.0`, `c.1`, …, recursively. `kv` holds bool, int, float, str, bytes and lists of one of\n"
      "these.\n\n"
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
