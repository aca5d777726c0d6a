#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "system.hpp"

namespace hurray::io {

/// Asks the caller whether to stop a few times a second, however often it is asked itself.
class Patience {
 public:
  explicit Patience(std::function<bool()> interrupted) : interrupted_(std::move(interrupted)) {}

  bool ended() {
    if (!interrupted_) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + std::chrono::milliseconds(250);
    return interrupted_();
  }
  /// For waits below; refers to this object.
  system::Interrupted question() {
    if (!interrupted_) return {};
    return [this] { return ended(); };
  }

 private:
  std::function<bool()> interrupted_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace hurray::io
