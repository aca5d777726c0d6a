#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "hurray/dtype.hpp"
#include "hurray/index_buffers.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"

namespace hurray {

/// A tree with one compressed level per dimension (02-layouts.md section 12). Level L holds
/// dimension `mode_order[L]`; its pointers are buffer `2L+1`, its coordinates buffer `2L+2`.
struct Csf {
  static constexpr LayoutTag tag = LayoutTag::csf;
  static constexpr std::string_view role(std::size_t i) noexcept {
    return i == 0 ? "values" : i % 2 == 1 ? "pos" : "crd";
  }

  std::uint64_t nnz = 0;                     ///< Leaves. May be 0.
  SmallVector<std::uint32_t, 8> mode_order;  ///< A permutation of the dimensions, root side first.

  static void fields(auto& self, auto& io, const FieldContext& in) {
    nnz_field(self.nnz, io, in.shape);
    const std::size_t rank = in.shape.rank();
    std::uint64_t seen = 0;
    io.list("layout.mode_order[]", self.mode_order, rank, 4, [&](auto& mode, std::size_t level) {
      io({"layout.mode_order[]", level}, mode);
      const bool fresh = mode < rank && (seen >> mode & 1) == 0;
      if (fresh) seen |= std::uint64_t{1} << mode;
      io.check(fresh || in.options.permissive, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::as_said,
                     .index = level,
                     .field = "layout.mode_order[]",
                     .what = "a dimension that was not named before",
                     .found = mode};
      });
    });
    io.reserved("layout.reserved", 8);
  }

  /// `mode_order` names every dimension once; otherwise (permissive mode) nothing can be addressed.
  bool is_permutation(std::size_t rank) const noexcept {
    std::uint64_t seen = 0;
    for (const std::uint32_t mode : mode_order)
      if (mode < rank) seen |= std::uint64_t{1} << mode;
    return mode_order.size() == rank && seen == (~std::uint64_t{0} >> (64 - rank));
  }

  /// Bytes that buffer `i` must hold at least, as far as the descriptor tells: inner levels follow
  /// from the pointer arrays. None when the size overflows.
  std::optional<std::uint64_t> required_bytes(std::size_t i, unsigned width,
                                              const Shape& shape) const noexcept {
    if (i == 0) return width != 0 ? packed_bytes(width, nnz) : 0;
    if (i == 1) return 16;
    return i == 2 * shape.rank() ? uint64_bytes(nnz) : 0;
  }

  /// What messages call the entries of level `level`: "pos[2][]", "crd[2][]".
  HURRAY_EXPORT static std::string_view pointers(std::size_t level) noexcept;
  HURRAY_EXPORT static std::string_view coordinates(std::size_t level) noexcept;

  /// F3 and F4, level by level from the root: a level's pointers are compared with the room that is
  /// there before anything they count is read. Precondition here and below: `is_permutation`.
  HURRAY_EXPORT std::optional<Error> check_bounds(const IndexBuffers& buffers,
                                                  const Shape& shape) const noexcept;
  /// F5 and F6: siblings ascend strictly, and a tensor without leaves has no nodes. A node without
  /// children is accepted (L14). Precondition: `check_bounds` found nothing.
  HURRAY_EXPORT std::optional<Error> check_canonical(const IndexBuffers& buffers,
                                                     const Shape& shape) const noexcept;

  /// The first pointer that leaves an inner node without children: read (L14), not to be written.
  /// None when `nnz` is 0, as then there are no nodes. Precondition: `check_bounds` found nothing.
  HURRAY_EXPORT std::optional<Error> childless(const IndexBuffers& buffers) const noexcept;

  /// The leaf at `index`; none: not stored, hence zero. Binary search in each level. Reads no byte
  /// outside the buffers, whatever is in them.
  HURRAY_EXPORT std::optional<std::uint64_t> find(std::span<const std::uint64_t> index,
                                                  const Shape& shape,
                                                  const IndexBuffers& buffers) const noexcept;

  /// The coordinates of leaf `slot`; false where there is none.
  HURRAY_EXPORT bool index_of(std::uint64_t slot, const Shape& shape, const IndexBuffers& buffers,
                              std::span<std::uint64_t> index) const noexcept;

  /// `each(index, slot)` for every leaf, depth first, until it returns false. Whatever is in the
  /// buffers, no byte outside them is read, and no node comes twice.
  template <class Each>
  bool for_each(const Shape&, const IndexBuffers& buffers, Each&& each) const {
    std::array<IndexSlice, max_rank> open{};
    std::array<std::uint64_t, max_rank> walked{};
    std::array<std::uint64_t, max_rank> index{};
    const std::size_t leaves = mode_order.size() - 1;
    std::size_t level = 0;
    open[0] = children(0, 0, buffers);
    for (;;) {
      IndexSlice& here = open[level];
      if (here.empty()) {
        if (level == 0) return true;
        ++open[--level].first;
        continue;
      }
      index[mode_order[level]] = crd(level, buffers)[here.first];
      if (level < leaves) {
        ++level;
        open[level] = children(level, here.first, buffers).after(walked[level]);
        continue;
      }
      if (!each(std::span<const std::uint64_t>(index.data(), leaves + 1), here.first)) return false;
      ++here.first;
    }
  }

  friend bool operator==(const Csf&, const Csf&) = default;

 private:
  static IndexArray pos(std::size_t level, const IndexBuffers& buffers) noexcept {
    return buffers[2 * level + 1];
  }
  static IndexArray crd(std::size_t level, const IndexBuffers& buffers) noexcept {
    return buffers[2 * level + 2];
  }
  /// Nodes that there is room for; leaves are `nnz` at most.
  std::uint64_t room(std::size_t level, const IndexBuffers& buffers) const noexcept {
    const std::uint64_t entries = crd(level, buffers).size();
    return level + 1 == mode_order.size() ? std::min(nnz, entries) : entries;
  }
  /// The nodes of `level` below node `parent` of the level above.
  IndexSlice children(std::size_t level, std::uint64_t parent,
                      const IndexBuffers& buffers) const noexcept {
    return pos(level, buffers).slice(parent, room(level, buffers));
  }
};

}  // namespace hurray
