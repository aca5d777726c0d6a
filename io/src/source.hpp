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
#include "parallel.hpp"
#include "remote.hpp"
#include "system.hpp"
#include "translation.hpp"

namespace hurray::io {

/// A file to be read at any position. What is no regular file (a pipe) has been read to its end
/// into memory first, in mode `memory`; the mapped modes refuse it.
class Source {
 public:
  static Result<Source> open(std::string path, const OpenOptions& options);
  /// What an open descriptor is for, which is duplicated; read from its start.
  static Result<Source> over(int descriptor, const OpenOptions& options);
  /// Bytes that are reached by position, however that is.
  static Result<Source> over(PositionedSource remote, const OpenOptions& options);
  /// A file's bytes in memory.
  static Source over(Buffer image) noexcept { return Source(std::move(image)); }

  const std::string& path() const noexcept { return path_; }
  /// Bytes, of a translated file those of what is seen.
  std::uint64_t size() const noexcept { return translation_ ? translation_->size() : size_; }
  /// Bytes of the file itself.
  std::uint64_t stored_size() const noexcept { return size_; }
  const std::optional<Translation>& translation() const noexcept { return translation_; }
  /// From now on the file is seen as `options.foreign` says, where it is of another format.
  Result<void> translate(const OpenOptions& options);
  /// Where in the file itself bytes lie as they stand; none where they do not.
  std::optional<std::uint64_t> stored_at(std::uint64_t offset, std::uint64_t size) const noexcept {
    return translation_ ? translation_->state().direct(offset, size) : std::optional(offset);
  }
  /// Calls `each` with offset and size in the file itself of what is read for `start` to `end`.
  template <class Each>
  void for_each_stored(std::uint64_t start, std::uint64_t end, Each&& each) const {
    if (translation_)
      translation_->state().for_each_stored(start, end, each);
    else if (start < end)
      each(start, end - start);
  }
  int descriptor() const noexcept { return handle_.number(); }
  /// The bytes, where they are in memory.
  const std::optional<Buffer>& image() const noexcept { return image_; }
  /// Where they are reached by position, null else.
  Remote* remote() const noexcept { return remote_.get(); }
  /// The system has them in a file that is open here.
  bool is_file() const noexcept { return !image_ && remote() == nullptr; }
  /// What is worth a request of its own, there where the bytes are.
  PieceOptions piece_options() const noexcept {
    if (remote() == nullptr) return {};
    return {.max_gap_bytes = Remote::gap_bytes, .piece_bytes = Remote::ahead_bytes};
  }
  /// How many threads are worth while to read so many bytes.
  std::size_t threads_for(std::uint64_t bytes) const noexcept {
    return remote() != nullptr ? 1 : io::threads_for(bytes);
  }

  Error about(const hurray::Error& error, std::string_view tensor = {},
              std::string detail = {}) const {
    return {error, path_, std::string(tensor), std::move(detail)};
  }

  /// Fills `into` from `offset` on. A file that ends before that, being shorter than it was, is
  /// `truncated`, under the name `field`. Behind it `ahead` bytes are likely to be asked for next.
  Result<void> read(std::string_view field, std::span<std::byte> into, std::uint64_t offset,
                    std::uint64_t ahead = 0) const;

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
  explicit Source(std::shared_ptr<Remote> remote) noexcept
      : remote_(std::move(remote)), path_(this->remote()->name()), size_(this->remote()->size()) {}
  /// Fills `into` from the file itself.
  Result<void> read_stored(std::string_view field, std::span<std::byte> into, std::uint64_t offset,
                           std::uint64_t ahead) const;
  /// Fewer bytes only where the file ends.
  Result<std::size_t> read_up_to(std::span<std::byte> into, std::uint64_t offset,
                                 std::uint64_t ahead) const;
  static Result<Source> from(system::Handle handle, std::string path, const OpenOptions& options);

  system::Handle handle_;
  std::optional<Buffer> image_;
  RemoteUse remote_;
  std::string path_;
  std::uint64_t size_;
  std::optional<Translation> translation_ = {};
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
