#include "save_plan.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bindings.hpp"
#include "hurray/io/replace_file.hpp"
#include "key_values.hpp"
#include "transport.hpp"

namespace hurray::python {
namespace {

nb::module_ sets() { return nb::module_::import_("hurray._sets"); }

nb::object path_object(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefault(path.c_str()));
}

}  // namespace

SavePlan::SavePlan(std::string path, std::span<NamedItem> items, nb::handle max_shard_size)
    : path_(std::move(path)), sharded_(!max_shard_size.is_none()) {
  std::uint64_t limit = UINT64_MAX;
  if (sharded_) {
    of_transport([&] { sets().attr("check_target")(path_object(path_)); });
    limit = unsigned_argument(sets().attr("size")(max_shard_size), "max_shard_size", UINT64_MAX);
  }
  for (std::size_t k = 0; k < items.size(); ++k) {
    const std::uint64_t bytes = items[k].bytes();
    items[k].forget_transient();
    if (parts_.empty() ||
        (parts_.back().bytes != 0 && bytes > limit - std::min(limit, parts_.back().bytes)))
      parts_.push_back({.path = {}, .first = k});
    SavePart& part = parts_.back();
    ++part.count;
    part.bytes += bytes;
    part.names.push_back(items[k].name);
  }
  if (parts_.empty()) parts_.emplace_back();
  for (SavePart& part : parts_) part.tensors = check_names(part.of(items));
  if (!sharded_) {
    parts_.front().path = path_;
    return;
  }
  const nb::object paths = sets().attr("shard_paths")(path_object(path_), parts_.size());
  for (std::size_t k = 0; k < parts_.size(); ++k)
    parts_[k].path = path_argument(nb::object(paths[k]));
}

io::Result<std::vector<io::FileWriter>> SavePlan::writers(io::WriteOptions options) const {
  std::uint64_t total = 0;
  for (const SavePart& part : parts_) total += part.bytes;
  std::vector<io::FileWriter> writers;
  for (const SavePart& part : parts_) {
    options.expected_bytes = writers.empty() ? total : part.bytes;
    if (options.checksums) options.tensor_count = part.tensors;
    auto created = io::FileWriter::create(part.path, options);
    if (!created) {
      io::Error error = std::move(created).error();
      if (error.system_errno == EMFILE)
        error.detail =
            "each shard takes two open files; make shards larger, or raise the limit "
            "(ulimit -n)";
      return error;
    }
    writers.push_back(*std::move(created));
  }
  return writers;
}

io::Result<void> SavePlan::finish(std::span<io::FileWriter> writers, const io::KeyValues& kv,
                                  bool sync) const {
  if (!sharded_) return writers.front().finish(kv);
  for (io::FileWriter& writer : writers)
    if (auto done = writer.complete(kv); !done) return done;
  std::string index_path;
  std::string index;
  std::vector<std::string> before;
  auto described = transferred([&] {
    nb::list names, sums, kv_sums;
    std::uint64_t total = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      nb::list in_part;
      for (const std::string& name : parts_[k].names) in_part.append(wrap_utf8(name));
      names.append(in_part);
      sums.append(writers[k].index_crc32c());
      kv_sums.append(writers[k].kv_crc32c());
      total += parts_[k].bytes;
    }
    const nb::object path = path_object(path_);
    for (nb::handle old : nb::list(sets().attr("replaced_by")(path, parts_.size())))
      before.push_back(path_argument(old));
    index_path = path_argument(sets().attr("index_path")(path));
    const nb::bytes text(sets().attr("index_text")(path, names, sums, kv_sums, total));
    index.assign(text.c_str(), text.size());
    return true;
  });
  if (!described) return std::move(described).error();
  for (io::FileWriter& writer : writers)
    if (auto done = writer.finish(); !done) return done;
  if (auto done = io::replace_file(index_path, std::as_bytes(std::span(index)), sync); !done)
    return done;
  auto removed = transferred([&] {
    nb::list old;
    for (const std::string& path : before) old.append(path_object(path));
    sets().attr("remove")(old);
    return true;
  });
  if (!removed) return std::move(removed).error();
  return {};
}

}  // namespace hurray::python
