#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "hurray/buffer.hpp"
#include "hurray/io/error.hpp"
#include "system.hpp"

namespace hurray::io {

/// Own memory on 64 bytes or better for a size that nobody vouches for: it is enlarged as bytes
/// arrive, and large blocks grow without a byte being copied. Untouched pages take no memory.
/// Move-only.
class Growing {
 public:
  /// From here on memory comes in pages, and below in blocks from `allocate`.
  static constexpr std::uint64_t large = 64u << 20;

  Growing() = default;
  Growing(Growing&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        pages_(std::move(other.pages_)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Growing& operator=(Growing&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(pages_, other.pages_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Growing() { deallocate(block_, capacity_, min_buffer_alignment); }

  std::byte* data() const noexcept {
    return block_ != nullptr ? static_cast<std::byte*>(block_) : pages_.bytes().data();
  }
  /// Bytes that there is room for.
  std::uint64_t capacity() const noexcept { return capacity_; }

  /// Makes room for `capacity` bytes, more than before; the first `used` bytes stay, at another
  /// address. A failure changes nothing.
  Result<void> grow(std::uint64_t capacity, std::uint64_t used);

  /// The first `size` bytes as a buffer with its measured alignment.
  static Buffer share(Growing memory, std::uint64_t size);

 private:
  void* block_ = nullptr;
  system::Pages pages_;
  std::uint64_t capacity_ = 0;
};

}  // namespace hurray::io
