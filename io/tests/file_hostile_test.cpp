#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>

#include "file_support.hpp"

/// The abuse list: what a file may lie about, and what stops each lie (04-file.md section 12).
namespace hurray::io {
namespace {

/// Opens and touches every byte that the file hands out; the first failure.
std::optional<Error> read_all(const std::string& path, const OpenOptions& options = {}) {
  const auto file = File::open(path, options);
  if (!file) return file.error();
  std::optional<Error> first;
  for (std::size_t i = 0; i < file->size(); ++i) {
    (void)file->descriptor_bytes(i);
    const auto descriptor = file->descriptor(i);
    const auto tensor = file->tensor(i);
    EXPECT_EQ(descriptor.has_value(), tensor.has_value()) << failure(tensor);
    if (!tensor) {
      if (!first) first = tensor.error();
      continue;
    }
    for (const Buffer& buffer : tensor->buffers()) {
      unsigned sum = 0;
      for (const std::byte b : buffer.bytes()) sum += static_cast<unsigned>(b);
      EXPECT_LE(sum, 255u * buffer.size());
    }
  }
  return first;
}

struct Expected {
  Errc code;
  std::string_view field;
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  std::string_view tensor = {};
  Origin origin = Origin::file;
};

void expect_refused(const Image& image, const Expected& wanted, const OpenOptions& options = {}) {
  const ScratchFile file(image.bytes);
  const auto error = read_all(file.path(), options);
  ASSERT_TRUE(error) << wanted.field;
  const std::string message = to_string(*error);
  EXPECT_EQ(error->code, wanted.code) << message;
  EXPECT_EQ(error->field, wanted.field) << message;
  EXPECT_EQ(error->expected, wanted.expected) << message;
  EXPECT_EQ(error->found, wanted.found) << message;
  EXPECT_EQ(error->tensor, wanted.tensor) << message;
  EXPECT_EQ(error->origin, wanted.origin) << message;
  EXPECT_TRUE(message.starts_with(file.path())) << message;
}

using Spoil = std::function<void(Image&)>;

Image spoiled(const Spoil& spoil) {
  Image image = two_tensors();
  spoil(image);
  return image;
}

/// Spoils the index and makes its checksum right again.
Image index_spoiled(const Spoil& spoil) {
  return spoiled([&](Image& image) {
    spoil(image);
    image.sum();
  });
}

// Offsets behind the name of an index entry.
constexpr std::size_t descriptor_offset = 0;
constexpr std::size_t descriptor_length_at = 8;
constexpr std::size_t data_offset = 12;
constexpr std::size_t data_length = 20;
constexpr std::size_t entry_flags = 28;

/// Positions in the file of `two_tensors`.
constexpr std::uint64_t second_descriptor = 4104;
constexpr std::uint64_t second_data = 8192;
constexpr std::uint64_t kv = 13192;
constexpr std::uint64_t index_at = 13216;

TEST(HostileFile, TheGoodOneIsAsTheTestsThink) {
  const Image image = two_tensors();
  const ScratchFile file(image.bytes);
  EXPECT_FALSE(read_all(file.path()));
  const auto open = File::open(file.path());
  ASSERT_TRUE(open);
  EXPECT_EQ(open->entry(1).descriptor_offset, second_descriptor);
  EXPECT_EQ(open->entry(1).data_offset, second_data);
  EXPECT_EQ(open->trailer().kv_offset, kv);
  EXPECT_EQ(open->trailer().index_offset, index_at);
}

TEST(HostileFile, Row1FileSize) {
  Image image = two_tensors();
  image.bytes.resize(111);
  expect_refused(image, {Errc::truncated, "file_size", 112, 111});
}

TEST(HostileFile, Row2MagicAndVersion) {
  expect_refused(spoiled([](Image& i) { i.bytes[7] = std::byte{'X'}; }),
                 {Errc::invalid_magic, "magic"});
  for (const unsigned major : {0u, 2u, 255u})
    expect_refused(spoiled([&](Image& i) { i.set(8, static_cast<std::uint8_t>(major)); }),
                   {Errc::unsupported_version, "container_version_major", 1, major});
}

TEST(HostileFile, Row3UnknownFlags) {
  expect_refused(spoiled([](Image& i) { i.set<std::uint32_t>(12, 0x0Du); }),
                 {Errc::reserved_bits, "file_flags", 0, 8});
  expect_refused(spoiled([](Image& i) {
                   i.set<std::uint32_t>(12, 0x80000005u);
                   i.set<std::uint8_t>(9, 7);  // a newer minor version changes nothing
                 }),
                 {Errc::reserved_bits, "file_flags", 0, 0x80000000u});
}

TEST(HostileFile, Row4HeaderReserved) {
  for (const std::size_t at : {10u, 11u, 36u, 63u})
    expect_refused(spoiled([&](Image& i) { i.set<std::uint8_t>(at, 9); }),
                   {Errc::reserved_bits, "header.reserved", 0, 9});
}

TEST(HostileFile, Row5Alignment) {
  for (const std::uint32_t a : {0u, 1u, 64u, 2048u, 4097u, 12288u, 4u << 20, 1u << 31})
    expect_refused(spoiled([&](Image& i) { i.set<std::uint32_t>(16, a); }),
                   {Errc::invalid_value, "data_buffer_alignment", 0, a});
}

TEST(HostileFile, Row6FirstDescriptor) {
  const auto first = [](std::uint64_t at) {
    return spoiled([=](Image& i) { i.set<std::uint64_t>(20, at); });
  };
  expect_refused(first(0), {Errc::out_of_bounds, "first_descriptor_offset", 64, 0});
  expect_refused(first(63), {Errc::out_of_bounds, "first_descriptor_offset", 64, 63});
  expect_refused(first(68), {Errc::invalid_value, "first_descriptor_offset", 0, 68});
  expect_refused(first(kv + 8), {Errc::out_of_bounds, "first_descriptor_offset", kv, kv + 8});
  constexpr std::uint64_t huge = 0xFFFFFFFFFFFFFFF8;
  expect_refused(first(huge), {Errc::out_of_bounds, "first_descriptor_offset", kv, huge});
}

TEST(HostileFile, Row7Trailer) {
  Image image = two_tensors();
  image.bytes.back() = std::byte{0};
  image.set<std::uint64_t>(image.trailer(), ~std::uint64_t{0});  // never looked at
  const ScratchFile file(image.bytes);
  const auto error = read_all(file.path());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::truncated);
  EXPECT_NE(to_string(*error).find("ends at byte " + std::to_string(image.bytes.size()) +
                                   " without a trailer; unfinished download or write?"),
            std::string::npos)
      << to_string(*error);
  expect_refused(spoiled([](Image& i) { i.set<std::uint8_t>(i.trailer() + 35, 1); }),
                 {Errc::reserved_bits, "trailer.reserved", 0, 1});
}

TEST(HostileFile, Row8IndexPosition) {
  const Image good = two_tensors();
  const std::uint64_t end = good.trailer();
  const std::uint64_t length = end - index_at;
  const auto with = [](std::uint64_t offset, std::uint64_t size) {
    return spoiled([=](Image& i) {
      i.set<std::uint64_t>(i.trailer(), offset);
      i.set<std::uint64_t>(i.trailer() + 8, size);
    });
  };
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  expect_refused(with(end + 1, 8), {Errc::out_of_bounds, "index_offset", end, end + 1});
  expect_refused(with(huge, 8), {Errc::out_of_bounds, "index_offset", end, huge});
  expect_refused(with(56, 8), {Errc::out_of_bounds, "index_offset", 64, 56});
  expect_refused(with(index_at + 1, 8), {Errc::invalid_value, "index_offset", 0, index_at + 1});
  expect_refused(with(index_at, 7), {Errc::out_of_bounds, "index_length", 8, 7});
  expect_refused(with(index_at, length + 1),
                 {Errc::out_of_bounds, "index_length", length, length + 1});
  expect_refused(with(index_at, huge), {Errc::out_of_bounds, "index_length", length, huge});
}

TEST(HostileFile, Row9KvPosition) {
  const auto with = [](std::uint64_t offset, std::uint32_t size) {
    return spoiled([=](Image& i) {
      i.set<std::uint64_t>(i.trailer() + 16, offset);
      i.set<std::uint32_t>(i.trailer() + 24, size);
    });
  };
  expect_refused(with(0, 18), {Errc::out_of_bounds, "kv_offset", 64, 0});
  expect_refused(with(kv, 0), {Errc::out_of_bounds, "kv_length", 4, 0});
  expect_refused(with(kv, 3), {Errc::out_of_bounds, "kv_length", 4, 3});
  expect_refused(with(56, 18), {Errc::out_of_bounds, "kv_offset", 64, 56});
  expect_refused(with(kv + 4, 4), {Errc::invalid_value, "kv_offset", 0, kv + 4});
  expect_refused(with(index_at + 8, 4), {Errc::out_of_bounds, "kv_offset", index_at, index_at + 8});
  expect_refused(with(kv, 25), {Errc::out_of_bounds, "kv_length", 24, 25});
  constexpr std::uint64_t huge = 0xFFFFFFFFFFFFFFF8;
  expect_refused(with(huge, 0xFFFFFFFF), {Errc::out_of_bounds, "kv_offset", index_at, huge});
}

TEST(HostileFile, Row10IndexChecksum) {
  const auto stored = two_tensors().get<std::uint32_t>(two_tensors().trailer() + 28);
  expect_refused(spoiled([&](Image& i) { i.set(i.trailer() + 28, stored ^ 1); }),
                 {Errc::checksum_mismatch, "index_crc32c", stored ^ 1, stored});
  expect_refused(spoiled([](Image& i) { i.set<std::uint32_t>(12, 1); }),
                 {Errc::inconsistent, "index_crc32c", 0, stored});
  const Image without = spoiled([](Image& i) {
    i.set<std::uint32_t>(12, 1);
    i.set<std::uint32_t>(i.trailer() + 28, 0);
  });
  EXPECT_FALSE(read_all(ScratchFile(without.bytes).path()));
}

TEST(HostileFile, Row11Limits) {
  const Image good = two_tensors();
  OpenOptions options;
  options.max_index_bytes = good.index_length() - 1;
  expect_refused(
      good, {Errc::limit_exceeded, "max_index_bytes", good.index_length() - 1, good.index_length()},
      options);
  options = {};
  options.max_kv_bytes = 17;
  expect_refused(good, {Errc::limit_exceeded, "max_kv_bytes", 17, 18}, options);
  options = {};
  options.max_tensors = 1;
  expect_refused(good, {Errc::limit_exceeded, "max_tensors", 1, 2}, options);
  options = {};
  options.max_descriptor_bytes = 52;
  expect_refused(good, {Errc::limit_exceeded, "max_descriptor_bytes", 52, 53, "t"}, options);
  options = {};
  options.max_tensor_bytes = 4999;
  const ScratchFile file(good.bytes);
  const auto open = File::open(file.path(), options);
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->tensor(0));
  EXPECT_EQ(error_of(open->tensor(1)).found, 5000u);
  EXPECT_TRUE(open->descriptor(1));
}

TEST(HostileFile, Row12EntryCount) {
  const std::uint64_t most = (two_tensors().index_length() - 8) / 35;
  for (const std::uint64_t count : {most + 1, std::uint64_t{1} << 32, ~std::uint64_t{0}})
    expect_refused(index_spoiled([&](Image& i) { i.set(i.index(), count); }),
                   {Errc::truncated, "index_entry_count", most, count});
}

TEST(HostileFile, Row13Entries) {
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint16_t>(i.index() + 8, 0); }),
                 {Errc::invalid_value, "index[].name_length", 1, 0});
  const std::size_t after_length = two_tensors().index_length() - 10;
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint16_t>(i.index() + 8, 65535); }),
                 {Errc::truncated, "index[].name", 65535, after_length});
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint8_t>(i.index() + 10, 0xFF); }),
                 {Errc::invalid_value, "index[].name", 0, 0, "\xFF"});
  expect_refused(
      index_spoiled([](Image& i) { i.set<std::uint32_t>(i.entry(1) + entry_flags, 256); }),
      {Errc::reserved_bits, "index[].flags", 0, 1, "uu"});
}

TEST(HostileFile, Row14Names) {
  const auto rename = [](Image& i) {
    // "t" and "uu": the second one becomes "t" with one byte more of something else.
    i.set<std::uint8_t>(i.entry(1) - 1, 'u');
  };
  EXPECT_FALSE(read_all(ScratchFile(index_spoiled(rename).bytes).path()));

  const TemporaryFolder folder;
  const auto with_names = [&](std::string_view first, std::string_view second, bool sorted) {
    auto writer = create(folder / "n.hrry", plain());
    EXPECT_TRUE(write(writer, first, dense(DType::uint8, {1}, 1), {Bytes(1)}));
    EXPECT_TRUE(write(writer, second, dense(DType::uint8, {1}, 1), {Bytes(1)}));
    EXPECT_TRUE(writer.finish());
    Image image{read_bytes(folder / "n.hrry")};
    if (sorted) image.set<std::uint32_t>(12, 7);
    return image;
  };
  Image twice = with_names("ab", "aa", false);
  twice.set<std::uint8_t>(twice.entry(1) - 1, 'b');
  twice.sum();
  expect_refused(twice, {Errc::duplicate, "index[].name", 0, 0, "ab"});
  twice.set<std::uint32_t>(12, 7);
  expect_refused(twice, {Errc::duplicate, "index[].name", 0, 0, "ab"});
  expect_refused(with_names("b", "a", true), {Errc::inconsistent, "index[].name", 0, 0, "a"});
  EXPECT_FALSE(read_all(ScratchFile(with_names("a", "aa", true).bytes).path()));
}

TEST(HostileFile, Row15IndexConsumed) {
  expect_refused(index_spoiled([](Image& i) {
                   i.set<std::uint64_t>(i.index(), 1);  // one entry fewer than there are
                 }),
                 {Errc::length_mismatch, "index_length", 0, 36});
}

TEST(HostileFile, Row16DescriptorPosition) {
  const auto with = [](std::size_t field, std::uint64_t value) {
    return index_spoiled([=](Image& i) { i.set<std::uint64_t>(i.entry(0) + field, value); });
  };
  expect_refused(with(descriptor_offset, 56),
                 {Errc::out_of_bounds, "index[].descriptor_offset", 64, 56, "t"});
  expect_refused(with(descriptor_offset, 68),
                 {Errc::invalid_value, "index[].descriptor_offset", 0, 68, "t"});
  expect_refused(with(descriptor_offset, kv + 8),
                 {Errc::out_of_bounds, "index[].descriptor_offset", kv, kv + 8, "t"});
  constexpr std::uint64_t huge = 0xFFFFFFFFFFFFFFF8;
  expect_refused(with(descriptor_offset, huge),
                 {Errc::out_of_bounds, "index[].descriptor_offset", kv, huge, "t"});
  const auto length = [](std::uint32_t value) {
    return index_spoiled(
        [=](Image& i) { i.set<std::uint32_t>(i.entry(0) + descriptor_length_at, value); });
  };
  expect_refused(length(19), {Errc::out_of_bounds, "index[].descriptor_length", 20, 19, "t"});
  expect_refused(length(0xFFFFFFFF),
                 {Errc::out_of_bounds, "index[].descriptor_length", kv - 64, 0xFFFFFFFF, "t"});
}

TEST(HostileFile, Row17DataPosition) {
  const auto with = [](std::uint64_t offset, std::uint64_t length) {
    return index_spoiled([=](Image& i) {
      i.set<std::uint64_t>(i.entry(0) + data_offset, offset);
      i.set<std::uint64_t>(i.entry(0) + data_length, length);
    });
  };
  expect_refused(with(0, 6), {Errc::out_of_bounds, "index[].data_offset", 117, 0, "t"});
  expect_refused(with(4100, 6), {Errc::invalid_value, "index[].data_offset", 0, 4100, "t"});
  expect_refused(with(4100, 0), {Errc::invalid_value, "index[].data_offset", 0, 4100, "t"});
  expect_refused(with(16384, 6), {Errc::out_of_bounds, "index[].data_offset", kv, 16384, "t"});
  constexpr std::uint64_t huge = 0xFFFFFFFFFFFFF000;
  expect_refused(with(huge, 6), {Errc::out_of_bounds, "index[].data_offset", kv, huge, "t"});
  expect_refused(with(4096, kv - 4096 + 1),
                 {Errc::out_of_bounds, "index[].data_length", kv - 4096, kv - 4096 + 1, "t"});
  expect_refused(with(4096, ~std::uint64_t{0}),
                 {Errc::out_of_bounds, "index[].data_length", kv - 4096, ~std::uint64_t{0}, "t"});
}

TEST(HostileFile, Row18Overlaps) {
  // Data over the next descriptor.
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint64_t>(i.entry(0) + data_length, 9); }),
                 {Errc::inconsistent, "index[].descriptor_offset", 4105, second_descriptor, "uu"});
  // Two names for one tensor.
  expect_refused(index_spoiled([](Image& i) {
                   std::copy_n(i.bytes.begin() + static_cast<std::ptrdiff_t>(i.entry(0)), 32,
                               i.bytes.begin() + static_cast<std::ptrdiff_t>(i.entry(1)));
                 }),
                 {Errc::inconsistent, "index[].descriptor_offset", 4102, 64, "uu"});
  // A descriptor within another one's data, listed the other way round.
  expect_refused(index_spoiled([](Image& i) {
                   i.set<std::uint64_t>(i.entry(0) + descriptor_offset, 8200);
                   i.set<std::uint64_t>(i.entry(0) + data_offset, 12288);
                   i.set<std::uint64_t>(20, second_descriptor);
                 }),
                 {Errc::inconsistent, "index[].descriptor_offset", 13192, 8200, "t"});
}

TEST(HostileFile, Row19FirstTensorStartsTheRegion) {
  expect_refused(spoiled([](Image& i) {
                   i.set<std::uint64_t>(i.entry(0) + descriptor_offset, 72);
                   i.sum();
                 }),
                 {Errc::inconsistent, "first_descriptor_offset", 72, 64});
}

TEST(HostileFile, Rows20To22KeyValues) {
  const auto with = [](std::size_t at, std::uint8_t value) {
    return spoiled(
        [=](Image& i) { i.set<std::uint8_t>(static_cast<std::size_t>(kv) + at, value); });
  };
  expect_refused(with(3, 1), {Errc::truncated, "kv_count", 2, 0x01000001});
  expect_refused(with(4, 0), {Errc::invalid_value, "kv[].key_length", 1, 0});
  expect_refused(with(6, 0xC0), {Errc::invalid_value, "kv[].key"});
  expect_refused(with(9, 0x08), {Errc::invalid_tag, "kv[].value_tag", 0, 8});
  expect_refused(with(9, 0xF0), {Errc::invalid_tag, "kv[].value_tag", 0, 0xF0});
  expect_refused(with(9, 0x05), {Errc::invalid_value, "kv[].value", 1, 7});
  expect_refused(with(0, 0), {Errc::length_mismatch, "kv_length", 0, 14});
}

TEST(HostileFile, Row23DescriptorPrefix) {
  expect_refused(spoiled([](Image& i) { i.bytes[64] = std::byte{0}; }),
                 {Errc::invalid_magic, "magic", 0, 0x525259, "t", Origin::descriptor});
  expect_refused(spoiled([](Image& i) { i.set<std::uint8_t>(68, 2); }),
                 {Errc::unsupported_version, "version_major", 1, 2, "t", Origin::descriptor});
  expect_refused(
      index_spoiled([](Image& i) { i.set<std::uint32_t>(i.entry(0) + descriptor_length_at, 52); }),
      {Errc::length_mismatch, "index[].descriptor_length", 53, 52, "t"});
}

TEST(HostileFile, Row24DescriptorRules) {
  expect_refused(
      spoiled([](Image& i) { i.set<std::uint64_t>(84, 4); }),  // four elements in 6 bytes
      {Errc::out_of_bounds, "byte_offset", 6, 8, "t", Origin::descriptor});
  expect_refused(spoiled([](Image& i) { i.set<std::uint32_t>(74, 1u << 31); }),
                 {Errc::reserved_bits, "flags", 0, 1u << 31, "t", Origin::descriptor});
}

TEST(HostileFile, Row25Placement) {
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint64_t>(i.entry(0) + data_length, 5); }),
                 {Errc::length_mismatch, "index[].data_length", 6, 5, "t"});
  expect_refused(index_spoiled([](Image& i) { i.set<std::uint64_t>(i.entry(0) + data_length, 0); }),
                 {Errc::length_mismatch, "index[].data_length", 6, 0, "t"});
  // A size that the file cannot hold: refused before memory is asked for.
  for (const Mode mode : {Mode::map, Mode::memory}) {
    OpenOptions options;
    options.mode = mode;
    expect_refused(spoiled([](Image& i) { i.set<std::uint64_t>(101, std::uint64_t{1} << 62); }),
                   {Errc::length_mismatch, "index[].data_length", std::uint64_t{1} << 62, 6, "t"},
                   options);
  }
}

TEST(HostileFile, OneDamagedTensorLeavesTheOthers) {
  const Image image = spoiled([](Image& i) { i.bytes[64] = std::byte{0}; });
  const ScratchFile file(image.bytes);
  const auto open = File::open(file.path());
  ASSERT_TRUE(open);
  EXPECT_FALSE(open->tensor(0));
  EXPECT_TRUE(open->tensor(1));
}

TEST(HostileFile, NewerMinorVersionMayUseReservedBytes) {
  const Image image = spoiled([](Image& i) {
    i.set<std::uint8_t>(9, 1);
    i.set<std::uint8_t>(10, 1);
    i.set<std::uint8_t>(63, 1);
    i.set<std::uint8_t>(i.trailer() + 32, 1);
    i.set<std::uint32_t>(i.trailer() + 24, 22);  // four bytes behind the last KV entry
  });
  EXPECT_FALSE(read_all(ScratchFile(image.bytes).path()));
  Image longer = image;
  longer.bytes.insert(longer.bytes.begin() + static_cast<std::ptrdiff_t>(longer.trailer()), 3,
                      std::byte{1});
  longer.set<std::uint64_t>(longer.trailer() + 8, image.index_length() + 3);
  longer.sum();
  EXPECT_FALSE(read_all(ScratchFile(longer.bytes).path()));
}

TEST(HostileFile, KvFlagDoesNotDecide) {
  const Image image = spoiled([](Image& i) { i.set<std::uint32_t>(12, 4); });
  const ScratchFile file(image.bytes);
  const auto open = File::open(file.path());
  ASSERT_TRUE(open);
  EXPECT_EQ(open->kv().size(), 1u);
}

TEST(HostileFile, GapsBetweenPartsAreNotLookedAt) {
  Image image = two_tensors();
  image.bytes.insert(image.bytes.begin() + static_cast<std::ptrdiff_t>(image.trailer()), 5,
                     std::byte{0xAA});
  EXPECT_FALSE(read_all(ScratchFile(image.bytes).path()));
}

/// Names that a hash table would choke on, and long ones with a common beginning.
TEST(HostileFile, ManyNamesInAnyOrder) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  const std::string beginning(3000, 'x');
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(write(writer, beginning + std::to_string(i * 7919 % count),
                      dense(DType::uint8, {0}, 0), {Bytes()}));
  ASSERT_EQ(failure(writer.finish()), "");
  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  for (int i = 0; i < count; ++i) {
    const auto found = file->find(beginning + std::to_string(i));
    ASSERT_TRUE(found);
    EXPECT_EQ(file->entry(*found).name, beginning + std::to_string(i));
  }
  EXPECT_FALSE(file->find(beginning));
  EXPECT_FALSE(file->find(""));
}

/// A sparse file that declares the largest index and KV section that are allowed: refused after the
/// first step, whatever the file's length.
TEST(HostileFile, HolesForIndexAndKv) {
  const Image good = two_tensors();
  constexpr std::uint64_t hole = 250u << 20;
  for (const bool index : {true, false}) {
    Image trailer{Bytes(good.bytes.end() - 40, good.bytes.end())};
    const std::uint64_t end = (std::uint64_t{1} << 40) - 40;
    trailer.set<std::uint64_t>(0, index ? end - hole : end - 8);
    trailer.set<std::uint64_t>(8, index ? hole : 8);
    trailer.set<std::uint64_t>(16, index ? 0 : end - 8 - hole);
    trailer.set<std::uint32_t>(24, index ? 0 : static_cast<std::uint32_t>(hole));
    trailer.set<std::uint32_t>(28, crc32c(std::array<std::byte, 8>{}));
    const ScratchFile file(std::span(good.bytes).first(64));
    file.put(static_cast<std::size_t>(end), trailer.bytes);
    if (index) {
      const std::uint64_t count = 7'000'000;
      file.put(static_cast<std::size_t>(end - hole), elements<std::uint64_t>({count}));
    }
    const auto error = read_all(file.path());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->field, index ? "index[].name_length" : "kv_length") << to_string(*error);
  }
}

TEST(HostileFile, EveryPrefixIsRefused) {
  const Image good = two_tensors(WriteOptions{});
  const ScratchFile file(good.bytes);
  for (std::size_t size = good.bytes.size(); size-- > 0;) {
    file.cut(size);
    const auto error = read_all(file.path());
    ASSERT_TRUE(error) << size;
    ASSERT_EQ(error->origin, Origin::file) << size;
  }
}

TEST(HostileFile, EveryBitFlipIsRefusedOrRead) {
  const Image good = two_tensors(WriteOptions{});
  const ScratchFile file(good.bytes);
  OpenOptions memory;
  memory.mode = Mode::memory;
  memory.verify = false;  // the rules alone
  for (std::size_t at = 0; at < good.bytes.size(); ++at) {
    // Elements and most padding are all alike: one bit of each byte there.
    const bool data = (at > 160 && at < second_descriptor) || (at > 4200 && at < kv);
    for (unsigned bit = 0; bit < (data ? 1u : 8u); ++bit) {
      const auto flipped = std::array{good.bytes[at] ^ std::byte{1} << bit};
      file.put(at, flipped);
      const auto mapped = read_all(file.path());
      if (!data) {
        const auto read = read_all(file.path(), memory);
        ASSERT_EQ(mapped.has_value(), read.has_value()) << at;
        if (mapped) {
          ASSERT_EQ(to_string(*mapped), to_string(*read)) << at;
        }
      }
    }
    file.put(at, std::span(good.bytes).subspan(at, 1));
  }
  EXPECT_FALSE(read_all(file.path()));
}

/// Cut by somebody else after it was opened: what is read, not mapped, tells.
TEST(HostileFile, CutWhileOpen) {
  const Image good = two_tensors();
  const ScratchFile file(good.bytes);
  OpenOptions options;
  options.mode = Mode::memory;
  const auto open = File::open(file.path(), options);
  ASSERT_TRUE(open);
  file.cut(9000);
  EXPECT_TRUE(open->tensor(0));
  const Error error = error_of(open->tensor(1));
  EXPECT_EQ(error.code, Errc::truncated);
  EXPECT_EQ(error.tensor, "uu");
  EXPECT_EQ(error.expected, 5000u);
  EXPECT_EQ(error.found, 808u);
}

}  // namespace
}  // namespace hurray::io
