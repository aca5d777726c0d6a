#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "container.hpp"
#include "hurray/buffer.hpp"
#include "key_values.hpp"
#include "system.hpp"

namespace hurray::io {

/// A file to be read at any position. What is no regular file (a pipe) has been read to its end
/// into memory first, in mode `memory`; the mapped modes refuse it.
class Source {
 public:
  static Result<Source> open(std::string path, const OpenOptions& options);
  /// What an open descriptor is for, which is duplicated; read from its start.
  static Result<Source> over(int descriptor, const OpenOptions& options);
  /// A file's bytes in memory.
  static Source over(Buffer image) noexcept { return Source(std::move(image)); }

  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return handle_.number(); }
  /// The bytes, where they are in memory.
  const std::optional<Buffer>& image() const noexcept { return image_; }

  Error about(const hurray::Error& error, std::string_view tensor = {},
              std::string detail = {}) const {
    return {error, path_, std::string(tensor), std::move(detail)};
  }

  /// Fills `into` from `offset` on. A file that ends before that, being shorter than it was, is
  /// `truncated`, under the name `field`.
  Result<void> read(std::string_view field, std::span<std::byte> into, std::uint64_t offset) const;

  /// `size` bytes from `offset` on into own memory, in steps. `step` sees the bytes so far after
  /// each of them and may end it all with an error. Precondition: within the file.
  template <class Step>
  Result<Buffer> read_in_steps(std::string_view field, std::uint64_t offset, std::uint64_t size,
                               Step&& step) const {
    auto memory = Buffer::allocate(size);
    if (!memory) return about(memory.error());
    const auto bytes = memory->bytes();
    for (std::size_t done = 0; done < bytes.size();) {
      const std::size_t next = std::min(bytes.size() - done, step_bytes);
      if (auto ok = read(field, bytes.subspan(done, next), offset + done); !ok) return ok.error();
      done += next;
      if (auto ok = step(std::span<const std::byte>(bytes.first(done))); !ok) return ok.error();
    }
    return *std::move(memory);
  }

  static constexpr std::size_t step_bytes = std::size_t{64} << 20;

 private:
  Source(system::Handle handle, std::string path, std::uint64_t size) noexcept
      : handle_(std::move(handle)), path_(std::move(path)), size_(size) {}
  explicit Source(Buffer image) noexcept : image_(std::move(image)), size_(image_->size()) {}
  /// Fewer bytes only where the file ends.
  Result<std::size_t> read_up_to(std::span<std::byte> into, std::uint64_t offset) const;
  static Result<Source> from(system::Handle handle, std::string path, const OpenOptions& options);

  system::Handle handle_;
  std::optional<Buffer> image_;
  std::string path_;
  std::uint64_t size_;
};

/// The two ends of a file.
struct Ends {
  FileHeader header;
  FileTrailer trailer;
};

/// Reads and judges header and trailer (rows 1 to 11 of 04-file.md section 12, save the checksum's
/// value). What is no `.hrry` file is named for what it is.
Result<Ends> read_ends(const Source& source, const OpenOptions& options);

/// Reads and judges the KV section (rows 20 to 22).
struct KvContents {
  KeyValues entries;
  ChecksumPlace checksums;
};
Result<KvContents> read_kv(const Source& source, const Ends& ends);

}  // namespace hurray::io
