#pragma once

#include "hurray/elements.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// The same elements, row by row, in own host memory: every dense and sparse layout, and
/// block-paged where the tokens of the sequences are known (09-models-and-frameworks.md section 5).
/// What a sparse tensor does not store becomes 0. Shape, element type and shard are kept, and those
/// statistics that are still true; a composite member's role is not. A row-major tensor that is
/// already so stored, with `byte_offset` 0 and nothing after its last element, comes back as it is.
///
/// The result's memory follows from the shape, however little is stored: a shape that cannot be had
/// fails as `overflow`, `limit_exceeded` (`ElementOptions::max_bytes`) or `out_of_memory` before
/// anything is written. Fails like `Elements::over`
/// and `check_canonical` (unless `options.canonical` is off), and as `unsupported` for quantized
/// tensors (`dequantize`), for bool tensors whose bytes can be read in two ways (D22) and where an
/// unstored element has no zero to become (float8_e8m0).
HURRAY_EXPORT Result<Tensor> to_dense(const Tensor& tensor, const ElementOptions& options = {});

}  // namespace hurray
