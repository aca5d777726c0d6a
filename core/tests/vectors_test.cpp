#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "manifest.hpp"
#include "support.hpp"

/// The descriptors of conformance/, by its manifest.
namespace hurray::conformance {
namespace {

using hurray::testing::for_each_bit_flip;
using hurray::testing::for_each_prefix;

/// Vectors that must be read in the way that the entry says.
std::vector<Json> read_ones() {
  std::vector<Json> found;
  for (Json& entry : entries("descriptor"))
    if (!is(entry, "invalid")) found.push_back(std::move(entry));
  return found;
}

bool reencodes(const Json& entry) { return entry["expect"].value("reencodes", true); }

/// Strict, and with nothing agreed on: what every reader takes.
bool is_plain(const Json& entry) { return is(entry, "valid") && !entry.contains("options"); }

TEST(Vectors, AreReadAsTheManifestSays) {
  const auto vectors = read_ones();
  ASSERT_GE(vectors.size(), 1000u);
  for (const Json& entry : vectors) {
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    const auto d = decode(bytes, options.decode());
    ASSERT_TRUE(d) << entry["name"] << ": " << to_string(d.error());
    EXPECT_EQ(difference(descriptor_part(entry["expect"]), shown(*d)), "") << entry["name"];
    if (is(entry, "opaque")) {
      EXPECT_TRUE(opaque(*d)) << entry["name"];
    } else if (!entry.contains("options")) {
      EXPECT_FALSE(opaque(*d)) << entry["name"] << ": " << to_string(*opaque(*d));
    }
    const Descriptor copy = *d;
    EXPECT_EQ(copy, *d);
  }
}

TEST(Vectors, EncodeToTheSameBytes) {
  for (const Json& entry : read_ones()) {
    if (!reencodes(entry)) continue;
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    const auto d = decode(bytes, options.decode());
    ASSERT_TRUE(d) << entry["name"];
    const auto again = encode(*d, {.permissive = options.decode().permissive});
    ASSERT_TRUE(again) << entry["name"] << ": " << to_string(again.error());
    EXPECT_EQ(*again, bytes) << entry["name"];
  }
}

TEST(Vectors, InvalidOnesFailAsTheManifestSays) {
  const bool updating = std::getenv("HURRAY_UPDATE_VECTORS") != nullptr;
  std::size_t count = 0;
  for (const Json& entry : entries("descriptor")) {
    if (!is(entry, "invalid")) continue;
    ++count;
    const Text text = text_of(entry);
    const Options options(entry);
    const auto d = decode(text.bytes, options.decode());
    if (d) {
      ADD_FAILURE() << entry["name"] << " was accepted";
      continue;
    }
    const Json& wanted = entry["error"];
    EXPECT_EQ(difference(wanted, shown(d.error(), wanted)), "") << entry["name"];
    EXPECT_LE(d.error().offset, text.bytes.size()) << entry["name"];
    const std::string sentence = "error: " + to_string(d.error());
    if (updating && sentence != text.error)
      update(entry, sentence);
    else
      EXPECT_EQ(sentence, text.error) << entry["name"];
  }
  EXPECT_GE(count, 600u);
}

TEST(Vectors, StrictModeRefusesWhatPermissiveModeLetsThrough) {
  for (const Json& entry : read_ones()) {
    if (!entry.contains("options")) continue;
    const auto d = decode(text_of(entry).bytes);
    EXPECT_FALSE(d) << entry["name"];
  }
}

TEST(Vectors, StatisticsThatBreakARuleAreKeptAndNotWrittenAnew) {
  std::size_t count = 0;
  for (const Json& entry : read_ones()) {
    if (entry.value("rows", Json::array()) != Json{"58"}) continue;
    ++count;
    auto d = decode(text_of(entry).bytes, {.permissive = true});
    ASSERT_TRUE(d) << entry["name"];
    const Statistics statistics = *d->statistics();
    const std::uint32_t dropped = statistics.dropped();
    EXPECT_TRUE(std::has_single_bit(dropped)) << entry["name"];
    EXPECT_FALSE(statistics.has(static_cast<StatisticsBit>(dropped))) << entry["name"];
    const auto strict = encode(*d);
    ASSERT_FALSE(strict) << entry["name"];
    EXPECT_TRUE(strict.error().field.starts_with("statistics.")) << entry["name"];
    d->set_statistics(statistics.sound());
    EXPECT_TRUE(encode(*d)) << entry["name"];
    EXPECT_EQ(d->statistics()->computed_mask, statistics.computed_mask & ~dropped);
  }
  EXPECT_EQ(count, 6u);
}

TEST(Vectors, PermissiveModeReadsValidOnesTheSame) {
  for (const Json& entry : read_ones()) {
    if (!is_plain(entry)) continue;
    const Bytes bytes = text_of(entry).bytes;
    const auto strict = decode(bytes);
    const auto permissive = decode(bytes, {.permissive = true});
    ASSERT_TRUE(strict && permissive) << entry["name"];
    EXPECT_EQ(*strict, *permissive) << entry["name"];
  }
}

TEST(Vectors, AnnotationCoversEveryByteInOrder) {
  for (const Json& entry : read_ones()) {
    const Bytes bytes = text_of(entry).bytes;
    const Options options(entry);
    std::uint64_t at = 0;
    const auto done = describe(
        bytes,
        [&](const FieldRow& row) {
          EXPECT_EQ(row.offset, at) << entry["name"] << " " << row.name;
          EXPECT_FALSE(row.name.empty());
          at += row.size;
        },
        options.decode());
    ASSERT_TRUE(done) << entry["name"];
    EXPECT_EQ(at, bytes.size()) << entry["name"];
  }
}

TEST(Vectors, EveryPrefixIsRefused) {
  for (const Json& entry : read_ones()) {
    const Options options(entry);
    for_each_prefix(text_of(entry).bytes, [&](const Bytes& cut) {
      const auto d = decode(cut, options.decode());
      ASSERT_FALSE(d) << entry["name"] << " cut to " << cut.size();
      EXPECT_EQ(d.error().code, Errc::truncated);
    });
  }
}

TEST(Vectors, EveryBitFlipIsRefusedOrUnderstoodAndWrittenBackTheSame) {
  for (const Json& entry : read_ones()) {
    const Options options(entry);
    const bool permissive = options.decode().permissive;
    const bool kept = reencodes(entry);
    const Bytes whole = text_of(entry).bytes;
    if (whole.size() > 4096) continue;  // like the shorter ones, many times over
    for_each_bit_flip(whole, [&](const Bytes& bytes) {
      const auto d = decode(bytes, options.decode());
      if (!d || d->version.minor != 0) return;
      const auto again = encode(*d, {.permissive = permissive});
      ASSERT_TRUE(again) << entry["name"] << ": " << to_string(again.error());
      // A shorter descriptor_length is caught by row 7 or 66, except behind an unknown layout.
      if (kept) {
        const auto used = static_cast<std::ptrdiff_t>(*descriptor_length(bytes));
        EXPECT_EQ(*again, Bytes(bytes.begin(), bytes.begin() + used)) << entry["name"];
      }
    });
  }
}

TEST(Vectors, ANewerMinorVersionIsNotWrittenBack) {
  std::size_t count = 0;
  for (const Json& entry : read_ones()) {
    const auto d = decode(text_of(entry).bytes, Options(entry).decode());
    if (!d || d->version.minor == 0) continue;
    ++count;
    const auto again = encode(*d);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Errc::unsupported);
    EXPECT_EQ(again.error().field, "version_minor");
    EXPECT_EQ(again.error().offset, 5u);
  }
  EXPECT_EQ(count, 3u);
}

TEST(Vectors, EveryRowIsProved) {
  std::vector<std::string> proved;
  for (const Json& entry : manifest()["vectors"])
    if (is(entry, "invalid") || is(entry, "data_invalid"))
      for (const Json& row : entry["rows"]) proved.push_back(row.get<std::string>());
  for (const Json& row : manifest()["rows"])
    EXPECT_NE(std::ranges::find(proved, row["row"].get<std::string>()), proved.end()) << row;
}

TEST(Vectors, TheOtherImplementationsBytesAreOurs) {
  const auto golden = folder() / "../../shared/vectors";
  if (!std::filesystem::exists(golden)) GTEST_SKIP() << "no golden files beside the checkout";
  int compared = 0;
  for (const Json& entry : read_ones()) {
    std::ifstream file(golden / path_of(entry).stem().replace_extension(".bin"), std::ios::binary);
    if (!file) continue;
    const std::string wanted{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = text_of(entry).bytes;
    ASSERT_EQ(wanted.size(), bytes.size());
    EXPECT_EQ(std::memcmp(wanted.data(), bytes.data(), wanted.size()), 0) << entry["name"];
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

}  // namespace
}  // namespace hurray::conformance
