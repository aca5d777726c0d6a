#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/builder.hpp"
#include "hurray/io/file_writer.hpp"
#include "hurray/tensor.hpp"

/// Tensors and `.hrry` files of tests.
namespace hurray::cli {

inline Buffer memory(std::span<const std::byte> bytes) {
  auto buffer = Buffer::allocate(bytes.size());
  EXPECT_TRUE(buffer);
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return *std::move(buffer);
}

template <class T>
Buffer memory(const std::vector<T>& values) {
  return memory(std::as_bytes(std::span(values)));
}

inline Tensor tensor(const Result<Descriptor>& descriptor, std::vector<Buffer> buffers) {
  EXPECT_TRUE(descriptor) << (descriptor ? "" : to_string(descriptor.error()));
  auto bound = bind(*descriptor, std::move(buffers));
  EXPECT_TRUE(bound) << (bound ? "" : to_string(bound.error()));
  return *std::move(bound);
}

template <class T>
Tensor dense(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return tensor(DescriptorBuilder::row_major(dtype, shape).build(), {memory(values)});
}

struct Named {
  std::string name;
  Item item;
};

inline void write_file(const std::filesystem::path& path, const std::vector<Named>& tensors,
                       const io::KeyValues& kv = {}, io::WriteOptions options = {}) {
  options.sync = false;
  auto writer = io::FileWriter::create(path.string(), options);
  ASSERT_TRUE(writer);
  for (const Named& named : tensors) {
    const auto written = writer->write_item(named.name, named.item);
    ASSERT_TRUE(written) << to_string(written.error());
  }
  const auto finished = writer->finish(kv);
  ASSERT_TRUE(finished) << to_string(finished.error());
}

/// A partition of int8 [2, 3] in the columns [2, 1] and [2, 2].
inline Item columns() {
  const auto part = [](std::uint64_t width, std::uint64_t from,
                       const std::vector<std::int8_t>& values) {
    return Item{tensor(
        DescriptorBuilder::row_major(DType::int8, {2, width}).shard_of({2, 3}, {0, from}).build(),
        {memory(values)})};
  };
  Item head{tensor(DescriptorBuilder::partition(DType::int8, {2, 3}, 2).build(), {})};
  head.members = {part(1, 0, {1, 2}), part(2, 1, {3, 4, 5, 6})};
  return head;
}

}  // namespace hurray::cli
