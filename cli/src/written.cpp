#include "written.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "progress.hpp"
#include "system.hpp"

namespace hurray::cli {

io::Result<formats::Converted> write_file(const io::FileSet& set, const std::string& target,
                                          formats::ConvertOptions options) {
  std::optional<Progress> progress;
  std::uint64_t left = 0;
  options.interrupted = signalled;
  options.total = [&](std::uint64_t bytes) {
    progress.emplace(bytes);
    left = bytes;
  };
  options.progress = [&](std::uint64_t bytes) {
    progress->add(bytes);
    left -= std::min(bytes, left);
    if (left == 0) progress->wait("waiting for the disk");
  };
  return formats::convert(set, target, options);
}

}  // namespace hurray::cli
