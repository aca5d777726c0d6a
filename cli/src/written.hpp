#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hurray/io/error.hpp"
#include "hurray/io/file_set.hpp"
#include "hurray/tensor.hpp"

/// New files made of tensors of others.
namespace hurray::cli {

struct WriteRequest {
  std::string target;
  bool kv = true;  ///< Key-values come along.
  bool checksums = true;
  bool sync = true;
};

struct Written {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;  ///< Of their buffers.
};

/// The descriptor that a tensor is written with; it describes the same buffers.
using Describe = std::function<io::Result<Descriptor>(std::size_t entry, const Tensor& tensor)>;

/// Writes `entries` of `set`, and the members of those that are heads, under their names and in the
/// order of their files, each with its wire descriptor or with what `describe` makes of it. One
/// tensor at a time is in memory.
io::Result<Written> write_entries(const io::FileSet& set, const std::vector<std::size_t>& entries,
                                  const WriteRequest& request, const Describe& describe = {});

}  // namespace hurray::cli
