#include "parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <set>
#include <thread>

namespace hurray::io {
namespace {

Error numbered(std::size_t k) {
  hurray::Error error{.code = Errc::invalid_value};
  error.found = k;
  return Error(error);
}

TEST(Parallel, EveryPieceOnceByThreadsWithWorkOfTheirOwn) {
  Patience patience({});
  std::vector<std::atomic<int>> calls(1000);
  std::atomic<int> made = 0;
  const auto done = in_parallel(calls.size(), 4, patience, "", [&] {
    ++made;
    return [&, own = std::size_t{0}](std::size_t k) mutable -> Result<void> {
      if (++own > calls.size()) return numbered(k);
      ++calls[k];
      return {};
    };
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(made, 4);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  EXPECT_TRUE(in_parallel(0, 4, patience, "",
                          [] { return [](std::size_t) -> Result<void> { return numbered(0); }; }));
}

TEST(Parallel, TheFirstErrorOfAll) {
  Patience patience({});
  for (int round = 0; round < 50; ++round) {
    std::atomic<std::size_t> begun = 0;
    const auto done = in_parallel(10'000, 4, patience, "", [&] {
      return [&](std::size_t k) -> Result<void> {
        ++begun;
        if (k == 70) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (k >= 70) return numbered(k);
        return {};
      };
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().found, 70u);
    EXPECT_LT(begun.load(), 80u);  // nothing more is begun
  }
}

TEST(Parallel, LackOfMemoryInAThread) {
  Patience patience({});
  const auto done = in_parallel(100, 3, patience, "", [] {
    return [](std::size_t k) -> Result<void> {
      if (k == 50) throw std::bad_alloc();
      return {};
    };
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::out_of_memory);
}

TEST(Parallel, InterruptsAreAskedForByTheCaller) {
  const auto caller = std::this_thread::get_id();
  int asked = 0;
  Patience patience([&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return ++asked == 2;
  });
  const auto done = in_parallel(1'000'000, 3, patience, "name", [] {
    return [](std::size_t) -> Result<void> {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return {};
    };
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().system_errno, EINTR);
  EXPECT_EQ(done.error().path, "name");
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace hurray::io
