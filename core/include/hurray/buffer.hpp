#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "hurray/export.hpp"
#include "hurray/memory.hpp"
#include "hurray/result.hpp"

namespace hurray {

/// What keeps memory alive. Its destructor gives the memory back: exactly once, from any thread.
class HURRAY_EXPORT Owner {
 public:
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  virtual ~Owner();

  /// Called before a view is handed out through which somebody may write to `bytes`; does nothing
  /// for memory that is writable (or that stays read-only) from the start. Safe from any thread.
  virtual Result<void> make_writable(std::span<std::byte> bytes);
};

/// The memory of one buffer: where, how many bytes, and a share in whoever keeps it alive.
///
/// Copying shares; the memory goes when the last share goes. Shares may be used from any thread;
/// the bytes follow the rules of 01-descriptor.md section 4.5. Read-only is a promise that writes
/// are refused by every export, not a protection of the pages.
class Buffer {
 public:
  /// No bytes at no address; what a moved-from buffer is, too.
  Buffer() = default;
  Buffer(const Buffer&) = default;
  Buffer& operator=(const Buffer&) = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Buffer() = default;

  /// Own, writable memory of `size` bytes on `alignment` (a power of two from 64 up). Its handle
  /// declares what was asked for, at most 4096.
  HURRAY_EXPORT static Result<Buffer> allocate(std::uint64_t size, bool zeroed = false,
                                               std::uint32_t alignment = min_buffer_alignment);

  /// Somebody else's memory: `owner` lives as long as any share. Its handle declares the measured
  /// alignment (D15). Precondition: `size` bytes that this machine can address.
  HURRAY_EXPORT static Buffer borrow(std::byte* data, std::uint64_t size,
                                     std::shared_ptr<Owner> owner, bool readonly) noexcept;

  /// The same with a function that gives the memory back; called exactly once, also on failure.
  HURRAY_EXPORT static Result<Buffer> borrow(std::byte* data, std::uint64_t size,
                                             std::function<void()> release, bool readonly);

  /// `size` bytes from `offset` on, sharing the owner. The view is borrowed memory: its alignment
  /// is measured. Precondition: inside this buffer.
  HURRAY_EXPORT Buffer view(std::uint64_t offset, std::uint64_t size) const noexcept;

  /// The same memory, read-only from here on.
  Buffer sealed() const noexcept {
    Buffer buffer(*this);
    buffer.readonly_ = true;
    return buffer;
  }

  std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  bool readonly() const noexcept { return readonly_; }
  /// What a handle over this memory declares: the requested alignment of own memory, the measured
  /// one of borrowed memory, 1 when empty.
  HURRAY_EXPORT std::uint32_t alignment() const noexcept;
  /// How many shares there are; 0 for a buffer without an owner. For tests.
  long use_count() const noexcept { return owner_.use_count(); }
  const std::shared_ptr<Owner>& owner() const noexcept { return owner_; }

  /// Makes the pages writable where that was put off (private file mappings).
  HURRAY_EXPORT Result<void> make_writable() const;

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    owner_.swap(other.owner_);
    std::swap(requested_, other.requested_);
    std::swap(readonly_, other.readonly_);
  }

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::shared_ptr<Owner> owner_;
  std::uint32_t requested_ = 0;  // 0: measure
  bool readonly_ = false;
};

}  // namespace hurray
