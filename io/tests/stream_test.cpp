#include "hurray/io/stream.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "../../core/tests/support.hpp"

namespace hurray::io {
namespace {

using hurray::testing::dense;
using hurray::testing::for_each_bit_flip;
using hurray::testing::handle;
using hurray::testing::hex;

constexpr std::uint64_t mebi = 1u << 20;

// -------------------------------------------------------------------------------------------
// helpers

/// An open descriptor that is closed when this goes.
struct Fd {
  explicit Fd(int descriptor = -1) : number(descriptor) {}
  Fd(Fd&& other) noexcept : number(std::exchange(other.number, -1)) {}
  Fd& operator=(Fd&& other) noexcept { return std::swap(number, other.number), *this; }
  ~Fd() { close(); }
  void close() {
    if (number >= 0) ::close(std::exchange(number, -1));
  }
  int number;
};

struct Pair {
  Fd read = Fd();
  Fd write = Fd();
};

Pair make_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Pair make_socketpair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

/// A connection over the loopback interface; no descriptors where the machine lacks the family.
Pair make_tcp(int family) {
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  else
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const Fd listening(::socket(family, SOCK_STREAM, 0));
  if (listening.number < 0 || ::bind(listening.number, plain, length) != 0) return {};
  EXPECT_EQ(::listen(listening.number, 1), 0);
  EXPECT_EQ(::getsockname(listening.number, plain, &length), 0);
  Pair pair;
  pair.write = Fd(::socket(family, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(pair.write.number, plain, length), 0);
  pair.read = Fd(::accept(listening.number, nullptr, nullptr));
  return pair;
}

Pair make_tcp4() { return make_tcp(AF_INET); }

void send(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    ASSERT_GT(count, 0) << std::strerror(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

/// An empty folder that goes with its contents.
struct Folder {
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "hurray-stream-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return path / name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::filesystem::path path;
};

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes read_file(const std::string& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

Bytes pattern(std::uint64_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + i / 4096);
  return bytes;
}

Bytes frame(const Descriptor& descriptor, std::span<const std::byte> data = {}) {
  Bytes bytes = *encode(descriptor);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// What `write` needs to send `tensor` on.
std::vector<BufferSource> sources(const Tensor& tensor) {
  std::vector<BufferSource> result;
  for (const Buffer& buffer : tensor.buffers()) result.emplace_back(buffer.bytes());
  return result;
}

void relay(StreamWriter& writer, const Tensor& tensor) {
  const auto written = writer.write(tensor.wire_descriptor(), sources(tensor));
  ASSERT_TRUE(written) << to_string(written.error());
}

template <class T>
void expect_bytes(const Tensor& tensor, const std::vector<T>& values) {
  ASSERT_EQ(tensor.buffers().size(), 1u);
  ASSERT_EQ(tensor.buffer(0).size(), values.size() * sizeof(T));
  EXPECT_TRUE(std::ranges::equal(tensor.buffer(0).bytes(), std::as_bytes(std::span(values))));
}

StreamReader reader_over(std::span<const std::byte> bytes, const StreamReadOptions& options = {}) {
  auto reader = StreamReader::over(bytes, options);
  EXPECT_TRUE(reader);
  return *std::move(reader);
}

StreamReader reader_over(const Fd& fd, const StreamReadOptions& options = {}) {
  auto reader = StreamReader::over(fd.number, options);
  EXPECT_TRUE(reader);
  return *std::move(reader);
}

/// The first error of a stream; fails the test when there is none.
Error first_error(StreamReader reader) {
  for (;;) {
    auto item = reader.next();
    if (!item) {
      const auto after = reader.next();
      EXPECT_TRUE(after && !*after) << "exhausted after a failure";
      return item.error();
    }
    if (!*item) {
      ADD_FAILURE() << "the stream ended without an error";
      return {};
    }
  }
}

/// What `error` says, without the general advice that comes with its code.
std::string sentence(const Error& error) {
  std::string text = to_string(error);
  const std::string advice = "; " + std::string(info(error.code).hint);
  if (text.ends_with(advice)) text.resize(text.size() - advice.size());
  return text;
}

std::string sentence(std::span<const std::byte> bytes, const StreamReadOptions& options = {}) {
  return sentence(first_error(reader_over(bytes, options)));
}

/// The 110 bytes of 05-stream.md section 7: uint16 [10, 20], then an empty float32.
const Bytes worked =
    hex("48 52 52 59 01 00 35 00 00 00  00 00 00 00 13 01 01 00 00 00  02 00 00 00 00 00 00 00"
        "00 00 00 00 00 00 00 00  01  04 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00  0A 00 14 00"
        "48 52 52 59 01 00 35 00 00 00  00 00 00 00 03 01 01 00 00 00  00 00 00 00 00 00 00 00"
        "00 00 00 00 00 00 00 00  01  00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00");

/// A CUDA buffer of two float32 that only its event makes readable; alignment 256 is kept too.
Bytes event_frame() {
  Descriptor descriptor = dense(DType::float32, {2});
  descriptor.buffers[0].device = Device::cuda;
  descriptor.buffers[0].sync_mode = SyncMode::event;
  descriptor.buffers[0].alignment = 256;
  return frame(descriptor, pattern(8));
}

// ------------------------------------------------------------------------------------ worked bytes

TEST(Stream, WorkedBytesAreWritten) {
  auto writer = StreamWriter::in_memory();
  const std::vector<std::uint16_t> values{10, 20};
  const BufferSource source(std::as_bytes(std::span(values)));
  ASSERT_TRUE(writer->write(dense(DType::uint16, {2}), std::span(&source, 1)));
  const BufferSource nothing;
  ASSERT_TRUE(writer->write(dense(DType::float32, {0}), std::span(&nothing, 1)));
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(std::ranges::equal(writer->bytes(), worked));
}

TEST(Stream, WorkedBytesAreRead) {
  auto reader = reader_over(worked);
  EXPECT_EQ(reader.position(), 0u);
  const auto first = reader.next();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->descriptor().dtype, DType::uint16);
  EXPECT_EQ((*first)->descriptor().shape, Shape{2});
  expect_bytes(**first, std::vector<std::uint16_t>{10, 20});
  EXPECT_EQ((*first)->provenance(), Provenance::outside);
  EXPECT_FALSE((*first)->readonly());
  EXPECT_EQ(reader.position(), 57u);
  const auto second = reader.next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->descriptor().shape, Shape{0});
  EXPECT_EQ((*second)->descriptor().buffers[0].alignment, 1u);
  EXPECT_EQ(reader.position(), 110u);
  for (int i = 0; i < 2; ++i) {
    const auto end = reader.next();
    EXPECT_TRUE(end && !*end);
  }
}

/// Reads all of `reader`, whose input is the first `cut` worked bytes, and checks the exact
/// outcome.
void expect_cut(StreamReader reader, std::size_t cut) {
  SCOPED_TRACE("cut at " + std::to_string(cut));
  const std::size_t whole = cut == 110 ? 2 : cut >= 57 ? 1 : 0;
  for (std::size_t i = 0; i < whole; ++i) {
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
  }
  EXPECT_EQ(reader.position(), whole == 2 ? 110u : whole == 1 ? 57u : 0u);
  const auto last = reader.next();
  if (cut == 0 || cut == 57 || cut == 110) {
    ASSERT_TRUE(last) << to_string(last.error());
    EXPECT_FALSE(*last);
    return;
  }
  ASSERT_FALSE(last);
  const std::size_t inside = cut - 57 * whole;
  const Error& error = last.error();
  EXPECT_EQ(error.code, Errc::truncated);
  EXPECT_EQ(error.origin, Origin::stream);
  EXPECT_EQ(error.offset, cut);
  EXPECT_EQ(error.expected, inside < 10 ? 10u : inside < 53 ? 53u : 4u);
  EXPECT_EQ(error.found, inside < 53 ? inside : inside - 53);
  EXPECT_EQ(field_name(error), inside < 53 ? "descriptor_length" : "buffers[0].byte_size");
}

TEST(Stream, EveryCutOfTheWorkedBytesInMemory) {
  for (std::size_t cut = 0; cut <= worked.size(); ++cut) {
    const Bytes part(worked.begin(), worked.begin() + static_cast<std::ptrdiff_t>(cut));
    expect_cut(reader_over(part), cut);
  }
}

TEST(Stream, EveryCutOfTheWorkedBytesThroughAFileAPipeAndASocket) {
  const Folder folder;
  for (std::size_t cut = 0; cut <= worked.size(); ++cut) {
    const auto part = std::span(worked).first(cut);
    write_file(folder / "cut", part);
    auto file = StreamReader::open(folder / "cut");
    ASSERT_TRUE(file);
    expect_cut(*std::move(file), cut);
    for (Pair (*make)() : {make_pipe, make_socketpair, make_tcp4}) {
      Pair ends = make();
      send(ends.write.number, part);
      ends.write.close();
      expect_cut(reader_over(ends.read), cut);
    }
  }
}

TEST(Stream, TruncationSaysWhereWhatWasWantedAndWhatCame) {
  EXPECT_EQ(sentence(std::span(worked).first(55)),
            "buffers[0].byte_size: expected 4 bytes, found 2 (truncated at byte 55 of the stream)");
  EXPECT_EQ(sentence(std::span(worked).first(60)),
            "descriptor_length: expected 10 bytes, found 3 (truncated at byte 60 of the stream)");
}

TEST(Stream, AStreamOfNothingIsValid) {
  auto writer = StreamWriter::in_memory();
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(writer->bytes().empty());
  const auto end = reader_over(writer->bytes()).next();
  EXPECT_TRUE(end && !*end);
}

TEST(Stream, ExpectedItemsTellAShorterStreamFromAWholeOne) {
  const Error error = first_error(reader_over(worked, {.expected_items = 3}));
  EXPECT_EQ(sentence(error),
            "expected_items: expected 3 tensors, found 2 (truncated at byte 110 of the stream)");
  auto whole = reader_over(worked, {.expected_items = 2});
  ASSERT_TRUE(whole.next() && whole.next());
  const auto end = whole.next();
  EXPECT_TRUE(end && !*end);
}

// ------------------------------------------------------------------------------------ strange
// bytes

TEST(Stream, StrangersAreNamedBeforeAnyLengthIsLookedAt) {
  const auto text = [](std::string_view letters) { return std::as_bytes(std::span(letters)); };
  for (const std::string_view stranger : {"GET / HTTP/1.1\r\n", "HRRX", "HRR!"}) {
    const Error error = first_error(reader_over(text(stranger)));
    EXPECT_EQ(error.code, Errc::invalid_magic);
    EXPECT_EQ(error.origin, Origin::stream);
    EXPECT_EQ(error.offset, 0u);
    EXPECT_EQ(error.detail, "this begins with \"" + std::string(stranger.substr(0, 4)) +
                                "\": no tensor begins so");
  }
  for (const std::string_view file : {"HRRYFILE\1\0", "HRRYF"})
    EXPECT_EQ(
        sentence(text(file)),
        "version_major: expected 1, found 70 (unsupported version at byte 4 of the stream); this "
        "is a .hrry file and no stream: open it as a file");
  EXPECT_EQ(sentence(text(std::string_view("HRRY\2\0\0\0\0\0", 10))),
            "version_major: expected 1, found 2 (unsupported version at byte 4 of the stream)");
  EXPECT_EQ(
      sentence(text(std::string_view("HRRY\1\0\x13\0\0\0", 10))),
      "descriptor_length: expected at least 20 bytes, found 19 (length mismatch at byte 6 of the "
      "stream)");
  const Bytes behind_a_frame = worked + Bytes(10, std::byte{0});
  EXPECT_EQ(first_error(reader_over(behind_a_frame)).offset, 110u);
}

TEST(Stream, AClientThatWaitsForAnAnswerIsRefusedAfterFourBytes) {
  const Pair ends = make_socketpair();
  send(ends.write.number, std::as_bytes(std::span("GET ", 4)));
  EXPECT_EQ(first_error(reader_over(ends.read)).code, Errc::invalid_magic);
}

TEST(Stream, ADescriptorThatDoesNotDecodeIsSaidWithItsPlace) {
  Bytes bytes = worked;
  bytes[57 + 14] = std::byte{0x00};
  const Error error = first_error(reader_over(bytes));
  EXPECT_EQ(error.origin, Origin::descriptor);
  EXPECT_EQ(error.code, Errc::invalid_tag);
  EXPECT_EQ(error.offset, 14u);
  EXPECT_EQ(error.detail, "this descriptor begins at byte 57 of the stream");
}

TEST(Stream, ANewerMinorVersionIsReadPastWhatItAdds) {
  Bytes bytes = worked;
  bytes[5] = std::byte{7};
  bytes[6] = std::byte{0x38};
  bytes.insert(bytes.begin() + 53, 3, std::byte{0xEE});
  auto reader = reader_over(bytes);
  const auto first = reader.next();
  ASSERT_TRUE(first) << to_string(first.error());
  expect_bytes(**first, std::vector<std::uint16_t>{10, 20});
  EXPECT_EQ((*first)->descriptor().version.minor, 7);
  const auto second = reader.next();
  EXPECT_TRUE(second && *second);
}

TEST(Stream, EveryBitFlipIsRefusedOrUnderstood) {
  Descriptor strided = dense(DType::int16, {2, 2});
  strided.layout = Strided{{2, 1}};
  Statistics statistics;
  strided.set_statistics(statistics);
  strided.set_shard(Shard(std::vector<std::uint64_t>{4, 2}, std::vector<std::uint64_t>{2, 0}));
  const Bytes good = frame(strided, pattern(8)) + worked + event_frame();
  std::size_t whole = 0;
  for_each_bit_flip(good, [&](const Bytes& flipped) {
    auto reader = reader_over(flipped, {.max_descriptor_bytes = 4096});
    auto writer = StreamWriter::in_memory();
    for (;;) {
      const auto item = reader.next();
      if (!item) {
        EXPECT_FALSE(to_string(item.error()).empty());
        return;
      }
      if (!*item) break;
      for (const Buffer& buffer : (*item)->buffers()) {
        EXPECT_TRUE(buffer.size() == 0 || buffer.alignment() >= 64);
      }
      if ((*item)->descriptor().version.minor == 0) relay(*writer, **item);
    }
    ++whole;
  });
  EXPECT_GT(whole, 0u);  // flips in data
}

// -------------------------------------------------------------------------------------------
// limits

TEST(Stream, LimitsSayBothNumbersBeforeTheFirstDataByte) {
  const Folder folder;
  const Bytes bytes = frame(dense(DType::uint8, {1000}), pattern(1000));
  write_file(folder / "s", bytes);
  const struct {
    StreamReadOptions options;
    std::string message;
    off_t read;
  } cases[] = {
      {{.max_descriptor_bytes = 52},
       "descriptor_length: expected at most 52 bytes (max_descriptor_bytes), found 53 (limit "
       "exceeded "
       "at byte 6 of the stream)",
       10},
      {{.max_buffer_bytes = 999},
       "buffers[0].byte_size: expected at most 999 bytes (max_buffer_bytes), found 1000 (limit "
       "exceeded at byte 0 of the stream)",
       53},
      {{.max_tensor_bytes = 999},
       "buffers: expected at most 999 bytes in all buffers (max_tensor_bytes), found 1000 (limit "
       "exceeded at byte 0 of the stream)",
       53},
  };
  for (const auto& c : cases) {
    const Fd file(::open((folder / "s").c_str(), O_RDONLY));
    EXPECT_EQ(sentence(first_error(reader_over(file, c.options))), c.message);
    EXPECT_EQ(::lseek(file.number, 0, SEEK_CUR), c.read);
  }
  auto exact = reader_over(
      bytes, {.max_descriptor_bytes = 53, .max_buffer_bytes = 1000, .max_tensor_bytes = 1000});
  const auto item = exact.next();
  EXPECT_TRUE(item && *item);
}

TEST(Stream, TheDefaultLimitRefusesHugeDescriptorsUnread) {
  Bytes bytes = worked;
  bytes[9] = std::byte{0xFF};
  EXPECT_EQ(first_error(reader_over(bytes)).code, Errc::limit_exceeded);
  const Error raised = first_error(reader_over(bytes, {.max_descriptor_bytes = ~0u}));
  EXPECT_EQ(raised.code, Errc::truncated);
  EXPECT_EQ(raised.found, 110u);
}

struct Memory {
  std::uint64_t reserved = 0, resident = 0;  ///< Bytes.

  static Memory now() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0, resident = 0;
    statm >> size >> resident;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return {size * page, resident * page};
  }
};

/// Sends a frame that declares 2^62 bytes and `arrived` of them, and measures while the reader
/// waits for the rest.
void expect_memory_follows(std::uint64_t arrived, std::uint64_t most_reserved) {
  SCOPED_TRACE(std::to_string(arrived) + " bytes arrived");
  Descriptor descriptor = dense(DType::uint8, {1});
  descriptor.shape = {std::uint64_t{1} << 62};
  descriptor.buffers[0].byte_size = std::uint64_t{1} << 62;
  const Pair ends = make_pipe();
  const Bytes piece = pattern(64 << 10);
  std::atomic<bool> started = false;
  std::atomic<bool> sent = false;
  std::thread sender([&] {
    const Bytes encoded = *encode(descriptor);
    started = true;  // this thread's stack and heap are there
    send(ends.write.number, encoded);
    for (std::uint64_t left = arrived; left != 0;) {
      const std::uint64_t size = std::min<std::uint64_t>(left, piece.size());
      send(ends.write.number, std::span(piece).first(size));
      left -= size;
    }
    sent = true;
  });
  while (!started) std::this_thread::yield();
  const Memory before = Memory::now();
  Memory during;
  int asked = 0;
  StreamReadOptions options;
  options.interrupted = [&] {
    if (!sent || ++asked < 3) return false;
    during = Memory::now();
    return true;
  };
  auto reader = reader_over(ends.read, options);
  const auto item = reader.next();
  sender.join();
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().system_errno, EINTR);
  EXPECT_LE(during.reserved - std::min(during.reserved, before.reserved), most_reserved);
  EXPECT_LE(during.resident - std::min(during.resident, before.resident), arrived + 16 * mebi);
  EXPECT_GE(during.resident + 16 * mebi, before.resident + arrived);
}

TEST(Stream, MemoryFollowsTheBytesThatArrived) {
  (void)Memory::now();
  expect_memory_follows(1000, 64 * mebi + 16 * mebi);
  expect_memory_follows(100 * mebi, 2 * 64 * mebi + 16 * mebi);
}

TEST(Stream, LargeBuffersGrowAndKeepEveryByte) {
  const Folder folder;
  const Bytes data = pattern(130 * mebi + 12345);
  const Bytes bytes = frame(dense(DType::uint8, {data.size()}), data) + worked;
  write_file(folder / "large", bytes);
  auto from_file = StreamReader::open(folder / "large");
  auto from_memory = StreamReader::over(bytes);
  for (StreamReader* reader : {&*from_file, &*from_memory}) {
    const auto item = reader->next();
    ASSERT_TRUE(item && *item);
    ASSERT_EQ((*item)->buffer(0).size(), data.size());
    EXPECT_EQ(std::memcmp((*item)->buffer(0).data(), data.data(), data.size()), 0);
    EXPECT_EQ((*item)->descriptor().buffers[0].alignment, 4096u);
    const auto next = reader->next();
    EXPECT_TRUE(next && *next);
  }
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Stream, AnExhaustedAddressSpaceIsOutOfMemory) {
  const Folder folder;
  write_file(folder / "sparse", *encode(dense(DType::uint8, {mebi << 10})));
  std::filesystem::resize_file(folder / "sparse", mebi << 10);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlim_t limit = Memory::now().reserved + 150 * mebi;
    const rlimit space{limit, limit};
    ::setrlimit(RLIMIT_AS, &space);
    auto reader = StreamReader::open(folder / "sparse");
    const auto item = reader->next();
    ::_exit(!item && item.error().code == Errc::out_of_memory ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

// ------------------------------------------------------------------------------- pipes and sockets

TEST(Stream, ATensorIsThereBeforeTheNextFrameBeginsToArrive) {
  Pair ends = make_pipe();
  std::atomic<int> read = 0;
  std::thread sender([&] {
    for (std::size_t i = 0; i < worked.size(); ++i) {
      if (i == 57)
        while (read == 0) std::this_thread::yield();
      send(ends.write.number, std::span(worked).subspan(i, 1));
    }
    ends.write.close();
  });
  auto reader = reader_over(ends.read);
  const auto first = reader.next();
  ++read;
  ASSERT_TRUE(first && *first);
  expect_bytes(**first, std::vector<std::uint16_t>{10, 20});
  const auto second = reader.next();
  EXPECT_TRUE(second && *second);
  const auto end = reader.next();
  EXPECT_TRUE(end && !*end);
  sender.join();
}

TEST(Stream, ASecondProcessSendsAndAThirdRelays) {
  Pair first = make_pipe();
  Pair second = make_pipe();
  const Bytes data = pattern(3 * mebi + 7);
  const auto in_child = [&](auto work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool done = work();
      ::_exit(done ? 0 : 1);
    }
    return child;
  };
  const pid_t sender = in_child([&] {
    first.read.close();
    auto writer = StreamWriter::over(first.write.number);
    bool done = true;
    for (std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{data.size()}}) {
      const BufferSource source(std::span<const std::byte>(data).first(n));
      done = done && writer->write(dense(DType::uint8, {n}), std::span(&source, 1));
    }
    return done && writer->finish();
  });
  first.write.close();
  const pid_t relaying = in_child([&] {
    second.read.close();
    auto reader = StreamReader::over(first.read.number);
    auto writer = StreamWriter::over(second.write.number);
    for (;;) {
      const auto item = reader->next();
      if (!item) return false;
      if (!*item) return static_cast<bool>(writer->finish());
      if (!writer->write((*item)->wire_descriptor(), sources(**item))) return false;
    }
  });
  first.read.close();
  second.write.close();
  auto reader = reader_over(second.read);
  for (std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{data.size()}}) {
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    expect_bytes(**item, Bytes(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n)));
    EXPECT_GE((*item)->descriptor().buffers[0].alignment, n == 0 ? 1u : 64u);
  }
  const auto end = reader.next();
  EXPECT_TRUE(end && !*end);
  for (const pid_t child : {sender, relaying}) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(Stream, DescriptorsThatDoNotBlockAreWaitedFor) {
  for (const bool socket : {false, true}) {
    Pair ends = socket ? make_socketpair() : make_pipe();
    for (const int end : {ends.read.number, ends.write.number})
      ASSERT_EQ(::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK), 0);
    const Bytes data = pattern(5 * mebi);
    std::thread sender([&] {
      auto writer = StreamWriter::over(ends.write.number);
      const BufferSource source(data);
      EXPECT_TRUE(writer->write(dense(DType::uint8, {data.size()}), std::span(&source, 1)));
      EXPECT_TRUE(writer->finish());
      ends.write.close();
    });
    auto reader = reader_over(ends.read);
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    expect_bytes(**item, data);
    const auto end = reader.next();
    EXPECT_TRUE(end && !*end);
    sender.join();
  }
}

TEST(Stream, WaitingEndsWhenSomebodySaysSo) {
  const Pair ends = make_pipe();
  int asked = 0;
  auto reader = reader_over(ends.read, {.interrupted = [&] { return ++asked == 2; }});
  const auto item = reader.next();
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().code, Errc::system);
  EXPECT_EQ(item.error().system_errno, EINTR);
  EXPECT_EQ(item.error().origin, Origin::file);
  EXPECT_EQ(asked, 2);
  const auto after = reader.next();
  EXPECT_TRUE(after && !*after);

  asked = 0;
  const Pair full = make_socketpair();
  auto writer =
      StreamWriter::over(full.write.number, {.interrupted = [&] { return ++asked == 2; }});
  const Bytes data(16 * mebi);
  const BufferSource source(data);
  const auto written = writer->write(dense(DType::uint8, {data.size()}), std::span(&source, 1));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().system_errno, EINTR);
  EXPECT_EQ(writer->finish().error().code, Errc::invalid_state);
}

TEST(Stream, ABrokenPipeIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  for (const bool socket : {false, true}) {
    Pair ends = socket ? make_socketpair() : make_pipe();
    auto writer = StreamWriter::over(ends.write.number);
    ends.read.close();
    const BufferSource nothing;
    const auto written = writer->write(dense(DType::float32, {0}), std::span(&nothing, 1));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().system_errno, EPIPE);
    EXPECT_EQ(sentence(written.error()), "write: Broken pipe");
    EXPECT_EQ(sentence(writer->write(dense(DType::float32, {0}), std::span(&nothing, 1)).error()),
              "stream: an earlier write failed (invalid state); it was: write: Broken pipe");
    sigset_t pending;
    ASSERT_EQ(::sigpending(&pending), 0);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  }
}

TEST(Stream, TheCallersDescriptorStaysOpenAndBehindTheLastFrameRead) {
  const Folder folder;
  write_file(folder / "s", worked + Bytes(3, std::byte{'x'}));
  const Fd file(::open((folder / "s").c_str(), O_RDONLY));
  ASSERT_EQ(::lseek(file.number, 57, SEEK_SET), 57);
  {
    auto reader = reader_over(file);
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    EXPECT_EQ(reader.position(), 53u);
    reader.close();
    const auto after = reader.next();
    EXPECT_TRUE(after && !*after);
  }
  EXPECT_EQ(::lseek(file.number, 0, SEEK_CUR), 110);
}

// ---------------------------------------------------------------------------- declared placements

TEST(Stream, FramesThatWaitForAnEventAreRelayedByteForByte) {
  const Bytes bytes = event_frame() + worked + event_frame();
  Pair ends = make_socketpair();
  send(ends.write.number, bytes);
  ends.write.close();
  auto reader = reader_over(ends.read);
  auto writer = StreamWriter::in_memory();
  for (int i = 0; i < 4; ++i) {
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    EXPECT_EQ((*item)->unsynced_buffer().has_value(), i == 0 || i == 3);
    EXPECT_EQ((*item)->memory_device(), Device::cpu);
    relay(*writer, **item);
  }
  EXPECT_TRUE(std::ranges::equal(writer->bytes(), bytes));
}

TEST(Stream, DeclaredDevicesAreKept) {
  Descriptor descriptor = dense(DType::float32, {2});
  descriptor.buffers[0].device = Device::cuda;
  descriptor.buffers[0].memory_class = MemoryClass::unified;
  const auto item = reader_over(frame(descriptor, pattern(8))).next();
  ASSERT_TRUE(item && *item);
  EXPECT_EQ((*item)->descriptor().buffers[0].device, Device::cuda);
  EXPECT_EQ((*item)->descriptor().buffers[0].memory_class, MemoryClass::unified);
  EXPECT_EQ((*item)->memory_device(), Device::cpu);
}

TEST(Stream, BetweenMachinesOnlySynchronizedTensorsPass) {
  const std::string refused =
      "buffers[0].sync_mode: expected 0 (producer_synced) between machines, found 1 (inconsistent "
      "at "
      "byte 57 of the stream)";
  const Bytes bytes = Bytes(worked.begin(), worked.begin() + 57) + event_frame();
  const auto descriptor = decode(event_frame());
  const Bytes data = pattern(8);
  const BufferSource source(data);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const std::optional<bool> forced : {std::optional<bool>(), std::optional(false)}) {
      const Pair ends = make_tcp(family);
      if (ends.read.number < 0) continue;  // no IPv6 here
      send(ends.write.number, bytes);
      auto reader = reader_over(ends.read, {.cross_machine = forced});
      const auto first = reader.next();
      ASSERT_TRUE(first && *first);
      const auto second = reader.next();
      ASSERT_EQ(static_cast<bool>(second), forced.has_value());
      if (!second) {
        EXPECT_EQ(sentence(second.error()), refused);
        EXPECT_EQ(raise(second.error()), Raise::stream);
      }

      auto writer = StreamWriter::over(ends.write.number, {.cross_machine = forced});
      const auto written = writer->write(*descriptor, std::span(&source, 1));
      ASSERT_EQ(static_cast<bool>(written), forced.has_value());
      if (!written) {
        EXPECT_EQ(raise(written.error()), Raise::stream);
        EXPECT_TRUE(writer->finish()) << "a refusal leaves the writer usable";
      }
    }
  }
  EXPECT_EQ(sentence(first_error(reader_over(bytes, {.cross_machine = true}))), refused);
  auto memory = StreamWriter::in_memory({.cross_machine = true});
  EXPECT_FALSE(memory->write(*descriptor, std::span(&source, 1)));
  EXPECT_TRUE(memory->bytes().empty());
}

TEST(Stream, DynamicDimensionsDoNotDisturbTheFrames) {
  Descriptor descriptor = dense(DType::float32, {2});
  descriptor.shape = {dynamic, 2};
  const Bytes bytes = frame(descriptor, pattern(8)) + worked;
  auto reader = reader_over(bytes);
  auto writer = StreamWriter::in_memory();
  for (int i = 0; i < 3; ++i) {
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    relay(*writer, **item);
  }
  EXPECT_TRUE(std::ranges::equal(writer->bytes(), bytes));
}

TEST(Stream, TensorsOutliveTheBytesAndTheReader) {
  std::optional<Tensor> tensor;
  {
    const Bytes bytes = worked;
    auto reader = reader_over(bytes);
    auto item = reader.next();
    ASSERT_TRUE(item && *item);
    tensor = **std::move(item);
  }
  expect_bytes(*tensor, std::vector<std::uint16_t>{10, 20});
  EXPECT_EQ(tensor->descriptor().buffers[0].alignment,
            measure_alignment(tensor->buffer(0).data(), tensor->buffer(0).size()));
  EXPECT_GE(tensor->descriptor().buffers[0].alignment, 64u);
}

// ------------------------------------------------------------------------------------------ writer

TEST(StreamWriter, RefusalsWriteNothingAndLeaveItUsable) {
  auto writer = StreamWriter::in_memory();
  const Descriptor two = dense(DType::uint16, {2});
  const Bytes data = hex("0A 00 14 00 00");
  const BufferSource right(std::span<const std::byte>(data).first(4));
  const BufferSource longer(data);
  const BufferSource both[] = {right, right};
  EXPECT_EQ(sentence(writer->write(two, std::span(&longer, 1)).error()),
            "buffers[0].byte_size: expected 4 bytes, found 5 (length mismatch)");
  EXPECT_EQ(sentence(writer->write(two, both).error()),
            "buffer_count: expected 1, found 2 (inconsistent)");
  Descriptor invalid = two;
  invalid.buffers[0].alignment = 3;
  const auto refused = writer->write(invalid, std::span(&right, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().origin, Origin::descriptor);
  EXPECT_TRUE(writer->bytes().empty());

  ASSERT_TRUE(writer->write(two, std::span(&right, 1)));
  EXPECT_TRUE(std::ranges::equal(writer->bytes(), std::span(worked).first(57)));
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(writer->finish()) << "idempotent";
  EXPECT_EQ(sentence(writer->write(two, std::span(&right, 1)).error()),
            "stream: the writer is finished (invalid state)");
  EXPECT_EQ(writer->bytes().size(), 57u);
}

TEST(StreamWriter, ArraysAreConvertedOnTheirWay) {
  constexpr std::uint64_t rows = 1500, columns = 700;  // several pieces
  std::vector<std::uint32_t> array(rows * columns);
  std::iota(array.begin(), array.end(), 0u);
  ArraySource transposed;
  transposed.origin = reinterpret_cast<const std::byte*>(array.data());
  transposed.shape = {columns, rows};
  transposed.strides = {4, 4 * static_cast<std::int64_t>(columns)};
  transposed.item_bytes = 4;
  transposed.unit_bytes = 4;
  transposed.dtype = DType::uint32;
  std::vector<std::uint32_t> expected;
  for (std::uint64_t c = 0; c < columns; ++c)
    for (std::uint64_t r = 0; r < rows; ++r) expected.push_back(array[r * columns + c]);

  const Folder folder;
  auto memory = StreamWriter::in_memory();
  auto file = StreamWriter::create(folder / "s", {.sync = false});
  ASSERT_TRUE(file) << to_string(file.error());
  const BufferSource source(transposed);
  for (StreamWriter* writer : {&*memory, &*file})
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(writer->write(dense(DType::uint32, {columns, rows}), std::span(&source, 1)));
  ASSERT_TRUE(file->finish());
  EXPECT_TRUE(std::ranges::equal(memory->bytes(), read_file(folder / "s")));
  auto reader = reader_over(memory->bytes());
  for (int i = 0; i < 2; ++i) {
    const auto item = reader.next();
    ASSERT_TRUE(item && *item);
    expect_bytes(**item, expected);
  }
}

TEST(StreamWriter, MemoryGrowsAndKeepsEveryByte) {
  const Bytes data = pattern(30 * mebi);
  const BufferSource source(data);
  auto writer = StreamWriter::in_memory();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(writer->write(dense(DType::uint8, {data.size()}), std::span(&source, 1)));
  const Bytes one = frame(dense(DType::uint8, {data.size()}), data);
  ASSERT_EQ(writer->bytes().size(), 5 * one.size());
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(std::memcmp(writer->bytes().data() + i * one.size(), one.data(), one.size()), 0);
}

TEST(StreamWriter, APathHoldsTheOldBytesUntilItIsFinished) {
  const Folder folder;
  const std::string path = folder / "s";
  const BufferSource nothing;
  const auto write = [&](StreamWriter& writer) {
    ASSERT_TRUE(writer.write(dense(DType::float32, {0}), std::span(&nothing, 1)));
  };
  {
    auto writer = StreamWriter::create(path);
    write(*writer);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(folder.entries(), 0u) << "nothing is left without finish";

  write_file(path, std::as_bytes(std::span("old", 3)));
  {
    auto writer = StreamWriter::create(path);
    write(*writer);
  }
  EXPECT_EQ(read_file(path).size(), 3u);
  auto writer = StreamWriter::create(path);
  write(*writer);
  EXPECT_EQ(read_file(path).size(), 3u);
  ASSERT_TRUE(writer->finish());
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(read_file(path).size(), 53u);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(StreamWriter, AFullDiskIsAnErrorOfThatWrite) {
  const Fd full(::open("/dev/full", O_WRONLY));
  ASSERT_GE(full.number, 0);
  auto writer = StreamWriter::over(full.number);
  const Bytes data = pattern(100);
  const BufferSource source(data);
  const auto written = writer->write(dense(DType::uint8, {100}), std::span(&source, 1));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().system_errno, ENOSPC);
  EXPECT_EQ(exit_code(written.error()), 3);
}

TEST(Stream, PathsThatCannotBeOpenedAreNamed) {
  const Folder folder;
  const auto missing = StreamReader::open(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().system_errno, ENOENT);
  EXPECT_EQ(missing.error().path, folder / "missing");
  const auto nowhere = StreamWriter::create(folder / "no" + "/where");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().system_errno, ENOENT);
  EXPECT_FALSE(StreamReader::over(-1));
  EXPECT_FALSE(StreamWriter::over(-1));

  write_file(folder / "short", std::span(worked).first(20));
  auto reader = StreamReader::open(folder / "short");
  EXPECT_EQ(first_error(*std::move(reader)).path, folder / "short");
}

}  // namespace
}  // namespace hurray::io
