#pragma once

#include <functional>
#include <string>

#include "hurray/io/file_set.hpp"

namespace hurray::formats {

/// The options for what lies at `path`.
using OptionsFor = std::function<io::OpenOptions(const std::string& path)>;

/// What `path` stands for (09-models-and-frameworks.md section 2): a file of any format; an index
/// of several files, recognised by its content; a folder with one index, or with one file of a
/// model; a path where nothing is, beside the index that was saved for it.
///
/// Fails as `io::File::open` for what is nothing of that, with what is missing in `detail`; as
/// `invalid_value` for an index that is malformed and for folders with several candidates.
io::Result<io::FileSet> open(const std::string& path, const OptionsFor& options);

/// The same, of which only key-values are read.
io::Result<io::KeyValues> load_kv(const std::string& path, const OptionsFor& options);

}  // namespace hurray::formats
