#include "hurray/formats/open.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "format.hpp"

namespace hurray::formats {
namespace {

using namespace std::string_view_literals;
namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr auto own_suffix = ".hrry"sv;
constexpr auto index_suffix = ".index.json"sv;
/// Of files that may be the model of a folder.
constexpr auto model_suffixes = std::to_array({own_suffix, ".safetensors"sv, ".gguf"sv});
constexpr std::size_t listed = 10;

/// One file, or several and where their index lies.
struct Found {
  std::string path;
  std::optional<std::vector<io::SetMember>> members = {};
};

io::Error fail(std::string path, std::string_view what, std::string detail) {
  return {{.code = Errc::invalid_value, .origin = Origin::file, .what = what},
          std::move(path),
          {},
          std::move(detail)};
}

/// What a folder, the index of several files or their common path is refused as.
bool may_be_set(const io::Error& error) {
  return error.system_errno == EISDIR || error.system_errno == ENOENT ||
         (error.code == Errc::invalid_magic && error.field == "magic");
}

bool is_model(std::string_view name) {
  return std::ranges::any_of(model_suffixes,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

/// A file of the index itself, and nothing that leads elsewhere.
bool is_bare_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of("/\\\0:"sv) == std::string_view::npos;
}

/// The text of an index; none where the file begins as none does.
io::Result<std::optional<std::string>> read_index(const std::string& path, std::uint64_t limit) {
  std::error_code failed;
  const std::uint64_t size = fs::is_regular_file(path, failed) ? fs::file_size(path, failed) : 0;
  std::ifstream file(path, std::ios::binary);
  std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(size, 64)), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  const auto first = start.find_first_not_of(" \t\r\n\xEF\xBB\xBF"sv);
  if (!file || first == std::string::npos || start[first] != '{')
    return std::optional<std::string>();
  if (size > limit)
    return fail(path, "this index of files is too long",
                "it has more than max_index_bytes=" + std::to_string(limit) + " bytes");
  std::string text(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file)
    return io::Error({.code = Errc::truncated, .origin = Origin::file, .field = "index"}, path);
  return std::optional(std::move(text));
}

/// The JSON of an index, in which no key stands twice.
io::Result<Json> parse(const std::string& path, const std::string& text) {
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> twice;
  const auto see = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    Json index = Json::parse(text, see);
    if (!twice) return index;
    return fail(path, "expected an index in JSON", "the key " + quote(*twice) + " is there twice");
  } catch (const Json::exception& wrong) {
    return fail(path, "expected an index in JSON",
                io::printable(std::string_view(wrong.what()).substr(0, 200)));
  }
}

/// The object at `key`, or an empty one.
const Json& object_at(const Json& json, const char* key) {
  static const Json none = Json::object();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_object() ? *found : none;
}

io::Result<std::vector<io::SetMember>> members_of(const std::string& path, const Json& index) {
  constexpr auto what = "expected an index of tensors"sv;
  const bool has_map = index.is_object() && index.contains("weight_map");
  const Json& map = object_at(index, "weight_map");
  const Json& metadata = object_at(index, "metadata");
  struct Sum {
    const char* field;
    std::optional<std::uint32_t> io::SetMember::* member;
  };
  constexpr auto sums = std::to_array<Sum>(
      {{"index_crc32c", &io::SetMember::index_crc32c}, {"kv_crc32c", &io::SetMember::kv_crc32c}});
  if (!has_map || !index["weight_map"].is_object() ||
      (map.empty() && object_at(metadata, sums[0].field).empty()))
    return fail(path, what, "{\"weight_map\": {name: file}}; found other JSON");

  const std::string folder = fs::path(path).parent_path().string();
  std::map<std::string, io::SetMember> members;
  const auto member = [&](const std::string& of, const Json& file) -> io::Result<io::SetMember*> {
    if (!file.is_string() || !is_bare_name(file.get_ref<const std::string&>()))
      return fail(path, what,
                  of + ": expected the bare name of a file beside the index, found " +
                      quote(file.dump(-1, ' ', true, Json::error_handler_t::replace)));
    const auto& name = file.get_ref<const std::string&>();
    io::SetMember& found = members[name];
    found.path = (fs::path(folder) / name).string();
    return &found;
  };
  for (const auto& [name, file] : map.items()) {
    const auto found = member("weight_map[" + quote(name) + "]", file);
    if (!found) return found.error();
    (*found)->names.push_back(name);
  }
  for (const Sum& sum : sums)
    for (const auto& [file, value] : object_at(metadata, sum.field).items()) {
      const std::string of = std::string("metadata.") + sum.field + "[" + quote(file) + "]";
      const auto found = member(of, Json(file));
      if (!found) return found.error();
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > UINT32_MAX)
        return fail(path, what,
                    of + ": expected a 32-bit number, found " +
                        quote(value.dump(-1, ' ', true, Json::error_handler_t::replace)));
      (*found)->*sum.member = value.get<std::uint32_t>();
    }
  std::vector<io::SetMember> all;
  for (auto& [name, one] : members) all.push_back(std::move(one));
  return all;
}

io::Result<std::optional<Found>> in_index(const std::string& path, std::uint64_t limit) {
  const auto text = read_index(path, limit);
  if (!text) return text.error();
  if (!*text) return std::optional<Found>();
  const auto index = parse(path, **text);
  if (!index) return index.error();
  auto members = members_of(path, *index);
  if (!members) return std::move(members).error();
  return std::optional(Found{path, *std::move(members)});
}

io::Result<std::optional<Found>> in_folder(const std::string& path, std::uint64_t limit) {
  std::vector<std::string> indexes, files;
  std::error_code failed;
  for (fs::directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(index_suffix) &&
        is_model(std::string_view(name).substr(0, name.size() - index_suffix.size())))
      indexes.push_back(std::move(name));
    else if (is_model(name))
      files.push_back(std::move(name));
  }
  if (failed) {
    io::Error error({.code = Errc::system, .origin = Origin::file, .what = "open"}, path);
    error.system_errno = failed.value();
    return error;
  }
  std::ranges::sort(indexes);
  std::ranges::sort(files);
  const auto at = [&](const std::string& name) { return (fs::path(path) / name).string(); };
  if (indexes.size() == 1) {
    auto found = in_index(at(indexes[0]), limit);
    if (!found || !*found) return found;
    const std::string whole = indexes[0].substr(0, indexes[0].size() - index_suffix.size());
    const bool named = std::ranges::any_of(
        *(*found)->members, [&](const io::SetMember& one) { return one.path == at(whole); });
    if (!named && std::ranges::binary_search(files, whole))
      return fail(path, "not one model is in this folder",
                  "it holds " + io::printable(indexes[0]) + " and a " + io::printable(whole) +
                      " that it does not name, one saved after the other; open one of them, or "
                      "remove the old one");
    return found;
  }
  if (indexes.empty() && files.size() == 1) return std::optional(Found{at(files[0])});
  if (indexes.empty() && files.empty()) return std::optional<Found>();
  const auto& candidates = indexes.empty() ? files : indexes;
  std::string text =
      "the folder holds " + std::to_string(candidates.size()) + " candidates, open one of them: ";
  for (std::size_t k = 0; k < std::min(candidates.size(), listed); ++k)
    text.append(k == 0 ? "" : ", ").append(io::printable(candidates[k]));
  if (candidates.size() > listed)
    text.append(" and ").append(std::to_string(candidates.size() - listed)).append(" more");
  return fail(path, "not one model is in this folder", std::move(text));
}

io::Result<std::optional<Found>> find(const std::string& path, std::uint64_t limit) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return in_folder(path, limit);
  if (fs::exists(fs::symlink_status(path, failed))) return in_index(path, limit);
  std::string stem = path;
  if (stem.ends_with(own_suffix)) stem.resize(stem.size() - own_suffix.size());
  for (std::string index :
       {stem.append(own_suffix).append(index_suffix), std::string(path).append(index_suffix)})
    if (fs::is_regular_file(index, failed)) return in_index(index, limit);
  return std::optional<Found>();
}

/// `refused`, why `path` is no file of its own.
io::Result<Found> instead_of(const std::string& path, io::Error refused, std::uint64_t limit) {
  if (!may_be_set(refused)) return refused;
  auto found = find(path, limit);
  if (!found) return std::move(found).error();
  if (*found) return **std::move(found);
  if (refused.system_errno == EISDIR)
    refused.detail = "the folder holds no .hrry file and no index of such files";
  return refused;
}

io::Result<io::FileSet> open_found(const Found& found, const OptionsFor& options) {
  const io::OpenOptions here = options(found.path);
  if (found.members) return io::FileSet::open(found.path, *found.members, here);
  auto file = io::File::open(found.path, here);
  if (!file) return std::move(file).error();
  return io::FileSet(*std::move(file));
}

}  // namespace

io::Result<io::FileSet> open(const std::string& path, const OptionsFor& options) {
  return contain(Origin::file, [&]() -> io::Result<io::FileSet> {
    const io::OpenOptions here = options(path);
    auto file = io::File::open(path, here);
    if (file) return io::FileSet(*std::move(file));
    const auto found = instead_of(path, std::move(file).error(), here.max_index_bytes);
    if (!found) return found.error();
    return open_found(*found, options);
  });
}

io::Result<io::KeyValues> load_kv(const std::string& path, const OptionsFor& options) {
  return contain(Origin::file, [&]() -> io::Result<io::KeyValues> {
    const io::OpenOptions here = options(path);
    auto kv = io::load_kv(path, here);
    if (kv) return kv;
    const auto found = instead_of(path, std::move(kv).error(), here.max_index_bytes);
    if (!found) return found.error();
    const auto set = open_found(*found, options);
    if (!set) return set.error();
    return set->kv();
  });
}

}  // namespace hurray::formats
