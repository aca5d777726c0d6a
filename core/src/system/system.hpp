#pragma once

#include <cstddef>

namespace hurray::system {

/// Says that `size` bytes from `block` on, untouched so far and nobody else's, will be used whole:
/// the system may back them with large pages. A wish: nothing fails, no content changes.
void prefer_large_pages(void* block, std::size_t size) noexcept;

}  // namespace hurray::system
