#pragma once

#include <string>

#include "hurray/io/error.hpp"
#include "hurray/io/file_set.hpp"

namespace hurray::formats {

/// The elements of a dense tensor without quantization as a .npy file of format 1.0, in C order,
/// which replaces what `target` leads to; bool as one byte each. Fails as `unsupported` for types
/// that NumPy does not have, and for other layouts.
io::Result<void> write_npy(const io::FileSet& set, std::size_t entry, const std::string& target,
                           bool sync);

}  // namespace hurray::formats
