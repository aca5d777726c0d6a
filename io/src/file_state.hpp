#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checksums.hpp"
#include "container.hpp"
#include "hurray/buffer.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/verify.hpp"
#include "index.hpp"
#include "source.hpp"

namespace hurray::io {

/// What is known of an open file from the moment it is needed.
struct Lazy {
  std::mutex mutex;
  std::optional<ChecksumTable> table;
  /// Pages that were cached before any of their window was read, by the number of the window.
  std::map<std::uint64_t, std::vector<bool>> pages;

  std::atomic<std::uint64_t> bytes_wanted = 0;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::atomic<std::uint64_t> requests = 0;
};

/// The part that could not be read while a file was opened, where it lies, and what was read before
/// it.
struct File::Step {
  FilePart part = FilePart::header;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::optional<Source> source = {};
  std::optional<Ends> ends = {};

  void at(FilePart next, std::uint64_t start, std::uint64_t bytes) noexcept {
    part = next;
    offset = start;
    size = bytes;
  }
};

struct File::State {
  Source source;
  OpenOptions options;
  Ends ends;
  Index index;
  KvContents kv;
  std::shared_ptr<Owner> mapping = {};  ///< Null in mode `memory`.
  std::span<std::byte> mapped = {};
  std::unique_ptr<Lazy> lazy = std::make_unique<Lazy>();

  Error about(const hurray::Error& error, const Entry& entry, std::string detail = {}) const {
    return source.about(error, entry.name, std::move(detail));
  }

  /// Entry `i`, or `out_of_bounds`.
  Result<Entry> listed(std::size_t i) const;
  /// The entry of this name, or `not_found`.
  Result<std::size_t> named(std::string_view name) const;
  /// Decided at the first call, by one thread.
  Result<const ChecksumTable*> checksums() const;
  /// Those that what is read has to be compared with; null for none. Fails where the state forbids
  /// reading; `demanded`: every state but none and `valid`.
  Result<const ChecksumTable*> sums(bool demanded) const;
  /// Those for whole tensors.
  Result<const ChecksumTable*> sums() const;
  bool verifies() const noexcept { return options.verify.value_or(options.mode == Mode::memory); }

  /// Bytes of `part` of `entry` into `into`; `ahead` as `Source::read` has it.
  Result<void> read_of(const Entry& entry, std::string_view part, std::span<std::byte> into,
                       std::uint64_t offset, std::uint64_t ahead) const;
  /// The same of its data, counted.
  Result<void> read_data(const Entry& entry, std::span<std::byte> into, std::uint64_t offset,
                         std::uint64_t ahead = 0) const;

  /// `sums` where they are to be compared.
  Result<Bytes> descriptor_bytes(std::size_t i, const ChecksumTable* sums = nullptr) const;
  Result<void> check_descriptor_length(const Entry& entry, std::span<const std::byte> start) const;
  Result<void> check_descriptor_limit(const Entry& entry) const;
  /// `max_tensor_bytes`, for `bytes` of the data of `entry`.
  Result<void> check_tensor_limit(const Entry& entry, std::uint64_t bytes) const;
  Result<Descriptor> decoded(const Entry& entry, std::span<const std::byte> bytes) const;
  /// A descriptor and where its buffers lie: rows 23 to 26 of 04-file.md section 12.
  struct Described {
    Descriptor descriptor;
    Placement placement;
  };
  Result<Described> describe(std::size_t i) const;
  Result<Described> describe(const Entry& entry, std::span<const std::byte> bytes) const;
  /// Bytes of a data region, in the memory that the mode gives them: of entry `i`, in rising order;
  /// `described` where it is known.
  Result<std::vector<Buffer>> buffers(std::size_t i, std::span<const ByteRange> ranges,
                                      const Described* described) const;
  /// The bytes from `offset` on in the mapping; none where they are not there as they stand, on 64.
  std::optional<std::span<std::byte>> in_mapping(std::uint64_t offset,
                                                 std::uint64_t size) const noexcept;
  /// Notes which pages of the file itself, from `start` to `end`, the system has in memory, before
  /// they are read.
  void note_pages(std::uint64_t start, std::uint64_t end) const;
  /// Gives back the pages from `start` to `end` that were noted as not there: the bytes have been
  /// copied, and the file need not stay in memory as well.
  void drop_pages(std::uint64_t start, std::uint64_t end) const;
  Result<Tensor> tensor(std::size_t i, Described described) const;

  /// More tensors must follow `head` than do.
  Error torn(const Entry& head, std::uint64_t owed, std::uint64_t behind) const;
  /// One tensor of a composite.
  struct Part {
    std::size_t entry;
    Described described;
  };
  /// The head `i` and all that it binds, in emission order: row 28.
  Result<std::vector<Part>> composite(std::size_t i, Described head) const;
  /// Members that the head `i` announces; none for a plain tensor or one that is not understood.
  Result<std::optional<std::uint32_t>> member_count(std::size_t i) const;
};

}  // namespace hurray::io
