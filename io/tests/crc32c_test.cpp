#include "hurray/io/crc32c.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "crc32c.hpp"

namespace hurray::io {
namespace {

using Data = std::vector<std::byte>;

Data text(std::string_view letters) {
  const auto bytes = std::as_bytes(std::span(letters));
  return {bytes.begin(), bytes.end()};
}

Data rising(std::size_t count) {
  Data bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

/// The definition: one bit at a time.
std::uint32_t by_definition(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte b : bytes) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

TEST(Crc32c, TheFastestPathIsTheOneThatIsUsedAndTablesAreAlwaysThere) {
  ASSERT_FALSE(crc32c_paths().empty());
  EXPECT_EQ(crc32c_paths().back().name, "tables");
  const Data bytes = rising(100);
  EXPECT_EQ(crc32c(bytes), crc32c_paths().front().crc32c(bytes, 0));
}

TEST(Crc32c, CheckValuesOfTheFormat) {
  for (const Crc32cPath& path : crc32c_paths()) {
    SCOPED_TRACE(path.name);
    EXPECT_EQ(path.crc32c(text("123456789"), 0), 0xE3069283u);
    EXPECT_EQ(path.crc32c(Data(32, std::byte{0x00}), 0), 0x8A9136AAu);
    EXPECT_EQ(path.crc32c(Data(32, std::byte{0xFF}), 0), 0x62A8AB43u);
    EXPECT_EQ(path.crc32c(rising(32), 0), 0x46DD794Eu);
    EXPECT_EQ(path.crc32c({}, 0), 0u);
  }
}

TEST(Crc32c, EveryShortLengthAndEdgeOfABlockAgreesWithTheDefinition) {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < 80; ++n) lengths.push_back(n);
  for (const std::size_t block : {std::size_t{3 * 256}, std::size_t{3 * 8192}})
    for (std::size_t times = 1; times <= 3; ++times)
      for (const std::size_t edge : {block * times - 9, block * times - 1, block * times,
                                     block * times + 1, block * times + 8})
        lengths.push_back(edge);
  for (const std::size_t length : lengths) {
    Data bytes = rising(length);
    std::ranges::for_each(bytes, [](std::byte& b) { b ^= std::byte{0xA5}; });
    const std::uint32_t expected = by_definition(bytes);
    for (const Crc32cPath& path : crc32c_paths())
      ASSERT_EQ(path.crc32c(bytes, 0), expected) << path.name << ", " << length << " bytes";
  }
}

TEST(Crc32c, PathsAgreeForRandomLengthsOffsetsAndContinuations) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Data bytes(100'000);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t offset = below(bytes.size());
    const std::size_t longest = bytes.size() - offset;
    const std::size_t length =
        round % 2 == 0 ? below(longest) : below(std::min<std::size_t>(longest, 300));
    const auto part = std::span(bytes).subspan(offset, length);
    const std::size_t cut = below(length);
    const std::uint32_t whole = crc32c_paths().back().crc32c(part, 0);
    for (const Crc32cPath& path : crc32c_paths()) {
      ASSERT_EQ(path.crc32c(part, 0), whole) << path.name << ' ' << offset << ' ' << length;
      ASSERT_EQ(path.crc32c(part.subspan(cut), path.crc32c(part.first(cut), 0)), whole)
          << path.name << ' ' << offset << ' ' << length << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace hurray::io
