#include "hurray/layout/tiled.hpp"

#include <limits>

namespace hurray {
namespace {

constexpr auto max_elements = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// A product that fits in 63 bits, or none.
std::optional<std::int64_t> product(std::span<const std::uint64_t> sizes) noexcept {
  std::uint64_t all = 1;
  for (const std::uint64_t n : sizes) {
    const auto next = checked_mul(all, n);
    if (!next || *next > max_elements) return std::nullopt;
    all = *next;
  }
  return static_cast<std::int64_t>(all);
}

/// Range of one order over `sizes`, none of them 0.
std::optional<ElementRange> range_of(LayoutTag order, std::span<const std::int64_t> strides,
                                     std::span<const std::uint64_t> sizes) noexcept {
  if (order == LayoutTag::strided) return strided_range(strides, sizes);
  const auto all = product(sizes);
  if (!all) return std::nullopt;
  return ElementRange{0, *all - 1};
}

struct Grid {
  std::array<std::uint64_t, max_rank> sizes;
  std::size_t rank;

  Grid(std::span<const std::uint64_t> space, std::span<const std::uint64_t> tile) noexcept
      : rank(space.size()) {
    for (std::size_t k = 0; k < rank; ++k)
      sizes[k] = space[k] / tile[k] + (space[k] % tile[k] != 0);
  }
  std::span<const std::uint64_t> span() const noexcept { return {sizes.data(), rank}; }
};

std::uint64_t as_number(std::int64_t stride) noexcept { return static_cast<std::uint64_t>(stride); }

}  // namespace

Tiled::Tiled(std::span<const std::uint64_t> tile_shape, TileOrders orders,
             std::span<const std::int64_t> outer_strides,
             std::span<const std::int64_t> inner_strides) {
  orders_[0] = orders;
  awaits_level_ = orders.inner == LayoutTag::tiled;
  for (const std::uint64_t n : tile_shape) numbers_.push_back(n);
  for (const std::int64_t stride : outer_strides) numbers_.push_back(as_number(stride));
  for (const std::int64_t stride : inner_strides) numbers_.push_back(as_number(stride));
}

/// Tile shapes and stride lists that `numbers_` holds.
std::size_t Tiled::lists() const noexcept {
  std::size_t lists = 0;
  for (std::size_t i = 0; i < levels() - (awaits_level_ ? 1 : 0); ++i) {
    if (i == max_levels) break;
    lists += 1 + std::size_t{orders_[i].outer == LayoutTag::strided} +
             std::size_t{orders_[i].inner == LayoutTag::strided};
  }
  return lists;
}

std::size_t Tiled::rank() const noexcept { return numbers_.size() / lists(); }

Tiled& Tiled::inside(const Tiled& level) {
  const std::size_t have = levels() - (awaits_level_ ? 1 : 0);
  const std::size_t more = level.levels() - (level.awaits_level_ ? 1 : 0);
  if (have > max_levels) return *this;
  TileOrders& innermost = orders_[have - 1];
  if (innermost.inner == LayoutTag::strided)  // their strides come last
    numbers_.resize(numbers_.size() - numbers_.size() / lists());
  innermost.inner = LayoutTag::tiled;
  awaits_level_ = level.awaits_level_;
  for (std::size_t i = 0; i < more && have + i < max_levels; ++i)
    orders_[have + i] = level.orders_[i];
  for (const std::uint64_t n : level.numbers_) numbers_.push_back(n);
  return *this;
}

TileLevel Tiled::level(std::size_t i, std::size_t rank) const noexcept {
  const std::uint64_t* at = numbers_.data();
  for (std::size_t before = 0; before < i; ++before) {
    const TileOrders& orders = orders_[before];
    at += rank;
    if (orders.outer == LayoutTag::strided) at += rank;
    if (orders.inner == LayoutTag::strided) at += rank;
  }
  TileLevel level{{at, rank}, {}, {}, orders_[i]};
  at += rank;
  const auto strides = [&] {
    const std::span taken(reinterpret_cast<const std::int64_t*>(at), rank);
    at += rank;
    return taken;
  };
  if (level.orders.outer == LayoutTag::strided) level.outer_strides = strides();
  if (level.orders.inner == LayoutTag::strided) level.inner_strides = strides();
  return level;
}

std::optional<Error> Tiled::oversized(const Shape& shape) const noexcept {
  constexpr Error error{.code = Errc::overflow,
                        .field = "layout.tile_shape",
                        .what = "tiles of 2^63 elements or more"};
  const std::size_t rank = shape.rank();
  for (std::size_t i = 0; i < levels(); ++i)
    if (!product(level(i, rank).tile_shape)) return error;
  const TileLevel outermost = level(0, rank);
  if (outermost.orders.outer == LayoutTag::strided || shape.is_dynamic() || shape.is_empty())
    return std::nullopt;
  const Grid grid({shape.data(), rank}, outermost.tile_shape);
  const auto tiles = product(grid.span());
  if (!tiles || !checked_mul(*tiles, *product(outermost.tile_shape))) return error;
  return std::nullopt;
}

bool Tiled::well_formed(std::size_t rank) const noexcept {
  std::size_t numbers = 0;
  const std::size_t depth = levels();
  if (depth > max_levels) return false;
  for (std::size_t i = 0; i < depth; ++i) {
    if (numbers_.size() < numbers + rank) return false;
    for (std::size_t k = 0; k < rank; ++k)
      if (numbers_[numbers + k] == 0) return false;
    numbers += rank;
    if (orders_[i].outer == LayoutTag::strided) numbers += rank;
    if (orders_[i].inner == LayoutTag::strided) numbers += rank;
  }
  return numbers_.size() == numbers;
}

std::optional<ElementRange> Tiled::range(const Shape& shape) const noexcept {
  const std::size_t rank = shape.rank();
  if (!well_formed(rank)) return std::nullopt;
  std::optional<ElementRange> inner;
  for (std::size_t i = levels(); i-- > 0;) {
    const TileLevel at = level(i, rank);
    const auto space =
        i == 0 ? std::span<const std::uint64_t>(shape.data(), rank) : level(i - 1, rank).tile_shape;
    if (at.orders.inner != LayoutTag::tiled)
      inner = range_of(at.orders.inner, at.inner_strides, at.tile_shape);
    const auto tile = product(at.tile_shape);
    const Grid grid(space, at.tile_shape);
    const auto outer = range_of(at.orders.outer, at.outer_strides, grid.span());
    if (!inner || !outer || !tile) return std::nullopt;
    const auto lo = checked_mul(*tile, outer->lo);
    const auto hi = checked_mul(*tile, outer->hi);
    const auto lowest = lo ? checked_add(*lo, inner->lo) : std::nullopt;
    const auto highest = hi ? checked_add(*hi, inner->hi) : std::nullopt;
    if (!lowest || !highest) return std::nullopt;
    inner = ElementRange{*lowest, *highest};
  }
  return inner;
}

DigitCodec Tiled::codec(const Shape& shape) const noexcept {
  const std::size_t rank = shape.rank();
  DigitCodec codec(shape);
  std::span<const std::uint64_t> space = shape;
  for (std::size_t i = 0; i < levels(); ++i) {
    const TileLevel at = level(i, rank);
    const Grid grid(space, at.tile_shape);
    codec.add(at.orders.outer, grid.span(), at.outer_strides, at.tile_shape,
              product(at.tile_shape).value_or(0));
    if (at.orders.inner != LayoutTag::tiled)
      codec.add(at.orders.inner, at.tile_shape, at.inner_strides);
    space = at.tile_shape;
  }
  return codec;
}

}  // namespace hurray
