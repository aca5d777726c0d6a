#include "hurray/io/stream_decoder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "../../core/tests/support.hpp"

namespace hurray::io {
namespace {

using hurray::testing::dense;
using hurray::testing::handle;

/// A tensor of `count` bytes that count upwards.
Tensor counted(std::uint64_t count, std::uint8_t first = 0) {
  Buffer memory = *Buffer::allocate(count);
  for (std::size_t i = 0; i < count; ++i)
    memory.data()[i] = static_cast<std::byte>(static_cast<std::uint8_t>(first + i));
  Descriptor descriptor;
  descriptor.dtype = DType::uint8;
  descriptor.shape = Shape{count};
  return *bind(descriptor, {memory});
}

Descriptor group_of(std::uint32_t members) {
  Descriptor head;
  head.dtype = DType::uint8;
  head.shape = Shape{2};
  head.layout = CompositeHead{.member_count = members, .rule = CompositionRule::group};
  return head;
}

/// Two tensors, an empty one, a group of three with a group of one inside, and a large one.
Bytes sample() {
  StreamWriter writer = *StreamWriter::in_memory();
  const auto write = [&](const Tensor& tensor) {
    const auto sources = sources_of(tensor);
    EXPECT_TRUE(writer.write(tensor.descriptor(), *sources));
  };
  write(counted(3));
  write(counted(100, 7));
  write(counted(0));
  EXPECT_TRUE(writer.write(group_of(3), {}));
  write(counted(2));
  EXPECT_TRUE(writer.write(group_of(1), {}));
  write(counted(5));
  write(counted(1));
  write(counted(5000, 1));
  EXPECT_TRUE(writer.finish());
  return Bytes(writer.bytes().begin(), writer.bytes().end());
}

std::string shown(const Item& item) {
  std::string text = std::to_string(item.tensor.buffers().size());
  for (const Buffer& buffer : item.tensor.buffers()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % min_buffer_alignment, 0u);
    for (const std::byte b : buffer.bytes()) text += ' ' + std::to_string(int(b));
  }
  for (const Item& member : item.members) text += '(' + shown(member) + ')';
  return text;
}

std::vector<std::string> taken(StreamDecoder& decoder) {
  std::vector<std::string> items;
  while (const auto item = decoder.next_item()) items.push_back(shown(*item));
  return items;
}

struct Outcome {
  std::vector<std::string> items;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read_whole(std::span<const std::byte> bytes, const StreamReadOptions& options = {}) {
  Outcome outcome;
  StreamReader reader = *StreamReader::over(bytes, options);
  for (;;) {
    auto item = reader.next_item();
    if (!item) outcome.error = to_string(item.error());
    if (!item || !*item) return outcome;
    outcome.items.push_back(shown(**item));
  }
}

/// The same through a decoder, in pieces as `next_size` says.
template <class NextSize>
Outcome decoded(std::span<const std::byte> bytes, NextSize next_size,
                const StreamReadOptions& options = {}) {
  Outcome outcome;
  StreamDecoder decoder = *StreamDecoder::create(options);
  Result<void> ok;
  while (!bytes.empty() && ok) {
    const std::size_t n = std::min<std::size_t>(bytes.size(), next_size());
    ok = decoder.feed(bytes.first(n));
    bytes = bytes.subspan(n);
    for (std::string& item : taken(decoder)) outcome.items.push_back(std::move(item));
  }
  if (ok) ok = decoder.finish();
  for (std::string& item : taken(decoder)) outcome.items.push_back(std::move(item));
  if (!ok) outcome.error = to_string(ok.error());
  return outcome;
}

TEST(StreamDecoder, PiecesOfAnySizeGiveWhatTheWholeGives) {
  const Bytes bytes = sample();
  const Outcome whole = read_whole(bytes);
  ASSERT_EQ(whole.items.size(), 5u);
  ASSERT_EQ(whole.error, "");
  for (const std::size_t size : {1u, 2u, 3u, 7u, 64u, 4096u, 1u << 20})
    EXPECT_EQ(decoded(bytes, [&] { return size; }), whole) << size;
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(decoded(bytes, [&] { return random() % 90; }), whole) << i;
}

TEST(StreamDecoder, EveryCutFailsAsTheReaderDoes) {
  const Bytes bytes = sample();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = std::span(bytes).first(size);
    const Outcome whole = read_whole(cut);
    ASSERT_EQ(decoded(cut, [] { return std::size_t{1} << 20; }), whole) << size;
    ASSERT_EQ(decoded(cut, [] { return std::size_t{13}; }), whole) << size;
  }
}

TEST(StreamDecoder, EveryBitFlipGivesWhatTheReaderGives) {
  StreamWriter writer = *StreamWriter::in_memory();
  for (const Tensor& tensor : {counted(3), counted(2)})
    ASSERT_TRUE(writer.write(tensor.descriptor(), *sources_of(tensor)));
  Bytes bytes(writer.bytes().begin(), writer.bytes().end());
  StreamReadOptions options;
  options.max_buffer_bytes = 1 << 20;
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    bytes[i / 8] ^= static_cast<std::byte>(1u << i % 8);
    const Outcome whole = read_whole(bytes, options);
    ASSERT_EQ(decoded(bytes, [] { return std::size_t{1}; }, options), whole) << i;
    ASSERT_EQ(decoded(bytes, [] { return std::size_t{1000}; }, options), whole) << i;
    bytes[i / 8] ^= static_cast<std::byte>(1u << i % 8);
  }
}

TEST(StreamDecoder, BytesGoStraightToWhereTheyStay) {
  const Bytes bytes = sample();
  StreamDecoder decoder = *StreamDecoder::create();
  std::size_t at = 0;
  std::vector<std::string> items;
  std::size_t largest = 0;
  while (at < bytes.size()) {
    const auto room = decoder.wanted();
    ASSERT_FALSE(room.empty());
    largest = std::max(largest, room.size());
    ASSERT_LE(room.size(), bytes.size() - at) << "never beyond the frame";
    std::memcpy(room.data(), bytes.data() + at, room.size());
    at += room.size();
    ASSERT_TRUE(decoder.commit(room.size()));
    for (std::string& item : taken(decoder)) items.push_back(std::move(item));
  }
  EXPECT_EQ(largest, 5000u) << "the whole buffer at once";
  EXPECT_EQ(decoder.position(), bytes.size());
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(items, read_whole(bytes).items);
}

TEST(StreamDecoder, MoreThanWasWantedIsRefused) {
  StreamDecoder decoder = *StreamDecoder::create();
  const std::size_t room = decoder.wanted().size();
  const auto refused = decoder.commit(room + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::out_of_bounds);
}

TEST(StreamDecoder, TheFirstFailureSticksAndWhatWasCompleteStays) {
  Bytes bytes = sample();
  const std::string_view stranger = "GET / HTTP/1.1";
  const Tensor first = counted(3);
  StreamWriter writer = *StreamWriter::in_memory();
  ASSERT_TRUE(writer.write(first.descriptor(), *sources_of(first)));
  Bytes mixed(writer.bytes().begin(), writer.bytes().end());
  for (const char c : stranger) mixed.push_back(static_cast<std::byte>(c));
  StreamDecoder decoder = *StreamDecoder::create();
  const auto failed = decoder.feed(mixed);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::invalid_magic);
  EXPECT_EQ(taken(decoder).size(), 1u);
  EXPECT_TRUE(decoder.wanted().empty());
  EXPECT_EQ(to_string(decoder.feed(bytes).error()), to_string(failed.error()));
  EXPECT_EQ(to_string(decoder.finish().error()), to_string(failed.error()));
}

TEST(StreamDecoder, StrangersAreNamedAlikeHoweverTheyAreCut) {
  for (const std::string_view stranger : {"HRRYFILE", "HRRYFI\xA9L", "HRRYF", "HRRYxyz",
                                          "HTTP/1.1 200 OK", "\x89PNG\r\n", "H", "HRRX"}) {
    const auto bytes = std::as_bytes(std::span(stranger));
    const Outcome whole = read_whole(bytes);
    EXPECT_NE(whole.error, "");
    for (std::size_t size = 1; size <= bytes.size(); ++size)
      EXPECT_EQ(decoded(bytes, [&] { return size; }), whole) << stranger << ' ' << size;
  }
}

TEST(StreamDecoder, TheEndIsTheEnd) {
  StreamDecoder decoder = *StreamDecoder::create();
  ASSERT_TRUE(decoder.finish());
  ASSERT_TRUE(decoder.finish());
  EXPECT_TRUE(decoder.wanted().empty());
  const auto late = decoder.feed(sample());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::invalid_state);

  StreamReadOptions two;
  two.expected_items = 2;
  StreamDecoder short_of_one = *StreamDecoder::create(two);
  const Tensor one = counted(3);
  StreamWriter writer = *StreamWriter::in_memory();
  ASSERT_TRUE(writer.write(one.descriptor(), *sources_of(one)));
  ASSERT_TRUE(short_of_one.feed(writer.bytes()));
  const auto missing = short_of_one.finish();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::truncated);
}

TEST(StreamDecoder, ATornCompositeGivesItsMembersInPermissiveMode) {
  StreamWriter writer = *StreamWriter::in_memory();
  ASSERT_TRUE(writer.write(group_of(3), {}));
  const Tensor member = counted(4);
  ASSERT_TRUE(writer.write(member.descriptor(), *sources_of(member)));
  StreamReadOptions permissive;
  permissive.permissive = true;
  EXPECT_EQ(decoded(
                writer.bytes(), [] { return std::size_t{5}; }, permissive),
            read_whole(writer.bytes(), permissive));
  EXPECT_EQ(decoded(writer.bytes(), [] { return std::size_t{5}; }, permissive).items.size(), 1u);
  EXPECT_EQ(decoded(writer.bytes(), [] { return std::size_t{5}; }), read_whole(writer.bytes()));
}

TEST(StreamDecoder, MemoryFollowsTheBytesThatArrived) {
  Descriptor descriptor;
  descriptor.dtype = DType::uint8;
  descriptor.shape = Shape{std::uint64_t{1} << 62};
  descriptor.buffers = {handle(std::uint64_t{1} << 62)};
  StreamDecoder decoder = *StreamDecoder::create();
  ASSERT_TRUE(decoder.feed(*encode(descriptor)));
  EXPECT_EQ(decoder.wanted().size(), 64u << 20);
  const auto cut = decoder.finish();
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::truncated);
}

/// Resumed after EAGAIN, in both directions, through a socket that holds little.
TEST(StreamDecoder, ADescriptorThatDoesNotBlockIsReadWhenThereIsSomething) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const int small = 4096;
  ASSERT_EQ(::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  for (const int end : ends) ASSERT_EQ(::fcntl(end, F_SETFL, O_NONBLOCK), 0);
  const Tensor large = counted(3'000'000, 5);
  std::thread sender([&] {
    StreamWriter writer = *StreamWriter::over(ends[1]);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(writer.write(large.descriptor(), *sources_of(large)));
    EXPECT_TRUE(writer.finish());
    ::shutdown(ends[1], SHUT_WR);
  });
  StreamDecoder decoder = *StreamDecoder::create();
  int waits = 0, complete = 0;
  for (bool open = true; open;) {
    const auto room = decoder.wanted();
    const ssize_t n = ::recv(ends[0], room.data(), room.size(), 0);
    if (n > 0) {
      ASSERT_TRUE(decoder.commit(static_cast<std::size_t>(n)));
      while (const auto tensor = decoder.next()) {
        ++complete;
        EXPECT_EQ(std::memcmp(tensor->buffers()[0].data(), large.buffers()[0].data(), 3'000'000),
                  0);
      }
    } else if (n == 0) {
      open = false;
    } else {
      ASSERT_EQ(errno, EAGAIN);
      ++waits;
      pollfd ready{.fd = ends[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    }
  }
  sender.join();
  EXPECT_TRUE(decoder.finish());
  EXPECT_EQ(complete, 3);
  EXPECT_GT(waits, 0);
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace hurray::io
