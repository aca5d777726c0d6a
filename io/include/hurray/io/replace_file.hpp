#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"

namespace hurray::io {

/// Puts `bytes` in the place of what `path` leads to, whole or not at all, as `FileWriter` does
/// with its files (08-python-api.md section 19.5); `sync`: after the disk has them. For what lies
/// beside such files.
HURRAY_EXPORT Result<void> replace_file(std::string path, std::span<const std::byte> bytes,
                                        bool sync = true);

}  // namespace hurray::io
