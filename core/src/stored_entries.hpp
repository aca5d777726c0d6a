#pragma once

#include <cstdint>
#include <span>

#include "hurray/index_buffers.hpp"
#include "hurray/layout.hpp"
#include "hurray/result.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// `layout.for_each` with what it passes judged once more, as others may write to the buffers after
/// `check_bounds`: fails before an index outside the shape is passed, and where the number of
/// entries is not the declared one.
template <SparseLayout Layout, class Each>
Result<bool> for_each_stored(const Layout& layout, const Shape& shape, const IndexBuffers& buffers,
                             Each&& each) {
  std::uint64_t passed = 0;
  bool inside = true;
  const bool whole = layout.for_each(shape, buffers,
                                     [&](std::span<const std::uint64_t> index, std::uint64_t slot) {
                                       for (std::size_t k = 0; k < index.size(); ++k)
                                         inside = inside && index[k] < shape[k];
                                       if (!inside) return false;
                                       ++passed;
                                       return static_cast<bool>(each(index, slot));
                                     });
  if (!inside || (whole && passed != layout.nnz)) return index_buffers_changed();
  return whole;
}

/// The same for the elements of a block-paged tensor, as many as its shape says; `tokens` add up to
/// its first size.
template <class Each>
Result<bool> for_each_token(const BlockPaged& layout, const Shape& shape,
                            const IndexBuffers& buffers, std::span<const std::uint64_t> tokens,
                            Each&& each) {
  std::uint64_t passed = 0;
  const bool whole = layout.for_each(shape, buffers, tokens,
                                     [&](std::span<const std::uint64_t> index, std::uint64_t slot) {
                                       ++passed;
                                       return static_cast<bool>(each(index, slot));
                                     });
  if (whole && passed != shape.count()) return index_buffers_changed();
  return whole;
}

}  // namespace hurray
