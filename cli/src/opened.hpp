#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hurray/io/error.hpp"
#include "hurray/io/file_set.hpp"

/// What the commands open, and how tensors are found in it.
namespace hurray::cli {

/// What lies at `path`, its tensors read into memory when they are asked for. Types, layouts and
/// schemes that two parties agreed on pass.
io::Result<io::FileSet> open_any(const std::string& path);

/// `name` is `pattern`, or what it stands for: `*` any text, `?` one character, `[a-z]` one of
/// these, `[!a-z]` one that is none of them, a backslash the next character as it is. No character
/// is special in names. Bytes that are no UTF-8 count as characters.
bool matches(std::string_view pattern, std::string_view name);

/// Which entries of `set` the patterns stand for, in the set's order; all of them without a
/// pattern. `not_found` names the first pattern that no name matches.
io::Result<std::vector<std::size_t>> chosen(const io::FileSet& set,
                                            const std::vector<std::string>& patterns);

/// The entry that is called `name`; `not_found` says how to list the names.
io::Result<std::size_t> named(const io::FileSet& set, const std::string& name);

}  // namespace hurray::cli
