#include "hurray/io/share.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "file_support.hpp"
#include "hurray/io/file.hpp"

namespace hurray::io {
namespace {

Tensor counted() {
  Buffer memory = *Buffer::allocate(10'000);
  for (std::size_t i = 0; i < 10'000; ++i) memory.data()[i] = static_cast<std::byte>(i);
  Descriptor descriptor;
  descriptor.dtype = DType::uint8;
  descriptor.shape = Shape{std::uint64_t{10'000}};
  return *bind(descriptor, {memory});
}

Result<void> write_counted(FileWriter& writer) { return writer.write_item("w", Item{counted()}); }

TEST(SharedImage, AnotherProcessReadsItWithoutACopy) {
  auto image = SharedImage::create("hurray-test", write_counted, {{"a", std::int64_t{1}}});
  ASSERT_TRUE(image) << to_string(image.error());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto file = File::over(image->descriptor());
    const auto tensor = file ? file->tensor("w") : Result<Tensor>(file.error());
    const bool right = tensor && file->mode() == Mode::map && file->kv().size() == 1 &&
                       tensor->buffer(0).readonly() && tensor->buffer(0).alignment() >= 4096 &&
                       tensor->buffer(0).bytes()[300] == std::byte{300 % 256};
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedImage, NobodyCanChangeIt) {
  auto image = SharedImage::create("hurray-test", write_counted);
  ASSERT_TRUE(image);
  EXPECT_EQ(::pwrite(image->descriptor(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(image->descriptor(), 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedImage, TensorsOutliveIt) {
  auto image = SharedImage::create("hurray-test", write_counted);
  ASSERT_TRUE(image);
  auto file = File::over(image->descriptor());
  ASSERT_TRUE(file);
  const auto tensor = file->tensor("w");
  file = Result<File>(Error{});
  image = Result<SharedImage>(Error{});
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->buffer(0).bytes()[1000], std::byte{1000 % 256});
}

TEST(SharedImage, WhatCannotBeWrittenLeavesNothing) {
  const auto image = SharedImage::create("hurray-test", [](FileWriter& writer) -> Result<void> {
    if (auto first = writer.write_item("w", Item{counted()}); !first) return first;
    return writer.write_item("w", Item{counted()});
  });
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Errc::duplicate);
}

TEST(SharedImage, MemoryThatCanBeCutIsRead) {
  const int loose = ::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(loose, 0);
  auto writer = FileWriter::over(loose);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(write_counted(*writer));
  ASSERT_TRUE(writer->finish());
  const auto file = File::over(loose);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->mode(), Mode::memory);
  const auto tensor = file->tensor("w");
  ASSERT_EQ(::ftruncate(loose, 10), 0);
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->buffer(0).bytes()[1000], std::byte{1000 % 256});
  ::close(loose);
}

}  // namespace
}  // namespace hurray::io
