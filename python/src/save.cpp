#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "transport.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// One file of a save, and what goes into it.
struct Part {
  std::string path;
  std::span<NamedItem> items;
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;  ///< Members of composites included.
};

/// Writes all parts beside their targets, and then puts them in place; everything is judged before
/// the first byte.
void write(std::span<const Part> parts, const io::KeyValues& kv, io::WriteOptions options) {
  std::uint64_t total = 0;
  for (const Part& part : parts) total += part.bytes;
  std::vector<io::FileWriter> writers;
  for (const Part& part : parts) {
    // They are on one disk, which the first one asks for room for all.
    options.expected_bytes = writers.empty() ? total : part.bytes;
    if (options.checksums) options.tensor_count = part.tensors;
    auto created = without_gil([&] { return io::FileWriter::create(part.path, options); });
    writers.push_back(unwrap_waited(std::move(created)));
  }
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (NamedItem& item : parts[k].items) {
      unwrap(item.check(writers[k]));
      item.forget_transient();
    }
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (NamedItem& item : parts[k].items) {
      if (item.composite == nullptr) item.ready();
      unwrap_waited(without_gil([&] { return item.write(writers[k]); }));
      item.forget_transient();
    }
  for (io::FileWriter& writer : writers) {
    auto finished = without_gil([&] { return writer.finish(kv); });
    unwrap_waited(std::move(finished));
  }
}

/// As many files as `limit` bytes of tensors in each make, and the index of them
/// (09-models-and-frameworks.md section 2).
void save_shards(const std::string& path, std::span<NamedItem> items, std::uint64_t limit,
                 const io::KeyValues& kv, const io::WriteOptions& options) {
  const nb::module_ sets = nb::module_::import_("hurray._sets");
  std::vector<Part> parts;
  for (NamedItem& item : items) {
    const std::uint64_t bytes = item.bytes();
    item.forget_transient();
    if (parts.empty() ||
        (parts.back().bytes != 0 && bytes > limit - std::min(limit, parts.back().bytes)))
      parts.push_back({{}, {&item, 0}, 0});
    Part& part = parts.back();
    part.items = {part.items.data(), part.items.size() + 1};
    part.bytes += bytes;
  }
  if (parts.empty()) parts.emplace_back();
  const nb::object name = nb::steal(PyUnicode_DecodeFSDefault(path.c_str()));
  const nb::object paths = sets.attr("shard_paths")(name, parts.size());
  for (std::size_t k = 0; k < parts.size(); ++k) {
    parts[k].path = path_argument(nb::object(paths[k]));
    parts[k].tensors = check_names(parts[k].items);
  }
  write(parts, kv, options);

  nb::list names, sums;
  std::uint64_t total = 0;
  for (const Part& part : parts) {
    nb::list in_part;
    for (const NamedItem& item : part.items) in_part.append(wrap_utf8(item.name));
    names.append(in_part);
    const auto file = unwrap_waited(without_gil([&] { return io::File::open(part.path); }));
    sums.append(file.trailer().index_crc32c);
    total += part.bytes;
  }
  of_transport([&] { sets.attr("write_index")(name, names, sums, total, options.sync); });
}

void save(nb::handle path, nb::handle tensors, nb::handle kv, bool sync, bool checksums,
          nb::handle max_shard_size) {
  const std::string file = path_argument(path);
  auto [items, key_values, count] = save_arguments(tensors, kv);
  const io::WriteOptions options = write_options(checksums, sync);
  if (!max_shard_size.is_none()) {
    const nb::object limit = nb::module_::import_("hurray._sets").attr("size")(max_shard_size);
    return save_shards(file, items, unsigned_argument(limit, "max_shard_size", UINT64_MAX),
                       key_values, options);
  }
  Part whole{file, items, 0, count};
  for (NamedItem& item : items) {
    whole.bytes += item.bytes();
    item.forget_transient();
  }
  write({&whole, 1}, key_values, options);
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
      "`kv`, and last of all their index, `stem.hrry.index.json`, which `open` and `load` take.\n\n"
      "Raises FileError (names, kv, the system's refusals), UnsupportedError (values that the "
      "format\n"
      "cannot hold), InvalidDescriptorError, TypeError (`tensors` is no mapping, a name no str).");
}

}  // namespace hurray::python
