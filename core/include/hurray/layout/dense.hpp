#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/layout/tags.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// Strides in logical elements, signed, one per dimension.
using Strides = SmallVector<std::int64_t, 8>;

/// The smallest and largest element offset that a dense layout reserves, relative to `byte_offset`:
/// `lo <= 0 <= hi` (02-layouts.md section 3). Only for shapes that are neither dynamic nor empty.
struct ElementRange {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

/// Last dimension fastest (02-layouts.md section 4).
struct RowMajor {
  static constexpr LayoutTag tag = LayoutTag::row_major;

  static void fields(auto&, auto&, const Shape&) {}
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  /// Precondition: not dynamic, the product of the sizes fits in 63 bits or is 0.
  HURRAY_EXPORT Strides strides_for(const Shape& shape) const;
  friend bool operator==(const RowMajor&, const RowMajor&) = default;
};

/// First dimension fastest (02-layouts.md section 5).
struct ColumnMajor {
  static constexpr LayoutTag tag = LayoutTag::col_major;

  static void fields(auto&, auto&, const Shape&) {}
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  HURRAY_EXPORT Strides strides_for(const Shape& shape) const;
  friend bool operator==(const ColumnMajor&, const ColumnMajor&) = default;
};

/// Any strides, 0 and negative included (02-layouts.md section 6).
struct Strided {
  static constexpr LayoutTag tag = LayoutTag::strided;

  Strides strides;  ///< Elements, not bytes; one per dimension.

  static void fields(auto& self, auto& io, const Shape& shape) {
    io.list("layout.strides[]", self.strides, shape.rank(), 8,
            [&](auto& stride, std::size_t k) { io({"layout.strides[]", k}, stride); });
  }
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  Strides strides_for(const Shape&) const { return strides; }
  friend bool operator==(const Strided&, const Strided&) = default;
};

}  // namespace hurray
