#pragma once

#include <cstdint>

#include "hurray/dtype.hpp"
#include "hurray/io/translation.hpp"

namespace hurray::formats {

/// The quantized types of GGUF that are per-block affine ones, symmetric, with codes and scales
/// apart (03-quantization.md section 12). A unit is one block of GGUF. A scale of 0, which is none
/// there, becomes 1 and its codes 0; one that is not finite is what is wrong with a block.
struct BlockConversions {
  std::uint32_t block_size;  ///< Elements that share a scale.
  DType scale_type;
  io::Conversion codes;
  io::Conversion scales;
};

extern const BlockConversions gguf_q4_0;
extern const BlockConversions gguf_q5_0;
extern const BlockConversions gguf_q6_k;
extern const BlockConversions gguf_q8_0;

}  // namespace hurray::formats
