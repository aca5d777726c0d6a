#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/file.hpp"
#include "hurray/tensor.hpp"

namespace hurray::io {

struct SliceOptions {
  /// Whole chunks are read and compared with their sums (04-file.md section 16); sums that are not
  /// this file's are errors. None: as the file was opened, where that was true.
  std::optional<bool> verify = {};
  /// In the mapped modes a selection that is one range of the file, on 64, shares the mapping.
  bool share = true;
};

/// A part of a tensor in a file, which is read as a row-major tensor of its own: by positioned
/// reads of its bytes alone, in pieces, by several threads where there is much; not through a
/// mapping, which would map the pages between them. Gaps of up to 64 KiB are read over.
///
/// A value that shares the open file; safe for concurrent use. See `File::slice`.
class Slice {
 public:
  /// What is read: element type, shape (without the dimensions that were indexed), per-tensor
  /// quantization, extension type; statistics and shard spoke of the whole.
  HURRAY_EXPORT const Descriptor& descriptor() const noexcept;
  /// Bytes of its elements, row-major.
  HURRAY_EXPORT std::uint64_t size_bytes() const noexcept;
  /// It is one range of a mapped file that starts on 64: `read` can share it.
  HURRAY_EXPORT bool shareable() const noexcept;

  /// The part as a tensor: of the mapping where `shareable()` and `options.share`, else in own
  /// memory on 64.
  HURRAY_EXPORT Result<Tensor> read(const SliceOptions& options = {}) const;
  /// Its elements into the caller's memory of `size_bytes()` bytes (else `length_mismatch`),
  /// without a copy where they lie in the file as they do there. After an error `out` holds
  /// anything.
  HURRAY_EXPORT Result<void> read_into(std::span<std::byte> out,
                                       const SliceOptions& options = {}) const;

 private:
  friend class File;
  struct State;
  explicit Slice(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace hurray::io
