#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>

#include "file_support.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/io/verify.hpp"
#include "shim/faults.hpp"

/// What becomes of files when the system's calls fail, one after the other, or the process dies
/// there.
namespace hurray::io {
namespace {

constexpr auto numbers = std::to_array({EIO, ENOSPC, EINTR, EAGAIN, ENOMEM});

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

Bytes content(const std::string& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file) << path;
  return bytes;
}

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 0xFF);
  return bytes;
}

/// Everything that a save does: a sparse tensor, an empty one, one of several writes, one that is
/// converted, sums, KV, the disk waited for.
Result<void> save(const std::string& path, unsigned seed) {
  static const Bytes large = pattern((3u << 20) + 3, 0);
  WriteOptions options;
  options.expected_bytes = large.size();
  auto writer = FileWriter::create(path, options);
  if (!writer) return writer.error();
  if (auto written = write_sparse_and_empty(*writer); !written) return written;
  if (auto written = write(*writer, "seed", dense(DType::uint8, {1}, 1),
                           {Bytes(1, static_cast<std::byte>(seed))});
      !written)
    return written;
  const std::array<BufferSource, 1> whole{BufferSource(std::span<const std::byte>(large))};
  if (auto written =
          writer->write("large", dense(DType::uint8, {large.size()}, large.size()), whole);
      !written)
    return written;
  const std::size_t half = std::size_t{3} << 19;
  const std::array<BufferSource, 1> read{
      BufferSource(half, [](std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
        std::ranges::fill(out, static_cast<std::byte>(offset >> 20));
        return {};
      })};
  if (auto written = writer->write("read", dense(DType::uint8, {half}, half), read); !written)
    return written;
  return writer->finish({{"seed", std::int64_t{seed}}});
}

class Faults : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  bool is_old = false;
  Bytes old_bytes, new_bytes;

  void SetUp() override {
    ASSERT_EQ(failure(save(folder / "new", 2)), "");
    new_bytes = content(folder / "new");
    std::filesystem::remove(folder / "new");
    restore();
    old_bytes = content(path);
    ASSERT_NE(old_bytes, new_bytes);
  }
  /// The old file again, where it was replaced.
  void restore() {
    if (is_old) return;
    ASSERT_EQ(failure(save(path, 1)), "");
    is_old = true;
  }
  /// What the path holds now.
  Bytes found() {
    Bytes bytes = content(path);
    is_old = bytes == old_bytes;
    return bytes;
  }
  bool only() const { return folder.names() == std::vector<std::string>{"a.hrry"}; }
};

TEST_F(Faults, TheCallsOfASaveAreSeen) {
  hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
  const auto saved = save(path, 2);
  const long calls = hurray_faults_disarm();
  ASSERT_EQ(failure(saved), "");
  const std::string trace = hurray_faults_trace();
  EXPECT_GT(calls, 20);
  for (const std::string_view call :
       {"openat", "flock ", "fchmod ", "fstatvfs", "writev ", "fsync ", "renameat ", "close "})
    EXPECT_NE(trace.find(call), std::string::npos) << call << " in " << trace;
  EXPECT_NE(trace.rfind("fsync "), trace.find("fsync "));  // the file and its folder
}

TEST_F(Faults, KilledAtEveryCallOfASave) {
  hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
  ASSERT_TRUE(save(path, 2));
  const long calls = hurray_faults_disarm();
  std::size_t leftovers = 0;
  bool before = false;
  bool after = false;
  for (long n = 1; n <= calls; ++n) {
    is_old = false;
    restore();
    EXPECT_TRUE(only()) << n;  // what the one before left is gone
    const pid_t child = ::fork();
    if (child == 0) {
      hurray_faults_arm(n, HURRAY_FAULT_KILL, 0);
      (void)save(path, 2);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << n;
    const Bytes found = this->found();
    before = before || found == old_bytes;
    after = after || found == new_bytes;
    EXPECT_TRUE(found == old_bytes || found == new_bytes) << n;
    leftovers += only() ? 0u : 1u;
  }
  is_old = false;
  restore();
  EXPECT_TRUE(only());
  EXPECT_TRUE(before);
  EXPECT_TRUE(after);
  EXPECT_GT(leftovers, 0u);
}

TEST_F(Faults, ErrorsAtEveryCallOfASave) {
  for (const int number : numbers) {
    for (long n = 1;; ++n) {
      restore();
      const std::size_t open = open_descriptors();
      hurray_faults_arm(n, HURRAY_FAULT_ERROR, number);
      const auto saved = save(path, 2);
      const long calls = hurray_faults_disarm();
      const std::string hit = hurray_faults_hit();
      SCOPED_TRACE(hit + " (" + std::to_string(n) + ") fails with " + std::to_string(number));
      EXPECT_EQ(open_descriptors(), open);
      const Bytes found = this->found();
      if (saved) {
        EXPECT_EQ(found, new_bytes);
      } else {
        const Error& error = saved.error();
        EXPECT_EQ(error.system_errno, number);
        EXPECT_EQ(error.code, number == ENOMEM ? Errc::out_of_memory : Errc::system);
        EXPECT_EQ(error.path, path);
        EXPECT_FALSE(error.what.empty());
        EXPECT_TRUE(found == old_bytes || found == new_bytes);
        // Only the folder's sync comes after the file is in its place.
        EXPECT_TRUE(found == old_bytes || hit == "fsync");
      }
      // A lock that somebody else seems to hold: that writer removes the file.
      EXPECT_TRUE(only() || hit == "flock");
      if (calls < n) break;
    }
  }
  is_old = false;
  restore();
  EXPECT_TRUE(only());
}

TEST_F(Faults, EssentialCallsOfASaveMustSucceed) {
  hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
  ASSERT_TRUE(save(path, 2));
  const long calls = hurray_faults_disarm();
  std::istringstream trace(hurray_faults_trace());
  long n = 0;
  std::size_t judged = 0;
  for (std::string call; trace >> call;) {
    ++n;
    if (call != "writev" && call != "fsync" && call != "renameat") continue;
    ++judged;
    restore();
    hurray_faults_arm(n, HURRAY_FAULT_ERROR, EIO);
    const auto saved = save(path, 2);
    const long made = hurray_faults_disarm();
    is_old = false;
    EXPECT_EQ(error_of(saved).system_errno, EIO) << call;
    if (call != "fsync") continue;
    std::istringstream again(hurray_faults_trace());
    long at = 0;
    for (std::string later; again >> later;)
      EXPECT_TRUE(++at <= n || later != "fsync");  // a failed sync is never tried again
    EXPECT_LE(made, calls);
  }
  EXPECT_GT(judged, 6u);
}

TEST_F(Faults, ShortWritesAreContinued) {
  for (long n = 1;; ++n) {
    restore();
    hurray_faults_arm(n, HURRAY_FAULT_SHORT, 0);
    const auto saved = save(path, 2);
    const long calls = hurray_faults_disarm();
    EXPECT_EQ(failure(saved), "") << hurray_faults_hit();
    EXPECT_EQ(found(), new_bytes) << hurray_faults_hit();
    if (calls < n) break;
  }
}

/// All values of a file, one tensor after the other.
Result<Bytes> values(const std::string& path, Mode mode) {
  OpenOptions options;
  options.mode = mode;
  const auto file = File::open(path, options);
  if (!file) return file.error();
  Bytes all;
  for (std::size_t i = 0; i < file->size(); ++i) {
    const auto tensor = file->tensor(i);
    if (!tensor) return tensor.error();
    if (is_dense(tensor->descriptor().layout)) {
      const auto part = file->slice(i, {});
      if (!part) return part.error();
      const auto own = part->read({.verify = true, .share = false});
      if (!own) return own.error();
      const auto bytes = own->buffer(0).bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    for (const Buffer& buffer : tensor->buffers())
      all.insert(all.end(), buffer.bytes().begin(), buffer.bytes().end());
  }
  return all;
}

Result<void> verified(const std::string& path) {
  const auto verification = verify(path, OpenOptions{});
  if (!verification) return verification.error();
  EXPECT_TRUE(verification->sound());
  EXPECT_TRUE(verification->is_protected());
  return {};
}

TEST_F(Faults, ErrorsAtEveryCallOfReading) {
  for (const Mode mode : {Mode::memory, Mode::map, Mode::copy_on_write}) {
    const auto expected = values(path, mode);
    ASSERT_TRUE(expected);
    for (const int number : numbers) {
      for (long n = 1;; ++n) {
        const std::size_t open = open_descriptors();
        hurray_faults_arm(n, HURRAY_FAULT_ERROR, number);
        const auto found = values(path, mode);
        const long calls = hurray_faults_disarm();
        SCOPED_TRACE(std::string(hurray_faults_hit()) + " fails with " + std::to_string(number));
        EXPECT_EQ(open_descriptors(), open);
        if (found) {
          EXPECT_EQ(*found, *expected);
        } else {
          EXPECT_EQ(found.error().system_errno, number);
          EXPECT_EQ(found.error().path, path);
        }
        if (calls < n) break;
      }
    }
  }
}

TEST_F(Faults, ErrorsAtEveryCallOfVerify) {
  for (const int number : {EIO, EINTR, EAGAIN}) {
    for (long n = 1;; ++n) {
      const std::size_t open = open_descriptors();
      hurray_faults_arm(n, HURRAY_FAULT_ERROR, number);
      const auto found = verified(path);
      const long calls = hurray_faults_disarm();
      SCOPED_TRACE(std::string(hurray_faults_hit()) + " fails with " + std::to_string(number));
      EXPECT_EQ(open_descriptors(), open);
      if (!found) {  // never a finding: the file is sound
        EXPECT_EQ(found.error().code, Errc::system);
        EXPECT_EQ(found.error().system_errno, number);
      }
      if (calls < n) break;
    }
  }
}

TEST_F(Faults, ShortReadsAreContinued) {
  for (const Mode mode : {Mode::memory, Mode::map}) {
    const auto expected = values(path, mode);
    for (long n = 1;; ++n) {
      hurray_faults_arm(n, HURRAY_FAULT_SHORT, 0);
      const auto found = values(path, mode);
      const auto sound = verified(path);
      const long calls = hurray_faults_disarm();
      ASSERT_EQ(failure(found), "") << hurray_faults_hit();
      EXPECT_EQ(*found, *expected) << hurray_faults_hit();
      EXPECT_EQ(failure(sound), "") << hurray_faults_hit();
      if (calls < n) break;
    }
  }
}

std::size_t reads() {
  std::istringstream trace(hurray_faults_trace());
  std::size_t count = 0;
  for (std::string call; trace >> call;)
    count += call.starts_with("pread") || call.starts_with("read") ? 1u : 0u;
  return count;
}

/// Header, trailer, index and KV, whatever the number of tensors: no descriptor, no data.
TEST_F(Faults, OpeningReadsFourPiecesAndTheRestWhenAskedFor) {
  {
    auto writer = create(path);
    for (int i = 0; i < 500; ++i)
      ASSERT_TRUE(write(writer, std::to_string(i), dense(DType::uint8, {1}, 1), {Bytes(1)}));
    ASSERT_TRUE(writer.finish({{"k", std::int64_t{1}}}));
  }
  for (const Mode mode : {Mode::map, Mode::memory}) {
    OpenOptions options;
    options.mode = mode;
    options.verify = false;
    hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
    const auto file = File::open(path, options);
    ASSERT_EQ(failure(file), "");
    EXPECT_EQ(file->size(), 500u);
    hurray_faults_disarm();
    EXPECT_EQ(reads(), 4u);

    hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
    EXPECT_TRUE(file->descriptor(7));
    EXPECT_TRUE(file->descriptor(7));
    hurray_faults_disarm();
    EXPECT_EQ(reads(), 2u);  // this one alone

    hurray_faults_arm(0, HURRAY_FAULT_NONE, 0);
    EXPECT_TRUE(file->tensor(7));
    hurray_faults_disarm();
    EXPECT_EQ(reads(), mode == Mode::map ? 1u : 2u);
  }
}

/// Two processes save to one name while a third one reads it, and one tensor of an old file is held
/// all the while.
TEST_F(Faults, ProcessesThatSaveToOneName) {
  const auto held = File::open(path);
  ASSERT_TRUE(held);
  const auto kept = held->tensor("large");
  ASSERT_TRUE(kept);
  const Bytes before(kept->buffer(0).bytes().begin(), kept->buffer(0).bytes().end());

  std::array<pid_t, 2> children{};
  for (std::size_t c = 0; c < children.size(); ++c) {
    children[c] = ::fork();
    if (children[c] != 0) continue;
    int failed = 0;
    for (int i = 0; i < 15; ++i) failed += save(path, static_cast<unsigned>(1 + c)) ? 0 : 1;
    ::_exit(failed);
  }
  for (int i = 0; i < 30; ++i) {
    const Bytes now = content(path);
    EXPECT_TRUE(now == old_bytes || now == new_bytes);
    EXPECT_EQ(failure(verified(path)), "");
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(only());
  EXPECT_TRUE(std::ranges::equal(before, kept->buffer(0).bytes()));
}

}  // namespace
}  // namespace hurray::io
