#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "system.hpp"

namespace hurray::system {

void prefer_large_pages(void* block, std::size_t size) noexcept {
#if defined(MADV_HUGEPAGE)
  const long page = ::sysconf(_SC_PAGESIZE);
  if (page <= 0) return;
  const auto mask = static_cast<std::uintptr_t>(page) - 1;
  const auto first = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t from = (first + mask) & ~mask;  // whole pages only
  const std::uintptr_t to = (first + size) & ~mask;
  if (from < to)
    static_cast<void>(::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE));
#else
  static_cast<void>(block);
  static_cast<void>(size);
#endif
}

}  // namespace hurray::system
