#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

struct ReplaceOptions {
  bool sync = true;                  ///< Wait for the disk before the new file appears.
  std::uint64_t expected_bytes = 0;  ///< Compared with the free space; 0: not known.
  /// As in `WriteOptions`.
  std::function<bool()> interrupted = {};
};

/// Takes the next bytes of a file.
using PutBytes = std::function<Result<void>(std::span<const std::byte> bytes)>;

/// The same for a file that `write` hands over piece by piece; its error ends it, and nothing
/// appears.
HURRAY_EXPORT Result<void> replace_file_with(
    std::string path, const std::function<Result<void>(const PutBytes&)>& write,
    const ReplaceOptions& options = {});

}  // namespace hurray::io
