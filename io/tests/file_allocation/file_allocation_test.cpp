// Fails the n-th allocation of saving and opening files, for every n, until the call succeeds.
#include <gtest/gtest.h>

#include "../../../core/tests/fail_everywhere.hpp"
#include "file_support.hpp"
#include "hurray/io/verify.hpp"

namespace hurray::io {
namespace {

using hurray::testing::fail_everywhere;

/// What the test itself does must not fail.
class Undisturbed {
 public:
  Undisturbed() : kept_(std::exchange(fail_after, -1)) {}
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() { fail_after = kept_; }

 private:
  long kept_;
};

std::string argument(const std::string& text) {
  const Undisturbed undisturbed;
  return text;
}

/// Rank 9, so that a part of the descriptor has a block of its own.
Descriptor oversized(std::uint64_t count) {
  Descriptor descriptor = dense(DType::uint8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, count);
  descriptor.shape[8] = count;
  return descriptor;
}

TEST(FileAllocation, SavingLeavesTheOldFileOrTheNew) {
  const TemporaryFolder folder;
  const std::string path = folder / "a file name longer than a short string.hrry";
  const std::string name = "a name that is longer than a short string holds";
  const Bytes bytes(1000, std::byte{7});
  ArraySource array;
  array.origin = bytes.data() + 999;
  array.shape = {1000};
  array.strides = {-1};
  const BufferSource straight(bytes);
  const BufferSource converted(array);
  const Descriptor descriptor = oversized(1000);
  const KeyValues kv = {{"a key that is longer than a short string holds", std::string(100, 's')}};
  write_bytes(path, Bytes(3));
  for (const bool checksums : {false, true}) {
    WriteOptions options = plain();
    options.checksums = checksums;
    const long n = fail_everywhere([&]() -> Result<void> {
      const auto save = [&]() -> Result<void> {
        auto writer = FileWriter::create(argument(path), options);
        if (!writer) return writer.error();
        if (auto ok = writer->write(name, descriptor, {&straight, 1}); !ok) return ok;
        if (auto ok = writer->write("b", descriptor, {&converted, 1}); !ok) return ok;
        return writer->finish(kv);
      };
      auto saved = save();
      const Undisturbed undisturbed;
      EXPECT_EQ(folder.names().size(), 1u);
      EXPECT_EQ(std::filesystem::file_size(path) == 3, !saved);
      return saved;
    });
    EXPECT_GT(n, 20);
    EXPECT_EQ(failure(File::open(path)), "");
    write_bytes(path, Bytes(3));
  }
}

/// A failure before the first byte is a refusal: the same call succeeds later, and the file is
/// whole.
TEST(FileAllocation, AWriterMayGoOn) {
  const TemporaryFolder folder;
  WriteOptions options;
  options.sync = false;
  auto writer = create(folder / "a.hrry", options);
  const Bytes bytes(3u << 20, std::byte{7});
  const BufferSource source(bytes);
  const Descriptor descriptor = oversized(bytes.size());
  for (const std::string name : {"a name that is longer than a short string holds", "b", "c"})
    fail_everywhere([&] { return writer.write(name, descriptor, {&source, 1}); });
  fail_everywhere([&]() -> Result<void> {
    auto checked = writer.check("d", descriptor, {&source, 1});
    if (!checked) return checked;
    return writer.write("d", descriptor, {&source, 1});
  });
  ASSERT_EQ(failure(writer.finish()), "");
  auto again = create(folder / "b.hrry", options);
  for (const std::string name : {"a name that is longer than a short string holds", "b", "c", "d"})
    ASSERT_TRUE(again.write(name, descriptor, {&source, 1}));
  ASSERT_TRUE(again.finish());
  EXPECT_EQ(read_bytes(folder / "a.hrry"), read_bytes(folder / "b.hrry"));
}

TEST(FileAllocation, OpeningAndReading) {
  const TemporaryFolder folder;
  const std::string path = folder / "a file name longer than a short string.hrry";
  auto writer = create(path);
  const Bytes bytes(5000, std::byte{7});
  const BufferSource source(bytes);
  for (const std::string name : {"b: a name that is longer than a short string", "a"})
    ASSERT_TRUE(writer.write(name, oversized(bytes.size()), {&source, 1}));
  ASSERT_TRUE(writer.finish({{"a key that is longer than a short string", std::string(100, 's')}}));
  for (const ModeInfo& mode : modes) {
    OpenOptions options;
    options.mode = mode.tag;
    EXPECT_GT(fail_everywhere([&] { return File::open(argument(path), options); }), 5) << mode.name;
    const auto file = File::open(path, options);
    ASSERT_TRUE(file);
    EXPECT_GT(fail_everywhere([&] { return file->descriptor_bytes(0); }), 0);
    EXPECT_GT(fail_everywhere([&] { return file->descriptor(1); }), 0);
    EXPECT_GT(fail_everywhere([&] { return file->tensor(1); }), 1);
    const auto tensor = *file->tensor(0);
    fail_everywhere([&] { return tensor.buffer(0).make_writable(); });
    allocations = 0;
    EXPECT_EQ(file->find("a"), 1u);
    EXPECT_EQ(file->entry(1).name, "a");
    EXPECT_EQ(allocations, 0);
  }
  EXPECT_GT(fail_everywhere([&] { return load_kv(path); }), 3);
}

TEST(FileAllocation, Composites) {
  const TemporaryFolder folder;
  const std::string path = folder / "a file name longer than a short string.hrry";
  const Tensor tensor = *bind(oversized(5000), {*Buffer::allocate(5000, true)});
  const Item plain_item{tensor};
  Item item = plain_item;
  for (int i = 0; i < 2; ++i)
    item = *compose(CompositionRule::group, CombineOp::none, {}, DType::uint8, {{tensor}, item});
  WriteOptions options;
  options.sync = false;
  options.sorted_index = true;
  auto writer = create(path, options);
  const std::string name = "a name that is longer than a short string holds";
  EXPECT_GT(fail_everywhere([&] { return writer.write_item(name, item); }), 10);
  EXPECT_GT(fail_everywhere([&] { return writer.write_item("b", plain_item); }), 3);
  ASSERT_EQ(failure(writer.finish()), "");
  auto again = create(folder / "again.hrry", options);
  ASSERT_EQ(failure(again.write_item(name, item)), "");
  ASSERT_EQ(failure(again.write_item("b", plain_item)), "");
  ASSERT_EQ(failure(again.finish()), "");
  EXPECT_EQ(read_bytes(path), read_bytes(folder / "again.hrry"));

  for (const ModeInfo& mode : modes) {
    OpenOptions how;
    how.mode = mode.tag;
    const auto file = File::open(path, how);
    ASSERT_TRUE(file);
    EXPECT_GT(fail_everywhere([&] { return file->item(name); }), 10);
    EXPECT_GT(fail_everywhere([&] { return file->owners(); }), 3);
  }
}

TEST(FileAllocation, Verifying) {
  const TemporaryFolder folder;
  const std::string path = folder / "a file name longer than a short string.hrry";
  const Tensor tensor = *bind(oversized(5000), {*Buffer::allocate(5000, true)});
  WriteOptions options;
  options.sync = false;
  auto writer = create(path, options);
  const std::string name = "a name that is longer than a short string holds";
  const auto group =
      compose(CompositionRule::group, CombineOp::none, {}, DType::uint8, {{tensor}, {tensor}});
  ASSERT_TRUE(writer.write_item(name, *group));
  ASSERT_TRUE(writer.finish());
  OpenOptions how;
  how.mode = Mode::memory;
  EXPECT_GT(fail_everywhere([&] { return verify(argument(path), how); }), 10);
  const auto file = File::open(path, how);
  ASSERT_TRUE(file);
  EXPECT_GT(fail_everywhere([&] { return verify(*file); }), 5);
  EXPECT_GT(fail_everywhere([&] { return file->checksums(); }), 0);
  EXPECT_TRUE(file->has_checksums());
  EXPECT_GT(fail_everywhere([&] { return verify_tensor(*file, 0); }), 1);

  // A finding, too.
  Image image{read_bytes(path)};
  image.bytes[file->entry(1).data_offset] ^= std::byte{1};
  write_bytes(path, image.bytes);
  const auto damaged = File::open(path, how);
  ASSERT_TRUE(damaged);
  std::size_t findings = 0;
  const Report report = [&](const Finding& finding) {
    const Undisturbed undisturbed;
    EXPECT_EQ(finding.error.tensor, name + ".0");
    ++findings;
    return true;
  };
  EXPECT_GT(fail_everywhere([&] { return verify(*damaged, report); }), 5);
  EXPECT_GE(findings, 1u);
}

/// Memory is taken for what is there, whatever a payload declares.
TEST(FileAllocation, NothingIsTakenFromAPayload) {
  Image image = two_tensors(WriteOptions{});
  const auto magic = std::ranges::search(image.bytes, bytes_of("HRRYSUM1"));
  const auto at = static_cast<std::size_t>(magic.begin() - image.bytes.begin());
  const std::size_t end = at + 36 + 4 * 4;
  for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    image.set<std::uint64_t>(at + 24, count);
    image.set(end - 4, crc32c(std::span(image.bytes).subspan(at, end - 4 - at)));
    const ScratchFile memory(image.bytes);
    const auto file = File::open(memory.path());
    ASSERT_TRUE(file);
    allocations = 0;
    const auto verdict = file->checksums();
    const long taken = allocations;
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->state, ChecksumState::foreign);
    EXPECT_EQ(verdict->reason->found, count);
    EXPECT_LT(taken, 40);
  }
}

/// Row 28: a declared count is compared with the entries before anything is taken for it.
TEST(FileAllocation, NothingIsTakenFromAMemberCount) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  Descriptor head;
  head.layout = CompositeHead{};
  ASSERT_TRUE(write(writer, "head", head, {}));
  ASSERT_TRUE(write(writer, "t", dense(DType::uint8, {1}, 1), {Bytes(1)}));
  ASSERT_TRUE(writer.finish());
  Image image{read_bytes(folder / "a.hrry")};
  image.set<std::uint32_t>(64 + 32, 0xFFFFFFFE);  // rank 0: the layout is at 28
  write_bytes(folder / "a.hrry", image.bytes);
  const auto file = File::open(folder / "a.hrry");
  ASSERT_TRUE(file);
  allocations = 0;
  const auto item = file->item(0);
  const long taken = allocations;
  ASSERT_FALSE(item);
  EXPECT_EQ(item.error().code, Errc::truncated);
  EXPECT_EQ(item.error().expected, 0xFFFFFFFEu);
  EXPECT_EQ(item.error().found, 1u);
  EXPECT_LT(taken, 20);
}

/// An entry costs a few bytes, and nothing is taken from a declared count.
TEST(FileAllocation, OpeningTakesFewBlocks) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(write(writer, std::to_string(1000 - i), dense(DType::uint8, {0}, 0), {Bytes()}));
  ASSERT_TRUE(writer.finish());
  allocations = 0;
  const auto file = File::open(folder / "a.hrry");
  EXPECT_LT(allocations, 20);
  ASSERT_TRUE(file);
  Image image{read_bytes(folder / "a.hrry")};
  image.set<std::uint64_t>(image.index(), ~std::uint64_t{0});
  image.sum();
  write_bytes(folder / "a.hrry", image.bytes);
  allocations = 0;
  EXPECT_EQ(error_of(File::open(folder / "a.hrry")).field, "index_entry_count");
  EXPECT_LT(allocations, 20);
}

}  // namespace
}  // namespace hurray::io
