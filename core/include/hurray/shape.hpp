#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

#include "hurray/export.hpp"
#include "hurray/small_vector.hpp"

namespace hurray {

inline constexpr std::uint32_t max_rank = 64;

/// Where `shape` starts in a descriptor, in bytes (01-descriptor.md section 3.2).
inline constexpr std::uint64_t shape_offset = 20;

/// A size that was not known when the descriptor was written (01-descriptor.md section 1).
inline constexpr std::uint64_t dynamic = std::numeric_limits<std::uint64_t>::max();

/// Sizes in logical elements, dimension 0 outermost. A value, in place up to rank 8; values are
/// freely shared between threads as long as nobody changes them.
class Shape : public SmallVector<std::uint64_t, 8> {
 public:
  using SmallVector::SmallVector;

  std::size_t rank() const noexcept { return size(); }

  /// A dimension is `dynamic`; then nothing below is known.
  bool is_dynamic() const noexcept { return contains(dynamic); }
  /// A dimension is 0, hence there are no elements.
  bool is_empty() const noexcept { return contains(0); }
  /// Elements: 1 for rank 0, 0 when any size is 0, 2^64 - 1 when the product is that large or more.
  /// Precondition: not dynamic.
  HURRAY_EXPORT std::uint64_t count() const noexcept;

 private:
  bool contains(std::uint64_t wanted) const noexcept {
    for (const std::uint64_t n : *this)
      if (n == wanted) return true;
    return false;
  }
};

}  // namespace hurray
