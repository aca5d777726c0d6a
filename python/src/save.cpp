#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "bindings.hpp"
#include "hurray/io/file_writer.hpp"
#include "named_item.hpp"
#include "save_plan.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

void save(nb::handle path, nb::handle tensors, nb::handle kv, bool sync, bool checksums,
          nb::handle max_shard_size) {
  const std::string file = path_argument(path);
  auto [items, key_values, count] = save_arguments(tensors, kv);
  const SavePlan plan(file, items, max_shard_size);
  std::vector<io::FileWriter> writers =
      unwrap_waited(without_gil([&] { return plan.writers(write_options(checksums, sync)); }));
  const auto parts = plan.parts();
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (NamedItem& item : parts[k].of(items)) {
      unwrap(item.check(writers[k]));
      item.forget_transient();
    }
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (NamedItem& item : parts[k].of(items)) {
      if (item.composite == nullptr) item.ready();
      unwrap_waited(without_gil([&] { return item.write(writers[k]); }));
      item.forget_transient();
    }
  unwrap_waited(without_gil([&] { return plan.finish(writers, key_values, sync); }));
}

}  // namespace

void bind_save(nb::module_& m) {
  m.def(
      "save", save, nb::arg("path"), nb::arg("tensors"), nb::kw_only(),
      nb::arg("kv").none() = nb::none(), nb::arg("sync") = true, nb::arg("checksums") = true,
      nb::arg("max_shard_size") = nb::none(),
      nb::sig("def save(path: str | os.PathLike[str], tensors: collections.abc.Mapping[str, "
              "typing.Any], "
              "*, kv: collections.abc.Mapping[str, typing.Any] | None = None, sync: bool = True, "
              "checksums: bool = True, max_shard_size: int | str | None = None) -> None"),
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
      "`max_shard_size`: bytes of tensors, or text such as \"5GB\": several files\n"
      "`stem-00001-of-0000N.hrry` of at most that much, or of one item that has more, each with "
      "all of\n"
      "`kv`, and last of all their index, `stem.hrry.index.json`. `open` and `load` take the "
      "index, "
      "its\n"
      "folder, or `path`. Shards that only the old index named, and a single file at `path`, "
      "go.\n\n"
      "Raises FileError (names, kv, the system's refusals), UnsupportedError (values that the "
      "format\n"
      "cannot hold), InvalidDescriptorError, TypeError (`tensors` is no mapping, a name no str).");
}

}  // namespace hurray::python
