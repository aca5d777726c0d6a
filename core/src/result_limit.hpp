#pragma once

#include <cstdint>

#include "hurray/error.hpp"
#include "hurray/result.hpp"

namespace hurray {

/// A result of `bytes` bytes is not more than the caller takes.
inline Result<void> within_limit(std::uint64_t bytes, std::uint64_t max_bytes) {
  if (bytes <= max_bytes) return {};
  return Error{.code = Errc::limit_exceeded,
               .expect = Expect::at_most,
               .field = "shape",
               .what = "bytes of the result (max_bytes)",
               .expected = max_bytes,
               .found = bytes};
}

}  // namespace hurray
