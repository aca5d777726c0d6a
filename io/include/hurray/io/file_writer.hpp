#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/composite.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::io {

struct WriteOptions {
  std::uint32_t alignment = 4096;  ///< Of every buffer's position: a power of two, 4096 to 2 MiB.
  bool key_values = true;          ///< Write a KV section (checksums need it).
  bool checksums = true;           ///< 04-file.md section 16.
  bool sorted_index = false;
  bool sync = true;  ///< Wait for the disk before the new file appears.
  std::optional<std::uint64_t> tensor_count =
      {};  ///< The hint; `finish` fails when it does not match.
  /// Bytes that the file will have at least, known beforehand: compared with the free space.
  std::uint64_t expected_bytes = 0;
  /// Asked at least once a second while bytes are written; true ends the write as a `system` error
  /// with EINTR. For signals.
  std::function<bool()> interrupted;
};

/// Writes a `.hrry` file in one forward pass (04-file.md section 10), straight from the caller's
/// memory.
///
/// Over a path it writes a temporary file in the same folder and replaces the target at `finish`,
/// so that at every moment the path holds the old file or the new one, whole (08-python-api.md
/// section 19.5). Destroyed before `finish`, or after an error, it leaves nothing behind.
/// Move-only; one thread at a time.
class HURRAY_EXPORT FileWriter {
 public:
  /// Over a path. A pipe or device is written in place.
  static Result<FileWriter> create(std::string path, const WriteOptions& options = {});
  /// Over an open descriptor, which stays the caller's and is written from its position on.
  static Result<FileWriter> over(int descriptor, const WriteOptions& options = {});

  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();

  /// Whether `write` would take this name, descriptor and these buffer sizes: nothing is written.
  Result<void> check(std::string_view name, const Descriptor& descriptor,
                     std::span<const BufferSource> buffers) const;
  /// Writes the descriptor as it is given and its buffers. A refusal (name, sizes, descriptor, a
  /// composite's rules) writes nothing and leaves the writer usable; after an I/O error every later
  /// call fails. What follows a composite head is its members.
  Result<void> write(std::string_view name, const Descriptor& descriptor,
                     std::span<const BufferSource> buffers);
  /// A plain tensor, or a head with all of its members (04-file.md section 9); the whole tree and
  /// all names are judged before the first byte. `member_names`: one for each tensor below the
  /// head, in emission order; none at all: "<head>.<i>", recursively (D21). Descriptors are written
  /// in their wire form (`Tensor::wire_descriptor`). Fails as `unsupported` for memory that is not
  /// the host's.
  Result<void> write_item(std::string_view name, const Item& item,
                          std::span<const std::string> member_names = {});
  /// Whether `write_item` would take this: nothing is written.
  Result<void> check_item(std::string_view name, const Item& item,
                          std::span<const std::string> member_names = {}) const;
  /// KV section, index, trailer; then the file appears. Every later call fails. Refused while a
  /// composite waits for members, after which they can still be written. After `complete`, whose
  /// `kv` it keeps, the file appears and that is all.
  Result<void> finish(const KeyValues& kv = {});
  /// The first part of `finish`, which has all of the bytes written, and on the disk where `sync`
  /// says so, and nothing appear: for several files that appear one after the other. Only
  /// `finish` may follow.
  Result<void> complete(const KeyValues& kv = {});
  /// CRC-32C of the index, as in the trailer (04-file.md section 6), and as `File::kv_crc32c` gives
  /// it, once they are written; else 0.
  std::uint32_t index_crc32c() const noexcept;
  std::uint32_t kv_crc32c() const noexcept;

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state) noexcept;
  template <class Open>
  static Result<FileWriter> start(const WriteOptions& options, std::string_view path, Open open);
  std::unique_ptr<State> state_;
};

/// Names of the tensors below the head `name`, in emission order, where the caller gives none
/// (D21). Throws `std::bad_alloc`.
HURRAY_EXPORT std::vector<std::string> member_names(std::string_view name, const Item& item);

}  // namespace hurray::io
