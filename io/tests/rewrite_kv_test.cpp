#include "hurray/io/rewrite_kv.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "file_support.hpp"
#include "hurray/io/verify.hpp"

/// Other key-values in the same file: what is kept, what is made anew, what is refused.
namespace hurray::io {
namespace {

const RewriteOptions quick{.sync = false};

std::string verdict(const std::string& path) {
  const auto verified = verify(path, {.mode = Mode::memory, .agreed = {}});
  if (!verified) return to_string(verified.error());
  return verified->accepted != 0    ? "accepted findings"
         : verified->is_protected() ? "valid"
                                    : "bare";
}

KeyValues kv_of(const std::string& path) {
  const auto kv = load_kv(path);
  EXPECT_EQ(failure(kv), "");
  return kv ? *kv : KeyValues();
}

WriteOptions summed() {
  WriteOptions options;
  options.sync = false;
  return options;
}

const KeyValues several = {
    {"text", std::string("new")}, {"n", std::int64_t{-3}}, {"list", std::vector<double>{1.5, -2}}};

TEST(RewriteKeyValues, IsWhatAWriterWouldHaveWritten) {
  const TemporaryFolder folder;
  write_bytes(folder / "old.hrry", two_tensors(summed()).bytes);
  ASSERT_EQ(failure(rewrite_key_values(folder / "old.hrry", folder / "new.hrry", several, quick)),
            "");
  EXPECT_EQ(verdict(folder / "new.hrry"), "valid");
  EXPECT_EQ(kv_of(folder / "new.hrry"), several);
  EXPECT_EQ(kv_of(folder / "old.hrry"), (KeyValues{{"rev", std::int64_t{7}}}));

  // Back again, in place: every byte is as it was.
  ASSERT_EQ(failure(rewrite_key_values(folder / "new.hrry", folder / "new.hrry",
                                       {{"rev", std::int64_t{7}}}, quick)),
            "");
  EXPECT_EQ(read_bytes(folder / "new.hrry"), read_bytes(folder / "old.hrry"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"new.hrry", "old.hrry"}));
}

TEST(RewriteKeyValues, KeepsSumsOfManyChunks) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", summed());
  Bytes bytes(5'000'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 / 5);
  ASSERT_EQ(failure(write(writer, "t", dense(DType::uint8, {bytes.size()}, bytes.size()), {bytes})),
            "");
  ASSERT_EQ(failure(writer.finish()), "");
  ASSERT_EQ(failure(rewrite_key_values(folder / "a.hrry", folder / "b.hrry", several, quick)), "");
  EXPECT_EQ(verdict(folder / "b.hrry"), "valid");
  const auto file = File::open(folder / "b.hrry", {.mode = Mode::memory, .agreed = {}});
  ASSERT_EQ(failure(file), "");
  EXPECT_TRUE(std::ranges::equal(file->tensor(0)->buffer(0).bytes(), bytes));

  // A bit that flipped before is found behind.
  Image damaged{read_bytes(folder / "a.hrry")};
  damaged.bytes[4096 + 4'000'000] ^= std::byte{1};
  write_bytes(folder / "a.hrry", damaged.bytes);
  ASSERT_EQ(failure(rewrite_key_values(folder / "a.hrry", folder / "b.hrry", {}, quick)), "");
  EXPECT_NE(verdict(folder / "b.hrry").find("checksum mismatch"), std::string::npos);
}

TEST(RewriteKeyValues, FilesWithoutSumsAndWithoutKeyValues) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.hrry", two_tensors(plain()).bytes);
  ASSERT_EQ(failure(rewrite_key_values(folder / "a.hrry", folder / "a.hrry", several, quick)), "");
  EXPECT_EQ(verdict(folder / "a.hrry"), "bare");
  EXPECT_EQ(kv_of(folder / "a.hrry"), several);

  WriteOptions none = plain();
  none.key_values = false;
  auto writer = create(folder / "b.hrry", none);
  ASSERT_EQ(failure(write_sparse_and_empty(writer)), "");
  ASSERT_EQ(failure(writer.finish()), "");
  const Bytes before = read_bytes(folder / "b.hrry");
  ASSERT_EQ(failure(rewrite_key_values(folder / "b.hrry", folder / "b.hrry", several, quick)), "");
  EXPECT_EQ(verdict(folder / "b.hrry"), "bare");
  EXPECT_EQ(kv_of(folder / "b.hrry"), several);
  const Bytes after = read_bytes(folder / "b.hrry");
  EXPECT_TRUE(std::equal(before.begin() + 64, before.begin() + 12000, after.begin() + 64));

  auto empty = create(folder / "c.hrry", summed());
  ASSERT_EQ(failure(empty.finish()), "");
  ASSERT_EQ(failure(rewrite_key_values(folder / "c.hrry", folder / "c.hrry", several, quick)), "");
  EXPECT_EQ(verdict(folder / "c.hrry"), "valid");
}

TEST(RewriteKeyValues, RefusesWhatItWouldHide) {
  const TemporaryFolder folder;
  const auto refused = [&](const Bytes& bytes) {
    write_bytes(folder / "a.hrry", bytes);
    const auto error =
        error_of(rewrite_key_values(folder / "a.hrry", folder / "b.hrry", several, quick));
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.hrry"}));
    return error;
  };
  const Image good = two_tensors(summed());
  Image damaged = good;
  damaged.bytes[good.index() - 9] ^= std::byte{1};  // of the entry with the sums
  EXPECT_EQ(refused(damaged.bytes).code, Errc::checksum_mismatch);
  Image foreign = good;
  foreign.set<std::uint64_t>(28, 5);  // the count in the header
  EXPECT_EQ(refused(foreign.bytes).code, Errc::checksum_mismatch);
  Image newer = good;
  newer.bytes[9] = std::byte{1};
  EXPECT_EQ(refused(newer.bytes).code, Errc::unsupported);
  for (std::size_t size = 0; size < good.bytes.size(); size += size < 200 ? 1 : 97) {
    const auto error = refused({good.bytes.begin(), good.bytes.begin() + std::ptrdiff_t(size)});
    EXPECT_NE(error.code, Errc::system) << size;
  }

  write_bytes(folder / "a.hrry", good.bytes);
  const auto set = [&](const KeyValues& kv) {
    return error_of(rewrite_key_values(folder / "a.hrry", folder / "a.hrry", kv, quick));
  };
  EXPECT_EQ(set({{"hurray.crc32c", Bytes{}}}).path, folder / "a.hrry");
  set({{"x", bytes_of("HRRYSUM1")}});
  EXPECT_EQ(set({{"", true}}).code, Errc::invalid_value);
  EXPECT_EQ(set({{"x", true}, {"x", false}}).code, Errc::duplicate);
  EXPECT_EQ(read_bytes(folder / "a.hrry"), good.bytes);

  EXPECT_EQ(error_of(rewrite_key_values(folder / "none", folder / "b", {}, quick)).system_errno,
            ENOENT);
  EXPECT_EQ(error_of(rewrite_key_values(folder.path(), folder / "b", {}, quick)).system_errno,
            EISDIR);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(rewrite_key_values(folder / "pipe", folder / "b", {}, quick)).code,
            Errc::invalid_value);
  RewriteOptions stopped = quick;
  stopped.interrupted = [] { return true; };
  EXPECT_EQ(error_of(rewrite_key_values(folder / "a.hrry", folder / "b", {}, stopped)).system_errno,
            EINTR);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.hrry", "pipe"}));
}

TEST(RewriteKeyValues, IntoPipesAndOtherVolumes) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.hrry", two_tensors(summed()).bytes);
  ASSERT_EQ(failure(rewrite_key_values(folder / "a.hrry", folder / "b.hrry", several, quick)), "");
  const Bytes expected = read_bytes(folder / "b.hrry");

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  Bytes piped;
  std::thread reader([&] { piped = read_bytes(folder / "pipe"); });
  EXPECT_EQ(failure(rewrite_key_values(folder / "a.hrry", folder / "pipe", several, quick)), "");
  reader.join();
  EXPECT_EQ(piped, expected);

  if (!std::filesystem::is_directory("/dev/shm")) return;
  const std::string other = "/dev/shm/hurray-rewrite-" + std::to_string(::getpid());
  EXPECT_EQ(failure(rewrite_key_values(folder / "a.hrry", other, several, quick)), "");
  EXPECT_EQ(read_bytes(other), expected);
  std::filesystem::remove(other);
}

}  // namespace
}  // namespace hurray::io
