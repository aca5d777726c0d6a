#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hurray/layout/digits.hpp"
#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"

namespace hurray {

/// Strides in logical elements, signed, one per dimension.
using Strides = SmallVector<std::int64_t, 8>;

/// The smallest and largest element offset that a dense layout reserves, relative to `byte_offset`:
/// `lo <= 0 <= hi` (02-layouts.md section 3). Only for shapes that are neither dynamic nor empty.
struct ElementRange {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

/// The range that strides reach over sizes that are neither dynamic nor 0 (02-layouts.md section
/// 6); none where an offset leaves 64 bits or the lengths differ.
HURRAY_EXPORT std::optional<ElementRange> strided_range(
    std::span<const std::int64_t> strides, std::span<const std::uint64_t> shape) noexcept;

// Every dense layout answers the same questions about its elements, over a shape that is not
// dynamic and for which it is valid:
//
//   offset(index, shape)            signed offset of the element, in elements from `byte_offset`.
//                                   Precondition: `index`, one number per dimension, is inside the
//                                   shape, which therefore is not empty.
//   index_of(offset, shape, index)  the reverse. False where no element of the tensor lies, and
//                                   everywhere when the layout has no inverse
//                                   (the codec's `has_inverse`); then `index` holds nothing of use.
//   for_each(shape, each)           calls `each(index, offset)` for every element in storage order,
//                                   until it is false; returns whether it was true to the end.
//   codec(shape)                    all three with what the layout and the shape say worked out
//                                   once: the choice for many addresses.

/// Last dimension fastest (02-layouts.md section 4).
struct RowMajor {
  static constexpr LayoutTag tag = LayoutTag::row_major;

  static void fields(auto&, auto&, const FieldContext&) {}
  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  /// Precondition: not dynamic, the product of the sizes fits in 63 bits or is 0.
  HURRAY_EXPORT Strides strides_for(const Shape& shape) const;
  HURRAY_EXPORT DigitCodec codec(const Shape& shape) const noexcept;
  std::int64_t offset(std::span<const std::uint64_t> index, const Shape& shape) const noexcept {
    std::uint64_t offset = 0;
    for (std::size_t k = 0; k < index.size(); ++k) offset = offset * shape[k] + index[k];
    return static_cast<std::int64_t>(offset);
  }
  bool index_of(std::int64_t offset, const Shape& shape,
                std::span<std::uint64_t> index) const noexcept {
    return codec(shape).index_of(offset, index);
  }
  template <class Each>
  bool for_each(const Shape& shape, Each&& each) const {
    return codec(shape).for_each(each);
  }
  friend bool operator==(const RowMajor&, const RowMajor&) = default;
};

/// First dimension fastest (02-layouts.md section 5).
struct ColumnMajor {
  static constexpr LayoutTag tag = LayoutTag::col_major;

  static void fields(auto&, auto&, const FieldContext&) {}
  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  HURRAY_EXPORT Strides strides_for(const Shape& shape) const;
  HURRAY_EXPORT DigitCodec codec(const Shape& shape) const noexcept;
  std::int64_t offset(std::span<const std::uint64_t> index, const Shape& shape) const noexcept {
    std::uint64_t offset = 0;
    for (std::size_t k = index.size(); k-- > 0;) offset = offset * shape[k] + index[k];
    return static_cast<std::int64_t>(offset);
  }
  bool index_of(std::int64_t offset, const Shape& shape,
                std::span<std::uint64_t> index) const noexcept {
    return codec(shape).index_of(offset, index);
  }
  template <class Each>
  bool for_each(const Shape& shape, Each&& each) const {
    return codec(shape).for_each(each);
  }
  friend bool operator==(const ColumnMajor&, const ColumnMajor&) = default;
};

/// Any strides, 0 and negative included (02-layouts.md section 6). The storage order is that of
/// row-major indices, whatever the offsets do: they may ascend, descend and coincide.
struct Strided {
  static constexpr LayoutTag tag = LayoutTag::strided;

  Strides strides;  ///< Elements, not bytes; one per dimension.

  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }

  static void fields(auto& self, auto& io, const FieldContext& in) {
    io.list("layout.strides[]", self.strides, in.shape.rank(), 8,
            [&](auto& stride, std::size_t k) { io({"layout.strides[]", k}, stride); });
  }
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  Strides strides_for(const Shape&) const { return strides; }
  HURRAY_EXPORT DigitCodec codec(const Shape& shape) const noexcept;
  std::int64_t offset(std::span<const std::uint64_t> index, const Shape&) const noexcept {
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < index.size(); ++k)
      offset += static_cast<std::int64_t>(index[k]) * strides[k];
    return offset;
  }
  bool index_of(std::int64_t offset, const Shape& shape,
                std::span<std::uint64_t> index) const noexcept {
    return codec(shape).index_of(offset, index);
  }
  template <class Each>
  bool for_each(const Shape& shape, Each&& each) const {
    return codec(shape).for_each(each);
  }
  friend bool operator==(const Strided&, const Strided&) = default;
};

}  // namespace hurray
