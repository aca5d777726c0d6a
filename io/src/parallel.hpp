#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "hurray/io/error.hpp"
#include "patience.hpp"
#include "system.hpp"

namespace hurray::io {

/// How many threads are worth while for so many bytes: one is started and joined in the time that
/// this many take.
inline std::size_t threads_for(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t bytes_per_thread = std::uint64_t{16} << 20;
  constexpr std::uint64_t most = 8;  // by then the memory is busy
  const std::uint64_t processors = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(bytes / bytes_per_thread, 1, std::min(most, processors)));
}

/// Calls `work(k)` for every k below `count`, in this thread and in others that are gone when this
/// returns. Every thread has its own `work`, a function that `make_work()` returns and that returns
/// a `Result<void>`. After an error nothing more is begun, and that of the smallest k is returned.
/// This thread asks `patience` before each of its calls; its end is a `system` error with EINTR
/// about `path`.
template <class MakeWork>
Result<void> in_parallel(std::size_t count, std::size_t threads, Patience& patience,
                         const std::string& path, MakeWork&& make_work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> over = false;
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Error>> failed;
  const auto run = [&](auto&& ended) {
    auto work = make_work();
    while (!over.load(std::memory_order_relaxed)) {
      const std::size_t k = next.fetch_add(1, std::memory_order_relaxed);
      if (k >= count) return;
      Result<void> done = contain(Origin::file, [&]() -> Result<void> {
        if (ended()) return system::to_error(system::stopped(), Origin::file, path);
        return work(k);
      });
      if (done) continue;
      over = true;
      const std::scoped_lock lock(mutex);
      if (!failed || k < failed->first) failed.emplace(k, std::move(done).error());
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t t = 1; t < std::min(threads, count); ++t)
        helpers.emplace_back([&] { run([] { return false; }); });
    } catch (const std::system_error&) {  // then there are fewer
    }
    run([&] { return patience.ended(); });
  }
  if (failed) return std::move(failed->second);
  return {};
}

}  // namespace hurray::io
