#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file.hpp"
#include "hurray/table.hpp"

namespace hurray::io {

/// What the bytes of a file are for.
enum class FilePart : std::uint8_t {
  header,
  kv,
  index,
  trailer,
  padding,     ///< Bytes between two parts, or between two buffers.
  descriptor,  ///< Of a tensor.
  data,        ///< Of a tensor: its buffers and the padding between them.
};

struct FilePartInfo {
  FilePart tag;
  std::string_view name;
};

inline constexpr auto file_parts = std::to_array<FilePartInfo>({
    {FilePart::header, "header"},
    {FilePart::kv, "kv"},
    {FilePart::index, "index"},
    {FilePart::trailer, "trailer"},
    {FilePart::padding, "padding"},
    {FilePart::descriptor, "descriptor"},
    {FilePart::data, "data"},
});
static_assert(strictly_sorted(file_parts));

/// Two CRC-32C that should be equal.
struct SumPair {
  std::uint32_t stored = 0;
  std::uint32_t found = 0;
};

/// One thing that `verify` found.
struct Finding {
  FilePart part = FilePart::header;
  /// The bytes of the file that it is about: none where a field of another part is wrong.
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  /// Of the tensor, those that the bytes touch; none where they cannot be told.
  std::uint32_t first_buffer = 0;
  std::uint32_t buffers = 0;
  std::optional<SumPair> sums = {};  ///< None where a rule was broken.
  /// Every reader accepts it, and nothing is damaged (D7).
  bool accepted = false;
  /// The same in words; `error.tensor` names the tensor, if one is concerned.
  /// `checksum_mismatch` where two sums differ.
  Error error = {};
};

/// What was looked at, and how much of it was not as it should be.
struct Verification {
  ChecksumState state = ChecksumState::unprotected;
  std::uint64_t bytes_read = 0;
  std::uint64_t findings = 0;  ///< Those that are not `accepted`.
  std::uint64_t accepted = 0;
  /// Every finding has been reported; false where the report ended it.
  bool complete = true;

  /// Sums were compared; else only the rules have been judged.
  bool is_protected() const noexcept { return state == ChecksumState::valid; }
  bool sound() const noexcept { return complete && findings == 0; }
};

/// Called with each finding, in the order of the file after what concerns all of it; false ends the
/// verification. It must not throw.
using Report = std::function<bool(const Finding&)>;

struct VerifyOptions {
  /// Asked a few times a second; true ends the call as a `system` error with EINTR. For signals.
  std::function<bool()> interrupted = {};
};

/// Compares every sum of `file` with its bytes (04-file.md section 16), and judges what is under no
/// sum: row 29 of section 12 (descriptors as the file's options have it, composites, padding, gaps,
/// count), and that header, trailer and index are still what they were when the file was opened.
/// The contents of buffers are not judged (`check_data` does that). Without sums only the rules are
/// judged, and no buffer is read.
///
/// Bytes come by positioned reads of at most 1 MiB, never through the mapping; memory is taken for
/// one descriptor, the sums and open partitions. Where sums are damaged, unknown or foreign, that
/// is the first finding; they are compared if they go with this index all the same.
///
/// Without `report` the first finding that is not `accepted` is the call's error. Other errors:
/// the system's, `truncated` for a file that was cut while it was open.
HURRAY_EXPORT Result<Verification> verify(const File& file, const Report& report = {},
                                          const VerifyOptions& options = {});

/// The same for entry `i` alone, with the padding behind it; a composite head with all of its
/// members. `out_of_bounds` where there is no such entry.
HURRAY_EXPORT Result<Verification> verify_tensor(const File& file, std::size_t i,
                                                 const Report& report = {},
                                                 const VerifyOptions& options = {});

/// Opens and verifies a file. What keeps it from being opened is a finding like others, save that
/// it is the only one; the system's errors, limits and pipes that the mode cannot take are errors
/// of the call.
HURRAY_EXPORT Result<Verification> verify(const std::string& path, const OpenOptions& open,
                                          const Report& report = {},
                                          const VerifyOptions& options = {});

}  // namespace hurray::io
