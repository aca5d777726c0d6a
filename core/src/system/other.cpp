#include "system.hpp"

namespace hurray::system {

void prefer_large_pages(void*, std::size_t) noexcept {}

}  // namespace hurray::system
