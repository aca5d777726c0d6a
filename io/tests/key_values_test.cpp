#include "hurray/io/key_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <sstream>

#include "key_values.hpp"

namespace hurray::io {
namespace {

Bytes hex(const std::string& text) {
  Bytes bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  return bytes;
}

Bytes bytes_of(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

/// What `error` says, without the general advice that comes with its code.
std::string sentence(const Error& error) {
  std::string text = to_string(error);
  const std::string advice = "; " + std::string(info(error.code).hint);
  if (text.ends_with(advice)) text.resize(text.size() - advice.size());
  return text;
}

/// The sentence that decoding fails with; "" when it does not.
std::string failure(const std::string& section, std::uint64_t base = 0, bool newer_minor = false) {
  const auto decoded = decode_kv(hex(section), base, newer_minor);
  return decoded ? "" : sentence(decoded.error());
}

std::string refusal(const KeyValues& kv) {
  const auto encoded = encode_kv(kv);
  return encoded ? "" : sentence(encoded.error());
}

KeyValues every_type() {
  return {
      {"name", std::string("Größe \U0001F600")},
      {"int64", std::numeric_limits<std::int64_t>::min()},
      {"uint64", std::numeric_limits<std::uint64_t>::max()},
      {"float64", -0.0},
      {"yes", true},
      {"no", false},
      {"bytes", hex("00 FF 80")},
      {"empty", std::string()},
      {"strings", std::vector<std::string>{"a", "", "ü"}},
      {"int64s", std::vector<std::int64_t>{-1, 0, 1}},
      {"uint64s", std::vector<std::uint64_t>{1}},
      {"float64s", std::vector<double>{0.5, std::numeric_limits<double>::infinity()}},
      {"bools", std::vector<bool>{true, false, true}},
      {"blobs", std::vector<Bytes>{{}, hex("01")}},
      {"no strings", std::vector<std::string>{}},
      {"no blobs", std::vector<Bytes>{}},
  };
}

TEST(KeyValues, BytesOfEveryType) {
  const KeyValues kv = {
      {"s", std::string("hi")},
      {"i", std::int64_t{-2}},
      {"u", std::uint64_t{3}},
      {"f", 1.5},
      {"b", true},
      {"o", hex("AA")},
      {"l", std::vector<bool>{true, false}},
      {"e", std::vector<double>{}},
  };
  const Bytes expected =
      hex("08 00 00 00 "
          "01 00 73 01 02 00 00 00 68 69 "
          "01 00 69 02 FE FF FF FF FF FF FF FF "
          "01 00 75 03 03 00 00 00 00 00 00 00 "
          "01 00 66 04 00 00 00 00 00 00 F8 3F "
          "01 00 62 05 01 "
          "01 00 6F 06 01 00 00 00 AA "
          "01 00 6C 07 05 02 00 00 00 01 00 "
          "01 00 65 07 04 00 00 00 00");
  EXPECT_EQ(*encode_kv(kv), expected);
  EXPECT_EQ(*decode_kv(expected, 0), kv);
}

TEST(KeyValues, EverythingComesBackInOrderAndTheEmptySectionIsOne) {
  EXPECT_EQ(*decode_kv(*encode_kv(every_type()), 0), every_type());
  EXPECT_EQ(*encode_kv({}), hex("00 00 00 00"));
  EXPECT_EQ(*decode_kv(hex("00 00 00 00"), 0), KeyValues());
}

TEST(KeyValues, PayloadsOfNaNsAreKept) {
  const auto bits = std::uint64_t{0x7FF4'0000'0000'0123};
  const auto back = decode_kv(*encode_kv({{"nan", std::bit_cast<double>(bits)}}), 0);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(std::get<double>(back->at(0).second)), bits);
}

TEST(KeyValues, FindsByKey) {
  const KeyValues kv = every_type();
  EXPECT_EQ(std::get<bool>(*find(kv, "yes")), true);
  EXPECT_EQ(find(kv, "Yes"), nullptr);
}

TEST(KeyValues, RefusalsOnReadingNameFieldOffsetExpectedAndFound) {
  EXPECT_EQ(failure("01 00 00", 64),
            "kv_count: expected 4 bytes, found 3 (truncated at byte 64 of the file)");
  EXPECT_EQ(
      failure("01 00 00 00 00 00 05 01 00", 100),
      "kv[0].key_length: expected at least 1, found 0 (invalid value at byte 104 of the file)");
  EXPECT_EQ(failure("01 00 00 00 09 00 61 62 63", 100),
            "kv[0].key: expected 9 bytes, found 3 (truncated at byte 106 of the file)");
  EXPECT_EQ(failure("01 00 00 00 02 00 C0 80 05 01", 100),
            "kv[0].key: must be valid UTF-8 (invalid value at byte 106 of the file)");
  EXPECT_EQ(
      failure("01 00 00 00 01 00 61 05 02"),
      "kv[0].value: expected at most 1 (a bool is 0 or 1), found 2 (invalid value at byte 8 of "
      "the file)");
  EXPECT_EQ(failure("01 00 00 00 01 00 61 01 01 00 00 00 FF", 8),
            "kv[0].value: must be valid UTF-8 (invalid value at byte 20 of the file)");
  EXPECT_EQ(failure("02 00 00 00 01 00 61 05 00 01 00 61 05 01", 1000),
            "kv[1].key: keys are unique (duplicate at byte 1011 of the file)");
  EXPECT_EQ(failure("01 00 00 00 01 00 61 02 01 00 00 00 00 00 00"),
            "kv[0].value: expected 8 bytes, found 7 (truncated at byte 8 of the file)");
}

TEST(KeyValues, UnknownTypesAreRefused) {
  for (const std::string tag : {"00", "08", "EF", "FF"})
    EXPECT_EQ(failure("01 00 00 00 01 00 61 " + tag + " 01"),
              "kv[0].value_tag: expected a type from 0x01 to 0x07, found 0x" + tag +
                  " (invalid tag at byte 7 of the file)");
  for (const std::string tag : {"F0", "FE"})
    EXPECT_EQ(failure("01 00 00 00 01 00 61 " + tag + " 01"),
              "kv[0].value_tag: expected a type from 0x01 to 0x07 (only its writer knows a private "
              "one), found 0x" +
                  tag + " (invalid tag at byte 7 of the file)");
  EXPECT_EQ(failure("01 00 00 00 01 00 61 07 07 00 00 00 00"),
            "kv[0].element_tag: expected a type from 0x01 to 0x06 (arrays do not nest), found 0x07 "
            "(invalid tag at byte 8 of the file)");
  EXPECT_EQ(
      failure("01 00 00 00 01 00 61 07 09 00 00 00 00"),
      "kv[0].element_tag: expected a type from 0x01 to 0x07, found 0x09 (invalid tag at byte 8 "
      "of the file)");
}

TEST(KeyValues, CountsAreComparedWithTheBytesThatAreLeft) {
  EXPECT_EQ(
      failure("02 00 00 00 01 00 61 05 01"),
      "kv_count: expected at most 1 in the bytes that are left, found 2 (truncated at byte 0 of "
      "the file)");
  EXPECT_EQ(
      failure("FF FF FF FF 01 00 61 05 01"),
      "kv_count: expected at most 1 in the bytes that are left, found 4294967295 (truncated at "
      "byte 0 of the file)");
  EXPECT_EQ(
      failure("01 00 00 00 01 00 61 01 02 00 00 00 68"),
      "kv[0].value: expected at most 1 in the bytes that are left, found 2 (truncated at byte 8 "
      "of the file)");
  const struct {
    std::string tag;
    int size;
  } elements[] = {{"01", 4}, {"02", 8}, {"03", 8}, {"04", 8}, {"05", 1}, {"06", 4}};
  for (const auto& element : elements) {
    std::string section = "01 00 00 00 01 00 61 07 " + element.tag + " 02 00 00 00";
    for (int i = 0; i < 2 * element.size - 1; ++i) section += " 00";
    EXPECT_EQ(
        failure(section),
        "kv[0].value: expected at most 1 in the bytes that are left, found 2 (truncated at byte "
        "9 of the file)");
    EXPECT_EQ(failure(section + " 00"), "");
  }
}

TEST(KeyValues, OnlyANewerMinorMayHaveBytesAfterTheLastEntry) {
  const std::string section = "01 00 00 00 01 00 61 05 01 00";
  EXPECT_EQ(
      failure(section, 64),
      "kv_length: expected 0 bytes after the last entry, found 1 (length mismatch at byte 73 of "
      "the file)");
  EXPECT_EQ(failure(section, 64, true), "");
}

TEST(KeyValues, RefusalsOnWriting) {
  EXPECT_EQ(refusal({{"", true}}),
            "kv[0].key_length: expected at most 65535 bytes (and at least 1), found 0 (invalid "
            "value); the key is \"\"");
  EXPECT_EQ(refusal({{std::string(65536, 'k'), true}}),
            "kv[0].key_length: expected at most 65535 bytes (and at least 1), found 65536 (invalid "
            "value)");
  EXPECT_EQ(refusal({{std::string(65535, 'k'), true}}), "");
  EXPECT_EQ(refusal({{"a\xFF", true}}),
            "kv[0].key: must be valid UTF-8 (invalid value); the key is \"a\\xff\"");
  EXPECT_EQ(refusal({{"good", true}, {"bad", std::string("\xED\xA0\x80")}}),
            "kv[1].value: must be valid UTF-8 (invalid value); the key is \"bad\"");
  EXPECT_EQ(refusal({{"bad", std::vector<std::string>{"", "\x80"}}}),
            "kv[0].value: must be valid UTF-8 (invalid value); the key is \"bad\"");
  EXPECT_EQ(refusal({{"a", true}, {"b", true}, {"a", false}}),
            "kv[2].key: keys are unique (duplicate); the key is \"a\"");
}

TEST(KeyValues, WhatIsOursIsRefusedOnWritingAndLeftOutOnReading) {
  EXPECT_EQ(
      refusal({{"hurray.crc32c", true}}),
      "kv[0].key: \"hurray.crc32c\" is the writer's own; take another key (invalid value); the "
      "key is \"hurray.crc32c\"");
  EXPECT_EQ(refusal({{"mine", bytes_of("HRRYSUM1 and more")}}),
            "kv[0].value: bytes that begin with HRRYSUM1 are the writer's own checksums (invalid "
            "value); the key is \"mine\"");
  EXPECT_EQ(refusal({{"mine", std::string("HRRYSUM1")}, {"two", bytes_of("HRRYSUM")}}), "");

  Bytes section = *encode_kv({{"a", true}});
  const Bytes payload = bytes_of("HRRYSUM1 and sums");
  ASSERT_TRUE(append_checksums(section, payload));
  EXPECT_EQ(section, [&] {
    Bytes expected = hex("02 00 00 00 01 00 61 05 01 0D 00");
    for (const Bytes& part : {bytes_of("hurray.crc32c"), hex("06 11 00 00 00"), payload})
      expected.insert(expected.end(), part.begin(), part.end());
    return expected;
  }());
  EXPECT_EQ(*decode_kv(section, 0), (KeyValues{{"a", true}}));

  const auto split = split_kv(section, 4096);
  ASSERT_EQ(split->checksums.size(), 1u);
  const ChecksumEntry& ours = split->checksums[0];
  EXPECT_EQ(ours.key, checksums_key);
  EXPECT_TRUE(std::ranges::equal(ours.payload, payload));
  EXPECT_EQ(ours.offset, 4096 + section.size() - payload.size());
  EXPECT_TRUE(ours.last);
}

TEST(KeyValues, DamagedChecksumEntriesAreStillOurs) {
  // The key without bytes, and the magic under another key.
  Bytes section = hex("03 00 00 00 0D 00");
  for (const Bytes& part : {bytes_of("hurray.crc32c"), hex("05 01 01 00 78 06 08 00 00 00"),
                            bytes_of("HRRYSUM1"), hex("01 00 79 05 00")})
    section.insert(section.end(), part.begin(), part.end());
  const auto split = split_kv(section, 0);
  ASSERT_TRUE(split) << to_string(split.error());
  EXPECT_EQ(split->entries, (KeyValues{{"y", false}}));
  ASSERT_EQ(split->checksums.size(), 2u);
  EXPECT_TRUE(split->checksums[0].payload.empty());
  EXPECT_EQ(split->checksums[1].key, "x");
  EXPECT_FALSE(split->checksums[1].last);
}

TEST(KeyValues, EveryPrefixIsRefusedAndEveryBitFlipIsRefusedOrUnderstood) {
  const Bytes good = *encode_kv(every_type());
  for (std::size_t n = 0; n < good.size(); ++n) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_FALSE(decode_kv(cut, 0)) << n;
  }
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes flipped = good;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    if (const auto decoded = decode_kv(flipped, 0)) {
      EXPECT_EQ(*encode_kv(*decoded), flipped) << "bit " << bit;
    }
  }
}

TEST(KeyValues, ManyKeysAreQuick) {
  KeyValues kv;
  for (int i = 0; i < 20'000; ++i) kv.emplace_back("key " + std::to_string(i), std::int64_t{i});
  Bytes section = *encode_kv(kv);
  EXPECT_EQ(decode_kv(section, 0)->size(), kv.size());
  kv.emplace_back("key 77", true);
  EXPECT_EQ(encode_kv(kv).error().index, 20'000u);
}

TEST(Utf8, AcceptsEveryCharacterAndNothingElse) {
  for (const std::string text :
       {"", "plain ascii that is longer than eight", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
        "12345678\xC3\xBC"
        "12345678"})
    EXPECT_TRUE(is_utf8(text)) << text;
  EXPECT_TRUE(is_utf8(std::string_view("nul \0 inside", 12)));
  for (const std::string text : {"\x80",
                                 "\xBF",
                                 "\xC0\x80",
                                 "\xC1\xBF",
                                 "\xC2",
                                 "\xC2"
                                 "a",
                                 "\xE0\x80\x80",
                                 "\xE0\x9F\xBF",
                                 "\xE0\xA0",
                                 "\xE1\x80"
                                 "a",
                                 "\xED\xA0\x80",
                                 "\xED\xBF\xBF",
                                 "\xF0\x80\x80\x80",
                                 "\xF0\x8F\xBF\xBF",
                                 "\xF0\x90\x80",
                                 "\xF4\x90\x80\x80",
                                 "\xF5\x80\x80\x80",
                                 "\xF8\x88\x80\x80\x80",
                                 "\xFE",
                                 "\xFF",
                                 "12345678\xFF"
                                 "12345678",
                                 "1234567\xC3"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace hurray::io
