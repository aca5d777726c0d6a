#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "hurray/memory.hpp"

namespace hurray {

/// Bytes that are carried along without being understood: one block from `allocate`, none when
/// empty. Copying one throws `std::bad_alloc` when memory runs out. A value: any thread may read it
/// while nobody changes it.
class Blob {
 public:
  Blob() = default;
  explicit Blob(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    auto* block = static_cast<std::byte*>(allocate(prefix + bytes.size(), prefix, false));
    if (block == nullptr) throw std::bad_alloc();
    const std::uint64_t size = bytes.size();
    std::memcpy(block, &size, sizeof size);
    std::memcpy(block + prefix, bytes.data(), bytes.size());
    block_ = block;
  }
  Blob(const Blob& other) : Blob(other.bytes()) {}
  Blob(Blob&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Blob& operator=(Blob other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Blob() {
    if (block_ != nullptr) deallocate(block_, prefix + size(), prefix);
  }

  std::size_t size() const noexcept {
    std::uint64_t size = 0;
    if (block_ != nullptr) std::memcpy(&size, block_, sizeof size);
    return static_cast<std::size_t>(size);
  }
  bool empty() const noexcept { return block_ == nullptr; }
  std::span<const std::byte> bytes() const noexcept {
    return block_ != nullptr ? std::span<const std::byte>(block_ + prefix, size())
                             : std::span<const std::byte>();
  }

  friend bool operator==(const Blob& a, const Blob& b) noexcept {
    return std::ranges::equal(a.bytes(), b.bytes());
  }

 private:
  static constexpr std::size_t prefix = 8;

  std::byte* block_ = nullptr;  // its size, then the bytes
};

}  // namespace hurray
