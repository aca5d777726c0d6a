#pragma once

// Replaces `hurray::allocate` and `operator new` of a test executable by ones that can be told to
// fail. Included by one source of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "hurray/memory.hpp"
#include "hurray/result.hpp"

namespace {
long fail_after = -1;  // allocations left until one fails; -1: never
long allocations = 0;
std::uint64_t largest = 0;  // bytes of one allocation
long change_after = -1;     // allocations left until `change` is called; -1: never
void (*change)() = nullptr;

bool fails(std::uint64_t size) {
  ++allocations;
  largest = size > largest ? size : largest;
  if (change_after >= 0 && change_after-- == 0) change();
  return fail_after >= 0 && fail_after-- == 0;
}
}  // namespace

namespace hurray {
void* allocate(std::uint64_t size, std::size_t alignment, bool zeroed) noexcept {
  if (fails(size) || size > (std::uint64_t{1} << 40)) return nullptr;
  const std::size_t rounded =
      (static_cast<std::size_t>(size) + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded);
  if (zeroed && block != nullptr) std::memset(block, 0, rounded);
  return block;
}
void deallocate(void* block, std::uint64_t, std::size_t) noexcept { std::free(block); }
}  // namespace hurray

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // new and delete are both replaced here
#endif
void* operator new(std::size_t size) {
  if (fails(size)) throw std::bad_alloc();
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace hurray::testing {

/// Runs `call`, which returns a Result, with every allocation failing in turn.
template <class Call>
long fail_everywhere(Call call) {
  for (long n = 0;; ++n) {
    fail_after = n;
    auto result = call();
    fail_after = -1;
    if (result) return n;
    EXPECT_EQ(result.error().code, Errc::out_of_memory) << to_string(result.error());
    if (result.error().code != Errc::out_of_memory || n > 1000) return n;
  }
}

}  // namespace hurray::testing
