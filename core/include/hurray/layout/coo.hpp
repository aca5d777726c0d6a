#pragma once

#include "hurray/dtype.hpp"
#include "hurray/index_buffers.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"

namespace hurray {

/// Coordinates beside values, one tuple per stored entry (02-layouts.md section 9).
struct Coo {
  static constexpr LayoutTag tag = LayoutTag::coo;
  static constexpr std::string_view role(std::size_t i) noexcept {
    return i == 0 ? "values" : i == 1 ? "indices" : "";
  }

  std::uint64_t nnz = 0;       ///< Stored entries, explicit zeros included. May be 0.
  std::uint8_t is_sorted = 0;  ///< 1: entries ascend strictly, dimension 0 first. 0 claims nothing.

  static void fields(auto& self, auto& io, const FieldContext& in) {
    nnz_field(self.nnz, io, in.shape);
    io("layout.is_sorted", self.is_sorted);
    io.check(self.is_sorted <= 1, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_most,
                   .field = "layout.is_sorted",
                   .expected = 1,
                   .found = self.is_sorted};
    });
    io.reserved("layout.reserved", 7);
  }

  /// Bytes that buffer `i` must hold at least; none when the size overflows.
  std::optional<std::uint64_t> required_bytes(std::size_t i, unsigned width,
                                              const Shape& shape) const noexcept {
    if (i == 0) return width != 0 ? packed_bytes(width, nnz) : 0;
    return uint64_bytes(checked_mul<std::uint64_t>(nnz, shape.rank()));
  }

  /// O3: every coordinate is inside the shape. Work grows with the buffer, not with what it says.
  HURRAY_EXPORT std::optional<Error> check_bounds(const IndexBuffers& buffers,
                                                  const Shape& shape) const noexcept;
  /// O4 and O5: no two entries share their coordinates, and those that claim to be sorted are.
  /// Unsorted entries are sorted on the side, in 16 bytes for each; `out_of_memory` without them.
  /// Precondition: `check_bounds` found nothing.
  HURRAY_EXPORT std::optional<Error> check_canonical(const IndexBuffers& buffers,
                                                     const Shape& shape) const;

  /// The entry at `index`; none: not stored, hence zero. Binary search where the entries are
  /// sorted, else linear. Reads no byte outside the buffers, whatever is in them.
  HURRAY_EXPORT std::optional<std::uint64_t> find(std::span<const std::uint64_t> index,
                                                  const Shape& shape,
                                                  const IndexBuffers& buffers) const noexcept;

  /// The coordinates of entry `slot`; false where there is none.
  HURRAY_EXPORT bool index_of(std::uint64_t slot, const Shape& shape, const IndexBuffers& buffers,
                              std::span<std::uint64_t> index) const noexcept;

  /// `each(index, slot)` for every entry in stored order, until it returns false.
  template <class Each>
  bool for_each(const Shape& shape, const IndexBuffers& buffers, Each&& each) const {
    std::array<std::uint64_t, max_rank> index{};
    const std::span<std::uint64_t> coordinates(index.data(), shape.rank());
    for (std::uint64_t slot = 0; index_of(slot, shape, buffers, coordinates); ++slot)
      if (!each(std::span<const std::uint64_t>(coordinates), slot)) return false;
    return true;
  }

  friend bool operator==(const Coo&, const Coo&) = default;

 private:
  std::uint64_t stored(const IndexArray& indices, std::size_t rank) const noexcept {
    return rank == 0 ? 0 : std::min(nnz, indices.size() / rank);
  }
};

}  // namespace hurray
