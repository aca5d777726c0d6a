#pragma once

#include <string_view>

#include "bindings.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::python {

/// A `kv=` argument: `None` or a mapping of str to bool, int, float, str, bytes or non-empty lists
/// of one of these (08-python-api.md section 16). `FileError` for other values, `TypeError` for
/// keys that are not str.
io::KeyValues key_values_argument(nb::handle kv);

/// The reverse, in file order; every value has the type that it was given with.
nb::dict wrap_key_values(const io::KeyValues& kv);

/// A str that becomes a name or key in a file: valid UTF-8, else `FileError`. `what` names it in
/// messages.
std::string_view utf8_argument(nb::handle text, const char* what);

/// Text of a file, checked to be UTF-8 when it was opened.
nb::str wrap_utf8(std::string_view text);

}  // namespace hurray::python
