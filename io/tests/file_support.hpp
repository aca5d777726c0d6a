#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/cursor.hpp"
#include "hurray/io/crc32c.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"

namespace hurray::io {

/// A folder of the test's own that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hurray-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

  /// The names in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline Bytes bytes_of(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

inline Bytes hex(const std::string& text) {
  Bytes bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  return bytes;
}

inline Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return bytes_of(text);
}

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// A file of the test's own that can be changed byte by byte and goes with the object.
class ScratchFile {
 public:
  explicit ScratchFile(std::span<const std::byte> bytes)
      : path_((std::filesystem::temp_directory_path() / "hurray-XXXXXX").string()),
        descriptor_(::mkstemp(path_.data())) {
    put(0, bytes);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  void put(std::size_t at, std::span<const std::byte> bytes) const {
    ASSERT_EQ(::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  void cut(std::size_t size) const {
    ASSERT_EQ(::ftruncate(descriptor_, static_cast<off_t>(size)), 0);
  }

 private:
  std::string path_;
  int descriptor_;
};

/// Little-endian numbers, as elements of a buffer.
template <class T>
Bytes elements(std::initializer_list<T> values) {
  Bytes bytes;
  for (const T value : values) {
    std::array<std::byte, sizeof(T)> raw{};
    if constexpr (std::is_integral_v<T>)
      hurray::detail::store(raw.data(), value);
    else
      std::memcpy(raw.data(), &value, sizeof value);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  return bytes;
}

inline BufferHandle handle(std::uint64_t size) {
  return {.byte_size = size, .alignment = size == 0 ? 1u : 64u};
}

inline Descriptor dense(DType dtype, std::initializer_list<std::uint64_t> shape,
                        std::uint64_t size) {
  Descriptor descriptor;
  descriptor.dtype = dtype;
  descriptor.shape = Shape(shape);
  descriptor.layout = RowMajor{};
  descriptor.buffers = BufferTable{handle(size)};
  return descriptor;
}

/// The error of a result that must be one.
template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error() : result.error();
}

/// "" for success, so that a test prints what went wrong.
template <class T>
std::string failure(const Result<T>& result) {
  return result ? std::string() : to_string(result.error());
}

inline Result<void> write(FileWriter& writer, std::string_view name, const Descriptor& descriptor,
                          std::initializer_list<Bytes> buffers) {
  std::vector<BufferSource> sources;
  for (const Bytes& bytes : buffers) sources.emplace_back(std::span<const std::byte>(bytes));
  return writer.write(name, descriptor, sources);
}

/// What stands before the composite in the second vector of 04-file.md section 14.
inline Result<void> write_sparse_and_empty(FileWriter& writer) {
  Descriptor sparse = dense(DType::float32, {2, 4}, 12);
  sparse.layout = Csr{.nnz = 3};
  sparse.buffers = BufferTable{handle(12), handle(24), handle(24)};
  auto written = write(writer, "sp", sparse,
                       {elements<float>({.5f, 2, -1}), elements<std::uint64_t>({1, 0, 3}),
                        elements<std::uint64_t>({0, 1, 3})});
  if (!written) return written;
  return write(writer, "none", dense(DType::float16, {0, 7}, 0), {Bytes()});
}

inline FileWriter create(const std::string& path, const WriteOptions& options = {}) {
  auto writer = FileWriter::create(path, options);
  EXPECT_EQ(failure(writer), "");
  return *std::move(writer);
}

inline WriteOptions plain() {
  WriteOptions options;
  options.checksums = false;
  options.sync = false;
  return options;
}

/// A file as bytes that a test may spoil.
struct Image {
  Bytes bytes;

  std::size_t trailer() const { return bytes.size() - 40; }
  template <class T>
  T get(std::size_t at) const {
    return hurray::detail::load<T>(bytes.data() + at);
  }
  template <class T>
  void set(std::size_t at, T value) {
    hurray::detail::store(bytes.data() + at, value);
  }
  std::size_t index() const { return static_cast<std::size_t>(get<std::uint64_t>(trailer())); }
  std::size_t index_length() const {
    return static_cast<std::size_t>(get<std::uint64_t>(trailer() + 8));
  }
  /// Where the fields behind the name of entry `i` start.
  std::size_t entry(std::size_t i) const {
    std::size_t at = index() + 8;
    for (;; --i) {
      const std::size_t fields = at + 2 + get<std::uint16_t>(at);
      if (i == 0) return fields;
      at = fields + 32;
    }
  }
  /// Makes the index believable again.
  void sum() { set(trailer() + 28, crc32c(std::span(bytes).subspan(index(), index_length()))); }
};

/// int16 `t` = 1, -2, 300 and uint8 `uu` = 1 … 5000; KV `rev` = 7.
inline Image two_tensors(const WriteOptions& options = plain()) {
  const TemporaryFolder folder;
  auto writer = create(folder / "two.hrry", options);
  EXPECT_EQ(failure(write(writer, "t", dense(DType::int16, {3}, 6),
                          {elements<std::int16_t>({1, -2, 300})})),
            "");
  Bytes many(5000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::byte>(i + 1);
  EXPECT_EQ(failure(write(writer, "uu", dense(DType::uint8, {5000}, 5000), {many})), "");
  EXPECT_EQ(failure(writer.finish({{"rev", std::int64_t{7}}})), "");
  return {read_bytes(folder / "two.hrry")};
}

}  // namespace hurray::io
