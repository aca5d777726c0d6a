#define _FILE_OFFSET_BITS 64

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "system.hpp"

namespace hurray::cli {
namespace {

constexpr auto ending_signals = std::to_array<int>({SIGINT, SIGTERM, SIGHUP});
volatile std::sig_atomic_t remembered = 0;

io::Error system_error(std::string path) {
  io::Error error({.code = Errc::system, .origin = Origin::file}, std::move(path));
  error.system_errno = errno;
  return error;
}

}  // namespace

io::Result<SourceFile> SourceFile::open(std::string path) {
  // Not blocking: a pipe without a writer is refused, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error(std::move(path));
  SourceFile file(std::move(path), 0, descriptor);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return system_error(file.path_);
  if (S_ISDIR(status.st_mode))
    return io::Error({.code = Errc::invalid_value, .origin = Origin::file, .what = "a folder"},
                     file.path_, {}, "name the file in it");
  if (!S_ISREG(status.st_mode))
    return io::Error(
        {.code = Errc::invalid_value, .origin = Origin::file, .what = "not a regular file"},
        file.path_, {}, "save what it delivers to a file first");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

SourceFile::~SourceFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

io::Result<void> SourceFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    constexpr std::size_t most = std::size_t{1} << 30;
    const ssize_t got = ::pread(descriptor_, out.data() + done, std::min(out.size() - done, most),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path_);
    if (got == 0)
      return io::Error({.code = Errc::truncated,
                        .origin = Origin::file,
                        .expect = Expect::at_least,
                        .field = "file",
                        .what = "bytes",
                        .offset = offset + done,
                        .expected = offset + out.size(),
                        .found = offset + done},
                       path_);
    done += static_cast<std::size_t>(got);
  }
  return {};
}

void SourceFile::read_ahead() const noexcept {
#if defined(POSIX_FADV_SEQUENTIAL)
  (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

bool errors_go_to_a_terminal() noexcept { return ::isatty(STDERR_FILENO) == 1; }

bool output_goes_to_a_terminal() noexcept { return ::isatty(STDOUT_FILENO) == 1; }

std::optional<std::size_t> output_columns() noexcept {
  if (!output_goes_to_a_terminal()) return std::nullopt;
  if (const char* given = std::getenv("COLUMNS")) {
    const std::string_view text(given);
    std::size_t columns = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (code == std::errc{} && end == text.data() + text.size() && columns != 0) return columns;
  }
  struct winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return std::nullopt;
  return window.ws_col;
}

bool output_has_colours() noexcept {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value != nullptr ? value : "");
  };
  return output_goes_to_a_terminal() && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

bool is_standard_output(const std::string& path) noexcept {
  struct stat there{}, output{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         there.st_dev == output.st_dev && there.st_ino == output.st_ino;
}

void remember_signals() noexcept {
  struct sigaction action{};
  action.sa_handler = [](int signal) { remembered = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit is an error of the write, with a message
  for (const int signal : ending_signals) {
    struct sigaction before{};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      (void)::sigaction(signal, &action, nullptr);
  }
}

bool signalled() noexcept { return remembered != 0; }

void end_by_signal() noexcept {
  const int signal = remembered;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace hurray::cli
