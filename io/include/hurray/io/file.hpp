#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/composite.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/io/positioned_source.hpp"
#include "hurray/io/translation.hpp"
#include "hurray/selection.hpp"
#include "hurray/table.hpp"
#include "hurray/tensor.hpp"

namespace hurray::io {

class Slice;
class Source;

/// How an open file's tensors get their memory (08-python-api.md section 19.3).
enum class Mode : std::uint8_t {
  map,            ///< Private mapping, read-only.
  copy_on_write,  ///< Private mapping; writes stay in the process.
  memory,         ///< Own memory on 64, read when the tensor is asked for.
};

struct ModeInfo {
  Mode tag;
  std::string_view name;
};

inline constexpr auto modes = std::to_array<ModeInfo>({
    {Mode::map, "map"},
    {Mode::copy_on_write, "copy_on_write"},
    {Mode::memory, "memory"},
});
static_assert(strictly_sorted(modes));

struct OpenOptions {
  Mode mode = Mode::map;
  /// Whether the sums of what is asked for (descriptors, tensors) are compared: none, in mode
  /// `memory`, in the pass that copies; true, in every mode, and sums that are not this file's are
  /// errors too; false, never. What it is for each state: 04-file.md section 16. Opening reads no
  /// sums.
  std::optional<bool> verify = {};
  std::uint64_t max_index_bytes = 256u << 20;
  std::uint64_t max_tensors = 1u << 24;
  std::uint64_t max_kv_bytes = 256u << 20;
  std::uint32_t max_descriptor_bytes = 16u << 20;
  std::optional<std::uint64_t> max_tensor_bytes = {};
  std::uint32_t max_composite_depth = default_composite_depth;  ///< 1 to 64.
  /// Of what cannot be read at any position (pipes), and is kept in memory first; only in mode
  /// `memory`.
  std::uint64_t max_spool_bytes = 1u << 30;
  bool permissive = false;  ///< As in `DecodeOptions`.
  Agreed agreed = {};       ///< As in `DecodeOptions`; its lists live as long as the `File`.
  /// Asked when a signal comes, and at least once a second, while a pipe is waited for; true ends
  /// the call as a `system` error with EINTR.
  std::function<bool()> interrupted = {};
  /// Asked for files that do not begin as `.hrry` files do; without, they are refused.
  ForeignReader foreign = {};
};

/// Bits of `FileHeader::flags` (04-file.md section 2).
enum class FileFlag : std::uint32_t {
  has_kv_metadata = 1u << 0,
  sorted_index = 1u << 1,
  has_index_crc32c = 1u << 2,
};

struct FileFlagInfo {
  FileFlag tag;
  std::string_view name;
};

inline constexpr auto file_flags = std::to_array<FileFlagInfo>({
    {FileFlag::has_kv_metadata, "HAS_KV_METADATA"},
    {FileFlag::sorted_index, "SORTED_INDEX"},
    {FileFlag::has_index_crc32c, "HAS_INDEX_CRC32C"},
});
static_assert(strictly_sorted(file_flags));

/// What the sums in a file are worth (04-file.md section 16).
enum class ChecksumState : std::uint8_t {
  unprotected,  ///< There are none.
  valid,        ///< They are this file's.
  damaged,      ///< Their entry is broken.
  unknown,      ///< Of a version that this release does not know.
  foreign,      ///< Header, KV section or index are not those that they were made of.
};

struct ChecksumStateInfo {
  ChecksumState tag;
  std::string_view name;
};

inline constexpr auto checksum_states = std::to_array<ChecksumStateInfo>({
    {ChecksumState::unprotected, "unprotected"},
    {ChecksumState::valid, "valid"},
    {ChecksumState::damaged, "damaged"},
    {ChecksumState::unknown, "unknown"},
    {ChecksumState::foreign, "foreign"},
});
static_assert(strictly_sorted(checksum_states));

struct ChecksumVerdict {
  ChecksumState state = ChecksumState::unprotected;
  /// Why they are damaged, unknown or foreign, and what to do.
  std::optional<Error> reason = {};
};

/// The fixed header (04-file.md section 2).
struct FileHeader {
  std::uint8_t version_major = 1;
  std::uint8_t version_minor = 0;
  std::uint32_t flags = 0;
  std::uint32_t data_buffer_alignment = 4096;
  std::uint64_t first_descriptor_offset = 64;
  std::uint64_t tensor_count_hint = 0;
};

/// The last 40 bytes (04-file.md section 6).
struct FileTrailer {
  std::uint64_t index_offset = 0;
  std::uint64_t index_length = 0;
  std::uint64_t kv_offset = 0;
  std::uint32_t kv_length = 0;
  std::uint32_t index_crc32c = 0;
};

/// One index entry (04-file.md section 5); `name` lives as long as the `File`.
struct Entry {
  std::string_view name;
  std::uint64_t descriptor_offset = 0;
  std::uint32_t descriptor_length = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t data_length = 0;
};

/// What reading the data of tensors has cost since a file was opened, descriptors and views of the
/// mapping left out; of a `PositionedSource` what all of its reading has cost.
struct ReadCounts {
  std::uint64_t bytes_wanted = 0;  ///< Of tensors and selections that were read.
  std::uint64_t bytes_read = 0;    ///< From the file; more where gaps or whole chunks are read.
  std::uint64_t requests = 0;      ///< Positioned reads.

  friend bool operator==(const ReadCounts&, const ReadCounts&) = default;
};

/// An open `.hrry` file: header, trailer, index and KV have been read and checked (04-file.md
/// section 12, "O"); descriptors and data have not been touched.
///
/// A value that shares one open file; safe for concurrent use from any number of threads. Tensors
/// keep the mapping alive, not the `File`.
class HURRAY_EXPORT File {
 public:
  static Result<File> open(std::string path, const OpenOptions& options = {});
  /// What an open descriptor is for, from its start whatever its position; it is duplicated. Memory
  /// without a name (a memfd) is mapped where it is sealed, as a `SharedImage` is, and else read in
  /// mode `memory`.
  static Result<File> over(int descriptor, const OpenOptions& options = {});
  /// Bytes that are somewhere else. Opening reads the last MiB and the header, and once more where
  /// index and kv are larger; a tensor's descriptor and data are read together where they are
  /// small. Always in mode `memory`.
  static Result<File> over(PositionedSource source, const OpenOptions& options = {});
  /// A file's bytes in memory. In mode `map` tensors share `image`, which must be on 64; in the
  /// others they are copies.
  static Result<File> over(Buffer image, const OpenOptions& options = {});

  const std::string& path() const noexcept;
  Mode mode() const noexcept;
  /// The format of its bytes: "hrry", or that of the translation through which it is seen; it lives
  /// for ever. Of a translated file header, trailer, entries and sizes are those of the `.hrry`
  /// file that is seen; buffers that do not lie on 64 in it, or are converted, are copies in every
  /// mode.
  std::string_view format() const noexcept;
  std::uint64_t size_bytes() const noexcept;
  const FileHeader& header() const noexcept;
  const FileTrailer& trailer() const noexcept;
  /// Without the entry that is ours (checksums).
  const KeyValues& kv() const noexcept;
  /// The CRC-32C of the KV section without its last four bytes, which are the sum of the sums of a
  /// protected file; 0 without a section. It tells two protected files of equal names and sizes
  /// apart. Reads the section.
  Result<std::uint32_t> kv_crc32c() const;
  /// The state of its sums. The first call reads their entry, and all later ones know the answer;
  /// fails where that cannot be read.
  Result<ChecksumVerdict> checksums() const;
  /// There are sums that belong to this file: their state is `valid` or `damaged`. Where it cannot
  /// be told, whether there is an entry.
  bool has_checksums() const noexcept;

  /// Entries in index order.
  std::size_t size() const noexcept;
  /// Precondition: `i < size()`.
  Entry entry(std::size_t i) const noexcept;
  /// The name alone, which costs less; it lives as long as the `File`.
  std::string_view name(std::size_t i) const noexcept;
  std::optional<std::size_t> find(std::string_view name) const noexcept;

  /// What follows fails as `out_of_bounds` for an `i` that is not below `size()`, and as
  /// `not_found` for a name that the file does not have.

  /// The stored descriptor of entry `i`, declared alignments included; no data byte is touched.
  Result<Descriptor> descriptor(std::size_t i) const;
  /// The encoded bytes of that descriptor (for annotation).
  Result<Bytes> descriptor_bytes(std::size_t i) const;
  /// Entry `i` over the file's memory: the mapping, or own memory in mode `memory`. A composite
  /// head has no buffers; a member is a tensor like any other. In permissive mode a tensor of
  /// unknown layout has no buffers that could be found: `raw_bytes` has them all.
  Result<Tensor> tensor(std::size_t i) const;
  Result<Tensor> tensor(std::string_view name) const;
  /// A part of entry `i` that is to be read as a tensor of its own, one part for each dimension
  /// (08-python-api.md section 19.2). Fails as `SelectionPlan::of` does; no data byte is touched.
  Result<Slice> slice(std::size_t i, std::span<const Along> selection) const;
  Result<Slice> slice(std::string_view name, std::span<const Along> selection) const;
  ReadCounts read_counts() const noexcept;
  /// Entries or parts of them that will be asked for: their bytes are read ahead in the background,
  /// in the file's order and merged, up to `max_bytes` of them. Returns how many bytes that are;
  /// none for a file in memory. Fails as `slice`.
  struct Wanted {
    std::size_t entry = 0;
    std::optional<Selection> selection = {};  ///< None: all of its buffers.
  };
  static constexpr std::uint64_t default_prefetch_bytes = std::uint64_t{256} << 20;
  Result<std::uint64_t> prefetch(std::span<const Wanted> wanted,
                                 std::uint64_t max_bytes = default_prefetch_bytes) const;
  /// Everything in the file will be read, from its start to its end: a hint for the system.
  void will_read_all() const noexcept;
  /// The buffers of entry `i` where they are, read when they are written elsewhere and not before,
  /// which no sum is compared with. They share the open file.
  Result<std::vector<BufferSource>> sources(std::size_t i) const;
  /// The mapping from the multiple of 64 before the stored bytes of buffer 0 of entry `i` to their
  /// end, and where in it they start; none where they are not mapped as they stand. For consumers
  /// that need less than 64.
  struct MappedBytes {
    Buffer memory;
    std::size_t start = 0;
  };
  Result<std::optional<MappedBytes>> mapped_bytes(std::size_t i) const;
  /// The data region of entry `i`, buffers and the padding between them (row 25 of section 12).
  Result<Buffer> raw_bytes(std::size_t i) const;

  /// Entry `i`, with all of its members if it is a composite head: the tensors behind it by
  /// `descriptor_offset` (04-file.md section 9). Every rule is judged before data is read; a
  /// composite that fails leaves its members readable as tensors. Errors name the head that they
  /// are about, and fields that start with "members[]" count its members.
  Result<Item> item(std::size_t i) const;
  Result<Item> item(std::string_view name) const;
  /// For every entry in index order the entry of the head that binds it directly, none for the
  /// items at the top. Reads the descriptors of entries without data, which a head is; one that
  /// cannot be understood counts as a plain tensor, and a torn head binds nothing.
  Result<std::vector<std::optional<std::size_t>>> owners() const;

  /// The bytes that tensors share in the mapped modes; null owner in mode `memory`.
  std::shared_ptr<Owner> mapping() const noexcept;

 private:
  friend class Slice;
  friend class Verifier;
  struct State;
  struct Step;
  /// `step` is what is being read.
  static Result<File> open(std::string path, const OpenOptions& options, Step& step);
  static Result<File> open(Result<Source> opened, const OpenOptions& options, Step& step);
  explicit File(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

/// Reads header, trailer and KV section only.
HURRAY_EXPORT Result<KeyValues> load_kv(const std::string& path, const OpenOptions& options = {});

/// `path` is a regular file on a local file system, so that mapping it is a good default
/// (08-python-api.md section 19.3). False where it cannot be told.
HURRAY_EXPORT bool is_local_file(const std::string& path) noexcept;

/// What a file is that is not a `.hrry` file, in words for a person, with what to do;
/// "" when its first bytes tell nothing. `head` are its first bytes (512 suffice), `size` its
/// length.
HURRAY_EXPORT std::string describe_foreign_file(std::span<const std::byte> head,
                                                std::uint64_t size);

}  // namespace hurray::io
