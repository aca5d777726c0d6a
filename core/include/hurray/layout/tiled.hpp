#pragma once

#include "hurray/layout/dense.hpp"

namespace hurray {

/// `outer` orders the tiles: row_major, col_major or strided. `inner` orders the elements of one
/// tile: the same, or tiled, which stands for the next level.
struct TileOrders {
  LayoutTag outer = LayoutTag::row_major;
  LayoutTag inner = LayoutTag::row_major;
  friend bool operator==(const TileOrders&, const TileOrders&) = default;
};

/// One level of a tiled layout, a view into it. Strides are empty unless the order is strided;
/// `outer_strides` count tiles, `inner_strides` elements.
struct TileLevel {
  std::span<const std::uint64_t> tile_shape;
  std::span<const std::int64_t> outer_strides;
  std::span<const std::int64_t> inner_strides;
  TileOrders orders;
};

/// Boxes of `tile_shape`, ordered by a grid layout, each ordered inside by an inner layout that may
/// be tiled again (02-layouts.md section 7). The storage order is grid order, then inner order;
/// where strides order a grid or a tile it is that of row-major indices. Slots outside the shape
/// are never visited.
struct Tiled {
  static constexpr LayoutTag tag = LayoutTag::tiled;
  static constexpr std::size_t max_levels = 8;
  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }

  Tiled() = default;
  /// One level. Precondition: strides are as many as `tile_shape`, or none.
  HURRAY_EXPORT explicit Tiled(std::span<const std::uint64_t> tile_shape, TileOrders orders = {},
                               std::span<const std::int64_t> outer_strides = {},
                               std::span<const std::int64_t> inner_strides = {});
  explicit Tiled(std::initializer_list<std::uint64_t> tile_shape, TileOrders orders = {},
                 std::initializer_list<std::int64_t> outer_strides = {},
                 std::initializer_list<std::int64_t> inner_strides = {})
      : Tiled(std::span(tile_shape.begin(), tile_shape.size()), orders,
              std::span(outer_strides.begin(), outer_strides.size()),
              std::span(inner_strides.begin(), inner_strides.size())) {}

  /// Adds a level inside the innermost one, whose order becomes tiled if it is not yet. Does
  /// nothing beyond eight, which `validate` then reports.
  HURRAY_EXPORT Tiled& inside(const Tiled& level);

  /// Levels, at least 1; 9 stands for more than the format allows.
  std::size_t levels() const noexcept {
    std::size_t n = 0;
    while (n < max_levels && orders_[n].inner == LayoutTag::tiled) ++n;
    return n + 1;
  }
  /// Dimensions of the tiles. Precondition: every level has as many numbers as the others.
  HURRAY_EXPORT std::size_t rank() const noexcept;
  /// Precondition: `i < levels()`, and the layout is valid for this rank.
  HURRAY_EXPORT TileLevel level(std::size_t i, std::size_t rank) const noexcept;

  static void fields(auto& self, auto& io, const FieldContext& in) {
    const std::size_t rank = in.shape.rank();
    std::size_t at = 0;
    std::size_t enclosing = 0;
    for (std::size_t level = 0; io.ok() && level < max_levels; ++level) {
      const std::size_t tile = at;
      io.list(
          "layout.tile_shape[]", self.numbers_, rank, 8,
          [&](auto& n, std::size_t k) {
            io({"layout.tile_shape[]", k}, n);
            io.check(n != 0, [&] {
              return Error{.code = Errc::invalid_value,
                           .expect = Expect::at_least,
                           .index = k,
                           .field = "layout.tile_shape[]",
                           .what = "element",
                           .expected = 1,
                           .found = 0};
            });
            io.check(level == 0 || n == 0 || self.numbers_[enclosing + k] % n == 0, [&] {
              return Error{.code = Errc::inconsistent,
                           .expect = Expect::as_said,
                           .index = k,
                           .field = "layout.tile_shape[]",
                           .what = "a divisor of the enclosing tile",
                           .found = n};
            });
          },
          tile);
      at += rank;
      enclosing = tile;
      auto& orders = self.orders_[level];
      order_field("layout.outer_layout", orders.outer, io, LayoutTag::strided);
      order_field("layout.inner_layout", orders.inner, io, LayoutTag::tiled);
      io.check(level + 1 < max_levels || orders.inner != LayoutTag::tiled, [&] {
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .field = "layout.inner_layout",
                     .what = "levels of tiling",
                     .expected = max_levels,
                     .found = max_levels + 1};
      });
      io.reserved("layout.reserved", 2);
      const auto strides = [&](std::string_view field) {
        io.list(
            field, self.numbers_, rank, 8,
            [&](auto& n, std::size_t k) {
              auto stride = static_cast<std::int64_t>(n);
              io({field, k}, stride);
              if constexpr (std::remove_reference_t<decltype(io)>::reads)
                n = static_cast<std::uint64_t>(stride);
            },
            at);
        at += rank;
      };
      if (orders.outer == LayoutTag::strided) strides("layout.outer_strides[]");
      if (orders.inner == LayoutTag::strided) strides("layout.inner_strides[]");
      if (orders.inner != LayoutTag::tiled) break;
    }
    io.check(self.numbers_.size() == at, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "layout.tile_shape",
                   .what = "tile sizes and strides for this rank",
                   .expected = at,
                   .found = self.numbers_.size()};
    });
  }

  /// Tile products, and the outermost grid of full tiles unless it is strided, fit in 63 bits
  /// (01-descriptor.md row 70): the place where that fails, or none.
  HURRAY_EXPORT std::optional<Error> oversized(const Shape& shape) const noexcept;

  /// At most eight levels, each with sizes from 1 up and as many numbers as this rank asks for.
  HURRAY_EXPORT bool well_formed(std::size_t rank) const noexcept;

  /// None where an offset leaves 64 bits, or the layout is not well formed.
  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;

  HURRAY_EXPORT DigitCodec codec(const Shape& shape) const noexcept;
  std::int64_t offset(std::span<const std::uint64_t> index, const Shape& shape) const noexcept {
    return codec(shape).offset(index);
  }
  bool index_of(std::int64_t offset, const Shape& shape,
                std::span<std::uint64_t> index) const noexcept {
    return codec(shape).index_of(offset, index);
  }
  template <class Each>
  bool for_each(const Shape& shape, Each&& each) const {
    return codec(shape).for_each(each);
  }
  friend bool operator==(const Tiled& a, const Tiled& b) noexcept {
    return a.numbers_ == b.numbers_ && a.orders_ == b.orders_;
  }

 private:
  std::size_t lists() const noexcept;

  static void order_field(Field field, auto& order, auto& io, LayoutTag last) {
    io(field, order);
    io.check(order >= LayoutTag::row_major && order <= last, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::as_said,
                   .field = field.name,
                   .what = last == LayoutTag::tiled
                               ? std::string_view("1 (row_major) to 4 (tiled)")
                               : std::string_view("1 (row_major) to 3 (strided)"),
                   .found = static_cast<std::uint64_t>(order)};
    });
  }

  // Of each level in turn: tile sizes, then outer and inner strides where there are any.
  SmallVector<std::uint64_t, 6, std::uint16_t> numbers_;
  std::array<TileOrders, max_levels> orders_;
  bool awaits_level_ = false;  // the innermost order is tiled, and `inside` has yet to say how
};

}  // namespace hurray
