#include "growing.hpp"

#include <cstring>
#include <memory>
#include <string>

namespace hurray::io {
namespace {

struct GrownMemory final : Owner {
  explicit GrownMemory(Growing grown) noexcept : memory(std::move(grown)) {}
  Growing memory;
};

Error no_memory(std::uint64_t size) {
  return {hurray::Error{.code = Errc::out_of_memory, .origin = Origin::stream},
          {},
          {},
          std::to_string(size) + " bytes were asked for"};
}

}  // namespace

Result<void> Growing::grow(std::uint64_t capacity, std::uint64_t used) {
  if (capacity < large) {
    void* block = allocate(capacity, min_buffer_alignment, false);
    if (block == nullptr) return no_memory(capacity);
    if (used != 0) std::memcpy(block, data(), static_cast<std::size_t>(used));
    deallocate(std::exchange(block_, block), capacity_, min_buffer_alignment);
    capacity_ = capacity;
    return {};
  }
  const auto size = to_size(capacity);
  if (!size || !pages_.grow(*size)) return no_memory(capacity);
  if (block_ != nullptr) {
    if (used != 0) std::memcpy(pages_.bytes().data(), block_, static_cast<std::size_t>(used));
    deallocate(std::exchange(block_, nullptr), capacity_, min_buffer_alignment);
  }
  capacity_ = capacity;
  return {};
}

Buffer Growing::share(Growing memory, std::uint64_t size) {
  if (size == 0) return {};
  const auto owner = std::make_shared<GrownMemory>(std::move(memory));
  return Buffer::borrow(owner->memory.data(), size, owner, false);
}

}  // namespace hurray::io
