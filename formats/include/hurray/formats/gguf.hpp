#pragma once

#include <string_view>

/// What a GGUF file that is seen as a `.hrry` file says about itself in its KV section, behind the
/// file's own keys: enough to write every key and every block of it again (docs/formats.md). A file
/// that has one of these keys itself is refused.
namespace hurray::formats {

/// A string of one character for each key of the file, in their order: 'a' + t for a value of the
/// GGUF type t (0 uint8, 1 int8, 2 uint16, 3 int16, 4 uint32, 5 int32, 6 float32, 7 bool, 8 string,
/// 10 uint64, 11 int64, 12 float64), 'A' + t for an array of elements of type t.
///
/// Numbers are widened to uint64, int64 or float64, of a float32 also the bits of a NaN. What a KV
/// value cannot be is `bytes`: a string that is no UTF-8 (in an array all of its elements then), an
/// array without elements (no bytes), and an array of arrays ('J': its element type, count and
/// elements as they stand in the file).
inline constexpr std::string_view gguf_types_key = "gguf.types";

/// The names of the tensors that are kept block for block, as bytes, and the GGUF names of their
/// types, such as "Q4_K", in the same order. Absent where there is no such tensor.
inline constexpr std::string_view gguf_block_tensors_key = "gguf.block_tensors";
inline constexpr std::string_view gguf_block_types_key = "gguf.block_types";

}  // namespace hurray::formats
