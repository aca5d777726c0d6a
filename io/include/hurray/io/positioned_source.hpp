#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hurray/io/error.hpp"

namespace hurray::io {

/// The bytes of a file that are somewhere else, reached by their position: an object store, a
/// server, a program. See `File::over`.
struct PositionedSource {
  std::uint64_t size = 0;
  /// Puts bytes from `offset` on into `into`, which is not empty, and returns how many; fewer than
  /// there is room for are asked for again, and 0 means that there are none: the file is shorter
  /// than `size`. More than one thread calls it, one after the other.
  std::function<Result<std::size_t>(std::span<std::byte> into, std::uint64_t offset)> read_at;
  std::string name = {};  ///< In errors, as a path.
};

}  // namespace hurray::io
