#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "hurray/io/error.hpp"
#include "system.hpp"

namespace hurray::io {

/// Where a writer's bytes go.
///
/// Over a path, a temporary `.NAME.XXXXXX.hrry-tmp` in the target's folder takes the bytes, under a
/// file lock, and replaces the target at `commit`; symbolic links are followed, and the permission
/// bits of an existing target are kept. Temporaries of the same NAME whose lock can be taken were
/// left by a writer that was killed, and go. A pipe, socket or device, and a caller's descriptor,
/// are written in place.
///
/// Destroyed before `commit`, it removes the temporary. Move-only; one thread at a time.
class Output {
 public:
  /// `expected_bytes`: how many will come at least, compared with the free space (0: not known).
  /// `interrupted` is asked when a signal comes while a pipe is waited for.
  static Result<Output> create(std::string path, Origin origin, std::uint64_t expected_bytes = 0,
                               const system::Interrupted& interrupted = {});
  /// The descriptor is duplicated.
  static Result<Output> over(int descriptor, Origin origin);

  Output(Output&& other) noexcept;
  Output& operator=(Output&& other) noexcept;
  ~Output() { abandon(); }

  /// Empty over a descriptor.
  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return handle_.number(); }
  /// Nobody sees the bytes before `commit`.
  bool replaces() const noexcept { return replacement_.has_value(); }

  /// `timeout` as `system::write_all` has it.
  Result<void> write(std::span<const std::span<const std::byte>> parts,
                     const system::Interrupted& interrupted = {},
                     const std::optional<std::chrono::milliseconds>& timeout = {});
  /// Hands all that was written to the system or, where `sync` says so, to the disk. Call it once,
  /// and write nothing behind it.
  Result<void> settle(bool sync);
  /// Makes what was written appear under the path, after `settle(sync)` where that was not called.
  /// Call it once; whatever it returns, the output is closed.
  Result<void> commit(bool sync);
  /// Closes without a trace, as far as that can be had: bytes in a pipe cannot be taken back.
  void abandon() noexcept;

 private:
  struct Replacement {
    system::Folder folder;
    std::string temporary;  ///< Both names are entries of `folder`.
    std::string target;
    std::uint64_t process;  ///< A fork's copy of this object must not remove the parent's file.
  };

  Output(system::Handle handle, std::string path, Origin origin,
         std::optional<Replacement> replacement = {});
  static Result<Output> replace(std::string path, Origin origin);

  system::Handle handle_;
  std::string path_;
  Origin origin_;
  std::optional<Replacement> replacement_;
  bool settled_ = false;
};

}  // namespace hurray::io
