#pragma once

#include "hurray/io/translation.hpp"

/// Files of other formats (09-models-and-frameworks.md section 2).
namespace hurray::formats {

/// Sees safetensors, GGUF and NumPy's .npy files as `.hrry` files, told by their first bytes, never
/// by their names. For `OpenOptions::foreign`. Safe for concurrent use.
///
/// Element types, shapes and order stay; `bool` of one byte becomes packed bits, big-endian numbers
/// little-endian ones, blocks of GGUF codes and scales or bytes (docs/formats.md), all while they
/// are read. Fails for files of these formats that are malformed (`field` and `offset` say where)
/// and for element types without a counterpart (`unsupported`).
io::ForeignReader reader();

}  // namespace hurray::formats
