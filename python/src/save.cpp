#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/io/file_writer.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

void save(nb::handle path, nb::handle tensors, nb::handle kv, bool sync, bool checksums) {
  const std::string file = path_argument(path);
  std::vector<NamedItem> items = named_items_argument(tensors);
  const io::KeyValues key_values = key_values_argument(kv);
  unwrap(io::encode_kv(key_values));

  io::WriteOptions options = write_options(checksums, sync);
  const std::uint64_t count = check_names(items);
  if (checksums) options.tensor_count = count;
  for (NamedItem& item : items) {
    options.expected_bytes += item.bytes();
    item.forget_transient();
  }

  auto created = without_gil([&] { return io::FileWriter::create(file, options); });
  io::FileWriter writer = unwrap_waited(std::move(created));
  for (NamedItem& item : items) {
    unwrap(item.check(writer));
    item.forget_transient();
  }
  for (NamedItem& item : items) {
    if (item.composite == nullptr) item.ready();
    unwrap_waited(without_gil([&] { return item.write(writer); }));
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
