#include "hurray/memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "hurray/checked.hpp"
#include "system/system.hpp"

namespace hurray {
namespace {

/// Blocks from this size on, in bytes, mostly come straight from the system, page by page as they
/// are touched: the fewer pages, the less that costs.
constexpr std::size_t large_block = std::size_t{4} << 20;

/// These always do, so that they may start where a large page does: what is left out before is
/// never touched.
constexpr std::size_t aligned_block = std::size_t{32} << 20;
constexpr std::size_t large_page = std::size_t{2} << 20;

}  // namespace

// The block from malloc or calloc stands in front of what is handed out, and its address just
// before it. calloc is what gives untouched zero pages for large blocks on every system.
void* allocate(std::uint64_t size, std::size_t alignment, bool zeroed) noexcept {
  const auto wanted = to_size(size);
  if (!wanted) return nullptr;
  if (*wanted >= aligned_block) alignment = std::max(alignment, large_page);
  const auto total = checked_add<std::size_t>(*wanted, alignment + sizeof(void*));
  if (!total) return nullptr;
  void* block = zeroed ? std::calloc(1, *total) : std::malloc(*total);
  if (block == nullptr) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(block) + sizeof(void*);
  const auto aligned = (first + alignment - 1) & ~(static_cast<std::uintptr_t>(alignment) - 1);
  auto* given = static_cast<char*>(block) + (aligned - reinterpret_cast<std::uintptr_t>(block));
  reinterpret_cast<void**>(given)[-1] = block;
  if (*wanted >= large_block) system::prefer_large_pages(given, *wanted);
  return given;
}

void deallocate(void* block, std::uint64_t, std::size_t) noexcept {
  if (block != nullptr) std::free(static_cast<void**>(block)[-1]);
}

}  // namespace hurray
