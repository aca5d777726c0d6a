#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace hurray::cli {

/// How far it is, for whoever watches standard error; nothing in the first second, and nothing into
/// files.
class Progress {
 public:
  /// `total` in bytes.
  explicit Progress(std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t bytes);
  void wait(std::string_view what);

 private:
  using Clock = std::chrono::steady_clock;

  void draw(std::string_view line);

  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  bool drawn_ = false;
};

}  // namespace hurray::cli
