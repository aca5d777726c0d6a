#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "file_support.hpp"
#include "hurray/io/verify.hpp"
#include "system.hpp"

/// What reading a file into memory leaves in the system's own memory.
namespace hurray::io {
namespace {

constexpr std::size_t large = (std::size_t{48} << 20) + 5;

class PageCache : public testing::TestWithParam<bool> {
 protected:
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  int descriptor = -1;

  void SetUp() override {
    Bytes bytes(large);
    for (std::size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = static_cast<std::byte>(i >> 12);
    WriteOptions options;
    options.checksums = GetParam();
    auto writer = create(path, options);
    ASSERT_TRUE(write(writer, "w", dense(DType::uint8, {large}, large), {bytes}));
    Descriptor sparse = dense(DType::uint8, {large}, 5);  // several buffers, gaps between them
    sparse.layout = Csr{.nnz = 5};
    sparse.shape = Shape({2, 9});
    sparse.buffers = BufferTable{handle(5), handle(40), handle(24)};
    ASSERT_EQ(failure(write(writer, "sp", sparse,
                            {Bytes(5), elements<std::uint64_t>({0, 1, 2, 3, 4}),
                             elements<std::uint64_t>({0, 2, 5})})),
              "");
    ASSERT_TRUE(writer.finish());
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(descriptor, 0);
  }
  void TearDown() override { ::close(descriptor); }

  std::vector<bool> pages() const {
    return system::resident_pages(descriptor, 0, std::filesystem::file_size(path));
  }
  std::size_t resident() const {
    const auto all = pages();
    return static_cast<std::size_t>(std::ranges::count(all, true));
  }
  /// False where the file system keeps its files in memory.
  bool forget() const {
    system::drop_cached(descriptor, 0, std::filesystem::file_size(path));
    return resident() < 1024;
  }
  void read() const {
    OpenOptions options;
    options.mode = Mode::memory;
    const auto file = File::open(path, options);
    ASSERT_EQ(failure(file), "");
    for (std::size_t i = 0; i < file->size(); ++i) {
      const auto tensor = file->tensor(i);
      ASSERT_EQ(failure(tensor), "");
      const auto bytes = tensor->buffer(0).bytes();
      for (std::size_t k = 0; i == 0 && k < large; k += 4096)
        ASSERT_EQ(bytes[k], static_cast<std::byte>(k >> 12));
    }
  }
};

TEST_P(PageCache, WhatWasNotThereBeforeGoesAgain) {
  if (!forget()) GTEST_SKIP() << "files stay in memory here";
  read();
  EXPECT_LT(resident(), 2048u);  // 8 MiB: read ahead of what was read
}

TEST_P(PageCache, WhatWasThereStays) {
  if (!forget()) GTEST_SKIP() << "files stay in memory here";
  Bytes half(large / 2);
  ASSERT_EQ(::pread(descriptor, half.data(), half.size(), 0), static_cast<ssize_t>(half.size()));
  const auto before = pages();
  read();
  const auto after = pages();
  ASSERT_EQ(before.size(), after.size());
  std::size_t lost = 0;
  for (std::size_t k = 0; k < before.size(); ++k) lost += before[k] && !after[k] ? 1u : 0u;
  EXPECT_EQ(lost, 0u);
}

TEST_P(PageCache, MappingAndVerifyingDropNothing) {
  const auto before = resident();
  const auto file = File::open(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->tensor(0));
  ASSERT_TRUE(verify(*file));
  EXPECT_GE(resident(), before);
}

INSTANTIATE_TEST_SUITE_P(File, PageCache, testing::Bool(),
                         [](const auto& one) { return one.param ? "sums" : "plain"; });

}  // namespace
}  // namespace hurray::io
