#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hurray/io/file_set.hpp"

namespace hurray::formats {

struct ConvertOptions {
  /// Which entries of the source, with all that their heads bind; none: all.
  std::optional<std::vector<std::size_t>> entries = {};
  bool kv = true;  ///< Key-values come along.
  /// The descriptor that entry `i` of the source is written with, instead of its wire descriptor;
  /// it describes the same buffers. Only of a `.hrry` target; each tensor is in memory at once.
  std::function<io::Result<Descriptor>(std::size_t entry, const Tensor& tensor)> describe = {};
  bool checksums = true;  ///< Of a `.hrry` target.
  bool sync = true;       ///< Wait for the disk before the target appears.
  /// As in `io::WriteOptions`.
  std::function<bool()> interrupted = {};
  /// Told the bytes of all tensors before the first is read.
  std::function<void(std::uint64_t bytes)> total = {};
  /// Told the bytes that have just been read.
  std::function<void(std::uint64_t bytes)> progress = {};
};

struct Converted {
  std::size_t tensors = 0;  ///< Members of composites included.
  std::uint64_t bytes = 0;  ///< Of their buffers.
};

/// Makes one file of `source`, or of some of its tensors, a safetensors file where the name of the
/// target ends in
/// ".safetensors" and a `.hrry` file otherwise, whole or not at all, with bounded memory save that
/// tensors of sources with checksums are read one at a time, which compares them. The source must
/// be open in mode `memory`. Fails as the writers do.
io::Result<Converted> convert(const io::FileSet& source, std::string target,
                              const ConvertOptions& options = {});

}  // namespace hurray::formats
