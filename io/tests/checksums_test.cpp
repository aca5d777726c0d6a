#include "checksums.hpp"

#include <gtest/gtest.h>

#include "crc32c.hpp"
#include "file_support.hpp"

namespace hurray::io {
namespace {

Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(Checksums, JoinedSumsAreThoseOfTheWhole) {
  const Bytes bytes = pattern(100'000, 1);
  const auto all = std::span<const std::byte>(bytes);
  for (const std::size_t cut : {0u, 1u, 7u, 4096u, 65'537u, 99'999u, 100'000u})
    EXPECT_EQ(join_crc32c(crc32c(all.first(cut)), crc32c(all.subspan(cut)), bytes.size() - cut),
              crc32c(all))
        << cut;
  // A length beyond what can be made here: joining is associative.
  const std::uint64_t far = std::uint64_t{1} << 40;
  EXPECT_EQ(join_crc32c(join_crc32c(1, 2, far), 3, 5),
            join_crc32c(1, join_crc32c(2, 3, 5), far + 5));
}

/// With a small limit chunks grow until the payload fits, and stay sums of the file's bytes.
TEST(Checksums, ChunksGrowWithTheFile) {
  const Bytes header(64, std::byte{1});
  const Bytes descriptor(53, std::byte{2});
  const Bytes index(8);
  const std::size_t sizes[] = {(9u << 20) + 17, 0, 5, 8u << 20};
  for (const std::uint64_t limit : {64u << 20, 36u + 4 * 20, 36u + 4 * 9, 0u}) {
    Checksums sums(header, limit);
    std::vector<Bytes> data;
    for (const std::size_t size : sizes) {
      data.push_back(pattern(size, static_cast<std::uint32_t>(size)));
      sums.reserve(1, size);
      sums.begin(descriptor, size);
      for (auto left = std::span<const std::byte>(data.back()); !left.empty();) {
        const auto part = left.first(std::min<std::size_t>(left.size(), 700'000));
        sums.add(part);
        left = left.subspan(part.size());
      }
      sums.end();
    }
    Bytes section(4);
    ASSERT_EQ(failure(sums.append_to(section, index)), "");
    const Image image{section};
    const std::size_t payload = 4 + 2 + checksums_key.size() + 1 + 4;
    const unsigned log2 = image.get<std::uint8_t>(payload + 9);
    if (limit == 0)
      EXPECT_EQ(log2, 30u);
    else
      EXPECT_LE(section.size() - payload, limit);

    std::size_t at = payload + 32;
    for (const Bytes& bytes : data) {
      EXPECT_EQ(image.get<std::uint32_t>(at), crc32c(descriptor));
      at += 4;
      for (std::size_t done = 0; done < bytes.size(); done += std::size_t{1} << log2, at += 4)
        EXPECT_EQ(image.get<std::uint32_t>(at),
                  crc32c(std::span(bytes).subspan(
                      done, std::min(bytes.size() - done, std::size_t{1} << log2))))
            << limit << " " << done;
    }
    EXPECT_EQ(at + 4, section.size());
    EXPECT_EQ(image.get<std::uint64_t>(payload + 24), std::size(sizes));
    EXPECT_EQ(image.get<std::uint32_t>(payload + 20), crc32c(std::span(section).first(payload)));
    EXPECT_EQ(image.get<std::uint32_t>(at),
              crc32c(std::span(section).subspan(payload, at - payload)));
  }
}

}  // namespace
}  // namespace hurray::io
