#pragma once

#include <gtest/gtest.h>

#include <variant>

#include "hurray/elements.hpp"
#include "hurray/selection.hpp"
#include "memory_support.hpp"

namespace hurray::testing {

/// Stored widths in bits: those of the format's own types, then private ones.
inline constexpr unsigned widths[] = {1, 2, 4, 6, 8, 16, 32, 64, 128, 24, 80, 256};

/// An element type of `width` bits: one of the format's own, or a private one.
inline void set_width(Descriptor& d, unsigned width) {
  for (const DTypeInfo& row : dtypes)
    if (row.bits == width && row.kind != Kind::exponent) {
      d.dtype = row.tag;
      return;
    }
  d.dtype = DType{0xF3};
  d.set_extension_type(private_type(width));
}

/// Any dense layout, with a shape that it allows. Strides may be negative, 0 or overlap.
inline Descriptor random_dense(std::mt19937& random) {
  Descriptor d;
  const auto sizes = [&](std::size_t rank, std::uint64_t most) {
    d.shape.resize(rank);
    for (std::uint64_t& n : d.shape) n = pick(random, 40) == 0 ? 0 : 1 + pick(random, most);
  };
  const auto strides = [&](std::size_t rank, std::int64_t most) {
    std::vector<std::int64_t> values(rank);
    for (std::int64_t& s : values)
      s = static_cast<std::int64_t>(pick(random, static_cast<std::uint64_t>(2 * most + 1))) - most;
    return values;
  };
  switch (pick(random, 7)) {
    case 0:
      sizes(pick(random, 5), 5);
      break;
    case 1:
      sizes(1 + pick(random, 4), 5);
      d.layout = ColumnMajor{};
      break;
    case 2:
      sizes(1 + pick(random, 4), 5);
      d.layout = Strided{Strides(strides(d.shape.rank(), 20))};
      break;
    case 3: {  // a view of something row-major: reversed, sliced, its dimensions exchanged
      sizes(1 + pick(random, 4), 5);
      std::vector<std::int64_t> view(d.shape.rank());
      std::vector<std::size_t> order(d.shape.rank());
      for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
      if (pick(random, 2) == 0) std::shuffle(order.begin(), order.end(), random);
      std::int64_t stride = 1;
      for (const std::size_t k : order) {
        view[k] = pick(random, 4) == 0 ? -stride : stride;
        stride *= static_cast<std::int64_t>(d.shape[k] + (pick(random, 3) == 0 ? 1 : 0));
        if (stride == 0) stride = 1;
      }
      d.layout = Strided{Strides(view)};
      break;
    }
    case 4: {
      const std::size_t rank = 1 + pick(random, 3);
      sizes(rank, 9);
      std::vector<std::uint64_t> tile(rank);
      for (std::uint64_t& n : tile) n = 2 * (1 + pick(random, 2));
      const auto order = [&] { return static_cast<LayoutTag>(1 + pick(random, 3)); };
      const auto level = [&](const std::vector<std::uint64_t>& shape) {
        const TileOrders orders{order(), order()};
        return Tiled(
            shape, orders,
            orders.outer == LayoutTag::strided ? strides(rank, 4) : std::vector<std::int64_t>(),
            orders.inner == LayoutTag::strided ? strides(rank, 4) : std::vector<std::int64_t>());
      };
      Tiled tiled = level(tile);
      if (pick(random, 2) == 0) {
        const TileOrders outer{LayoutTag::row_major, LayoutTag::row_major};
        tiled = Tiled(tile, outer, {}, {});
        for (std::uint64_t& n : tile) n /= 2;
        tiled.inside(level(tile));
      }
      d.layout = tiled;
      break;
    }
    case 5:
      sizes(1 + pick(random, 3), 6);
      d.layout = Morton::fitting(d.shape);
      break;
    default: {
      Hilbert hilbert{.order = static_cast<std::uint32_t>(1 + pick(random, 2)),
                      .rank = static_cast<std::uint32_t>(2 + pick(random, 2))};
      d.shape.resize(hilbert.rank);
      for (std::uint64_t& n : d.shape) n = std::uint64_t{1} << hilbert.order;
      d.layout = hilbert;
    }
  }
  return d;
}

/// The descriptor bound to random bytes: as many as it needs, between random ones before and, with
/// `surplus`, after its elements.
inline Tensor filled(Descriptor d, std::mt19937& random, bool surplus = true) {
  const unsigned width = element_bits(d);
  ElementRange range;
  if (!d.shape.is_empty())
    range = std::visit(
        [&]<class T>(const T& layout) {
          if constexpr (DenseLayout<T>) return *layout.range(d.shape);
          return ElementRange{};
        },
        d.layout);
  d.byte_offset =
      *packed_bytes(width, static_cast<std::uint64_t>(-range.lo)) + (surplus ? pick(random, 5) : 0);
  std::uint64_t size = d.byte_offset;
  if (!d.shape.is_empty()) size += *packed_bytes(width, static_cast<std::uint64_t>(range.hi) + 1);
  auto tensor = bind(std::move(d), {random_bytes(size + (surplus ? pick(random, 3) : 0), random)});
  if (!tensor) throw std::logic_error(to_string(tensor.error()));
  return *tensor;
}

/// Bit `i` counted from the lowest of byte 0 on: the slow definition of every packed width.
inline bool bit(std::span<const std::byte> bytes, std::uint64_t i) {
  return (static_cast<unsigned>(bytes[i / 8]) >> i % 8 & 1) != 0;
}

/// What any plan over any dense tensor of this size may take.
inline Selection random_selection(const Shape& shape, std::mt19937& random) {
  Selection selection;
  const std::size_t parts = pick(random, 4) == 0 ? pick(random, shape.rank() + 1) : shape.rank();
  for (std::size_t k = 0; k < parts; ++k) {
    const std::uint64_t n = shape[k];
    switch (pick(random, 5)) {
      case 0:
        if (n != 0) {
          selection.push_back(Along::index(pick(random, n)));
          break;
        }
        [[fallthrough]];
      case 1:
        selection.push_back({});
        break;
      default: {
        Along along{.start = pick(random, n + 1), .stop = pick(random, n + 1)};
        if (along.start > along.stop && pick(random, 8) != 0) std::swap(along.start, along.stop);
        along.step = 1 + pick(random, 3);
        selection.push_back(along);
      }
    }
  }
  return selection;
}

/// The bits of the selected elements, one after the other, found singly.
inline std::vector<bool> selected_bits(const Tensor& tensor, const Selection& selection) {
  const auto elements = Elements::over(tensor);
  EXPECT_TRUE(elements);
  std::vector<bool> bits;
  std::vector<std::byte> value(touched_bytes(elements->width(), 0));
  for_each_index(tensor.descriptor().shape, [&](std::span<const std::uint64_t> index) {
    for (std::size_t k = 0; k < selection.size(); ++k) {
      const Along& along = selection[k];
      if (along.drops ? index[k] != along.start
                      : index[k] < along.start || index[k] >= along.stop ||
                            (index[k] - along.start) % along.step != 0)
        return;
    }
    const auto slot = elements->slot(index);
    ASSERT_TRUE(slot);
    ASSERT_TRUE(elements->load(**slot, value));
    for (unsigned b = 0; b < elements->width(); ++b) bits.push_back(bit(value, b));
  });
  return bits;
}

}  // namespace hurray::testing
