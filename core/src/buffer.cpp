#include "hurray/buffer.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace hurray {
namespace {

class OwnBlock final : public Owner {
 public:
  OwnBlock(std::uint64_t size, std::uint32_t alignment, bool zeroed) noexcept
      : block_(allocate(size, alignment, zeroed)), size_(size), alignment_(alignment) {}
  ~OwnBlock() override { deallocate(block_, size_, alignment_); }
  std::byte* data() const noexcept { return static_cast<std::byte*>(block_); }

 private:
  void* block_;
  std::uint64_t size_;
  std::uint32_t alignment_;
};

class Released final : public Owner {
 public:
  explicit Released(std::function<void()> release) : release_(std::move(release)) {}
  ~Released() override {
    if (release_) release_();
  }

 private:
  std::function<void()> release_;
};

}  // namespace

Owner::~Owner() = default;
Result<void> Owner::make_writable(std::span<std::byte>) { return {}; }

Result<Buffer> Buffer::allocate(std::uint64_t size, bool zeroed, std::uint32_t alignment) {
  return contain(Origin::buffer, [&]() -> Result<Buffer> {
    if (!std::has_single_bit(alignment) || alignment < min_buffer_alignment)
      return Error{.code = Errc::invalid_value,
                   .origin = Origin::buffer,
                   .expect = Expect::as_said,
                   .field = "alignment",
                   .what = "a power of two from 64 on",
                   .found = alignment};
    Buffer buffer;
    if (size == 0) return buffer;
    auto block = std::make_shared<OwnBlock>(size, alignment, zeroed);
    if (block->data() == nullptr)
      return Error{.code = Errc::out_of_memory,
                   .origin = Origin::buffer,
                   .expect = Expect::as_said,
                   .field = "byte_size",
                   .what = "a size that there is memory for",
                   .found = size};
    buffer.data_ = block->data();
    buffer.size_ = size;
    buffer.owner_ = std::move(block);
    buffer.requested_ = std::min(alignment, page_alignment);
    return buffer;
  });
}

Buffer Buffer::borrow(std::byte* data, std::uint64_t size, std::shared_ptr<Owner> owner,
                      bool readonly) noexcept {
  Buffer buffer;
  buffer.data_ = data;
  buffer.size_ = size;
  buffer.owner_ = std::move(owner);
  buffer.readonly_ = readonly;
  return buffer;
}

Result<Buffer> Buffer::borrow(std::byte* data, std::uint64_t size, std::function<void()> release,
                              bool readonly) {
  try {
    return borrow(data, size, std::make_shared<Released>(release), readonly);
  } catch (const std::bad_alloc&) {
    if (release) release();
    return Error{.code = Errc::out_of_memory, .origin = Origin::buffer};
  }
}

Buffer Buffer::view(std::uint64_t offset, std::uint64_t size) const noexcept {
  return borrow(data_ == nullptr ? nullptr : data_ + offset, size, owner_, readonly_);
}

std::uint32_t Buffer::alignment() const noexcept {
  if (size_ == 0) return 1;
  return requested_ != 0 ? requested_ : measure_alignment(data_, size_);
}

Result<void> Buffer::make_writable() const {
  if (!owner_ || size_ == 0) return {};
  return owner_->make_writable(bytes());
}

}  // namespace hurray
