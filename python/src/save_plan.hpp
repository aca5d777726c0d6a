#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hurray/io/file_writer.hpp"
#include "named_item.hpp"

namespace hurray::python {

/// One file of a save, and which items go into it.
struct SavePart {
  std::string path;
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint64_t bytes = 0;    ///< Of tensors.
  std::uint64_t tensors = 0;  ///< Members of composites included.
  std::vector<std::string> names = {};

  std::span<NamedItem> of(std::span<NamedItem> items) const { return items.subspan(first, count); }
};

/// Which files a save makes: one, or as many as `max_shard_size` bytes of tensors in each make and
/// then the index of them (09-models-and-frameworks.md section 2).
class SavePlan {
 public:
  /// `max_shard_size`: None for one file.
  SavePlan(std::string path, std::span<NamedItem> items, nb::handle max_shard_size);

  std::span<const SavePart> parts() const noexcept { return parts_; }
  /// A writer for each part, all beside their targets; the disk is asked for room for all.
  io::Result<std::vector<io::FileWriter>> writers(io::WriteOptions options) const;
  /// Ends what has been written: all files are complete before the first one appears, the index
  /// is the last. Call it without the GIL.
  io::Result<void> finish(std::span<io::FileWriter> writers, const io::KeyValues& kv,
                          bool sync) const;

 private:
  std::string path_;
  std::vector<SavePart> parts_;
  bool sharded_;
};

}  // namespace hurray::python
