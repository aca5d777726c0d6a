#pragma once

#include <cstdint>
#include <span>

#include "hurray/elements.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// The real numbers that quantized codes stand for, by the arithmetic of 03-quantization.md section
/// 7: the same bits on every machine whose float32 is IEEE binary32 and rounds to nearest. What a
/// sparse tensor does not store is 0 (Q10). Tensors without quantization fail as `unsupported`:
/// their elements are values already (`to_dense`).
///
/// Parameters that break B7 or B8 are never used: the call fails as `check_parameters` does.

/// The element at `index` (as for `Elements::slot`); judges the parameters of this element alone.
HURRAY_EXPORT Result<float> dequantize(const Elements& elements,
                                       std::span<const std::uint64_t> index);

/// Block `block` (03-quantization.md section 5) of a scheme with blocks into the front of `out`, in
/// the order of the quantized axis; returns how many elements it has: `block_size`, or fewer at the
/// end of a line. Fails as `inconsistent` where `out` is smaller, as `out_of_bounds` for a block
/// that does not exist, as `unsupported` for schemes without blocks and for block-paged tensors,
/// whose parameters belong to page slots; judges the parameters of this block alone.
HURRAY_EXPORT Result<std::size_t> dequantize_block(const Elements& elements, std::uint64_t block,
                                                   std::span<float> out);

/// The whole tensor as an own row-major float32 tensor of the same shape, with the shard and
/// statistics sections it had. The tokens of a block-paged tensor come in the order of its
/// sequences. The memory of the result follows from the shape (`ElementOptions::max_bytes`). Fails
/// as `Elements::over` does, and as `unsupported` where the tokens of the sequences are not known.
HURRAY_EXPORT Result<Tensor> dequantize(const Tensor& tensor, const ElementOptions& options = {});

/// The same into `out`, one float per element of the shape; `inconsistent` for another size.
HURRAY_EXPORT Result<void> dequantize_into(const Tensor& tensor, std::span<float> out,
                                           const ElementOptions& options = {});

}  // namespace hurray
