#include "hurray/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "file_support.hpp"
#include "hurray/materialize.hpp"

namespace hurray::io {
namespace {

File open(const std::string& path, Mode mode = Mode::map) {
  OpenOptions options;
  options.mode = mode;
  auto file = File::open(path, options);
  EXPECT_EQ(failure(file), "");
  return *std::move(file);
}

std::string save_two(const TemporaryFolder& folder, const WriteOptions& options = plain()) {
  const std::string path = folder / "two.hrry";
  write_bytes(path, two_tensors(options).bytes);
  return path;
}

Bytes copy(const Buffer& buffer) {
  const auto bytes = buffer.bytes();
  return {bytes.begin(), bytes.end()};
}

/// Resident private (anonymous) memory of this process, in bytes.
std::size_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoul(line.substr(8)) * 1024;
  return 0;
}

class InEveryMode : public testing::TestWithParam<ModeInfo> {};

TEST_P(InEveryMode, ValuesAndMemory) {
  const TemporaryFolder folder;
  const std::string path = save_two(folder);
  const Mode mode = GetParam().tag;
  const File file = open(path, mode);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.mode(), mode);
  EXPECT_EQ(file.size_bytes(), std::filesystem::file_size(path));
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(file.entry(0).name, "t");
  EXPECT_EQ(file.entry(1).name, "uu");
  EXPECT_EQ(file.find("uu"), 1u);
  EXPECT_FALSE(file.find("u"));
  EXPECT_EQ(file.kv(), (KeyValues{{"rev", std::int64_t{7}}}));
  EXPECT_FALSE(file.has_checksums());
  EXPECT_EQ(file.mapping() != nullptr, mode != Mode::memory);

  const auto tensor = file.tensor(0);
  ASSERT_EQ(failure(tensor), "");
  EXPECT_EQ(copy(tensor->buffer(0)), elements<std::int16_t>({1, -2, 300}));
  EXPECT_EQ(tensor->readonly(), mode == Mode::map);
  EXPECT_EQ(tensor->provenance(), Provenance::outside);
  EXPECT_EQ(tensor->memory_device(), Device::cpu);
  const auto address = reinterpret_cast<std::uintptr_t>(tensor->buffer(0).data());
  const std::uint32_t declared = tensor->descriptor().buffers[0].alignment;
  EXPECT_EQ(address % declared, 0u);
  EXPECT_EQ(declared, measure_alignment(tensor->buffer(0).data(), 6));
  EXPECT_GE(declared, mode == Mode::memory ? 64u : 4096u);
  EXPECT_EQ(file.descriptor(0)->buffers[0].alignment, 64u);  // as stored
  EXPECT_EQ(file.descriptor_bytes(0)->size(), 53u);
}

TEST_P(InEveryMode, TensorsOutliveTheFile) {
  const TemporaryFolder folder;
  std::optional<Tensor> kept;
  {
    const File file = open(save_two(folder), GetParam().tag);
    kept = *file.tensor(1);
  }
  std::filesystem::remove(folder / "two.hrry");
  EXPECT_EQ(kept->buffer(0).bytes()[0], std::byte{1});
  EXPECT_EQ(kept->buffer(0).bytes()[4999], static_cast<std::byte>(5000 % 256));
}

TEST_P(InEveryMode, SparseAndEmptyTensorsAreRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  auto writer = create(path, plain());
  ASSERT_TRUE(write_sparse_and_empty(writer));
  ASSERT_TRUE(writer.finish());

  const File file = open(path, GetParam().tag);
  EXPECT_EQ(std::get<Csr>(file.descriptor(0)->layout).nnz, 3u);
  const auto csr = file.tensor(0);
  ASSERT_EQ(failure(csr), "");
  ASSERT_EQ(csr->buffers().size(), 3u);
  EXPECT_EQ(copy(csr->buffer(0)), elements<float>({.5f, 2, -1}));
  EXPECT_EQ(copy(csr->buffer(1)), elements<std::uint64_t>({1, 0, 3}));
  EXPECT_EQ(copy(csr->buffer(2)), elements<std::uint64_t>({0, 1, 3}));
  const auto none = file.tensor(1);
  ASSERT_EQ(failure(none), "");
  EXPECT_EQ(none->buffer(0).size(), 0u);
  EXPECT_EQ(none->descriptor().buffers[0].alignment, 1u);
}

TEST_P(InEveryMode, ConcurrentReads) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  for (int i = 0; i < 50; ++i) {
    const Bytes bytes(1000, static_cast<std::byte>(i));
    ASSERT_TRUE(
        write(writer, "t" + std::to_string(49 - i), dense(DType::uint8, {1000}, 1000), {bytes}));
  }
  ASSERT_TRUE(writer.finish());
  const File file = open(folder / "a.hrry", GetParam().tag);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, mine = file] {
      for (int i = 0; i < 50; ++i) {
        const auto at = mine.find("t" + std::to_string(49 - i));
        const auto tensor = mine.tensor(*at);
        if (!tensor || !tensor->buffer(0).make_writable()) continue;
        if (mine.mode() != Mode::map) tensor->buffer(0).data()[i] = static_cast<std::byte>(i);
        if (tensor->buffer(0).bytes()[999] == static_cast<std::byte>(i)) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

INSTANTIATE_TEST_SUITE_P(File, InEveryMode, testing::ValuesIn(modes),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(File, CopyOnWriteNeverReachesTheFile) {
  const TemporaryFolder folder;
  const std::string path = save_two(folder);
  const Bytes before = read_bytes(path);
  const File file = open(path, Mode::copy_on_write);
  const auto tensor = file.tensor(1);
  ASSERT_TRUE(tensor);
  ASSERT_FALSE(tensor->readonly());
  ASSERT_TRUE(tensor->buffer(0).make_writable());
  std::ranges::fill(tensor->buffer(0).bytes(), std::byte{0xEE});
  EXPECT_EQ(file.tensor(1)->buffer(0).bytes()[7], std::byte{0xEE});  // one mapping
  EXPECT_EQ(open(path, Mode::copy_on_write).tensor(1)->buffer(0).bytes()[7], std::byte{8});
  EXPECT_EQ(read_bytes(path), before);
}

/// Nobody has asked for writable pages: a write faults, also in the mode that allows them later.
TEST(FileDeathTest, PagesAreReadableOnlyAtFirst) {
  const TemporaryFolder folder;
  const std::string path = save_two(folder);
  for (const Mode mode : {Mode::map, Mode::copy_on_write}) {
    const auto tensor = open(path, mode).tensor(1);
    ASSERT_TRUE(tensor);
    EXPECT_DEATH(*tensor->buffer(0).data() = std::byte{1}, "");
  }
}

/// More tensors than the system gives pieces of mappings for.
TEST(File, ManyWritableTensors) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  auto writer = create(path, plain());
  constexpr int count = 5000;
  const Bytes two_pages(4097);
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(write(writer, std::to_string(i), dense(DType::uint8, {4097}, 4097), {two_pages}));
  ASSERT_TRUE(writer.finish());
  const File file = open(path, Mode::copy_on_write);
  for (int i = 0; i < count; ++i) {
    const auto tensor = file.tensor(static_cast<std::size_t>(i));
    ASSERT_TRUE(tensor);
    // Only the first page of each, so that pieces do not join.
    const Buffer first = tensor->buffer(0).view(0, 1);
    ASSERT_TRUE(first.make_writable()) << i;
    *first.data() = std::byte{1};
  }
  const auto maps = read_bytes("/proc/self/maps");
  EXPECT_LT(std::ranges::count(maps, static_cast<std::byte>('\n')), 10'000);
}

TEST(File, SparseFileOfFourTimesTheMemory) {
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t size = (4 * memory + 4096) / 4096 * 4096;
  // The small file with one large tensor: its two ends, and a hole between them.
  const TemporaryFolder folder;
  auto writer = create(folder / "small.hrry", plain());
  ASSERT_TRUE(write(writer, "t", dense(DType::uint8, {8}, 8), {Bytes(8)}));
  ASSERT_TRUE(writer.finish());
  Image image{read_bytes(folder / "small.hrry")};
  image.set<std::uint64_t>(64 + 20, size);  // shape
  image.set<std::uint64_t>(64 + 37, size);  // byte_size
  image.set<std::uint64_t>(image.entry(0) + 20, size);
  image.sum();
  for (const std::size_t at : {0u, 16u})  // index_offset, kv_offset
    image.set<std::uint64_t>(image.trailer() + at,
                             image.get<std::uint64_t>(image.trailer() + at) + size - 8);
  const std::string path = folder / "large.hrry";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  const std::size_t end = image.bytes.size() - 4104;
  ASSERT_EQ(::pwrite(descriptor, image.bytes.data(), 4096, 0), 4096);
  ASSERT_EQ(::pwrite(descriptor, image.bytes.data() + 4104, end, static_cast<off_t>(4096 + size)),
            static_cast<ssize_t>(end));
  ::close(descriptor);

  const std::size_t before = anonymous_bytes();
  for (const Mode mode : {Mode::map, Mode::copy_on_write}) {
    const File file = open(path, mode);
    const auto tensor = file.tensor(0);
    ASSERT_EQ(failure(tensor), "");
    EXPECT_EQ(tensor->buffer(0).size(), size);
    EXPECT_EQ(tensor->buffer(0).data()[size - 1], std::byte{0});
    ASSERT_TRUE(file.kv().empty());
    if (mode == Mode::copy_on_write) {
      const auto last = tensor->buffer(0).view(size - 4096, 4096);
      ASSERT_TRUE(last.make_writable());
      *last.data() = std::byte{1};
    }
  }
  EXPECT_LT(anonymous_bytes(), before + (8u << 20));
  OpenOptions options;
  options.mode = Mode::memory;
  const Error error = error_of(File::open(path, options)->tensor(0));
  EXPECT_EQ(error.code, Errc::out_of_memory);
  EXPECT_EQ(error.tensor, "t");
}

/// The second vector (04-file.md section 14), whose index order is not the order in the file.
TEST(File, EntriesAndNamesThatAreNotThere) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  ASSERT_TRUE(writer.finish());
  auto other = create(folder / "b.hrry", plain());
  ASSERT_TRUE(write_sparse_and_empty(other));
  ASSERT_TRUE(other.finish());
  for (const Mode mode : {Mode::map, Mode::memory})
    for (const char* name : {"a.hrry", "b.hrry"}) {
      const File file = open(folder / name, mode);
      for (const std::size_t i : {file.size(), file.size() + 1, ~std::size_t{0}}) {
        const std::array<Error, 5> errors{error_of(file.tensor(i)), error_of(file.item(i)),
                                          error_of(file.raw_bytes(i)), error_of(file.descriptor(i)),
                                          error_of(file.descriptor_bytes(i))};
        for (const Error& error : errors) {
          EXPECT_EQ(error.code, Errc::out_of_bounds);
          EXPECT_EQ(error.field, "index[]");
          EXPECT_EQ(error.index, i);
          EXPECT_EQ(error.found, file.size());
          EXPECT_EQ(error.path, file.path());
        }
      }
      EXPECT_EQ(error_of(file.tensor("nope")).code, Errc::not_found);
      EXPECT_EQ(error_of(file.item("nope")).code, Errc::not_found);
      EXPECT_EQ(error_of(file.tensor("nope")).tensor, "nope");
    }
  const File file = open(folder / "b.hrry", Mode::map);
  for (std::size_t i = 0; i < file.size(); ++i) {
    const auto tensor = file.tensor(file.entry(i).name);
    ASSERT_EQ(failure(tensor), "");
    EXPECT_EQ(tensor->descriptor(), file.tensor(i)->descriptor());
    EXPECT_EQ(tensor->buffer(0).data(), file.tensor(i)->buffer(0).data());
  }
}

TEST(File, TheSecondVectorWithItsComposite) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.sorted_index = true;
  auto writer = create(folder / "a.hrry", options);
  ASSERT_TRUE(write_sparse_and_empty(writer));
  ASSERT_TRUE(writer.finish());
  Bytes file = read_bytes(folder / "a.hrry");
  const auto shard = [&](std::uint64_t columns, std::uint64_t first) {
    Descriptor d = dense(DType::int8, {2, columns}, 2 * columns);
    const std::array<std::uint64_t, 2> parent{2, 3};
    const std::array<std::uint64_t, 2> offset{0, first};
    d.set_shard(Shard(parent, offset));
    return *encode(d);
  };
  const auto put = [&](std::size_t at, const Bytes& bytes) {
    file.resize(at);
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  put(16384, hex("48 52 52 59 01 00 35 00 00 00 00 00 00 00 10 0B 02 00 00 00 "
                 "02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                 "01 00 00 00 02 00 00 00 00"));
  put(16440, shard(1, 0));
  put(20480, hex("01 02"));
  put(20488, shard(2, 1));
  put(24576, hex("03 04 05 06"));
  put(24584, Bytes(4));
  struct Row {
    std::string_view name;
    std::uint64_t descriptor_offset;
    std::uint32_t length;
    std::uint64_t data_offset, data_length;
  };
  Bytes index = elements<std::uint64_t>({5});
  for (const Row& row : {Row{"grid", 16384, 53, 16440, 0}, Row{"grid.0", 16440, 93, 20480, 2},
                         Row{"grid.1", 20488, 93, 24576, 4}, Row{"none", 12312, 61, 16384, 0},
                         Row{"sp", 64, 109, 4096, 8216}}) {
    for (const Bytes& part :
         {elements<std::uint16_t>({static_cast<std::uint16_t>(row.name.size())}),
          bytes_of(row.name), elements<std::uint64_t>({row.descriptor_offset}),
          elements<std::uint32_t>({row.length}),
          elements<std::uint64_t>({row.data_offset, row.data_length}), Bytes(4)})
      index.insert(index.end(), part.begin(), part.end());
  }
  ASSERT_EQ(index.size(), 200u);
  ASSERT_EQ(crc32c(index), 0x456BB112u);
  put(24592, index);
  Bytes trailer = elements<std::uint64_t>({24592, 200, 24584});
  for (const Bytes& part : {elements<std::uint32_t>({4, 0x456BB112u, 0}), bytes_of("HRRY")})
    trailer.insert(trailer.end(), part.begin(), part.end());
  put(24792, trailer);
  ASSERT_EQ(file.size(), 24832u);
  write_bytes(folder / "a.hrry", file);

  const File opened = open(folder / "a.hrry");
  ASSERT_EQ(opened.size(), 5u);
  const auto item = opened.item("grid");
  ASSERT_EQ(failure(item), "");
  EXPECT_EQ(item->tensor.descriptor().shape, (Shape{2, 3}));
  EXPECT_TRUE(item->tensor.buffers().empty());
  ASSERT_EQ(item->members.size(), 2u);
  EXPECT_EQ(copy(item->members[0].tensor.buffer(0)), hex("01 02"));
  EXPECT_EQ(copy(item->members[1].tensor.buffer(0)), hex("03 04 05 06"));
  const auto whole = materialize(*item);
  ASSERT_TRUE(whole);
  EXPECT_EQ(copy(whole->buffer(0)), hex("01 03 04 02 05 06"));

  // In index order: grid, grid.0, grid.1, none, sp.
  const auto owners = opened.owners();
  ASSERT_EQ(failure(owners), "");
  EXPECT_EQ(*owners, (std::vector<std::optional<std::size_t>>{{}, 0, 0, {}, {}}));
  EXPECT_EQ(copy(opened.tensor(*opened.find("grid.1"))->buffer(0)), hex("03 04 05 06"));
  const auto head = opened.tensor(*opened.find("grid"));
  ASSERT_EQ(failure(head), "");
  EXPECT_TRUE(head->buffers().empty());
  EXPECT_EQ(failure(opened.item("none")), "");
  EXPECT_EQ(error_of(opened.item("gone")).code, Errc::not_found);
}

TEST(File, KeyValuesAlone) {
  const TemporaryFolder folder;
  EXPECT_EQ(*load_kv(save_two(folder)), (KeyValues{{"rev", std::int64_t{7}}}));
  EXPECT_EQ(*load_kv(save_two(folder, WriteOptions{})), (KeyValues{{"rev", std::int64_t{7}}}));
  EXPECT_TRUE(open(folder / "two.hrry").has_checksums());
  EXPECT_EQ(error_of(load_kv(folder / "none")).system_errno, ENOENT);
  // The index is not read.
  Image image = two_tensors();
  image.set<std::uint8_t>(image.index() + 8, 0);
  write_bytes(folder / "two.hrry", image.bytes);
  EXPECT_TRUE(load_kv(folder / "two.hrry"));
  EXPECT_FALSE(File::open(folder / "two.hrry"));
}

TEST(File, WhatIsNoFile) {
  const TemporaryFolder folder;
  const Error missing = error_of(File::open(folder / "none.hrry"));
  EXPECT_EQ(missing.code, Errc::system);
  EXPECT_EQ(missing.system_errno, ENOENT);
  EXPECT_EQ(to_string(missing), (folder / "none.hrry") + ": open: No such file or directory");
  EXPECT_EQ(error_of(File::open(folder.path())).system_errno, EISDIR);
  EXPECT_EQ(error_of(File::open(std::string("a\0b", 3))).system_errno, EINVAL);
  EXPECT_EQ(error_of(File::open("")).system_errno, ENOENT);
}

TEST(File, PipesAreReadIntoMemoryOrRefused) {
  const TemporaryFolder folder;
  const Bytes bytes = two_tensors().bytes;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const Mode mode : {Mode::map, Mode::copy_on_write}) {
    OpenOptions options;
    options.mode = mode;
    const Error error = error_of(File::open(path, options));
    EXPECT_EQ(error.code, Errc::unsupported);
    EXPECT_NE(to_string(error).find("mode=\"memory\""), std::string::npos) << to_string(error);
  }
  const auto through_pipe = [&](const OpenOptions& options) {
    std::thread writer([&] { write_bytes(path, bytes); });
    auto file = File::open(path, options);
    writer.join();
    return file;
  };
  OpenOptions options;
  options.mode = Mode::memory;
  const auto file = through_pipe(options);
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->size_bytes(), bytes.size());
  EXPECT_EQ(copy(file->tensor(0)->buffer(0)), elements<std::int16_t>({1, -2, 300}));
}

TEST(File, SpoolingHasALimit) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  OpenOptions options;
  options.mode = Mode::memory;
  options.max_spool_bytes = 10;
  ASSERT_EQ(::write(ends[1], "HRRYFILE123", 11), 11);
  const Error error = error_of(File::open("/proc/self/fd/" + std::to_string(ends[0]), options));
  EXPECT_EQ(error.code, Errc::limit_exceeded);
  EXPECT_EQ(error.field, "max_spool_bytes");
  EXPECT_EQ(error.expected, 10u);
  EXPECT_EQ(error.found, 11u);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(File, SurvivesFork) {
  const TemporaryFolder folder;
  const File file = open(save_two(folder));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto tensor = file.tensor(0);
    ::_exit(tensor && copy(tensor->buffer(0)) == elements<std::int16_t>({1, -2, 300}) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(File, DeclaredPlacementIsKept) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  Descriptor d = dense(DType::uint8, {4}, 4);
  d.buffers[0].device = Device::cuda;
  d.buffers[0].sync_mode = SyncMode::event;
  ASSERT_EQ(failure(write(writer, "a", d, {Bytes(4)})), "");
  ASSERT_TRUE(writer.finish());
  const auto tensor = open(folder / "a.hrry").tensor(0);
  ASSERT_EQ(failure(tensor), "");
  EXPECT_EQ(tensor->descriptor().buffers[0].device, Device::cuda);
  EXPECT_EQ(tensor->memory_device(), Device::cpu);
  EXPECT_EQ(tensor->unsynced_buffer(), 0u);
  EXPECT_EQ(tensor->wire_descriptor(), d);
}

}  // namespace
}  // namespace hurray::io
