#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "file_support.hpp"
#include "hurray/io/positioned_source.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/io/verify.hpp"

namespace hurray::io {
namespace {

using Requests = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Bytes on the other side of something, which notes what it is asked for.
struct Server {
  explicit Server(Bytes content) : bytes(std::move(content)) {}

  PositionedSource source() {
    return {
        .size = size.value_or(bytes.size()),
        .read_at = [this](std::span<std::byte> into, std::uint64_t offset) -> Result<std::size_t> {
          EXPECT_EQ(inside++, 0);
          {
            std::unique_lock lock(mutex);
            requests.emplace_back(offset, into.size());
            open.wait(lock, [&] { return !held; });
          }
          --inside;
          if (broken) {
            Error error({.code = Errc::system, .origin = Origin::file});
            error.system_errno = ECONNRESET;
            return error;
          }
          if (offset >= bytes.size()) return std::size_t{0};
          const std::size_t at = static_cast<std::size_t>(offset);
          const std::size_t count = std::min({into.size(), bytes.size() - at, most});
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, into.begin());
          return count + lie;
        },
        .name = "somewhere"};
  }
  Requests taken() {
    const std::scoped_lock lock(mutex);
    return std::exchange(requests, {});
  }
  void hold(bool stop) {
    const std::scoped_lock lock(mutex);
    held = stop;
    open.notify_all();
  }

  Bytes bytes;
  std::optional<std::uint64_t> size;
  std::size_t most = SIZE_MAX;  ///< Of one answer.
  std::size_t lie = 0;
  std::atomic<bool> broken = false;
  std::atomic<int> inside = 0;
  std::mutex mutex;
  std::condition_variable open;
  bool held = false;
  Requests requests;
};

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 11);
  return bytes;
}

/// `sizes` bytes each, named by their number.
Bytes file_of(const std::vector<std::size_t>& sizes, const KeyValues& kv = {}) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.checksums = true;
  auto writer = create(folder / "r.hrry", options);
  for (std::size_t k = 0; k < sizes.size(); ++k)
    EXPECT_EQ(failure(write(writer, std::to_string(k), dense(DType::uint8, {sizes[k]}, sizes[k]),
                            {pattern(sizes[k])})),
              "");
  EXPECT_EQ(failure(writer.finish(kv)), "");
  return read_bytes(folder / "r.hrry");
}

constexpr std::size_t MiB = 1 << 20;

File opened(Server& server) {
  auto file = File::over(server.source());
  EXPECT_EQ(failure(file), "");
  return *std::move(file);
}

TEST(Remote, SmallFilesAreOneRequest) {
  Server server(file_of({3, 5000, 70'000}));
  const File file = opened(server);
  EXPECT_EQ(file.mode(), Mode::memory);
  EXPECT_EQ(file.path(), "somewhere");
  for (std::size_t i = 0; i < 3; ++i) {
    const auto tensor = file.tensor(i);
    ASSERT_EQ(failure(tensor), "");
    const auto bytes = tensor->buffer(0).bytes();
    EXPECT_TRUE(std::ranges::equal(bytes, pattern(bytes.size())));
  }
  EXPECT_EQ(failure(verify(file)), "");
  EXPECT_EQ(server.taken(), (Requests{{0, server.bytes.size()}}));
  EXPECT_EQ(file.read_counts().requests, 1u);
  EXPECT_EQ(file.read_counts().bytes_read, server.bytes.size());
}

TEST(Remote, LargeOnesAreTheEndTheHeaderAndWhatIsAskedFor) {
  Server server(file_of({20 * MiB, 3 * MiB, 100, 200, 300}));
  const File file = opened(server);
  const std::size_t size = server.bytes.size();
  EXPECT_EQ(server.taken(), (Requests{{size - MiB, MiB}, {0, 512}}));
  // Descriptor and a large region: what lies between them is read with the former.
  const auto big = file.tensor(std::size_t{0});
  ASSERT_EQ(failure(big), "");
  EXPECT_TRUE(std::ranges::equal(big->buffer(0).bytes(), pattern(20 * MiB)));
  Requests requests = server.taken();
  EXPECT_LE(requests.size(), 5u);
  std::uint64_t sum = 0;
  for (const auto& [offset, bytes] : requests) sum += bytes;
  EXPECT_LE(sum, 22 * MiB);
  // The small ones lie in the end.
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(failure(file.tensor(i)), "");
  EXPECT_EQ(server.taken(), Requests());
  EXPECT_EQ(failure(verify(file)), "");
  EXPECT_LE(server.taken().size(), 10u);
}

TEST(Remote, ManySmallTensorsInOrderAreFewRequests) {
  const std::vector<std::size_t> sizes(2000, 1000);  // 16 MiB in pages
  Server server(file_of(sizes));
  const File file = opened(server);
  for (std::size_t i = 0; i < file.size(); ++i) ASSERT_EQ(failure(file.tensor(i)), "");
  EXPECT_LE(server.taken().size(), 20u);
}

TEST(Remote, LargeIndexAndKvAreOneMoreRequest) {
  KeyValues kv;
  kv.push_back({"text", std::string(3 * MiB, 'x')});
  Server server(file_of(std::vector<std::size_t>(300, 1), kv));
  const File file = opened(server);
  EXPECT_EQ(file.kv().size(), 1u);
  const Requests requests = server.taken();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].first, file.trailer().kv_offset);
  EXPECT_EQ(requests[2].first + requests[2].second, server.bytes.size() - MiB);
  EXPECT_EQ(failure(file.tensor(std::size_t{299})), "");
}

TEST(Remote, WhatLiesBetweenKvAndIndexIsNotTakenOnTrust) {
  KeyValues kv;
  kv.push_back({"k", std::int64_t{1}});
  Image image{file_of({20 * MiB, 3 * MiB}, kv)};
  // A KV section that claims to stand before all data.
  image.set<std::uint64_t>(image.trailer() + 16, 64);
  Server server(image.bytes);
  const auto file = File::over(server.source());
  std::uint64_t sum = 0;
  for (const auto& [offset, bytes] : server.taken()) sum += bytes;
  EXPECT_LE(sum, 2 * MiB);
  EXPECT_FALSE(file);
}

TEST(Remote, PartsAreReadWithGapsOfAMebibyte) {
  const TemporaryFolder folder;
  const Bytes values = pattern(64 * MiB);
  {
    auto writer = create(folder / "r.hrry", plain());
    ASSERT_EQ(failure(write(writer, "x", dense(DType::uint8, {64, MiB}, 64 * MiB), {values})), "");
    ASSERT_EQ(failure(writer.finish()), "");
  }
  Server server(read_bytes(folder / "r.hrry"));
  const File file = opened(server);
  server.taken();
  const auto slice = file.slice("x", Selection{{.start = 3, .stop = 9}});
  ASSERT_EQ(failure(slice), "");
  server.taken();  // the descriptor, and a part of the data
  const auto rows = slice->read();
  ASSERT_EQ(failure(rows), "");
  EXPECT_TRUE(
      std::ranges::equal(rows->buffer(0).bytes(), std::span(values).subspan(3 * MiB, 6 * MiB)));
  EXPECT_EQ(server.taken(), (Requests{{4096 + 3 * MiB, 6 * MiB}}));
  const auto column = file.slice("x", Selection{{}, {.start = 5, .stop = 6}})->read();
  ASSERT_EQ(failure(column), "");
  for (std::size_t k = 0; k < 64; ++k) EXPECT_EQ(column->buffer(0).bytes()[k], values[k * MiB + 5]);
  EXPECT_LE(server.taken().size(), 10u);
}

TEST(Remote, WhatIsPrefetchedIsThereWhenItIsAskedFor) {
  Server server(file_of({4 * MiB, 30 * MiB, 20'000, 5 * MiB, 2 * MiB}));
  const File file = opened(server);
  server.taken();
  const auto asked = file.prefetch(
      std::vector<File::Wanted>{{3, {}}, {2, {}}, {1, Selection{{.start = MiB, .stop = 2 * MiB}}}});
  ASSERT_EQ(failure(asked), "");
  EXPECT_GE(*asked, 6 * MiB);
  const auto three = file.tensor(std::size_t{3});
  ASSERT_EQ(failure(three), "");
  EXPECT_TRUE(std::ranges::equal(three->buffer(0).bytes(), pattern(5 * MiB)));
  EXPECT_EQ(failure(file.tensor(std::size_t{2})), "");
  const auto part = file.slice(std::size_t{1}, Selection{{.start = MiB, .stop = 2 * MiB}})->read();
  ASSERT_EQ(failure(part), "");
  EXPECT_TRUE(std::ranges::equal(part->buffer(0).bytes(),
                                 std::span<const std::byte>(pattern(2 * MiB)).subspan(MiB)));
  Requests requests = server.taken();
  EXPECT_LE(requests.size(), 5u);
  std::uint64_t sum = 0;
  for (const auto& [offset, bytes] : requests) sum += bytes;
  EXPECT_LE(sum, *asked + 2 * MiB);
}

TEST(Remote, FilesGoWhileSomethingIsOnItsWay) {
  Server server(file_of({40 * MiB, 3 * MiB}));
  {
    const File file = opened(server);
    server.hold(true);
    ASSERT_EQ(failure(file.prefetch(std::vector<File::Wanted>{{0, {}}})), "");
  }
  server.hold(false);
  // The thread may be in its last request; nothing waits for it but this test's memory.
  for (int i = 0; i < 1000 && server.inside != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(server.taken().size(), 4u);
}

TEST(Remote, WaitsCanBeInterrupted) {
  Server server(file_of({20 * MiB, 10 * MiB}));
  OpenOptions options;
  std::atomic<bool> stop = false;
  options.interrupted = [&] { return stop.load(); };
  {
    const auto file = File::over(server.source(), options);
    ASSERT_EQ(failure(file), "");
    server.hold(true);
    ASSERT_EQ(failure(file->prefetch(std::vector<File::Wanted>{{0, {}}})), "");
    stop = true;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {  // on its way, and behind it
      const auto tensor = file->tensor(i);
      ASSERT_FALSE(tensor);
      EXPECT_EQ(tensor.error().system_errno, EINTR);
    }
  }
  server.hold(false);
  for (int i = 0; i < 1000 && server.inside != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST(Remote, ErrorsAndLies) {
  const Bytes good = file_of({3 * MiB, 5000});
  {
    Server server(good);
    server.most = 1000;  // short answers are asked for again
    const File file = opened(server);
    const auto tensor = file.tensor(std::size_t{0});
    ASSERT_EQ(failure(tensor), "");
    EXPECT_TRUE(std::ranges::equal(tensor->buffer(0).bytes(), pattern(3 * MiB)));
  }
  {
    Server server(good);
    server.broken = true;
    const auto file = File::over(server.source());
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().system_errno, ECONNRESET);
  }
  {
    Server server(good);
    const File file = opened(server);
    EXPECT_TRUE(file.has_checksums());
    server.broken = true;
    const auto tensor = file.tensor(std::size_t{0});
    ASSERT_FALSE(tensor);
    EXPECT_EQ(tensor.error().system_errno, ECONNRESET);
    EXPECT_EQ(tensor.error().tensor, "0");
    // What fails in the background is found by whoever asks for it.
    EXPECT_EQ(failure(file.prefetch(std::vector<File::Wanted>{{0, {}}})), "");
    EXPECT_FALSE(file.tensor(std::size_t{0}));
    server.broken = false;  // and it goes on
    EXPECT_EQ(failure(file.tensor(std::size_t{0})), "");
  }
  {
    Server server(good);
    server.lie = 1;
    const auto file = File::over(server.source());
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Errc::invalid_value);
  }
  for (const std::uint64_t size :
       {good.size() + 5, good.size() - 5, std::size_t{0}, std::size_t{39}}) {
    Server server(good);
    server.size = size;
    const auto file = File::over(server.source());
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().origin, Origin::file) << size;
  }
  {
    Server server(good);
    server.size = std::uint64_t{1} << 62;  // nothing is allocated from what it says
    EXPECT_FALSE(File::over(server.source()));
  }
  {
    Server server(good);
    const File file = opened(server);
    server.bytes.resize(2 * MiB);  // cut meanwhile
    EXPECT_EQ(error_of(file.tensor(std::size_t{0})).code, Errc::truncated);
  }
  for (std::size_t at = 0; at < good.size(); at += at % 4096 < 200 ? 3 : 40'009) {
    Server server(good);
    server.bytes[at] ^= std::byte{4};
    const auto file = File::over(server.source());
    if (file) {
      EXPECT_TRUE(error_of(verify(*file)).code == Errc::checksum_mismatch || !verify(*file)) << at;
    }
  }
}

TEST(Remote, AFileWithinItselfIsAnError) {
  Server server(file_of({3 * MiB}));
  PositionedSource source = server.source();
  std::optional<File> file;
  source.read_at = [&, read = source.read_at](std::span<std::byte> into, std::uint64_t offset) {
    if (file) return Result<std::size_t>(error_of(file->tensor(std::size_t{0})));
    return read(into, offset);
  };
  OpenOptions options;
  options.verify = false;
  auto made = File::over(source, options);
  ASSERT_EQ(failure(made), "");
  file = *std::move(made);
  const auto tensor = file->tensor(std::size_t{0});
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().system_errno, EDEADLK);
}

}  // namespace
}  // namespace hurray::io
