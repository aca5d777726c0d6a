// Streams through functions, time limits, and writers that are asked to stop.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "file_support.hpp"
#include "hurray/io/stream.hpp"

namespace hurray::io {
namespace {

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

/// Two frames of 5 and 0 bytes.
Bytes stream() {
  auto writer = StreamWriter::in_memory();
  EXPECT_TRUE(writer);
  for (const std::size_t size : {5u, 0u}) {
    const Bytes data = numbered(size);
    const std::array<BufferSource, 1> buffers{std::span(data)};
    EXPECT_TRUE(writer->write(dense(DType::uint8, {size}, size), buffers));
  }
  const auto bytes = writer->bytes();
  return {bytes.begin(), bytes.end()};
}

/// Hands out `bytes`, at most `step` at a time; keeps the sizes that were asked for.
ReadFunction in_steps(Bytes bytes, std::size_t step) {
  return [bytes = std::move(bytes), step,
          done = std::size_t{0}](std::span<std::byte> out) mutable -> Result<std::size_t> {
    EXPECT_FALSE(out.empty());
    const std::size_t size = std::min({out.size(), step, bytes.size() - done});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), size, out.begin());
    done += size;
    return size;
  };
}

Error lost() {
  Error error;
  error.code = Errc::system;
  error.origin = Origin::file;
  error.system_errno = ECONNRESET;
  return error;
}

TEST(StreamFunctions, ReadingGivesTheTensorsWhateverTheSteps) {
  for (const std::size_t step : {1u, 3u, 1000u}) {
    auto reader = StreamReader::over(in_steps(stream(), step));
    ASSERT_TRUE(reader);
    const auto first = reader->next();
    ASSERT_TRUE(first && *first);
    EXPECT_TRUE(std::ranges::equal((*first)->buffer(0).bytes(), numbered(5)));
    const auto second = reader->next();
    ASSERT_TRUE(second && *second);
    EXPECT_EQ((*second)->buffer(0).size(), 0u);
    for (int i = 0; i < 2; ++i) {
      const auto end = reader->next();
      ASSERT_TRUE(end);
      EXPECT_FALSE(*end);
    }
    EXPECT_EQ(reader->position(), stream().size());
  }
}

TEST(StreamFunctions, ReadingPassesOnWhatTheFunctionFailsWith) {
  int calls = 0;
  auto reader = StreamReader::over([&](std::span<std::byte> out) -> Result<std::size_t> {
    if (++calls == 2) return lost();
    out[0] = std::byte{0x48};
    return std::size_t{1};
  });
  ASSERT_TRUE(reader);
  const auto failed = reader->next();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().system_errno, ECONNRESET);
  EXPECT_EQ(failed.error().origin, Origin::file);
  EXPECT_FALSE(*reader->next());
  EXPECT_EQ(calls, 2);
}

TEST(StreamFunctions, WritingGivesTheBytesOfAStream) {
  Bytes got;
  auto writer = StreamWriter::over([&](std::span<const std::byte> bytes) -> Result<void> {
    got.insert(got.end(), bytes.begin(), bytes.end());
    return {};
  });
  ASSERT_TRUE(writer);
  for (const std::size_t size : {5u, 0u}) {
    const Bytes data = numbered(size);
    const std::array<BufferSource, 1> buffers{std::span(data)};
    ASSERT_TRUE(writer->write(dense(DType::uint8, {size}, size), buffers));
  }
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(got, stream());
  EXPECT_TRUE(writer->bytes().empty());
}

TEST(StreamFunctions, WritingEndsWithTheFunctionsFailure) {
  auto writer =
      StreamWriter::over([](std::span<const std::byte>) -> Result<void> { return lost(); });
  ASSERT_TRUE(writer);
  const Bytes data = numbered(5);
  const std::array<BufferSource, 1> buffers{std::span(data)};
  const auto failed = writer->write(dense(DType::uint8, {5}, 5), buffers);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().system_errno, ECONNRESET);
  const auto again = writer->write(dense(DType::uint8, {5}, 5), buffers);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::invalid_state);
}

TEST(StreamTimeout, IsAnErrorOfTheStream) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Bytes bytes = stream();
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  StreamReadOptions options;
  options.read_timeout = std::chrono::milliseconds(20);
  auto reader = StreamReader::over(ends[0], options);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(*reader->next());
  EXPECT_TRUE(*reader->next());
  const auto late = reader->next();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().system_errno, ETIMEDOUT);
  EXPECT_EQ(late.error().origin, Origin::stream);
  EXPECT_FALSE(*reader->next());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(StreamTimeout, CountsFromTheLastByteThatCame) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  StreamReadOptions options;
  options.read_timeout = std::chrono::seconds(60);
  auto reader = StreamReader::over(ends[0], options);
  ASSERT_TRUE(reader);
  std::thread writer([&] {
    for (const std::byte b : stream()) EXPECT_EQ(::write(ends[1], &b, 1), 1);
    ::close(ends[1]);
  });
  EXPECT_TRUE(*reader->next());
  EXPECT_TRUE(*reader->next());
  EXPECT_FALSE(*reader->next());
  writer.join();
  ::close(ends[0]);
}

TEST(StreamTimeout, OfAWriterWhosePeerTakesNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  StreamWriteOptions options;
  options.write_timeout = std::chrono::milliseconds(20);
  auto writer = StreamWriter::over(ends[0], options);
  ASSERT_TRUE(writer);
  const Bytes much(std::size_t{8} << 20);
  const Descriptor descriptor = dense(DType::uint8, {much.size()}, much.size());
  const BufferSource source(much);
  const auto late = writer->write(descriptor, {&source, 1});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().system_errno, ETIMEDOUT);
  EXPECT_EQ(late.error().origin, Origin::stream);
  const auto after = writer->write(descriptor, {&source, 1});
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, Errc::invalid_state);
  EXPECT_NE(after.error().detail.find("within the time limit"), std::string::npos);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(FileWriterStops, WhenItIsAskedTo) {
  const TemporaryFolder folder;
  int asked = 0;
  WriteOptions options;
  options.interrupted = [&] { return ++asked > 0; };
  auto writer = FileWriter::create(folder / "a.hrry", options);
  ASSERT_TRUE(writer);
  const Bytes data = numbered(4u << 20);
  const std::array<BufferSource, 1> buffers{std::span(data)};
  const auto stopped = writer->write("a", dense(DType::uint8, {data.size()}, data.size()), buffers);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().system_errno, EINTR);
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(writer->finish());
  EXPECT_TRUE(folder.names().empty());
}

TEST(FileWriter, ARefusalWritesNothingInPlace) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    auto writer = FileWriter::over(ends[1]);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(writer->write("", dense(DType::uint8, {0}, 0), {}));
  }
  ::close(ends[1]);
  std::byte one{};
  EXPECT_EQ(::read(ends[0], &one, 1), 0);
  ::close(ends[0]);
}

TEST(LocalFile, IsARegularFileOfThisMachine) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_local_file(folder / "missing"));
  EXPECT_FALSE(is_local_file(folder.path()));
  EXPECT_FALSE(is_local_file("/dev/null"));
  EXPECT_FALSE(is_local_file(std::string("/tmp\0/x", 7)));
  std::ofstream(folder / "file") << "x";
  EXPECT_TRUE(is_local_file(folder / "file"));
}

}  // namespace
}  // namespace hurray::io
