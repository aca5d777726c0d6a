#include "hurray/io/file_set.hpp"

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "hurray/io/crc32c.hpp"

namespace hurray::io {

namespace {

/// Names in a message; the rest is counted.
constexpr std::size_t listed_names = 10;

/// "2 of 30 files missing: a, b".
std::string missing_text(const std::vector<std::string>& missing, std::size_t of,
                         std::string_view what) {
  std::string text = std::to_string(missing.size()) + " of " + std::to_string(of) + " " +
                     std::string(what) + " missing: ";
  for (std::size_t k = 0; k < std::min(missing.size(), listed_names); ++k)
    text.append(k == 0 ? "" : ", ").append(missing[k]);
  if (missing.size() > listed_names)
    text += " and " + std::to_string(missing.size() - listed_names) + " more";
  return text;
}

std::string file_name(const std::string& path) {
  return printable(path.substr(path.find_last_of('/') + 1));
}

}  // namespace

struct FileSet::State {
  std::string path;
  std::vector<File> files;
  std::vector<std::size_t> starts = {};  ///< The first entry of each file.
  std::size_t count = 0;
  // Of several files:
  std::unordered_map<std::string_view, std::size_t> entries = {};
  std::vector<bool> placed = {};  ///< The index names it.

  bool single() const noexcept { return placed.empty(); }
  /// Which file holds entry `i`.
  std::size_t file_of(std::size_t i) const noexcept {
    const auto behind = std::ranges::upper_bound(starts, i);
    return static_cast<std::size_t>(behind - starts.begin()) - 1;
  }
  /// Adds the entries of the last file.
  void add_last() {
    starts.push_back(count);
    count += files.back().size();
  }
};

FileSet::FileSet(File file) {
  State state{.path = file.path(), .files = {}};
  state.files.push_back(std::move(file));
  state.add_last();
  state_ = std::make_shared<const State>(std::move(state));
}

Result<FileSet> FileSet::open(std::string path, std::span<const SetMember> members,
                              const OpenOptions& options) {
  return contain(Origin::file, [&]() -> Result<FileSet> {
    State state{.path = std::move(path), .files = {}};
    std::vector<std::string> missing;
    for (const SetMember& member : members) {
      auto file = File::open(member.path, options);
      if (!file && file.error().system_errno == ENOENT) {
        missing.push_back(file_name(member.path));
        continue;
      }
      if (!file) {
        Error error = std::move(file).error();
        if (error.system_errno == EMFILE)
          error.detail = "each file of a set is open; raise the limit (ulimit -n)";
        return error;
      }
      const auto compare = [&](std::string_view field, const std::optional<std::uint32_t>& wanted,
                               std::uint32_t found) -> Result<void> {
        if (!wanted || *wanted == found) return {};
        return Error({.code = Errc::checksum_mismatch,
                      .origin = Origin::file,
                      .expect = Expect::exactly,
                      .field = field,
                      .what = "as the index of the set says",
                      .expected = *wanted,
                      .found = found},
                     member.path, {}, "the file was saved or replaced apart from the others");
      };
      if (auto same = compare("index_crc32c", member.index_crc32c, file->trailer().index_crc32c);
          !same)
        return same.error();
      if (member.kv_crc32c) {
        const auto found = file->kv_crc32c();
        if (!found) return found.error();
        if (auto same = compare("kv_crc32c", member.kv_crc32c, *found); !same) return same.error();
      }
      state.files.push_back(*std::move(file));
      state.add_last();
    }
    if (!missing.empty() || state.files.empty())
      return Error({.code = Errc::not_found,
                    .origin = Origin::file,
                    .what = "not every file of this set is there"},
                   state.path, {},
                   "incomplete download? " + missing_text(missing, members.size(), "shards"));

    state.entries.reserve(state.count);
    for (std::size_t f = 0; f < state.files.size(); ++f)
      for (std::size_t i = 0; i < state.files[f].size(); ++i) {
        const std::string_view name = state.files[f].name(i);
        const auto [there, fresh] = state.entries.emplace(name, state.starts[f] + i);
        if (fresh) continue;
        const std::size_t other = state.file_of(there->second);
        return Error({.code = Errc::duplicate,
                      .origin = Origin::file,
                      .field = "index[].name",
                      .what = "a tensor is in one file of a set only"},
                     state.path, std::string(name),
                     "it is in " + file_name(state.files[other].path()) + " and in " +
                         file_name(state.files[f].path()));
      }
    state.placed.resize(state.count);
    std::size_t names = 0;
    for (std::size_t f = 0; f < members.size(); ++f) {
      for (const std::string& name : members[f].names) {
        ++names;
        const auto found = state.files[f].find(name);
        if (found)
          state.placed[state.starts[f] + *found] = true;
        else
          missing.push_back(std::string(1, '"').append(printable(name)).append("\" in ") +
                            file_name(members[f].path));
      }
    }
    if (!missing.empty())
      return Error({.code = Errc::not_found,
                    .origin = Origin::file,
                    .what = "not every tensor is in the file that the index names"},
                   state.path, {}, missing_text(missing, names, "tensors"));
    if (state.placed.empty()) state.placed.push_back(false);  // several files, and nothing in them
    return FileSet(std::make_shared<const State>(std::move(state)));
  });
}

const std::string& FileSet::path() const noexcept { return state_->path; }
Mode FileSet::mode() const noexcept { return state_->files.front().mode(); }
std::span<const File> FileSet::files() const noexcept { return state_->files; }

std::uint64_t FileSet::size_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const File& file : state_->files) bytes += file.size_bytes();
  return bytes;
}

std::uint32_t FileSet::index_crc32c() const noexcept {
  if (state_->single()) return state_->files.front().trailer().index_crc32c;
  std::uint32_t crc = 0;
  for (const File& file : state_->files) {
    std::array<std::byte, 4> sum;
    hurray::detail::store(sum.data(), file.trailer().index_crc32c);
    crc = crc32c(sum, crc);
  }
  return crc;
}

Result<KeyValues> FileSet::kv() const {
  return contain(Origin::file, [&]() -> Result<KeyValues> {
    KeyValues all = state_->files.front().kv();
    for (const File& file : files().subspan(1))
      for (const auto& entry : file.kv()) {
        const KvValue* known = io::find(all, entry.first);
        if (known == nullptr)
          all.push_back(entry);
        else if (!(*known == entry.second))
          return Error({.code = Errc::inconsistent,
                        .origin = Origin::file,
                        .field = "kv",
                        .what = "the files of this set say different things"},
                       path(), {},
                       "of \"" + printable(entry.first) + "\"; look at them one by one, such as " +
                           file_name(file.path()));
      }
    return all;
  });
}

bool FileSet::has_checksums() const noexcept {
  return std::ranges::all_of(files(), &File::has_checksums);
}

ReadCounts FileSet::read_counts() const noexcept {
  ReadCounts all;
  for (const File& file : files()) {
    const ReadCounts one = file.read_counts();
    all.bytes_wanted += one.bytes_wanted;
    all.bytes_read += one.bytes_read;
    all.requests += one.requests;
  }
  return all;
}

std::size_t FileSet::size() const noexcept { return state_->count; }

std::pair<const File*, std::size_t> FileSet::place(std::size_t i) const noexcept {
  const std::size_t f = state_->file_of(i);
  return {&state_->files[f], i - state_->starts[f]};
}

std::string_view FileSet::name(std::size_t i) const noexcept {
  const auto [file, entry] = place(i);
  return file->name(entry);
}

std::optional<std::size_t> FileSet::find(std::string_view name) const noexcept {
  if (state_->single()) return state_->files.front().find(name);
  const auto found = state_->entries.find(name);
  if (found == state_->entries.end()) return std::nullopt;
  if (state_->placed[found->second]) return found->second;
  // Members of composites are asked for by name, too.
  const auto [file, entry] = place(found->second);
  const auto owners = file->owners();
  if (!owners || !(*owners)[entry]) return std::nullopt;
  return found->second;
}

Result<std::vector<std::optional<std::size_t>>> FileSet::owners() const {
  if (state_->single()) return state_->files.front().owners();
  return contain(Origin::file, [&]() -> Result<std::vector<std::optional<std::size_t>>> {
    std::vector<std::optional<std::size_t>> all;
    for (std::size_t f = 0; f < state_->files.size(); ++f) {
      auto owners = state_->files[f].owners();
      if (!owners) return std::move(owners).error();
      const std::size_t start = state_->starts[f];
      for (const auto& owner : *owners) {
        if (owner)
          all.push_back(*owner + start);
        else if (state_->placed[all.size()])
          all.push_back(std::nullopt);
        else
          all.push_back(all.size());
      }
    }
    return all;
  });
}

Result<std::uint64_t> FileSet::prefetch(std::span<const File::Wanted> wanted,
                                        std::uint64_t max_bytes) const {
  return contain(Origin::file, [&]() -> Result<std::uint64_t> {
    std::uint64_t asked = 0;
    std::vector<std::vector<File::Wanted>> of(files().size());
    for (const File::Wanted& one : wanted) {
      const std::size_t f = state_->file_of(one.entry);
      of[f].push_back({one.entry - state_->starts[f], one.selection});
    }
    for (std::size_t f = 0; f < of.size(); ++f) {
      if (of[f].empty()) continue;
      const auto bytes = state_->files[f].prefetch(of[f], max_bytes - asked);
      if (!bytes) return bytes;
      asked += std::min(*bytes, max_bytes - asked);
    }
    return asked;
  });
}

void FileSet::will_read_all() const noexcept {
  for (const File& file : files()) file.will_read_all();
}

}  // namespace hurray::io
