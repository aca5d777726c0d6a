#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hurray/io/error.hpp"

/// All that the command asks of the operating system itself.
namespace hurray::cli {

/// A regular file that is read by position. Move-only; errors name its path.
class SourceFile {
 public:
  static io::Result<SourceFile> open(std::string path);

  SourceFile(SourceFile&& other) noexcept
      : path_(std::move(other.path_)),
        size_(other.size_),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  SourceFile& operator=(SourceFile&&) = delete;
  ~SourceFile();

  const std::string& path() const noexcept { return path_; }
  /// Bytes, as it was opened.
  std::uint64_t size() const noexcept { return size_; }

  /// Fills `out` from `offset` on; `truncated` where the file ends before.
  io::Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The file will be read from front to back.
  void read_ahead() const noexcept;

 private:
  SourceFile(std::string path, std::uint64_t size, int descriptor)
      : path_(std::move(path)), size_(size), descriptor_(descriptor) {}

  std::string path_;
  std::uint64_t size_;
  int descriptor_;
};

/// Somebody watches standard error.
bool errors_go_to_a_terminal() noexcept;

/// Somebody watches standard output.
bool output_goes_to_a_terminal() noexcept;

/// Columns of the terminal that standard output goes to, of which the variable COLUMNS knows
/// better; none where it goes elsewhere.
std::optional<std::size_t> output_columns() noexcept;
/// Standard output goes to a terminal that shows colours, and NO_COLOR does not forbid them.
bool output_has_colours() noexcept;

/// `path` leads to where standard output goes.
bool is_standard_output(const std::string& path) noexcept;

/// From now on the first signal that asks to end (Ctrl-C, TERM, HUP) is remembered, and the second
/// one ends the program at once.
void remember_signals() noexcept;
bool signalled() noexcept;
/// Ends the program by the signal that was remembered, as if it had not been.
void end_by_signal() noexcept;

}  // namespace hurray::cli
