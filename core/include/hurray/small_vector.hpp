#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "hurray/memory.hpp"

namespace hurray {

/// Plain values, as many as `Count` can count: `Inline` of them in place, more in one block from
/// `allocate`.
/// Copying an oversized one throws `std::bad_alloc` when memory runs out. A value: any thread may
/// read it while nobody changes it.
template <class T, std::size_t Inline, class Count = std::uint8_t>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);

 public:
  using value_type = T;
  static constexpr std::size_t max_size = std::numeric_limits<Count>::max();

  SmallVector() noexcept : size_(0) {}
  explicit SmallVector(std::span<const T> values) : SmallVector() { assign(values); }
  SmallVector(std::initializer_list<T> values) : SmallVector() {
    assign({values.begin(), values.size()});
  }
  SmallVector(const SmallVector& other) : SmallVector() {
    if (other.size_ > Inline) {
      assign(other);
    } else {
      storage_ = other.storage_;
      size_ = other.size_;
    }
  }
  SmallVector(SmallVector&& other) noexcept
      : storage_(other.storage_), size_(std::exchange(other.size_, Count{0})) {}
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) *this = SmallVector(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      storage_ = other.storage_;
      size_ = std::exchange(other.size_, Count{0});
    }
    return *this;
  }
  ~SmallVector() { release(); }

  /// `count` values of zero bits, at most `max_size`.
  void resize(std::size_t count) {
    if (count <= size_) {
      if (size_ > Inline && count <= Inline) {
        T kept[Inline];
        if (count != 0) std::memcpy(kept, storage_.heap, count * sizeof(T));
        release();
        if (count != 0) std::memcpy(storage_.in_place, kept, count * sizeof(T));
      } else if (size_ > Inline && count != size_) {
        SmallVector shorter(std::span<const T>(data(), count));
        swap(shorter);
        return;
      }
      size_ = static_cast<Count>(count);
      return;
    }
    if (count > max_size) throw std::bad_alloc();
    if (count > Inline) {
      auto* grown = static_cast<T*>(allocate(count * sizeof(T), block_alignment, true));
      if (grown == nullptr) throw std::bad_alloc();
      if (size_ != 0) std::memcpy(grown, data(), size_ * sizeof(T));
      release();
      storage_.heap = grown;
    } else {
      std::memset(static_cast<void*>(storage_.in_place + size_), 0, (count - size_) * sizeof(T));
    }
    size_ = static_cast<Count>(count);
  }

  void assign(std::span<const T> values) {
    if (size_ != 0) {  // `values` may be part of this
      SmallVector copy(values);
      swap(copy);
      return;
    }
    resize(values.size());
    if (!values.empty())
      std::memcpy(static_cast<void*>(data()), values.data(), values.size_bytes());
  }

  void push_back(const T& value) {
    const T kept = value;
    resize(size_ + std::size_t{1});
    data()[size_ - 1] = kept;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return size_ > Inline ? storage_.heap : storage_.in_place; }
  const T* data() const noexcept { return size_ > Inline ? storage_.heap : storage_.in_place; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr std::size_t block_alignment = std::max(alignof(T), alignof(void*));

  void release() noexcept {
    if (size_ > Inline) deallocate(storage_.heap, size_ * sizeof(T), block_alignment);
    size_ = 0;
  }
  void swap(SmallVector& other) noexcept {
    Storage mine = storage_;
    storage_ = other.storage_;
    other.storage_ = mine;
    std::swap(size_, other.size_);
  }

  union Storage {
    T in_place[Inline];
    T* heap;
    Storage() noexcept : in_place{} {}
  } storage_;
  Count size_;
};

}  // namespace hurray
