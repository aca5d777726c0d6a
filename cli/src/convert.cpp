#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "command.hpp"
#include "hurray/formats/convert.hpp"
#include "hurray/formats/formats.hpp"
#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

/// How far it is, for whoever watches; nothing in the first second, and nothing into files.
class Progress {
 public:
  Progress() : shown_(errors_go_to_a_terminal()) {}
  ~Progress() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(std::uint64_t total) { total_ = total; }
  void add(std::uint64_t bytes) {
    done_ += bytes;
    if (shown_ && done_ == total_ && drawn_) return draw("waiting for the disk");
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

 private:
  using Clock = std::chrono::steady_clock;

  void draw(std::string_view line) {
    drawn_ = true;
    fmt::print(stderr, "\r\x1b[K{}", line);
    std::fflush(stderr);
  }

  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  bool shown_;
  bool drawn_ = false;
};

io::Result<formats::Converted> convert_file(const ConvertRequest& request) {
  io::OpenOptions open;
  open.mode = io::Mode::memory;
  open.agreed.all = true;
  open.foreign = formats::reader();
  auto source = io::File::open(request.source, open);
  if (!source) return std::move(source).error();
  Progress progress;
  return formats::convert(io::FileSet(*std::move(source)), request.target,
                          {.checksums = request.checksums,
                           .sync = request.sync,
                           .interrupted = signalled,
                           .total = [&](std::uint64_t bytes) { progress.start(bytes); },
                           .progress = [&](std::uint64_t bytes) { progress.add(bytes); }});
}

}  // namespace

int convert(const ConvertRequest& request, Session& session) {
  const bool target_is_output = is_standard_output(request.target);
  remember_signals();
  const auto converted = convert_file(request);
  if (!converted) {
    if (signalled()) end_by_signal();
    return session.fail(converted.error());
  }
  if (target_is_output) return 0;
  if (session.json) {
    Json json(session.output);
    json.begin_document("convert");
    json.member("source", request.source);
    json.member("target", request.target);
    json.member("tensors", converted->tensors);
    json.member("bytes", converted->bytes);
    json.end_document();
    return 0;
  }
  session.output.write(
      fmt::format("{}: {} {}, {} ({})\n", io::printable(request.target), converted->tensors,
                  converted->tensors == 1 ? "tensor" : "tensors", human(converted->bytes),
                  "from " + io::printable(request.source)));
  return 0;
}

}  // namespace hurray::cli
