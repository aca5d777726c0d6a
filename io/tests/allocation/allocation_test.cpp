// Fails the n-th allocation, for every n, until the call succeeds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../../../core/tests/fail_everywhere.hpp"
#include "../../../core/tests/support.hpp"
#include "hurray/io/stream.hpp"
#include "key_values.hpp"

namespace hurray::io {
namespace {

using hurray::testing::dense;
using hurray::testing::fail_everywhere;

/// A copy whose making never fails: an argument is the caller's affair.
std::string argument(const std::string& text) {
  const long kept = std::exchange(fail_after, -1);
  std::string copy = text;
  fail_after = kept;
  return copy;
}

/// More dimensions and buffers than fit in place, and buffers of their own memory.
Tensor oversized() {
  Descriptor descriptor = dense(DType::uint8, {});
  descriptor.shape.resize(9);
  for (auto& n : descriptor.shape) n = 1;
  descriptor.shape[0] = 100;
  const Buffer buffer = *Buffer::allocate(100, true);
  return *bind(descriptor, {buffer});
}

Bytes stream_of(const Tensor& tensor, int frames) {
  auto writer = StreamWriter::in_memory();
  const BufferSource source(tensor.buffer(0).bytes());
  for (int i = 0; i < frames; ++i)
    EXPECT_TRUE(writer->write(tensor.wire_descriptor(), std::span(&source, 1)));
  return {writer->bytes().begin(), writer->bytes().end()};
}

TEST(Allocation, ReadingAStream) {
  const Bytes bytes = stream_of(oversized(), 2);
  const auto read_all = [](auto open) -> Result<void> {
    auto reader = open();
    if (!reader) return reader.error();
    for (int i = 0; i < 3; ++i) {
      const auto item = reader->next();
      if (!item) {
        const auto after = reader->next();
        EXPECT_TRUE(after && !*after);
        return item.error();
      }
      EXPECT_EQ(item->has_value(), i < 2);
    }
    return {};
  };
  EXPECT_GT(fail_everywhere([&] { return read_all([&] { return StreamReader::over(bytes); }); }),
            5);

  const std::string path =
      std::filesystem::temp_directory_path() / ("hurray-allocation-" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  StreamReadOptions asking;
  asking.interrupted = [] { return false; };
  EXPECT_GT(fail_everywhere([&] {
              return read_all([&] { return StreamReader::open(argument(path), asking); });
            }),
            5);
  std::filesystem::remove(path);
}

TEST(Allocation, WritingAStream) {
  const Tensor tensor = oversized();
  const Descriptor descriptor = tensor.wire_descriptor();
  const Bytes expected = stream_of(tensor, 1);
  ArraySource array;
  array.origin = tensor.buffer(0).data();
  array.shape = {100};
  array.strides = {1};
  for (const BufferSource& source : {BufferSource(tensor.buffer(0).bytes()), BufferSource(array)}) {
    auto writer = StreamWriter::in_memory();
    long n = fail_everywhere([&] { return writer->write(descriptor, std::span(&source, 1)); });
    EXPECT_GT(n, 0);
    EXPECT_TRUE(std::ranges::equal(writer->bytes(), expected)) << "refusals write nothing";

    const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                         ("hurray-allocation-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    const std::string path = folder / "s";
    n = fail_everywhere([&]() -> Result<void> {
      const auto write = [&]() -> Result<void> {
        auto file = StreamWriter::create(argument(path), {.sync = false});
        if (!file) return file.error();
        if (auto written = file->write(descriptor, std::span(&source, 1)); !written) return written;
        return file->finish();
      };
      auto written = write();
      const long kept = std::exchange(fail_after, -1);
      EXPECT_EQ(std::filesystem::exists(path), static_cast<bool>(written));
      EXPECT_EQ(std::filesystem::is_empty(folder), !written);
      fail_after = kept;
      return written;
    });
    EXPECT_GT(n, 5);
    std::filesystem::remove_all(folder);
  }
}

/// A group in a group, with one tensor in each.
Item oversized_item() {
  Item item{oversized()};
  for (int i = 0; i < 2; ++i)
    item =
        *compose(CompositionRule::group, CombineOp::none, {}, DType::uint8, {{oversized()}, item});
  return item;
}

TEST(Allocation, CompositesInAStream) {
  const Item item = oversized_item();
  auto writer = StreamWriter::in_memory();
  EXPECT_GT(fail_everywhere([&] { return writer->write_item(item); }), 5);
  ASSERT_TRUE(writer->finish());
  auto expected = StreamWriter::in_memory();
  ASSERT_TRUE(expected->write_item(item));
  EXPECT_TRUE(std::ranges::equal(writer->bytes(), expected->bytes())) << "refusals write nothing";
  EXPECT_GT(fail_everywhere([&]() -> Result<void> {
              auto reader = StreamReader::over(writer->bytes());
              if (!reader) return reader.error();
              const auto read = reader->next_item();
              if (!read) return read.error();
              EXPECT_EQ((*read)->members.size(), 2u);
              return {};
            }),
            10);

  // Frame by frame, every refusal leaves the writer where it was.
  auto frames = StreamWriter::in_memory();
  for_each_item(item, [&](const Item& part, std::span<const std::size_t>) {
    std::vector<BufferSource> sources;
    for (const Buffer& buffer : part.tensor.buffers()) sources.emplace_back(buffer.bytes());
    const Descriptor descriptor = part.tensor.wire_descriptor();
    fail_everywhere([&] { return frames->write(descriptor, sources); });
    return true;
  });
  ASSERT_TRUE(frames->finish());
  EXPECT_TRUE(std::ranges::equal(frames->bytes(), expected->bytes()));
}

TEST(Allocation, NothingIsTakenFromAMemberCount) {
  Descriptor head;
  head.layout = CompositeHead{.member_count = 0xFFFFFFFE};
  const Bytes bytes = *encode(head);
  StreamReadOptions options;
  options.max_item_members = ~std::uint64_t{0};
  auto reader = StreamReader::over(bytes, options);
  allocations = 0;
  const auto item = reader->next_item();
  const long taken = allocations;
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().code, Errc::truncated);
  EXPECT_LE(taken, 10);
}

TEST(Allocation, KeyValues) {
  const KeyValues kv = {
      {"a key that is longer than a short string holds", std::string(100, 's')},
      {"bytes", Bytes(100)},
      {"strings", std::vector<std::string>{std::string(100, 's'), "short"}},
      {"numbers", std::vector<double>{1, 2, 3}},
      {"bools", std::vector<bool>(100)},
      {"blobs", std::vector<Bytes>{Bytes(100), Bytes(1)}},
  };
  EXPECT_GT(fail_everywhere([&] { return encode_kv(kv); }), 0);
  Bytes section = *encode_kv(kv);
  EXPECT_GT(fail_everywhere([&] { return decode_kv(section, 0); }), 10);
  const Bytes before = section;
  EXPECT_GT(fail_everywhere([&]() -> Result<void> {
              auto appended = append_checksums(section, Bytes{});
              if (!appended) {
                EXPECT_EQ(section, before);
              }
              return appended;
            }),
            0);
}

TEST(Allocation, NothingIsTakenFromDeclaredSizesBeforeBytesArrive) {
  // 2^32 - 1 entries in nine bytes, and an array as long.
  for (const std::string text :
       {"FF FF FF FF 01 00 61 05 01", "01 00 00 00 01 00 61 07 01 FF FF FF FF 00 00 00 00"}) {
    const Bytes section = hurray::testing::hex(text);
    allocations = 0;
    const auto decoded = decode_kv(section, 0);
    const long taken = allocations;
    EXPECT_FALSE(decoded);
    EXPECT_LE(taken, 3);
  }
}

}  // namespace
}  // namespace hurray::io
