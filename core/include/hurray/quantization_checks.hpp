#pragma once

#include <cstdint>
#include <span>

#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// Class D of 03-quantization.md: scales are what section 3 asks for (B7; `0x00` of float8_e8m0 is
/// 2^-127 and fine, D3), per-channel zero points lie in the storage type's range (B8; any are fine
/// per block, Q9). The first violation has field `scale[]` or `zero_point[]` with the entry as
/// index, origin `buffer` and the byte offset in that buffer. Nothing is wrong with a tensor that
/// is not quantized.
///
/// Entries whose number hangs on a dynamic size wait for it. Of a block-paged tensor with blocks
/// only page slots that hold a token are judged (Q13): those that `sequence_tokens` say, or that
/// the format forces (02-layouts.md L15); where neither tells, none are, and nobody can dequantize
/// the tensor as a whole. Fails as `unsupported` for opaque tensors and for bytes that this program
/// may not read, and where index buffers that lead to page slots break their bounds.
HURRAY_EXPORT Result<void> check_parameters(const Tensor& tensor,
                                            std::span<const std::uint64_t> sequence_tokens = {});

}  // namespace hurray
