#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "hurray/export.hpp"
#include "hurray/result.hpp"

namespace hurray::io {

/// An error of the core with what only files and streams know.
struct Error : hurray::Error {
  std::string path;      ///< Empty where there is none.
  std::string tensor;    ///< The name in the file; empty where no tensor is concerned.
  std::string detail;    ///< Words for a person: what these bytes are, what to do.
  int system_errno = 0;  ///< The operating system's error number, 0 where none is behind this.

  Error() = default;
  Error(const hurray::Error& error) : hurray::Error(error) {}
  Error(const hurray::Error& error, std::string error_path, std::string error_tensor = {},
        std::string error_detail = {})
      : hurray::Error(error),
        path(std::move(error_path)),
        tensor(std::move(error_tensor)),
        detail(std::move(error_detail)) {}
};

/// One line: path, tensor (escaped), the core's sentence, the system's words, what to do.
HURRAY_EXPORT std::string to_string(const Error& error);

/// `text` with everything that could move the cursor, hide or reorder what stands beside it
/// (control characters, direction marks, bytes that are no UTF-8) written as escapes, as is the
/// backslash.
HURRAY_EXPORT std::string printable(std::string_view text);

template <class T>
using Result = hurray::Result<T, Error>;

}  // namespace hurray::io
