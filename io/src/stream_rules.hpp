#pragma once

#include <cstdint>
#include <optional>

#include "hurray/descriptor.hpp"
#include "hurray/error.hpp"

/// What readers and writers of streams share.
namespace hurray::io {

inline hurray::Error at(std::uint64_t offset, hurray::Error error) noexcept {
  error.origin = Origin::stream;
  error.offset = offset;
  return error;
}

inline hurray::Error at_nowhere(hurray::Error error) noexcept {
  return at(hurray::Error::no_offset, error);
}

/// Events and device streams mean nothing on another machine (05-stream.md section 6).
inline std::optional<hurray::Error> cross_machine_fault(const Descriptor& descriptor) noexcept {
  for (std::size_t i = 0; i < descriptor.buffers.size(); ++i) {
    const SyncMode mode = descriptor.buffers[i].sync_mode;
    if (mode != SyncMode::producer_synced)
      return hurray::Error{.code = Errc::inconsistent,
                           .expect = Expect::exactly,
                           .index = static_cast<std::uint32_t>(i),
                           .field = "buffers[].sync_mode",
                           .what = "(producer_synced) between machines",
                           .expected = static_cast<std::uint64_t>(SyncMode::producer_synced),
                           .found = static_cast<std::uint64_t>(mode)};
  }
  return std::nullopt;
}

}  // namespace hurray::io
