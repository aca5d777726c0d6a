#pragma once

#include <functional>
#include <string>

#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::io {

struct RewriteOptions {
  bool sync = true;  ///< Wait for the disk before the new file appears.
  /// Asked a few times a second; true ends the call as a `system` error with EINTR. For signals.
  std::function<bool()> interrupted = {};
};

/// Makes of the file at `path` one with other key-values, which replaces what lies at `target`
/// whole, as `FileWriter` does; both may be the same. The bytes up to the end of the tensor region
/// are shared with the old file where the volume can, and copied by the system else; the index
/// stays as it is. Valid sums (04-file.md section 16) are kept for descriptors and data, which are
/// not looked at, and made anew for the rest.
///
/// Fails as `File::open` and `encode_kv` do; with the reason for sums that are damaged, unknown or
/// foreign, since new ones would hide it; as `unsupported` for a file of a newer minor version,
/// which may hold what this release does not know, and as `invalid_value` for a pipe.
HURRAY_EXPORT Result<void> rewrite_key_values(const std::string& path, const std::string& target,
                                              const KeyValues& kv,
                                              const RewriteOptions& options = {});

}  // namespace hurray::io
