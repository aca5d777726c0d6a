#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hurray.h"
#include "hurray/memory.hpp"

namespace hurray::c {

/// What the first bytes of a dead handle are.
inline constexpr std::uint8_t dead_byte = 0xDD;

// HURRAY_C_TWIN: the build that the tests exchange handles with, which shares nothing but the
// public header: its handles have another allocator and other insides.
#ifdef HURRAY_C_TWIN
inline void* get_block(std::uint64_t size, std::size_t) noexcept {
  return std::calloc(1, static_cast<std::size_t>(size));
}
inline void drop_block(void* block, std::uint64_t, std::size_t) noexcept { std::free(block); }
#else
inline void* get_block(std::uint64_t size, std::size_t alignment) noexcept {
  return allocate(size, alignment, true);
}
inline void drop_block(void* block, std::uint64_t size, std::size_t alignment) noexcept {
  deallocate(block, size, alignment);
}
#endif

/// Memory for handles of one kind. It is never given back, so that whoever still has a pointer to a
/// dead handle can be answered: its first bytes stay a prefix that says so. Safe from any thread,
/// without locks.
///
/// Slots are numbered from 1; block k holds `first << k` of them. Free slots make a stack, whose
/// head counts its changes in the upper half.
template <class Handle>
class Pool {
 public:
  /// Memory of a handle, with a dead prefix; null when there is none.
  void* take() noexcept {
    std::uint64_t head = free_.load(std::memory_order_acquire);
    while (index_of(head) != 0) {
      Slot& slot = at(index_of(head));
      const std::uint64_t next = changed(head, next_of(slot).load(std::memory_order_relaxed));
      if (free_.compare_exchange_weak(head, next, std::memory_order_acquire)) return &slot.memory;
    }
    std::uint32_t fresh = used_.load(std::memory_order_relaxed);
    do {
      if (fresh == most || !ensure(fresh + 1)) return nullptr;
    } while (!used_.compare_exchange_weak(fresh, fresh + 1, std::memory_order_acq_rel));
    Slot& slot = at(fresh + 1);
    slot.number = fresh + 1;
    return &slot.memory;
  }

  /// Takes back what `take` returned, and marks it.
  void give(void* memory) noexcept {
    auto& slot = *reinterpret_cast<Slot*>(memory);
    auto& prefix = *static_cast<HurrayHandlePrefix*>(memory);
    for (std::uint8_t& byte : prefix.magic) byte = dead_byte;
    prefix.fn = nullptr;
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    do {
      next_of(slot).store(index_of(head), std::memory_order_relaxed);
    } while (!free_.compare_exchange_weak(head, changed(head, slot.number),
                                          std::memory_order_release, std::memory_order_relaxed));
  }

  /// Handles that are alive; exact while no other thread uses the pool.
  std::size_t live() const noexcept {
    std::size_t count = used_.load();
    for (std::uint32_t i = index_of(free_.load()); i != 0; i = next_of(at(i)).load()) --count;
    return count;
  }

 private:
  struct Slot {
    alignas(Handle) std::array<std::byte, sizeof(Handle)> memory;
    std::uint32_t next;  ///< Also read while another thread takes the slot: through `next_of`.
    std::uint32_t number;
  };
  static std::atomic_ref<std::uint32_t> next_of(Slot& slot) noexcept {
    return std::atomic_ref(slot.next);
  }
  static constexpr std::uint32_t first = 64;
  static constexpr std::size_t blocks = 24;
  static constexpr std::uint32_t most = first * ((std::uint32_t{1} << blocks) - 1);

  static std::uint32_t index_of(std::uint64_t head) noexcept {
    return static_cast<std::uint32_t>(head);
  }
  static std::uint64_t changed(std::uint64_t head, std::uint32_t index) noexcept {
    return (((head >> 32) + 1) << 32) | index;
  }
  static std::size_t block_of(std::uint32_t index) noexcept {
    return std::bit_width((index - 1) / first + 1) - 1u;
  }
  static std::size_t size_of(std::size_t block) noexcept { return std::size_t{first} << block; }

  Slot& at(std::uint32_t index) const noexcept {
    const std::size_t block = block_of(index);
    const std::size_t before = first * ((std::size_t{1} << block) - 1);
    return blocks_[block].load(std::memory_order_acquire)[index - 1 - before];
  }

  /// Makes the block that slot `index` is in.
  bool ensure(std::uint32_t index) noexcept {
    const std::size_t block = block_of(index);
    if (blocks_[block].load(std::memory_order_acquire) != nullptr) return true;
    const std::uint64_t bytes = size_of(block) * sizeof(Slot);
    auto* made = static_cast<Slot*>(get_block(bytes, alignof(Slot)));
    if (made == nullptr) return false;
    Slot* expected = nullptr;
    if (!blocks_[block].compare_exchange_strong(expected, made, std::memory_order_acq_rel))
      drop_block(made, bytes, alignof(Slot));
    return true;
  }

  std::atomic<std::uint64_t> free_ = 0;
  std::atomic<std::uint32_t> used_ = 0;
  std::array<std::atomic<Slot*>, blocks> blocks_ = {};
};

}  // namespace hurray::c
