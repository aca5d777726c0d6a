#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "file_support.hpp"
#include "hurray/io/replace_file.hpp"

/// Saves that cannot hurt (08-python-api.md section 19.5): at every moment the path holds the old
/// file or the new one, whole.
namespace hurray::io {
namespace {

const Descriptor one_byte = dense(DType::uint8, {1}, 1);

/// A whole file with one element.
Result<void> save(const std::string& path, std::uint8_t value, WriteOptions options = plain()) {
  auto writer = FileWriter::create(path, options);
  if (!writer) return writer.error();
  if (auto written = write(*writer, "a", one_byte, {Bytes(1, std::byte{value})}); !written)
    return written;
  return writer->finish();
}

int saved(const std::string& path) {
  const auto file = File::open(path);
  if (!file) return -1;
  return static_cast<int>(*file->tensor(0)->buffer(0).data());
}

unsigned permissions(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777u;
}

/// Runs `body` in a process of its own and returns its exit code.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

using Names = std::vector<std::string>;

TEST(Save, ReplacesWholeAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  ASSERT_EQ(failure(save(path, 1)), "");
  EXPECT_EQ(saved(path), 1);
  {
    auto writer = create(path, plain());
    ASSERT_TRUE(write(writer, "a", one_byte, {Bytes(1)}));
    EXPECT_EQ(saved(path), 1);  // not yet
    EXPECT_EQ(folder.names().size(), 2u);
    const std::string temporary = folder.names()[0];
    EXPECT_TRUE(temporary.starts_with(".a.hrry.") && temporary.ends_with(".hrry-tmp")) << temporary;
    EXPECT_EQ(temporary.size(), std::string(".a.hrry.XXXXXX.hrry-tmp").size());
  }
  EXPECT_EQ(saved(path), 1);  // dropped unfinished
  WriteOptions durable = plain();
  durable.sync = true;
  ASSERT_EQ(failure(save(path, 2, durable)), "");
  EXPECT_EQ(saved(path), 2);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, MovedWritersFinishOnce) {
  const TemporaryFolder folder;
  auto first = create(folder / "a.hrry", plain());
  auto second = create(folder / "b.hrry", plain());
  FileWriter moved = std::move(first);
  ASSERT_TRUE(write(moved, "a", one_byte, {Bytes(1)}));
  second = std::move(moved);  // drops b.hrry
  EXPECT_EQ(folder.names().size(), 1u);
  ASSERT_EQ(failure(second.finish()), "");
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, CompleteFilesAppearWhenTheyAreFinished) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  ASSERT_EQ(failure(save(path, 1)), "");
  for (const bool sync : {false, true}) {
    WriteOptions options = plain();
    options.sync = sync;
    auto writer = create(path, options);
    ASSERT_EQ(failure(write(writer, "a", one_byte, {Bytes(1, std::byte{2})})), "");
    EXPECT_EQ(writer.index_crc32c(), 0u);
    ASSERT_EQ(failure(writer.complete({{"k", true}})), "");
    EXPECT_EQ(saved(path), sync ? 2 : 1);
    EXPECT_EQ(error_of(writer.complete()).code, Errc::invalid_state);
    EXPECT_EQ(error_of(write(writer, "b", one_byte, {Bytes(1)})).code, Errc::invalid_state);
    ASSERT_EQ(failure(writer.finish()), "");
    EXPECT_EQ(saved(path), 2);
    const auto file = File::open(path);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->kv(), (KeyValues{{"k", true}}));
    EXPECT_EQ(file->trailer().index_crc32c, writer.index_crc32c());
    EXPECT_EQ(error_of(writer.finish()).code, Errc::invalid_state);
  }
  {
    auto writer = create(path, plain());
    ASSERT_EQ(failure(write(writer, "a", one_byte, {Bytes(1, std::byte{3})})), "");
    ASSERT_EQ(failure(writer.complete()), "");
  }
  EXPECT_EQ(saved(path), 2);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, OtherFilesAreReplacedTheSameWay) {
  const TemporaryFolder folder;
  const std::string path = folder / "index.json";
  for (const std::string_view text : {"old", "new and longer", ""}) {
    ASSERT_EQ(failure(replace_file(path, std::as_bytes(std::span(text)), text.size() % 2 == 0)),
              "");
    EXPECT_EQ(std::filesystem::file_size(path), text.size());
  }
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(failure(replace_file(path, std::as_bytes(std::span(std::string_view("x"))))), "");
  EXPECT_EQ(permissions(path), 0640u);
  EXPECT_EQ(error_of(replace_file(folder / "no/index.json", {})).system_errno, ENOENT);
  EXPECT_EQ(folder.names(), Names{"index.json"});
}

TEST(Save, KeepsPermissionBits) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  const mode_t before = ::umask(022);
  ASSERT_TRUE(save(path, 1));
  EXPECT_EQ(permissions(path), 0644u);
  for (const unsigned bits : {0600u, 0666u, 0755u}) {
    ::chmod(path.c_str(), bits);
    ASSERT_TRUE(save(path, 2));
    EXPECT_EQ(permissions(path), bits);
  }
  ::umask(before);
}

TEST(Save, FollowsLinks) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  ASSERT_TRUE(save(folder / "real/a.hrry", 1));
  std::filesystem::create_symlink("real/a.hrry", folder / "link");
  std::filesystem::create_symlink(folder / "link", folder / "again");
  ASSERT_EQ(failure(save(folder / "again", 2)), "");
  EXPECT_EQ(saved(folder / "real/a.hrry"), 2);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "again"));

  std::filesystem::create_symlink("real/new.hrry", folder / "dangling");
  ASSERT_EQ(failure(save(folder / "dangling", 3)), "");
  EXPECT_EQ(saved(folder / "real/new.hrry"), 3);

  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(error_of(save(folder / "loop", 4)).system_errno, ELOOP);
}

TEST(Save, OtherHardLinksKeepTheOldContent) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder / "a.hrry", 1));
  std::filesystem::create_hard_link(folder / "a.hrry", folder / "b.hrry");
  ASSERT_TRUE(save(folder / "a.hrry", 2));
  EXPECT_EQ(saved(folder / "a.hrry"), 2);
  EXPECT_EQ(saved(folder / "b.hrry"), 1);
}

TEST(Save, OverAFileThatIsMapped) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  write_bytes(path, two_tensors().bytes);
  const auto old = File::open(path);
  ASSERT_TRUE(old);
  const auto kept = old->tensor(1);
  ASSERT_TRUE(kept);
  std::filesystem::create_symlink("a.hrry", folder / "link");
  auto writer = create(folder / "link", plain());
  const std::vector<BufferSource> sources{
      BufferSource(std::span<const std::byte>(kept->buffer(0).bytes()))};
  ASSERT_EQ(failure(writer.write("uu", kept->wire_descriptor(), sources)), "");
  ASSERT_EQ(failure(writer.finish()), "");
  const auto fresh = File::open(path);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->size(), 1u);
  EXPECT_TRUE(std::ranges::equal(fresh->tensor(0)->buffer(0).bytes(), kept->buffer(0).bytes()));
  EXPECT_EQ(kept->buffer(0).bytes()[4999], static_cast<std::byte>(5000 % 256));
}

TEST(Save, FullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  ASSERT_TRUE(save(path, 1));
  const int code = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    auto writer = FileWriter::create(path, plain());
    if (!writer) return 2;
    const Bytes large(1u << 20);
    const auto written = write(*writer, "a", dense(DType::uint8, {1u << 20}, 1u << 20), {large});
    if (written || written.error().system_errno != EFBIG) return 3;
    if (written.error().tensor != "a" || written.error().path != path) return 4;
    if (folder.names() != Names{"a.hrry"}) return 5;  // at once, not when the writer goes
    const auto dead = write(*writer, "b", one_byte, {Bytes(1)});
    if (dead || dead.error().code != Errc::invalid_state) return 6;
    const auto finished = writer->finish();
    return finished || finished.error().code != Errc::invalid_state ? 7 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(saved(path), 1);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, FullDiskWhileFinishing) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  ASSERT_TRUE(save(path, 1));
  const int code = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = FileWriter::create(path, plain());
    if (!writer || !write(*writer, "a", one_byte, {Bytes(1)})) return 1;
    const rlimit limit{4100, 4100};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const auto finished = writer->finish();
    return finished || finished.error().system_errno != EFBIG ? 3 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(saved(path), 1);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, ComparesWithTheFreeSpaceFirst) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder / "a.hrry", 1));
  WriteOptions options = plain();
  options.expected_bytes = std::uint64_t{1} << 60;
  const Error error = error_of(FileWriter::create(folder / "a.hrry", options));
  EXPECT_EQ(error.system_errno, ENOSPC);
  EXPECT_EQ(error.field, "free space");
  EXPECT_EQ(error.expected, std::uint64_t{1} << 60);
  EXPECT_GT(error.found, 0u);
  EXPECT_EQ(saved(folder / "a.hrry"), 1);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

TEST(Save, RefusedNamesAndFolders) {
  const TemporaryFolder folder;
  const auto number = [](const Result<void>& result) { return error_of(result).system_errno; };
  EXPECT_EQ(number(save(folder / std::string(300, 'x'), 1)), ENAMETOOLONG);
  EXPECT_EQ(number(save(folder / "no/a.hrry", 1)), ENOENT);
  EXPECT_EQ(number(save(folder.path(), 1)), EISDIR);
  EXPECT_EQ(number(save(folder / "", 1)), EISDIR);
  EXPECT_EQ(number(save("", 1)), ENOENT);
  EXPECT_EQ(number(save((folder / "a") + std::string("\0b", 2), 1)), EINVAL);
  write_bytes(folder / "file", Bytes(1));
  EXPECT_EQ(number(save(folder / "file/a.hrry", 1)), ENOTDIR);
  EXPECT_EQ(folder.names(), Names{"file"});
  // The longest name that the folder takes has room for its temporary.
  const std::string longest(255, 'x');
  ASSERT_EQ(failure(save(folder / longest, 1)), "");
  EXPECT_EQ(saved(folder / longest), 1);
}

TEST(Save, UnwritableFolder) {
  if (::geteuid() == 0) {  // root may write anywhere: become somebody else
    const TemporaryFolder folder;
    ASSERT_TRUE(save(folder / "a.hrry", 1));
    ::chmod((folder / "a.hrry").c_str(), 0666);
    ::chmod(folder.path().c_str(), 0555);
    const int code = in_child([&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 77;
      const auto result = save(folder / "a.hrry", 2);
      return result || result.error().system_errno != EACCES ? 1 : 0;
    });
    if (code == 77) GTEST_SKIP() << "cannot become another user";
    EXPECT_EQ(code, 0);
    EXPECT_EQ(saved(folder / "a.hrry"), 1);
    EXPECT_EQ(folder.names(), Names{"a.hrry"});
    return;
  }
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  EXPECT_EQ(error_of(save(folder / "a.hrry", 2)).system_errno, EACCES);
}

/// Names may be made in the folder, and not listed.
TEST(Save, FolderThatCannotBeRead) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0733);
  const int code = in_child([&] {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 77;
    WriteOptions durable = plain();
    durable.sync = true;
    return save(folder / "a.hrry", 2, durable) ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(code, 0);
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(saved(folder / "a.hrry"), 2);
}

TEST(Save, LeftoversOfKilledWritersGoWithTheNextSave) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  ASSERT_TRUE(save(path, 1));
  const int code = in_child([&] {
    auto writer = FileWriter::create(path, plain());
    (void)write(*writer, "a", one_byte, {Bytes(1)});
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(code, -SIGKILL);
  ASSERT_EQ(folder.names().size(), 2u);

  // Not ours: another target's leftover, a name of another shape, somebody who still writes.
  write_bytes(folder / ".b.hrry.abcdef.hrry-tmp", Bytes(1));
  write_bytes(folder / ".a.hrry.abcdefg.hrry-tmp", Bytes(1));
  auto other = create(path, plain());
  ASSERT_EQ(folder.names().size(), 4u);  // the killed one's is gone

  ASSERT_EQ(failure(save(path, 2)), "");
  ASSERT_TRUE(write(other, "a", one_byte, {Bytes(1, std::byte{3})}));
  ASSERT_EQ(failure(other.finish()), "");
  EXPECT_EQ(saved(path), 3);
  EXPECT_EQ(folder.names(),
            (Names{".a.hrry.abcdefg.hrry-tmp", ".b.hrry.abcdef.hrry-tmp", "a.hrry"}));
}

TEST(Save, ManyWritersAtOnce) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  std::vector<std::thread> threads;
  for (std::uint8_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(failure(save(path, t)), "");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(saved(path), 0);
  EXPECT_EQ(folder.names(), Names{"a.hrry"});
}

/// A fork's copy of a writer goes without touching the parent's file.
TEST(Save, ForkedCopiesLeaveTheTemporaryAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  auto writer = std::make_unique<FileWriter>(create(path, plain()));
  ASSERT_TRUE(write(*writer, "a", one_byte, {Bytes(1, std::byte{5})}));
  EXPECT_EQ(in_child([&] {
              writer.reset();
              return 0;
            }),
            0);
  ASSERT_EQ(failure(writer->finish()), "");
  EXPECT_EQ(saved(path), 5);
}

TEST(Save, StaysWithItsFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "before");
  const auto home = std::filesystem::current_path();
  std::filesystem::current_path(folder / "before");
  auto writer = create("a.hrry", plain());
  std::filesystem::current_path(home);
  std::filesystem::rename(folder / "before", folder / "after");
  ASSERT_TRUE(write(writer, "a", one_byte, {Bytes(1, std::byte{6})}));
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(saved(folder / "after/a.hrry"), 6);
}

TEST(Save, PipesAndDevicesAreWrittenInPlace) {
  EXPECT_EQ(failure(save("/dev/null", 1)), "");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));

  const TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Bytes received;
  std::thread reader([&] { received = read_bytes(path); });
  EXPECT_EQ(failure(save(path, 9)), "");
  reader.join();
  EXPECT_EQ(folder.names(), Names{"pipe"});
  write_bytes(folder / "a.hrry", received);
  EXPECT_EQ(saved(folder / "a.hrry"), 9);
}

}  // namespace
}  // namespace hurray::io
