#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/io/file_writer.hpp"

namespace hurray::python {

/// One name and what is written under it into a file: a composite with all of its members, or one
/// tensor (08-python-api.md sections 16 and 19.4).
struct NamedItem {
  std::string name;
  nb::object value;
  const PyComposite* composite = nullptr;  ///< Borrowed from `value`.
  std::optional<WritableSource> source = std::nullopt;

  /// `TypeError` for a name that is not str, `FileError` for one that is not UTF-8.
  static NamedItem of(nb::handle name, nb::object value);

  /// What is written of a value that is no composite; raises, naming the tensor, what cannot be.
  const WritableSource& ready();
  /// What was brought to the host only to be written: one at a time.
  void forget_transient() {
    if (source && source->transient) source.reset();
  }
  std::uint64_t bytes();
  io::Result<void> check(const io::FileWriter& writer);
  /// Call it after `ready`, without the GIL.
  io::Result<void> write(io::FileWriter& writer) const;
};

/// The number of tensors that `items` become, members of composites included, whose names are
/// derived. No two may have one name.
std::uint64_t check_names(std::span<const NamedItem> items);

/// What is to be saved, judged as far as that takes no file.
struct SaveArguments {
  std::vector<NamedItem> items;
  io::KeyValues kv;
  std::uint64_t tensors;  ///< As `check_names` counts them.
};
SaveArguments save_arguments(nb::handle tensors, nb::handle kv);

/// The options that are given in Python.
io::WriteOptions write_options(bool checksums, bool sync);

}  // namespace hurray::python
