#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hurray/io/error.hpp"
#include "hurray/io/file_writer.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::io {

/// A `.hrry` image in memory that processes share without a copy (05-stream.md section 9): written
/// once, then sealed, so that nobody can change or cut it. It has no name in any folder and goes
/// with the last descriptor and mapping, however their processes end. Buffers start on pages.
/// Move-only.
class HURRAY_EXPORT SharedImage {
 public:
  /// Writes what the image holds; an error ends it all.
  using Write = std::function<Result<void>(FileWriter& writer)>;

  /// `name` is only shown (in `/proc/PID/maps`). Of `options`, `sync` means nothing here. Fails as
  /// `unsupported` where the system has no sealed memory.
  static Result<SharedImage> create(const std::string& name, const Write& write,
                                    const KeyValues& kv = {}, const WriteOptions& options = {});

  SharedImage(SharedImage&&) noexcept;
  SharedImage& operator=(SharedImage&&) noexcept;
  ~SharedImage();

  /// For `File::over`, here or in a process that it is sent to; closed with this object.
  int descriptor() const noexcept;
  /// Hands the descriptor to the caller, who closes it.
  int release() noexcept;

 private:
  struct State;
  explicit SharedImage(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace hurray::io
