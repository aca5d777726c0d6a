#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "conformance_values.hpp"
#include "file_support.hpp"
#include "hurray/composite.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/stream.hpp"
#include "hurray/materialize.hpp"

/// The streams and files of conformance/, by its manifest.
namespace hurray::conformance {
namespace {

std::optional<std::uint64_t> limit(const Json& entry, const char* name) {
  if (!entry.contains("options") || !entry["options"].contains(name)) return std::nullopt;
  return number(entry["options"][name]);
}

io::StreamReadOptions stream_options(const Json& entry, const Options& options) {
  const DecodeOptions decode = options.decode();
  io::StreamReadOptions read;
  read.permissive = decode.permissive;
  read.agreed = decode.agreed;
  if (decode.cross_machine) read.cross_machine = true;
  if (const auto n = limit(entry, "max_descriptor_bytes"))
    read.max_descriptor_bytes = static_cast<std::uint32_t>(*n);
  read.max_buffer_bytes = limit(entry, "max_buffer_bytes");
  read.max_tensor_bytes = limit(entry, "max_tensor_bytes");
  if (const auto n = limit(entry, "max_composite_depth"))
    read.max_composite_depth = static_cast<std::uint32_t>(*n);
  if (const auto n = limit(entry, "max_item_members")) read.max_item_members = *n;
  return read;
}

/// The last line of an invalid vector, or with HURRAY_UPDATE_VECTORS the new one in its place.
template <class SomeError>
void expect_sentence(const Json& entry, const Text& text, const SomeError& error) {
  const std::string sentence = "error: " + to_string(error);
  if (std::getenv("HURRAY_UPDATE_VECTORS") != nullptr && sentence != text.error)
    update(entry, sentence);
  else
    EXPECT_EQ(sentence, text.error) << entry["name"];
}

/// Heads and members in the order in which they are written.
void flatten(const Json& items, std::vector<Json>& out) {
  for (const Json& item : items) {
    out.push_back(item);
    if (item.contains("members")) flatten(item["members"], out);
  }
}

std::vector<std::uint64_t> tokens_of(const Json& item) {
  return item.value("tokens_per_sequence", std::vector<std::uint64_t>());
}

void expect_tensor_alone(const Tensor& tensor, const Json& item, const std::string& where) {
  EXPECT_EQ(
      difference(descriptor_part(item, false), descriptor_part(shown(tensor.descriptor()), false)),
      "")
      << where;
}

void expect_tensor(const Tensor& tensor, const Json& item, const std::string& where) {
  expect_tensor_alone(tensor, item, where);
  if (!item.contains("values") || item["layout"] == "composite") return;
  const auto kind = item["value_type"].get<std::string>();
  const auto tokens = tokens_of(item);
  EXPECT_EQ(difference(item["values"], shown_values(tensor, kind, tokens)), "") << where;
  EXPECT_TRUE(check_data(tensor)) << where;
}

/// A tensor as a whole: what sparse float8_e8m0 and one-byte-or-packed bool tensors refuse is for
/// other tests.
void expect_whole(const Tensor& tensor, const Json& item, const std::string& where) {
  if (!item.contains("values") || item["layout"] == "composite") return;
  const auto kind = item["value_type"].get<std::string>();
  if (ambiguous_bool(tensor)) return;
  EXPECT_EQ(difference(item["values"], shown_whole(tensor, kind, tokens_of(item))), "") << where;
}

TEST(Conformance, FramesOfStreams) {
  std::size_t tensors = 0;
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "valid") && !is(entry, "opaque")) continue;
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    auto reader = io::StreamReader::over(bytes, stream_options(entry, options));
    ASSERT_TRUE(reader) << entry["name"];
    std::vector<Json> items;
    flatten(entry["expect"]["items"], items);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string where = entry["name"].get<std::string>() + " " + std::to_string(i) + " " +
                                items[i].value("label", "");
      const auto frame = reader->next();
      ASSERT_TRUE(frame) << where << ": " << to_string(frame.error());
      ASSERT_TRUE(*frame) << where;
      expect_tensor(**frame, items[i], where);
      expect_whole(**frame, items[i], where);
      ++tensors;
    }
    const auto end = reader->next();
    ASSERT_TRUE(end) << entry["name"] << ": " << to_string(end.error());
    EXPECT_FALSE(*end) << entry["name"];
    EXPECT_EQ(reader->position(), bytes.size());
  }
  EXPECT_GE(tensors, 500u);
}

/// What errors call buffer `i` of a tensor.
std::string buffer_name(const Descriptor& d, std::size_t i) {
  if (std::holds_alternative<Csf>(d.layout) && i > 0 && i <= 2 * d.shape.rank())
    return std::string(role(d.layout, i)) + "[" + std::to_string((i - 1) / 2) + "]";
  const std::string_view own = role(d.layout, i);
  if (!own.empty()) return std::string(own);
  const auto names = parameters(d.quantization()->scheme);
  return i == names.scale_buffer && i != names.zero_point_buffer ? "scale" : "zero_point";
}

TEST(Conformance, DataThatBreaksARule) {
  std::size_t count = 0;
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "data_invalid")) continue;
    ++count;
    const Text text = text_of(entry);
    auto reader = io::StreamReader::over(text.bytes, {});
    ASSERT_TRUE(reader);
    const auto tensor = reader->next();
    ASSERT_TRUE(tensor && *tensor) << entry["name"];
    expect_tensor_alone(**tensor, entry["expect"]["items"][0], entry["name"]);
    const auto checked = check_data(**tensor);
    if (checked) {
      ADD_FAILURE() << entry["name"] << " was accepted";
      continue;
    }
    const Error error = checked.error();
    const Json& wanted = entry["error"];
    const auto buffer = wanted["buffer"].get<std::size_t>();
    EXPECT_EQ(error.origin, Origin::buffer) << entry["name"];
    if (wanted.contains("offset")) {
      EXPECT_EQ(error.offset, number(wanted["offset"])) << entry["name"] << to_string(error);
      EXPECT_EQ(error.field, buffer_name((*tensor)->descriptor(), buffer) + "[]") << entry["name"];
    } else {
      EXPECT_EQ(field_name(error), "buffers[" + std::to_string(buffer) + "].byte_size");
    }
    expect_sentence(entry, text, error);
    // What is read element by element is guarded by the same checks.
    if (wanted["check"].get<std::string>().front() != 'B') {
      EXPECT_FALSE(to_dense(**tensor)) << entry["name"];
    } else {
      EXPECT_FALSE(dequantize(**tensor)) << entry["name"];
    }
  }
  EXPECT_GE(count, 80u);
}

/// Reads everything as items; the first failure.
std::optional<io::Error> read_all(const Json& entry, const Bytes& bytes) {
  const Options options(entry);
  auto reader = io::StreamReader::over(bytes, stream_options(entry, options));
  if (!reader) return reader.error();
  for (;;) {
    const auto item = reader->next_item();
    if (item && !*item) return std::nullopt;
    if (item) continue;
    const auto after = reader->next();
    EXPECT_TRUE(after && !*after) << "a reader that failed is at its end";
    return item.error();
  }
}

void expect_item(const Item& item, const Json& expect, const std::string& where) {
  expect_tensor(item.tensor, expect, where);
  ASSERT_EQ(item.is_composite(), expect.contains("members")) << where;
  if (!item.is_composite()) return;
  ASSERT_EQ(item.members.size(), expect["members"].size()) << where;
  for (std::size_t i = 0; i < item.members.size(); ++i)
    expect_item(item.members[i], expect["members"][i], where + "." + std::to_string(i));
  std::string member;
  const auto view = materialize(item, &member);
  if (!expect.contains("values")) {
    ASSERT_FALSE(view) << where;
    EXPECT_EQ(view.error().code, Errc::unsupported) << where;
    return;
  }
  ASSERT_TRUE(view) << where << " " << member << ": " << to_string(view.error());
  EXPECT_EQ(difference(expect["values"],
                       shown_values(*view, expect["value_type"].get<std::string>(), {})),
            "")
      << where;
}

TEST(Conformance, ItemsOfStreams) {
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "valid")) continue;
    const auto name = entry["name"].get<std::string>();
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    auto reader = io::StreamReader::over(bytes, stream_options(entry, options));
    ASSERT_TRUE(reader);
    for (const Json& expect : entry["expect"]["items"]) {
      const auto item = reader->next_item();
      ASSERT_TRUE(item) << name << io::failure(item);
      ASSERT_TRUE(*item) << name;
      expect_item(**item, expect, name);
    }
    const auto end = reader->next_item();
    ASSERT_TRUE(end) << name << io::failure(end);
    EXPECT_FALSE(*end);
  }
}

/// Frame by frame and item by item are the same to the rules, and so is what a writer makes of it.
TEST(Conformance, ValidStreamsAreWrittenTheSame) {
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "valid") || !entry["expect"].value("written", true)) continue;
    const auto name = entry["name"].get<std::string>();
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    auto reader = io::StreamReader::over(bytes, stream_options(entry, options));
    auto writer = io::StreamWriter::in_memory();
    ASSERT_TRUE(reader && writer);
    for (;;) {
      const auto item = reader->next_item();
      ASSERT_TRUE(item) << name << io::failure(item);
      if (!*item) break;
      const auto written = writer->write_item(**item);
      ASSERT_TRUE(written) << name << io::failure(written);
    }
    const auto written = writer->bytes();
    EXPECT_TRUE(std::ranges::equal(written, bytes)) << name;
  }
}

/// Everything that can be asked of the tensors of `bytes`, whatever they are: for sanitizers. The
/// first failure of reading.
std::optional<io::Error> exercise(std::span<const std::byte> bytes) {
  auto reader = io::StreamReader::over(bytes, {.max_buffer_bytes = 1u << 20});
  if (!reader) return reader.error();
  for (;;) {
    const auto item = reader->next_item();
    if (!item) return item.error();
    if (!*item) return std::nullopt;
    for_each_item(**item, [](const Item& part, std::span<const std::size_t>) {
      const Descriptor& d = part.tensor.descriptor();
      const auto checked = check_data(part.tensor);
      if (part.is_composite() || d.shape.is_dynamic() || d.shape.count() > 4096) return true;
      if (d.quantization() != nullptr) {
        const auto whole = dequantize(part.tensor);
        EXPECT_TRUE(checked || !whole || std::holds_alternative<BlockPaged>(d.layout));
      } else {
        const auto whole = to_dense(part.tensor);
        EXPECT_TRUE(checked || !whole);
      }
      return true;
    });
  }
}

TEST(Conformance, EveryPrefixOfAStreamIsRefusedOrEndsBetweenItems) {
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "valid") || entry.contains("options")) continue;
    const Bytes whole = text_of(entry).bytes;
    std::set<std::uint64_t> ends{0};
    auto reader = io::StreamReader::over(whole, {});
    while (*reader->next_item()) ends.insert(reader->position());
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      auto shorter = io::StreamReader::over(cut, {});
      ASSERT_TRUE(shorter);
      auto item = shorter->next_item();
      while (item && *item) item = shorter->next_item();
      ASSERT_EQ(item.has_value(), ends.contains(size)) << entry["name"] << " cut to " << size;
      if (!item) {
        EXPECT_EQ(item.error().code, Errc::truncated);
      }
    }
  }
}

TEST(Conformance, EveryBitFlipOfAStreamIsRefusedOrRead) {
  for (const Json& entry : entries("stream")) {
    Bytes bytes = text_of(entry).bytes;
    if (bytes.size() > 600) continue;  // like the shorter ones, many times over
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1u << bit % 8);
      bytes[bit / 8] ^= mask;
      (void)exercise(bytes);
      bytes[bit / 8] ^= mask;
    }
  }
}

TEST(Conformance, InvalidStreamsFailAsTheManifestSays) {
  std::size_t count = 0;
  for (const Json& entry : entries("stream")) {
    if (!is(entry, "invalid")) continue;
    ++count;
    const Text text = text_of(entry);
    const auto error = read_all(entry, text.bytes);
    if (!error) {
      ADD_FAILURE() << entry["name"] << " was accepted";
      continue;
    }
    const Json& wanted = entry["error"];
    EXPECT_EQ(difference(wanted, shown(*error, wanted)), "") << entry["name"] << to_string(*error);
    expect_sentence(entry, text, *error);
  }
  EXPECT_GE(count, 60u);
}

// ------------------------------------------------------------------------------------------
// files

io::OpenOptions open_options(const Json& entry, io::Mode mode) {
  io::OpenOptions open;
  open.mode = mode;
  const auto set = [&](auto& field, const char* name) {
    if (const auto n = limit(entry, name))
      field = static_cast<std::remove_reference_t<decltype(field)>>(*n);
  };
  set(open.max_index_bytes, "max_index_bytes");
  set(open.max_tensors, "max_tensors");
  set(open.max_kv_bytes, "max_kv_bytes");
  set(open.max_descriptor_bytes, "max_descriptor_bytes");
  set(open.max_composite_depth, "max_composite_depth");
  return open;
}

Json shown_kv(const std::string& value) { return value; }
Json shown_kv(bool value) { return value; }
Json shown_kv(double value) { return hex(value); }
Json shown_kv(std::int64_t value) { return shown(value); }
Json shown_kv(std::uint64_t value) { return shown(value); }
Json shown_kv(const io::Bytes& value) { return hex(value); }

Json shown_kv(const io::KvValue& value) {
  return std::visit(
      [&]<class T>(const T& v) -> Json {
        if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                      std::is_same_v<T, io::Bytes>) {
          return {{"type", io::type_name(value)}, {"value", shown_kv(v)}};
        } else {
          Json list = Json::array();
          for (std::size_t i = 0; i < v.size(); ++i)
            list.push_back(shown_kv(static_cast<typename T::value_type>(v[i])));
          return {{"type", "array"}, {"of", io::type_name(value)}, {"value", list}};
        }
      },
      value);
}

class FileVectors : public ::testing::TestWithParam<io::Mode> {
 protected:
  io::Result<io::File> open(const Json& entry, const Bytes& bytes) {
    const std::string path = folder_ / "vector.hrry";
    io::write_bytes(path, bytes);
    return io::File::open(path, open_options(entry, GetParam()));
  }

 private:
  io::TemporaryFolder folder_;
};

TEST_P(FileVectors, AreReadAsTheManifestSays) {
  std::size_t count = 0;
  for (const Json& entry : entries("file")) {
    if (!is(entry, "valid")) continue;
    ++count;
    const auto name = entry["name"].get<std::string>();
    const auto file = open(entry, text_of(entry).bytes);
    ASSERT_TRUE(file) << name << io::failure(file);
    const Json& expect = entry["expect"];
    ASSERT_EQ(file->size(), expect["names"].size()) << name;
    EXPECT_EQ(file->header().flags, expect["flags"].get<std::uint32_t>()) << name;
    EXPECT_EQ(file->has_checksums(), expect.value("has_checksums", false)) << name;
    Json kv = Json::array();
    for (const auto& [key, value] : file->kv()) kv.push_back({key, shown_kv(value)});
    EXPECT_EQ(difference(expect["kv"], kv), "") << name;
    for (std::size_t i = 0; i < file->size(); ++i) {
      const io::Entry found = file->entry(i);
      const std::string key(found.name);
      EXPECT_EQ(Json(key), expect["names"][i]) << name;
      EXPECT_EQ(file->find(key), i) << name;
      EXPECT_EQ(difference(expect["entries"][key],
                           {shown(found.descriptor_offset), found.descriptor_length,
                            shown(found.data_offset), shown(found.data_length)}),
                "")
          << name;
      const Json& item = expect["tensors"][key];
      const auto tensor = file->tensor(i);
      if (item.contains("error")) {
        ASSERT_FALSE(tensor) << name << " " << key;
        EXPECT_EQ(difference(item["error"], shown(tensor.error(), item["error"])), "") << name;
        continue;
      }
      ASSERT_TRUE(tensor) << name << " " << key << io::failure(tensor);
      expect_tensor(*tensor, item, name + " " + key);
      expect_whole(*tensor, item, name + " " + key);
    }
  }
  EXPECT_GE(count, 35u);
}

/// The item called `name` as the manifest describes items of streams.
Json item_of(const Json& expect, const std::string& name) {
  Json item = expect["tensors"][name];
  if (!expect["members"].contains(name)) return item;
  item["members"] = Json::array();
  for (const Json& member : expect["members"][name])
    item["members"].push_back(item_of(expect, member.get<std::string>()));
  return item;
}

TEST_P(FileVectors, ItemsOfFiles) {
  std::size_t composites = 0;
  for (const Json& entry : entries("file")) {
    if (!is(entry, "valid") || entry["expect"]["members"].empty()) continue;
    const auto name = entry["name"].get<std::string>();
    const Json& expect = entry["expect"];
    const auto file = open(entry, text_of(entry).bytes);
    ASSERT_TRUE(file) << name << io::failure(file);
    for (const auto& [head, members] : expect["members"].items()) {
      const auto item = file->item(head);
      ASSERT_TRUE(item) << name << " " << head << io::failure(item);
      expect_item(*item, item_of(expect, head), name + " " + head);
      ++composites;
    }
    const auto owners = file->owners();
    ASSERT_TRUE(owners) << name << io::failure(owners);
    for (std::size_t i = 0; i < file->size(); ++i) {
      const std::string owner =
          (*owners)[i] ? std::string(file->entry(*(*owners)[i]).name) : std::string();
      std::string wanted;
      for (const auto& [head, members] : expect["members"].items())
        if (std::ranges::find(members, Json(std::string(file->entry(i).name))) != members.end())
          wanted = head;
      EXPECT_EQ(owner, wanted) << name << " " << file->entry(i).name;
    }
  }
  EXPECT_GE(composites, 20u);
}

TEST_P(FileVectors, CompositesThatBreakARule) {
  std::size_t count = 0;
  for (const Json& entry : entries("file")) {
    if (!is(entry, "invalid") || std::ranges::find(entry["rows"], "file 28") == entry["rows"].end())
      continue;
    ++count;
    const Text text = text_of(entry);
    const auto file = open(entry, text.bytes);
    ASSERT_TRUE(file) << entry["name"] << io::failure(file);
    const auto item = file->item(std::string_view("t0"));
    if (item) {
      ADD_FAILURE() << entry["name"] << " was accepted";
      continue;
    }
    const Json& wanted = entry["error"];
    io::Error error = item.error();
    EXPECT_EQ(difference(wanted, shown(error, wanted)), "") << entry["name"] << to_string(error);
    error.path.clear();
    expect_sentence(entry, text, error);
    // Its tensors stay readable on their own.
    for (std::size_t i = 0; i < file->size(); ++i)
      EXPECT_TRUE(file->tensor(i)) << entry["name"] << " " << file->entry(i).name;
  }
  EXPECT_GE(count, 35u);
}

TEST_P(FileVectors, InvalidOnesFailAsTheManifestSays) {
  std::size_t count = 0;
  for (const Json& entry : entries("file")) {
    if (!is(entry, "invalid") || std::ranges::find(entry["rows"], "file 28") != entry["rows"].end())
      continue;
    ++count;
    const Text text = text_of(entry);
    std::optional<io::Error> error;
    if (const auto file = open(entry, text.bytes); !file) {
      error = file.error();
    } else {
      for (std::size_t i = 0; i < file->size() && !error; ++i)
        if (const auto tensor = file->tensor(i); !tensor) error = tensor.error();
    }
    if (!error) {
      ADD_FAILURE() << entry["name"] << " was accepted";
      continue;
    }
    Json wanted = entry["error"];
    if (wanted.contains("tensor")) {
      EXPECT_EQ(Json(error->tensor), wanted["tensor"]) << entry["name"];
      wanted.erase("tensor");
    }
    EXPECT_EQ(difference(wanted, shown(*error, wanted)), "") << entry["name"] << to_string(*error);
    error->path.clear();
    expect_sentence(entry, text, *error);
  }
  EXPECT_GE(count, 110u);
}

INSTANTIATE_TEST_SUITE_P(Conformance, FileVectors,
                         ::testing::Values(io::Mode::map, io::Mode::memory), [](const auto& mode) {
                           return std::string(mode.param == io::Mode::map ? "Map" : "Memory");
                         });

}  // namespace
}  // namespace hurray::conformance
