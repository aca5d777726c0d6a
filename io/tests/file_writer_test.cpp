#include "hurray/io/file_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <numeric>
#include <thread>

#include "file_support.hpp"

namespace hurray::io {
namespace {

/// The file of 04-file.md section 13, line for line.
Bytes annotated_file() {
  Bytes file =
      hex("48 52 52 59 46 49 4C 45  01 00 00 00  05 00 00 00  00 10 00 00  40 00 00 00 00 00 00 00 "
          "FF FF FF FF FF FF FF FF");
  file.resize(64);
  const Bytes descriptor =
      hex("48 52 52 59 01 00  35 00 00 00 00 00 00 00  12 01 01 00 00 00  03 00 00 00 00 00 00 00 "
          "00 00 00 00 00 00 00 00  01  06 00 00 00 00 00 00 00  40 00 00 00 00 00 00 00");
  file.insert(file.end(), descriptor.begin(), descriptor.end());
  file.resize(4096);
  const Bytes rest =
      hex("01 00 FE FF 2C 01 00 00 "
          "01 00 00 00  03 00 72 65 76  02 07 00 00 00 00 00 00 00  00 00 00 00 00 00 "
          "01 00 00 00 00 00 00 00  01 00 74  40 00 00 00 00 00 00 00  35 00 00 00 "
          "00 10 00 00 00 00 00 00  06 00 00 00 00 00 00 00  00 00 00 00 "
          "20 10 00 00 00 00 00 00  2B 00 00 00 00 00 00 00  08 10 00 00 00 00 00 00  12 00 00 00 "
          "11 C5 7C CD  00 00 00 00 48 52 52 59");
  file.insert(file.end(), rest.begin(), rest.end());
  return file;
}

Bytes write_annotated(const std::string& path, const WriteOptions& options) {
  auto writer = create(path, options);
  EXPECT_EQ(failure(write(writer, "t", dense(DType::int16, {3}, 6),
                          {elements<std::int16_t>({1, -2, 300})})),
            "");
  EXPECT_EQ(failure(writer.finish({{"rev", std::int64_t{7}}})), "");
  return read_bytes(path);
}

TEST(FileWriter, BytesOfTheAnnotatedFile) {
  const TemporaryFolder folder;
  const Bytes expected = annotated_file();
  ASSERT_EQ(expected.size(), 4211u);
  EXPECT_EQ(write_annotated(folder / "a.hrry", plain()), expected);
}

TEST(FileWriter, BytesWithChecksums) {
  const TemporaryFolder folder;
  WriteOptions options;
  options.tensor_count = 1;
  const Image file{write_annotated(folder / "a.hrry", options)};
  ASSERT_EQ(file.bytes.size(), 4275u);
  EXPECT_EQ(file.get<std::uint64_t>(28), 1u);  // tensor_count_hint
  EXPECT_EQ(file.index(), 4192u);
  EXPECT_EQ(file.get<std::uint64_t>(file.trailer() + 16), 4104u);  // kv_offset
  EXPECT_EQ(file.get<std::uint32_t>(file.trailer() + 24), 82u);    // kv_length
  EXPECT_EQ(file.get<std::uint32_t>(4104), 2u);                    // kv_count

  const std::size_t payload = 4104 + 82 - 44;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&file.bytes[payload]), 8), "HRRYSUM1");
  EXPECT_EQ(file.get<std::uint8_t>(payload + 8), 1);
  EXPECT_EQ(file.get<std::uint8_t>(payload + 9), 20);
  EXPECT_EQ(file.get<std::uint16_t>(payload + 10), 0);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 12), 0xCD7CC511u);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 16), 0xA3295638u);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 20), 0xCD740F8Eu);
  EXPECT_EQ(file.get<std::uint64_t>(payload + 24), 1u);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 32), 0xB1696D50u);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 36), 0x8227BCA4u);
  EXPECT_EQ(file.get<std::uint32_t>(payload + 40), 0x2FA6319Du);
}

TEST(FileWriter, EmptyFile) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  ASSERT_EQ(failure(writer.finish()), "");
  const Image file{read_bytes(folder / "a.hrry")};
  EXPECT_EQ(file.bytes.size(), 120u);
  EXPECT_EQ(file.index(), 72u);
  EXPECT_EQ(file.get<std::uint32_t>(file.trailer() + 28), 0x8C28B28Au);
}

TEST(FileWriter, EmptyFileWithoutKeyValues) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.key_values = false;
  auto writer = create(folder / "a.hrry", options);
  EXPECT_EQ(error_of(writer.finish({{"a", true}})).field, "kv");
  ASSERT_EQ(failure(writer.finish()), "");
  const Image file{read_bytes(folder / "a.hrry")};
  EXPECT_EQ(file.bytes.size(), 112u);
  EXPECT_EQ(file.get<std::uint32_t>(12), 4u);
}

/// Positions of the second vector (section 14), as far as its tensors can be written.
TEST(FileWriter, PositionsOfSparseEmptyAndShardTensors) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.sorted_index = true;
  auto writer = create(folder / "a.hrry", options);

  ASSERT_EQ(failure(write_sparse_and_empty(writer)), "");
  const auto shard = [&](std::uint64_t columns, std::uint64_t first) {
    Descriptor d = dense(DType::int8, {2, columns}, 2 * columns);
    const std::array<std::uint64_t, 2> parent{2, 3};
    const std::array<std::uint64_t, 2> offset{0, first};
    d.set_shard(Shard(parent, offset));
    return d;
  };
  ASSERT_EQ(failure(write(writer, "grid.0", shard(1, 0), {hex("01 02")})), "");
  ASSERT_EQ(failure(write(writer, "grid.1", shard(2, 1), {hex("03 04 05 06")})), "");
  ASSERT_EQ(failure(writer.finish()), "");

  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->header().flags, 7u);
  struct Row {
    std::string_view name;
    std::uint64_t descriptor_offset;
    std::uint32_t descriptor_length;
    std::uint64_t data_offset;
    std::uint64_t data_length;
  };
  const Row rows[] = {{"grid.0", 16384, 93, 20480, 2},
                      {"grid.1", 20488, 93, 24576, 4},
                      {"none", 12312, 61, 16384, 0},
                      {"sp", 64, 109, 4096, 8216}};
  ASSERT_EQ(file->size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const Entry entry = file->entry(i);
    EXPECT_EQ(entry.name, rows[i].name);
    EXPECT_EQ(entry.descriptor_offset, rows[i].descriptor_offset) << entry.name;
    EXPECT_EQ(entry.descriptor_length, rows[i].descriptor_length) << entry.name;
    EXPECT_EQ(entry.data_offset, rows[i].data_offset) << entry.name;
    EXPECT_EQ(entry.data_length, rows[i].data_length) << entry.name;
  }
  const Bytes bytes = read_bytes(folder / "a.hrry");
  const auto at = [&](std::size_t offset, std::size_t size) {
    return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                 bytes.begin() + static_cast<std::ptrdiff_t>(offset + size));
  };
  EXPECT_EQ(at(4096, 12), elements<float>({.5f, 2, -1}));
  EXPECT_EQ(at(8192, 24), elements<std::uint64_t>({1, 0, 3}));
  EXPECT_EQ(at(12288, 24), elements<std::uint64_t>({0, 1, 3}));
  EXPECT_EQ(at(24576, 4), hex("03 04 05 06"));
}

TEST(FileWriter, LastBufferEmptyCountsThePaddingBeforeIt) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  Descriptor sparse = dense(DType::uint8, {1, 4}, 0);
  sparse.layout = Csr{.nnz = 0};
  sparse.buffers = BufferTable{handle(10), handle(0), handle(16)};
  ASSERT_EQ(failure(write(writer, "a", sparse, {Bytes(10), Bytes(), Bytes(16)})), "");
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(File::open(folder / "a.hrry")->entry(0).data_length, 4096u + 16u);
}

TEST(FileWriter, LargerAlignmentAndItsZeros) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.alignment = 2u << 20;
  auto writer = create(folder / "a.hrry", options);
  ASSERT_EQ(failure(write(writer, "a", dense(DType::uint8, {3}, 3), {hex("01 02 03")})), "");
  ASSERT_EQ(failure(writer.finish()), "");
  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->entry(0).data_offset, 2u << 20);
  const Bytes bytes = read_bytes(folder / "a.hrry");
  EXPECT_TRUE(std::all_of(bytes.begin() + 117, bytes.begin() + (2 << 20),
                          [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(bytes[2u << 20], std::byte{1});
}

/// Sums over chunks that several buffers, their padding and large sources share.
TEST(FileWriter, ChecksumsOfLargeTensors) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry");
  const std::uint64_t nnz = 300'001;
  Descriptor sparse = dense(DType::float32, {3, 1 << 20}, 0);
  sparse.layout = Csr{.nnz = nnz};
  sparse.buffers = BufferTable{handle(4 * nnz), handle(8 * nnz), handle(32)};
  const auto pattern = [](std::size_t size, std::uint32_t seed) {
    Bytes bytes(size);
    for (std::byte& b : bytes)
      b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
    return bytes;
  };
  ASSERT_EQ(failure(write(writer, "a", sparse,
                          {pattern(4 * nnz, 1), pattern(8 * nnz, 2), pattern(32, 3)})),
            "");
  ASSERT_EQ(failure(write(writer, "b", dense(DType::uint8, {3u << 20}, 3u << 20),
                          {pattern(3u << 20, 4)})),
            "");
  ASSERT_EQ(failure(writer.finish()), "");

  const Image image{read_bytes(folder / "a.hrry")};
  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  EXPECT_TRUE(file->has_checksums());
  EXPECT_TRUE(file->kv().empty());
  std::vector<std::uint32_t> expected;
  for (std::size_t i = 0; i < file->size(); ++i) {
    const Entry entry = file->entry(i);
    const auto all = std::span(image.bytes);
    expected.push_back(crc32c(all.subspan(entry.descriptor_offset, entry.descriptor_length)));
    for (std::uint64_t done = 0; done < entry.data_length; done += 1u << 20)
      expected.push_back(crc32c(all.subspan(
          entry.data_offset + done, std::min<std::uint64_t>(1u << 20, entry.data_length - done))));
  }
  const std::size_t end = file->trailer().kv_offset + file->trailer().kv_length;
  const std::size_t first = end - 4 - 4 * expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(image.get<std::uint32_t>(first + 4 * i), expected[i]) << i;
  EXPECT_EQ(image.get<std::uint32_t>(end - 4),
            crc32c(std::span(image.bytes).subspan(first - 32, end - 4 - (first - 32))));
}

TEST(FileWriter, ConvertsArraysOnTheWayOut) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry");
  // A transposed, byte-swapped int32 array of 1000 x 1500, larger than the scratch.
  constexpr std::size_t rows = 1000;
  constexpr std::size_t columns = 1500;
  std::vector<std::uint32_t> values(rows * columns);
  std::iota(values.begin(), values.end(), 0u);
  ArraySource array;
  array.origin = reinterpret_cast<const std::byte*>(values.data());
  array.shape = Shape{columns, rows};
  array.strides = Strides{4, 4 * static_cast<std::int64_t>(columns)};
  array.item_bytes = 4;
  array.unit_bytes = 4;
  array.dtype = DType::int32;
  array.transcode = Transcode::swap;
  const std::vector<BufferSource> sources{BufferSource(array)};
  const std::uint64_t size = 4 * values.size();
  ASSERT_EQ(failure(writer.write("a", dense(DType::int32, {columns, rows}, size), sources)), "");
  ASSERT_EQ(failure(writer.finish()), "");

  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  const auto tensor = file->tensor(0);
  ASSERT_EQ(failure(tensor), "");
  const std::byte* data = tensor->buffer(0).data();
  for (const auto& [i, j] : {std::pair(0u, 0u), {1u, 0u}, {7u, 999u}, {1499u, 999u}}) {
    const auto stored = hurray::detail::load<std::uint32_t>(data + 4 * (i * rows + j));
    EXPECT_EQ(__builtin_bswap32(stored), j * columns + i);
  }
}

TEST(FileWriter, RefusalsWriteNothingAndLeaveItUsable) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  auto writer = create(folder / "a.hrry", options);
  const Descriptor good = dense(DType::int16, {3}, 6);
  const auto refused = [&](std::string_view name, const Descriptor& descriptor,
                           std::initializer_list<Bytes> buffers) {
    std::vector<BufferSource> sources;
    for (const Bytes& bytes : buffers) sources.emplace_back(std::span<const std::byte>(bytes));
    const Error first = error_of(writer.check(name, descriptor, sources));
    const Error second = error_of(writer.write(name, descriptor, sources));
    EXPECT_EQ(to_string(first), to_string(second));
    return second;
  };
  EXPECT_EQ(refused("", good, {Bytes(6)}).field, "name");
  EXPECT_EQ(refused(std::string(65536, 'x'), good, {Bytes(6)}).found, 65536u);
  EXPECT_EQ(refused("\xC0\x80", good, {Bytes(6)}).what, "must be valid UTF-8");
  EXPECT_EQ(refused("a", good, {}).field, "buffer_count");
  const Error size = refused("a", good, {Bytes(5)});
  EXPECT_EQ(size.expected, 6u);
  EXPECT_EQ(size.found, 5u);
  EXPECT_EQ(size.tensor, "a");
  const Error small = refused("a", dense(DType::int16, {4}, 6), {Bytes(6)});
  EXPECT_EQ(small.origin, Origin::descriptor);
  EXPECT_EQ(small.code, Errc::out_of_bounds);

  ASSERT_EQ(failure(write(writer, "a", good, {Bytes(6)})), "");
  EXPECT_EQ(refused("a", good, {Bytes(6)}).code, Errc::duplicate);
  EXPECT_EQ(error_of(writer.finish({{"hurray.crc32c", true}})).code, Errc::invalid_value);
  EXPECT_EQ(error_of(writer.finish({{"k", true}, {"k", false}})).code, Errc::duplicate);
  ASSERT_EQ(failure(write(writer, std::string(65535, 'x'), good, {Bytes(6)})), "");
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(error_of(writer.finish()).code, Errc::invalid_state);
  EXPECT_EQ(refused("b", good, {Bytes(6)}).code, Errc::invalid_state);
  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->size(), 2u);
}

TEST(FileWriter, OptionsAreJudgedFirst) {
  const TemporaryFolder folder;
  for (const std::uint32_t alignment : {0u, 64u, 5000u, 4u << 20}) {
    WriteOptions options;
    options.alignment = alignment;
    EXPECT_EQ(error_of(FileWriter::create(folder / "a.hrry", options)).field, "alignment");
  }
  WriteOptions both;
  both.key_values = false;
  EXPECT_EQ(error_of(FileWriter::create(folder / "a.hrry", both)).field, "checksums");
  EXPECT_TRUE(folder.names().empty());
}

TEST(FileWriter, AnnouncedCountMustCome) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.tensor_count = 1;
  auto writer = create(folder / "a.hrry", options);
  const Error few = error_of(writer.finish());
  EXPECT_EQ(few.expected, 1u);
  EXPECT_EQ(few.found, 0u);
  ASSERT_EQ(failure(write(writer, "a", dense(DType::uint8, {1}, 1), {Bytes(1)})), "");
  EXPECT_EQ(error_of(write(writer, "b", dense(DType::uint8, {1}, 1), {Bytes(1)})).field,
            "tensor_count");
  EXPECT_EQ(failure(writer.finish()), "");
}

TEST(FileWriter, EqualContentGivesEqualBytes) {
  EXPECT_EQ(two_tensors().bytes, two_tensors().bytes);
  EXPECT_EQ(two_tensors(WriteOptions{}).bytes, two_tensors(WriteOptions{}).bytes);
}

TEST(FileWriter, OverADescriptorFromItsPositionOn) {
  const TemporaryFolder folder;
  const int descriptor = ::open((folder / "a").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, "12345", 5), 5);
  {
    auto writer = FileWriter::over(descriptor, plain());
    ASSERT_EQ(failure(writer), "");
    ASSERT_EQ(failure(writer->finish()), "");
  }
  ASSERT_EQ(::write(descriptor, "!", 1), 1);  // it is still open, and stands behind the file
  ::close(descriptor);
  const Bytes bytes = read_bytes(folder / "a");
  EXPECT_EQ(bytes.size(), 5u + 120u + 1u);
  EXPECT_EQ(bytes[5], std::byte{'H'});
  EXPECT_EQ(bytes.back(), std::byte{'!'});
}

TEST(FileWriter, IntoAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Bytes received;
  std::thread reader([&] {
    std::array<std::byte, 1000> piece;
    for (ssize_t n; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
      received.insert(received.end(), piece.begin(), piece.begin() + n);
  });
  {
    auto writer = FileWriter::over(ends[1], plain());
    ASSERT_EQ(failure(writer), "");
    Bytes large(1u << 20, std::byte{7});
    EXPECT_EQ(failure(write(*writer, "a", dense(DType::uint8, {1u << 20}, 1u << 20), {large})), "");
    EXPECT_EQ(failure(writer->finish()), "");
  }
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  const TemporaryFolder folder;
  write_bytes(folder / "a.hrry", received);
  const auto file = File::open(folder / "a.hrry");
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->entry(0).data_length, 1u << 20);
}

/// Positions and lengths beyond 32 bits; nothing keeps the bytes but the end.
TEST(FileWriter, BeyondFourGibibytes) {
  constexpr std::uint64_t large = (std::uint64_t{1} << 32) + 12'345;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::uint64_t received = 0;
  Bytes tail;
  std::thread reader([&] {
    Bytes piece(1u << 20);
    for (ssize_t n; (n = ::read(ends[0], piece.data(), piece.size())) > 0;) {
      received += static_cast<std::uint64_t>(n);
      tail.insert(tail.end(), piece.begin(), piece.begin() + n);
      if (tail.size() > 4096) tail.erase(tail.begin(), tail.end() - 4096);
    }
  });
  {
    auto writer = FileWriter::over(ends[1], plain());
    ASSERT_EQ(failure(writer), "");
    const std::array<BufferSource, 1> zeros{
        BufferSource(large, [](std::uint64_t, std::span<std::byte>) { return Result<void>(); })};
    ASSERT_EQ(failure(writer->write("a", dense(DType::uint8, {large}, large), zeros)), "");
    ASSERT_EQ(failure(write(*writer, "b", dense(DType::uint8, {1}, 1), {Bytes(1)})), "");
    ASSERT_EQ(failure(writer->finish()), "");
  }
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);

  const auto trailer = std::span(tail).last(40);
  const auto index_offset = hurray::detail::load<std::uint64_t>(trailer.data());
  const auto index_length = hurray::detail::load<std::uint64_t>(trailer.data() + 8);
  EXPECT_EQ(index_offset + index_length + 40, received);
  EXPECT_GT(index_offset, large);
  // One byte of a name in each entry: 2 + 1 + 8 + 4 + 8 + 8 + 4.
  const auto index = std::span(tail).last(40 + index_length).first(index_length);
  EXPECT_EQ(index_length, 8u + 2 * 35);
  const auto number = [&](std::size_t at) {
    return hurray::detail::load<std::uint64_t>(index.data() + at);
  };
  EXPECT_EQ(number(8 + 3), 64u);
  EXPECT_EQ(number(8 + 15), 4096u);
  EXPECT_EQ(number(8 + 23), large);
  const std::uint64_t behind = (4096 + large + 7) / 8 * 8;
  EXPECT_EQ(number(43 + 3), behind);
  EXPECT_EQ(number(43 + 15) % 4096, 0u);
  EXPECT_GT(number(43 + 15), behind);
}

TEST(FileWriter, BeyondTheLargestFile) {
  auto writer = FileWriter::create("/dev/null", plain());
  ASSERT_EQ(failure(writer), "");
  const auto nothing = [](std::uint64_t, std::span<std::byte>) { return Result<void>(); };
  for (const std::uint64_t size :
       {std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} - 4000, std::uint64_t{INT64_MAX} - 64}) {
    const std::array<BufferSource, 1> source{BufferSource(size, nothing)};
    const Error error = error_of(writer->check("a", dense(DType::uint8, {size}, size), source));
    EXPECT_EQ(error.tensor, "a");
    EXPECT_EQ(error.system_errno, 0);
    EXPECT_NE(to_string(error).find("largest file"), std::string::npos) << to_string(error);
  }
  EXPECT_EQ(failure(write(*writer, "a", dense(DType::uint8, {1}, 1), {Bytes(1)})), "");
}

/// The first failure of a whole file that goes to `descriptor`; afterwards the writer is dead.
Error failed_write(int descriptor) {
  auto writer = FileWriter::over(descriptor, plain());
  EXPECT_EQ(failure(writer), "");
  const Descriptor one = dense(DType::uint8, {1}, 1);
  const Error first = error_of(write(*writer, "a", one, {Bytes(1)}));
  EXPECT_EQ(first.tensor, "a");
  EXPECT_EQ(error_of(write(*writer, "b", one, {Bytes(1)})).code, Errc::invalid_state);
  EXPECT_EQ(error_of(writer->finish()).code, Errc::invalid_state);
  return first;
}

TEST(FileWriter, AfterAnIoErrorItIsDead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(failed_write(ends[1]).system_errno, EPIPE);
  ::close(ends[1]);

  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  const Error error = failed_write(full);
  EXPECT_EQ(error.system_errno, ENOSPC);
  EXPECT_EQ(error.code, Errc::system);
  EXPECT_NE(to_string(error).find("No space left on device"), std::string::npos);
  ::close(full);
}

TEST(FileWriter, StopsWhenAsked) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  bool stop = false;
  options.interrupted = [&] { return stop; };
  auto writer = create(folder / "a.hrry", options);
  const Descriptor one = dense(DType::uint8, {1}, 1);
  ASSERT_EQ(failure(write(writer, "a", one, {Bytes(1)})), "");
  stop = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(error_of(write(writer, "b", one, {Bytes(1)})).system_errno, EINTR);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace hurray::io
