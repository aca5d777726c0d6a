#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {

Progress::Progress(std::uint64_t total) : total_(total), shown_(errors_go_to_a_terminal()) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::add(std::uint64_t bytes) {
  done_ += bytes;
  const auto now = Clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_) / seconds;
  draw(fmt::format("{:3}%  {} of {}, {}/s, {:.0f} s left",
                   done_ * 100 / std::max<std::uint64_t>(total_, 1), human(done_), human(total_),
                   human(static_cast<std::uint64_t>(rate)),
                   static_cast<double>(total_ - std::min(done_, total_)) / rate));
}

void Progress::wait(std::string_view what) {
  if (drawn_) draw(what);
}

void Progress::draw(std::string_view line) {
  drawn_ = true;
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
}

}  // namespace hurray::cli
