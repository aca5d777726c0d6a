#pragma once

#include "hurray/dtype.hpp"
#include "hurray/index_buffers.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"

namespace hurray {

/// A sparse matrix stored line by line: `Major` is the dimension whose lines a pointer array
/// delimits (0: rows, 1: columns); rank 2 only (02-layouts.md sections 10 and 11).
template <LayoutTag Tag, std::size_t Major>
struct Compressed {
  static constexpr LayoutTag tag = Tag;
  static constexpr std::size_t major = Major;
  static constexpr std::size_t minor = 1 - Major;
  static constexpr std::string_view coordinates = Major == 0 ? "col_indices[]" : "row_indices[]";
  static constexpr std::string_view pointers = Major == 0 ? "row_ptr[]" : "col_ptr[]";
  static constexpr std::string_view role(std::size_t i) noexcept {
    return i == 0 ? "values" : i == 1 ? role_of(coordinates) : i == 2 ? role_of(pointers) : "";
  }

  std::uint64_t nnz = 0;  ///< Stored elements. May be 0.

  static void fields(auto& self, auto& io, const FieldContext& in) {
    nnz_field(self.nnz, io, in.shape);
    io.reserved("layout.reserved", 8);
  }

  /// Bytes that buffer `i` must hold at least; 0 while a dimension it depends on is dynamic, none
  /// when the size overflows.
  std::optional<std::uint64_t> required_bytes(std::size_t i, unsigned width,
                                              const Shape& shape) const noexcept {
    if (i == 0) return width != 0 ? packed_bytes(width, nnz) : 0;
    if (i == 1) return uint64_bytes(nnz);
    if (shape[Major] == dynamic) return 0;
    return uint64_bytes(checked_add<std::uint64_t>(shape[Major], 1));
  }

  /// R2: the pointers delimit the entries. Nothing is judged while the number of lines is dynamic.
  std::optional<Error> check_pointers(const IndexBuffers& buffers,
                                      const Shape& shape) const noexcept {
    if (shape[major] == dynamic) return std::nullopt;
    if (auto error = buffers.check_pointers(2, pointers, shape[major], nnz, "(nnz)")) return error;
    return buffers.check_total(2, pointers, shape[major], nnz);
  }
  /// R2 and R3: besides, every coordinate is inside the shape.
  std::optional<Error> check_bounds(const IndexBuffers& buffers,
                                    const Shape& shape) const noexcept {
    if (auto error = check_pointers(buffers, shape)) return error;
    return buffers.check_coordinates(1, coordinates, nnz, shape[minor]);
  }
  /// R4: coordinates ascend strictly inside each line. Precondition: `check_bounds` found nothing.
  std::optional<Error> check_canonical(const IndexBuffers& buffers,
                                       const Shape& shape) const noexcept {
    if (shape[major] == dynamic) return std::nullopt;
    const std::uint64_t lines = std::min(shape[major], buffers[2].size());
    std::uint64_t judged = 0;
    for (std::uint64_t line = 0; line < lines; ++line)
      if (auto error = buffers.check_ascending(1, coordinates, slice(line, buffers).after(judged)))
        return error;
    return std::nullopt;
  }

  /// The entry at `index`; none: not stored, hence zero. Binary search in its line. Reads no byte
  /// outside the buffers, whatever is in them.
  std::optional<std::uint64_t> find(std::span<const std::uint64_t> index, const Shape&,
                                    const IndexBuffers& buffers) const noexcept {
    const IndexArray stored = buffers[1];
    const IndexSlice in = slice(index[major], buffers);
    const std::uint64_t slot = stored.lower_bound(in, index[minor]);
    if (slot == in.last || stored[slot] != index[minor]) return std::nullopt;
    return slot;
  }

  /// The coordinates of entry `slot`; false where there is none.
  bool index_of(std::uint64_t slot, const Shape& shape, const IndexBuffers& buffers,
                std::span<std::uint64_t> index) const noexcept {
    const IndexArray stored = buffers[1];
    if (slot >= nnz || slot >= stored.size()) return false;
    const auto line = buffers[2].slice_of(slot, shape[major]);
    if (!line) return false;
    index[major] = *line;
    index[minor] = stored[slot];
    return true;
  }

  /// `each(index, slot)` for every entry, lines ascending, until it returns false. Whatever is in
  /// the buffers, no byte outside them is read, and no entry comes twice.
  template <class Each>
  bool for_each(const Shape& shape, const IndexBuffers& buffers, Each&& each) const {
    const IndexArray stored = buffers[1];
    const std::uint64_t lines = std::min(shape[major], buffers[2].size());
    std::uint64_t walked = 0;
    for (std::uint64_t line = 0; line < lines; ++line) {
      const IndexSlice in = slice(line, buffers).after(walked);
      for (std::uint64_t slot = in.first; slot < in.last; ++slot) {
        std::array<std::uint64_t, 2> index;
        index[major] = line;
        index[minor] = stored[slot];
        if (!each(std::span<const std::uint64_t>(index), slot)) return false;
      }
    }
    return true;
  }

  friend bool operator==(const Compressed&, const Compressed&) = default;

 private:
  IndexSlice slice(std::uint64_t line, const IndexBuffers& buffers) const noexcept {
    return buffers[2].slice(line, std::min(nnz, buffers[1].size()));
  }
};

using Csr = Compressed<LayoutTag::csr, 0>;
using Csc = Compressed<LayoutTag::csc, 1>;

}  // namespace hurray
