#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/io/verify.hpp"

namespace hurray::io {

/// One file of a set, and what its index says of it.
struct SetMember {
  std::string path;                           ///< In errors also its name.
  std::vector<std::string> names;             ///< What the index of the set places in it.
  std::optional<std::uint32_t> index_crc32c;  ///< What its own index must have.
  /// What its `File::kv_crc32c` must be.
  std::optional<std::uint32_t> kv_crc32c = {};
};

/// Several `.hrry` files seen as one (09-models-and-frameworks.md section 2), or one as it is. An
/// entry is counted through all of them, in their order.
///
/// A value that shares the open files; safe for concurrent use.
class FileSet {
 public:
  /// One file alone: its entries are the set's.
  HURRAY_EXPORT explicit FileSet(File file);

  /// Opens all members and checks that every name is in its file and that none is in two. Fails
  /// as `not_found` with all of what is missing in `detail`, as `duplicate` for a name in two
  /// files, and as `checksum_mismatch` where a member is not the one that the index was written
  /// with. What a member holds beyond `names` is not in the set, save what their heads bind.
  HURRAY_EXPORT static Result<FileSet> open(std::string path, std::span<const SetMember> members,
                                            const OpenOptions& options = {});

  const std::string& path() const noexcept;
  Mode mode() const noexcept;
  /// The files, one or more.
  HURRAY_EXPORT std::span<const File> files() const noexcept;
  /// Of all files.
  HURRAY_EXPORT std::uint64_t size_bytes() const noexcept;
  /// That of the one file; of several, of the sums of their indexes.
  HURRAY_EXPORT std::uint32_t index_crc32c() const noexcept;
  /// Those of all files; `inconsistent` where two differ about a key.
  HURRAY_EXPORT Result<KeyValues> kv() const;
  HURRAY_EXPORT bool has_checksums() const noexcept;
  HURRAY_EXPORT ReadCounts read_counts() const noexcept;

  /// Entries of all files.
  HURRAY_EXPORT std::size_t size() const noexcept;
  /// Precondition of those below: `i < size()`.
  HURRAY_EXPORT std::string_view name(std::size_t i) const noexcept;
  HURRAY_EXPORT std::optional<std::size_t> find(std::string_view name) const noexcept;
  /// The file that holds entry `i`, and which of its entries that is.
  HURRAY_EXPORT std::pair<const File*, std::size_t> place(std::size_t i) const noexcept;
  Result<Descriptor> descriptor(std::size_t i) const {
    const auto [file, entry] = place(i);
    return file->descriptor(entry);
  }
  Result<Item> item(std::size_t i) const {
    const auto [file, entry] = place(i);
    return file->item(entry);
  }
  Result<Slice> slice(std::size_t i, std::span<const Along> selection) const {
    const auto [file, entry] = place(i);
    return file->slice(entry, selection);
  }
  std::shared_ptr<Owner> mapping(std::size_t i) const noexcept { return place(i).first->mapping(); }
  /// As `File::owners`; what is not in the set is its own owner.
  HURRAY_EXPORT Result<std::vector<std::optional<std::size_t>>> owners() const;
  HURRAY_EXPORT Result<std::uint64_t> prefetch(
      std::span<const File::Wanted> wanted,
      std::uint64_t max_bytes = File::default_prefetch_bytes) const;
  HURRAY_EXPORT void will_read_all() const noexcept;

 private:
  struct State;
  explicit FileSet(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace hurray::io
