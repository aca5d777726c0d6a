#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hurray/error.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// Checks of class D (02-layouts.md section 0, 03-quantization.md): which of them are made.
struct DataChecks {
  bool bounds = true;      ///< Pointers, coordinates and pages are in range.
  bool canonical = true;   ///< Order and duplicates. Includes `bounds`, on which they depend.
  bool parameters = true;  ///< Contents of scale and zero point arrays.
  /// Of a block-paged tensor: which page slots hold tokens, and so which parameters are judged
  /// (`check_parameters`).
  std::span<const std::uint64_t> sequence_tokens = {};
};

/// Reads the tensor's index and parameter buffers and judges what is in them; what needs a dynamic
/// size waits for it. The error is the first violation, with the role of the buffer and the entry
/// as field ("row_ptr[3]"), the byte offset in that buffer, and origin `buffer`. Fails as
/// `unsupported` for opaque tensors and for bytes that this program may not read.
///
/// Work is bounded by the buffers; unsorted COO entries take 16 bytes each (`out_of_memory`).
HURRAY_EXPORT Result<void> check_data(const Tensor& tensor, const DataChecks& checks = {});

/// The two halves for a tensor whose layout is understood and whose bytes this program may read;
/// nothing for layouts without index buffers. `check_canonical` presumes that `check_bounds` found
/// nothing.
HURRAY_EXPORT std::optional<Error> check_bounds(const Tensor& tensor) noexcept;
HURRAY_EXPORT std::optional<Error> check_canonical(const Tensor& tensor);

}  // namespace hurray
