#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "hurray/layout.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

using Index = std::vector<std::uint64_t>;
using Range = std::pair<std::int64_t, std::int64_t>;
using Sizes = std::pair<std::uint64_t, std::uint64_t>;
using Visits = std::vector<std::pair<Index, std::int64_t>>;

constexpr LayoutTag row = LayoutTag::row_major;
constexpr LayoutTag column = LayoutTag::col_major;
constexpr LayoutTag strided = LayoutTag::strided;

std::vector<BitPath> bit_paths() {
  std::vector<BitPath> paths{BitPath::portable};
  if (fastest_bit_path() != BitPath::portable) paths.push_back(fastest_bit_path());
  return paths;
}

/// Every index of a box, dimension 0 or the last one fastest.
std::vector<Index> indices(const Index& sizes, LayoutTag order = row) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : sizes) count *= n;
  std::vector<Index> all;
  for (std::uint64_t e = 0; e < count; ++e) {
    Index index(sizes.size());
    std::uint64_t rest = e;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t k = order == column ? i : sizes.size() - 1 - i;
      index[k] = rest % sizes[k];
      rest /= sizes[k];
    }
    all.push_back(index);
  }
  return all;
}

Index sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

template <class Layout>
Visits visits(const Layout& layout, const Shape& shape) {
  Visits seen;
  EXPECT_TRUE(
      layout.for_each(shape, [&](std::span<const std::uint64_t> index, std::int64_t offset) {
        seen.emplace_back(Index(index.begin(), index.end()), offset);
        return true;
      }));
  return seen;
}

/// All that a dense layout answers, against the offsets in `expected`, which are in storage order.
template <class Layout>
void check(const Layout& layout, const Shape& shape, const Visits& expected) {
  const auto codec = layout.codec(shape);
  const auto range = layout.range(shape);
  ASSERT_TRUE(range);
  std::map<std::int64_t, Index> at;
  bool coincide = false;
  for (const auto& [index, offset] : expected) {
    ASSERT_EQ(layout.offset(index, shape), offset);
    ASSERT_EQ(codec.offset(index), offset);
    ASSERT_GE(offset, range->lo);
    ASSERT_LE(offset, range->hi);
    coincide |= !at.emplace(offset, index).second;
  }
  if (coincide) {
    ASSERT_FALSE(codec.has_inverse());
  }
  for (std::int64_t e = range->lo - 3; e <= range->hi + 3; ++e) {
    Index index(shape.rank());
    const auto found = at.find(e);
    const bool is_element = codec.has_inverse() && found != at.end();
    ASSERT_EQ(layout.index_of(e, shape, index), is_element) << e;
    if (is_element) {
      ASSERT_EQ(index, found->second);
    }
    ASSERT_EQ(codec.index_of(e, index), is_element);
  }
  for (const std::int64_t e :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    Index index(shape.rank());
    ASSERT_FALSE(layout.index_of(e, shape, index));
  }
  ASSERT_EQ(visits(layout, shape), expected);
  if constexpr (std::is_same_v<decltype(codec), const DigitCodec>) {
    Visits seen;
    ASSERT_TRUE(codec.for_each_run([&](const DigitRun& run) {
      for (std::uint64_t i = 0; i < run.steps; ++i) {
        Index index(run.index.begin(), run.index.end());
        if (i != 0) index[run.dimension] += i * run.unit;
        seen.emplace_back(index, run.offset + static_cast<std::int64_t>(i) * run.stride);
      }
      return true;
    }));
    ASSERT_EQ(seen, expected);
  }
  for (std::size_t stop = 1; stop <= expected.size(); stop += 1 + stop / 2) {
    std::size_t calls = 0;
    const bool all = layout.for_each(shape, [&](auto, auto) { return ++calls != stop; });
    ASSERT_FALSE(all);
    ASSERT_EQ(calls, stop);
  }
}

template <class Layout>
void check_without_elements(const Layout& layout, const Shape& shape) {
  EXPECT_TRUE(visits(layout, shape).empty());
  Index index(shape.rank());
  EXPECT_FALSE(layout.index_of(0, shape, index));
}

template <class Layout>
std::int64_t offset(const Layout& layout, const Shape& shape, const Index& index) {
  return layout.offset(index, shape);
}

Range range(const auto& layout, const Shape& shape) {
  const auto range = layout.range(shape);
  return {range->lo, range->hi};
}

/// The layout's own bytes in the descriptor.
Bytes wire(Layout layout, const Shape& shape) {
  Descriptor d;
  d.shape = shape;
  d.layout = std::move(layout);
  d.dtype = DType::int8;
  d.byte_offset = 1000;
  d.buffers = BufferTable{handle(5000)};
  const Bytes bytes = *encode(d);
  const auto fields = bytes.begin() + static_cast<std::ptrdiff_t>(28 + 8 * shape.rank());
  return {fields, bytes.end() - 17};  // the buffer table
}

/// The least byte offset and, with it, the least size of buffer 0 that are valid.
Sizes least_bytes(DType dtype, Layout layout, const Shape& shape) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = shape;
  d.layout = std::move(layout);
  d.buffers = BufferTable{handle(100000)};
  while (!validate(d)) ++d.byte_offset;
  while (validate(d)) --d.buffers[0].byte_size;
  return {d.byte_offset, d.buffers[0].byte_size + 1};
}

std::int64_t dot(const Index& index, std::span<const std::int64_t> strides) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < index.size(); ++k)
    sum += static_cast<std::int64_t>(index[k]) * strides[k];
  return sum;
}

// 02-layouts.md section 7, as written there.

struct Level {
  Index tile;
  LayoutTag outer = row;
  LayoutTag inner = row;  // unless there is a next level
  std::vector<std::int64_t> outer_strides;
  std::vector<std::int64_t> inner_strides;
};
using Levels = std::vector<Level>;

std::int64_t ordered(LayoutTag order, const Index& index, const Index& sizes,
                     const std::vector<std::int64_t>& strides) {
  if (order == strided) return dot(index, strides);
  std::int64_t sum = 0;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t k = order == column ? i : sizes.size() - 1 - i;
    sum += static_cast<std::int64_t>(index[k]) * stride;
    stride *= static_cast<std::int64_t>(sizes[k]);
  }
  return sum;
}

Index grid_of(const Index& space, const Index& tile) {
  Index grid;
  for (std::size_t k = 0; k < tile.size(); ++k) grid.push_back((space[k] + tile[k] - 1) / tile[k]);
  return grid;
}

std::int64_t tiled_offset(std::span<const Level> levels, const Index& index, const Index& space) {
  const Level& level = levels[0];
  const Index grid = grid_of(space, level.tile);
  std::int64_t pitch = 1;
  Index t;
  Index c;
  for (std::size_t k = 0; k < index.size(); ++k) {
    pitch *= static_cast<std::int64_t>(level.tile[k]);
    t.push_back(index[k] / level.tile[k]);
    c.push_back(index[k] % level.tile[k]);
  }
  const std::int64_t inside = levels.size() > 1
                                  ? tiled_offset(levels.subspan(1), c, level.tile)
                                  : ordered(level.inner, c, level.tile, level.inner_strides);
  return pitch * ordered(level.outer, t, grid, level.outer_strides) + inside;
}

/// All indices of a space in grid order, then inner order; strides do not change the order.
std::vector<Index> tiled_order(std::span<const Level> levels, const Index& space) {
  const Level& level = levels[0];
  const auto inside = levels.size() > 1 ? tiled_order(levels.subspan(1), level.tile)
                                        : indices(level.tile, level.inner);
  std::vector<Index> all;
  for (const Index& t : indices(grid_of(space, level.tile), level.outer))
    for (const Index& c : inside) {
      Index index;
      for (std::size_t k = 0; k < space.size(); ++k) index.push_back(t[k] * level.tile[k] + c[k]);
      all.push_back(index);
    }
  return all;
}

bool inside(const Index& index, const Index& sizes) {
  for (std::size_t k = 0; k < index.size(); ++k)
    if (index[k] >= sizes[k]) return false;
  return true;
}

Tiled tiled_of(const Levels& levels) {
  const auto one = [](const Level& level) {
    return Tiled(std::span(level.tile), {level.outer, level.inner}, level.outer_strides,
                 level.inner_strides);
  };
  Tiled layout = one(levels[0]);
  for (std::size_t i = 1; i < levels.size(); ++i) layout.inside(one(levels[i]));
  return layout;
}

void check_tiled(const Levels& levels, const Shape& shape) {
  const Tiled layout = tiled_of(levels);
  const Index space = sizes_of(shape);
  Visits expected;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  for (const Index& index : tiled_order(levels, space)) {
    const std::int64_t e = tiled_offset(levels, index, space);
    lo = std::min(lo, e);
    hi = std::max(hi, e);
    if (inside(index, space)) expected.emplace_back(index, e);
  }
  ASSERT_EQ(range(layout, shape), Range(lo, hi));
  check(layout, shape, expected);
}

// Section 8, as written there.

std::int64_t morton_offset(const std::vector<std::uint32_t>& bits, const Index& index) {
  std::uint64_t e = 0;
  unsigned out = 0;
  for (std::uint32_t b = 0; b < *std::ranges::max_element(bits); ++b)
    for (std::size_t d = 0; d < bits.size(); ++d)
      if (b < bits[d]) e |= (index[d] >> b & 1) << out++;
  return static_cast<std::int64_t>(e);
}

Morton morton_of(const std::vector<std::uint32_t>& bits) {
  Morton layout;
  for (const std::uint32_t n : bits) layout.bits.push_back(n);
  return layout;
}

void check_morton(const std::vector<std::uint32_t>& bits, const Shape& shape) {
  const Morton layout = morton_of(bits);
  Index space;
  for (const std::uint32_t n : bits) space.push_back(std::uint64_t{1} << n);
  std::map<std::int64_t, Index> slots;
  for (const Index& index : indices(space)) slots.emplace(morton_offset(bits, index), index);
  ASSERT_EQ(slots.size(), indices(space).size());
  ASSERT_EQ(range(layout, shape), Range(slots.begin()->first, slots.rbegin()->first));
  Visits expected;
  for (const auto& [e, index] : slots)
    if (inside(index, sizes_of(shape))) expected.emplace_back(index, e);
  check(layout, shape, expected);
  for (const BitPath path : bit_paths()) {
    const MortonCodec codec(layout, shape, path);
    for (const auto& [index, e] : expected) {
      ASSERT_EQ(codec.offset(index), e);
      Index found(index.size());
      ASSERT_TRUE(codec.index_of(e, found));
      ASSERT_EQ(found, index);
    }
  }
}

// Section 15, as written there.

void twist(Index& x, std::size_t j, std::uint32_t b) {
  const std::uint64_t low = (std::uint64_t{1} << b) - 1;
  if ((x[j] >> b & 1) != 0) {
    x[0] ^= low;
  } else {
    const std::uint64_t s = (x[0] ^ x[j]) & low;
    x[0] ^= s;
    x[j] ^= s;
  }
}

std::int64_t hilbert_offset(Index x, std::uint32_t order) {
  const std::size_t r = x.size();
  for (std::uint32_t b = order; b-- > 1;)
    for (std::size_t j = 0; j < r; ++j) twist(x, j, b);
  for (std::size_t j = 1; j < r; ++j) x[j] ^= x[j - 1];
  std::uint64_t g = 0;
  for (std::uint32_t b = order; b-- > 1;)
    if ((x[r - 1] >> b & 1) != 0) g ^= (std::uint64_t{1} << b) - 1;
  for (std::uint64_t& n : x) n ^= g;
  std::uint64_t e = 0;
  for (std::uint32_t b = order; b-- > 0;)
    for (std::size_t j = 0; j < r; ++j) e = 2 * e + (x[j] >> b & 1);
  return static_cast<std::int64_t>(e);
}

Hilbert hilbert(std::uint32_t rank, std::uint32_t order) { return {.order = order, .rank = rank}; }

Shape cube(std::uint32_t rank, std::uint32_t order) {
  Shape shape;
  shape.resize(rank);
  for (std::uint64_t& n : shape) n = std::uint64_t{1} << order;
  return shape;
}

Index index_at(const Hilbert& layout, std::int64_t e) {
  Index index(layout.rank);
  EXPECT_TRUE(layout.index_of(e, cube(layout.rank, layout.order), index));
  return index;
}

/// Random numbers that are the same everywhere.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  /// Of [least, most].
  std::uint64_t number(std::uint64_t least, std::uint64_t most) {
    return least + engine_() % (most - least + 1);
  }
  std::int64_t stride(std::int64_t most) {
    return static_cast<std::int64_t>(number(0, static_cast<std::uint64_t>(2 * most))) - most;
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[number(0, i - 1)]);
  }
  /// Strides of either sign that nest in a random order, with gaps or without, mostly.
  std::vector<std::int64_t> strides(const Index& sizes) {
    std::vector<std::int64_t> strides(sizes.size());
    if (number(0, 4) == 0) {
      for (std::int64_t& s : strides) s = stride(9);
      return strides;
    }
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order);
    auto next = static_cast<std::int64_t>(number(1, 2));
    for (const std::size_t k : order) {
      strides[k] = number(0, 1) == 0 ? next : -next;
      next *= static_cast<std::int64_t>(sizes[k]);
      next += static_cast<std::int64_t>(number(0, 3) / 3);
    }
    return strides;
  }
  Shape shape(std::size_t rank, std::uint64_t most) {
    Shape shape;
    for (std::size_t k = 0; k < rank; ++k) shape.push_back(number(1, most));
    return shape;
  }

 private:
  std::mt19937 engine_;
};

TEST(Addressing, EveryDenseLayoutAnswersTheSameQuestions) {
  const auto answers = []<class T>(const T& layout) {
    if constexpr (DenseLayout<T>) {
      const Shape shape{4, 4};
      const Index index{3, 2};
      Index back(2);
      const std::int64_t e = layout.offset(index, shape);
      EXPECT_TRUE(layout.codec(shape).has_inverse());
      EXPECT_TRUE(layout.index_of(e, shape, back));
      EXPECT_EQ(back, index);
      EXPECT_EQ(visits(layout, shape).size(), 16u);
      return true;
    }
    return false;
  };
  const std::vector<Layout> all{
      RowMajor{}, ColumnMajor{}, Strided{{-5, 1}}, Tiled{{2, 3}}, morton_of({2, 3}), hilbert(2, 2),
      Csr{},      Coo{}};
  std::size_t dense_layouts = 0;
  for (const Layout& layout : all) dense_layouts += std::visit(answers, layout) ? 1u : 0u;
  EXPECT_EQ(dense_layouts, 6u);
}

TEST(Addressing, RowMajorExample) {
  const Shape shape{2, 5, 3};
  EXPECT_EQ(offset(RowMajor{}, shape, {1, 2, 1}), 22);
  EXPECT_EQ(RowMajor{}.strides_for(shape), (Strides{15, 3, 1}));
  EXPECT_EQ(range(RowMajor{}, shape), Range(0, 29));
}

TEST(Addressing, ColumnMajorExample) {
  const Shape shape{2, 5, 3};
  EXPECT_EQ(offset(ColumnMajor{}, shape, {1, 2, 1}), 15);
  EXPECT_EQ(ColumnMajor{}.strides_for(shape), (Strides{1, 2, 10}));
  EXPECT_EQ(range(ColumnMajor{}, shape), Range(0, 29));
}

TEST(Addressing, StridedExamples) {
  const Strided reversed{{-3, 1}};
  EXPECT_EQ(range(reversed, {5, 2}), Range(-12, 1));
  EXPECT_EQ(least_bytes(DType::float32, reversed, {5, 2}), Sizes(48, 56));
  EXPECT_EQ(offset(reversed, {5, 2}, {4, 1}), -11);  // byte 48 - 44
  EXPECT_EQ(wire(reversed, {5, 2}), hex("FD FF FF FF FF FF FF FF 01 00 00 00 00 00 00 00"));
  EXPECT_EQ(range(Strided{{0, 1}}, {1000, 4}), Range(0, 3));
  EXPECT_EQ(visits(Strided{{0, 1}}, {1000, 4}).size(), 4000u);
  EXPECT_EQ(range(Strided{{-2, 1}}, {3, 2}), Range(-4, 1));
  EXPECT_EQ(least_bytes(DType::int4, Strided{{-2, 1}}, {3, 2}), Sizes(2, 3));
  EXPECT_EQ(range(Strided{{-1}}, {6}), Range(-5, 0));
  EXPECT_EQ(least_bytes(DType::float6_e2m3, Strided{{-1}}, {6}), Sizes(6, 9));
  EXPECT_EQ(range(Strided{{-4, 1}}, {3, 4}), Range(-8, 3));  // L8
}

TEST(Addressing, TiledExamples) {
  const Tiled a({2, 3}, {row, column});
  EXPECT_EQ(range(a, {5, 7}), Range(0, 53));
  EXPECT_EQ(offset(a, {5, 7}, {3, 4}), 27);
  EXPECT_EQ(offset(a, {5, 7}, {4, 5}), 46);
  EXPECT_EQ(wire(a, {5, 7}), hex("0200000000000000 0300000000000000 01 02 00 00"));

  const Tiled b = Tiled({8, 8}, {row, row}).inside(Tiled({4, 2}, {column, row}));
  EXPECT_EQ(range(b, {16, 24}), Range(0, 383));
  EXPECT_EQ(offset(b, {16, 24}, {13, 19}), 347);
  EXPECT_EQ(wire(b, {16, 24}).size(), 40u);

  // A level may be announced, or not, or take the place of strides.
  const Tiled inner({4, 2}, {column, row});
  EXPECT_EQ(Tiled({8, 8}, {row, LayoutTag::tiled}).inside(inner), b);
  EXPECT_EQ(Tiled({8, 8}, {row, strided}, {}, {8, 1}).inside(inner), b);
  const Tiled innermost({2, 1}, {row, column});
  const Tiled three = Tiled({8, 8}, {row, row}).inside(inner).inside(innermost);
  EXPECT_EQ(wire(three, {16, 24}).size(), 60u);
  EXPECT_EQ(Tiled({8, 8}, {row, LayoutTag::tiled})
                .inside(Tiled({4, 2}, {column, LayoutTag::tiled}))
                .inside(innermost),
            three);
  EXPECT_EQ(Tiled({8, 8}, {row, LayoutTag::tiled})
                .inside(Tiled({4, 2}, {column, LayoutTag::tiled}).inside(innermost)),
            three);
  EXPECT_FALSE(Tiled({8, 8}, {row, LayoutTag::tiled}).well_formed(2)) << "announced and not there";

  const Tiled c({2, 3}, {strided, strided}, {-4, 1}, {1, -2});
  EXPECT_EQ(range(c, {4, 6}), Range(-28, 7));
  EXPECT_EQ(offset(c, {4, 6}, {0, 2}), -4);
  EXPECT_EQ(offset(c, {4, 6}, {3, 5}), -21);
  EXPECT_EQ(wire(c, {4, 6}).size(), 52u);
  check_tiled({{{2, 3}, strided, strided, {-4, 1}, {1, -2}}}, {4, 6});
}

TEST(Addressing, MortonExamples) {
  const Morton layout = morton_of({1, 3});
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(offset(layout, {2, 6}, {0, i}), 2 * static_cast<std::int64_t>(i));
    EXPECT_EQ(offset(layout, {2, 6}, {1, i}), 2 * static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_EQ(range(layout, {2, 6}), Range(0, 15));
  EXPECT_EQ(offset(morton_of({3, 2}), {8, 4}, {5, 2}), 25);
  EXPECT_EQ(offset(morton_of({3, 3, 3}), {8, 8, 8}, {3, 5, 1}), 143);
  EXPECT_EQ(Morton::fitting({2, 6}), layout);
  EXPECT_EQ(Morton::fitting({1, 2, 3, 4, 5}), morton_of({1, 1, 2, 2, 3}));
}

TEST(Addressing, HilbertExamples) {
  const std::vector<std::vector<std::int64_t>> rows{
      {0, 3, 4, 5}, {1, 2, 7, 6}, {14, 13, 8, 9}, {15, 12, 11, 10}};
  for (std::uint64_t i = 0; i < 4; ++i)
    for (std::uint64_t j = 0; j < 4; ++j)
      EXPECT_EQ(offset(hilbert(2, 2), cube(2, 2), {i, j}), rows[i][j]);
  const std::vector<Index> corners{{0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0},
                                   {1, 1, 0}, {1, 1, 1}, {1, 0, 1}, {1, 0, 0}};
  for (std::int64_t e = 0; e < 8; ++e)
    EXPECT_EQ(index_at(hilbert(3, 1), e), corners[static_cast<std::size_t>(e)]);
  EXPECT_EQ(offset(hilbert(2, 3), cube(2, 3), {5, 2}), 55);
  EXPECT_EQ(index_at(hilbert(3, 2), 1), (Index{0, 1, 0}));
  EXPECT_EQ(index_at(hilbert(3, 2), 7), (Index{0, 0, 1}));
  EXPECT_EQ(index_at(hilbert(3, 2), 21), (Index{1, 3, 3}));
  EXPECT_EQ(index_at(hilbert(3, 2), 42), (Index{2, 3, 3}));
  EXPECT_EQ(index_at(hilbert(3, 2), 63), (Index{3, 0, 0}));
  EXPECT_EQ(offset(hilbert(3, 2), cube(3, 2), {3, 1, 2}), 48);
}

TEST(Addressing, ContiguousLayoutsAgainstBruteForce) {
  Random random(1);
  check(RowMajor{}, {}, {{{}, 0}});
  for (int round = 0; round < 60; ++round) {
    const Shape shape = random.shape(random.number(1, 5), 5);
    for (const LayoutTag order : {row, column}) {
      Visits expected;
      for (const Index& index : indices(sizes_of(shape), order))
        expected.emplace_back(index, static_cast<std::int64_t>(expected.size()));
      if (order == row)
        check(RowMajor{}, shape, expected);
      else
        check(ColumnMajor{}, shape, expected);
    }
  }
}

TEST(Addressing, StridedAgainstBruteForce) {
  Random random(2);
  int inverses = 0;
  for (int round = 0; round < 300; ++round) {
    const Shape shape = random.shape(random.number(1, 4), 5);
    Strided layout;
    for (const std::int64_t s : random.strides(sizes_of(shape))) layout.strides.push_back(s);
    Visits expected;
    std::int64_t lo = 0;
    std::int64_t hi = 0;
    for (const Index& index : indices(sizes_of(shape))) {
      expected.emplace_back(index, dot(index, layout.strides));
      lo = std::min(lo, expected.back().second);
      hi = std::max(hi, expected.back().second);
    }
    ASSERT_EQ(range(layout, shape), Range(lo, hi));
    check(layout, shape, expected);
    inverses += layout.codec(shape).has_inverse() ? 1 : 0;
  }
  EXPECT_GT(inverses, 200);
  EXPECT_LT(inverses, 300);
}

TEST(Addressing, StridesThatDoNotNestHaveNoInverse) {
  Index index(2);
  EXPECT_FALSE((Strided{{3, 2}}.codec({2, 3}).has_inverse()));  // though no offsets coincide
  EXPECT_FALSE((Strided{{3, 2}}.index_of(0, {2, 3}, index)));
  EXPECT_FALSE((Strided{{0, 1}}.index_of(1, {3, 4}, index)));
  EXPECT_TRUE((Strided{{0, 1}}.index_of(2, {1, 4}, index)));  // one step is no step
  EXPECT_EQ(index, (Index{0, 2}));
  EXPECT_TRUE((Strided{{4, 2}}.codec({2, 2}).has_inverse()));
  EXPECT_FALSE((Strided{{2, 2}}.codec({2, 2}).has_inverse()));
}

TEST(Addressing, StridesUpToTheEndOf64Bits) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  check(Strided{{most}}, {1}, {{{0}, 0}});
  Index index(2);
  const Strided both{{least, most}};
  EXPECT_EQ(range(both, {2, 2}), Range(least, most));
  EXPECT_EQ(visits(both, {2, 2}),
            (Visits{{{0, 0}, 0}, {{0, 1}, most}, {{1, 0}, least}, {{1, 1}, -1}}));
  EXPECT_TRUE(both.codec({2, 2}).has_inverse());
  for (const auto& [at, e] : visits(both, {2, 2})) {
    EXPECT_TRUE(both.index_of(e, {2, 2}, index));
    EXPECT_EQ(index, at);
  }
  EXPECT_FALSE(both.index_of(1, {2, 2}, index));
}

TEST(Addressing, TiledAgainstTheRecursiveDefinition) {
  Random random(3);
  int inverses = 0;
  int nested = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t rank = random.number(1, 3);
    Levels levels(random.number(1, 3));
    // From the innermost tile out, so that each divides the one around it.
    Index tile(rank, 1);
    for (std::size_t i = levels.size(); i-- > 0;) {
      Level& level = levels[i];
      Index previous = tile;
      for (std::size_t k = 0; k < rank; ++k) {
        tile[k] *= random.number(1, levels.size() == 1 ? 4 : 2);
      }
      level.tile = tile;
      level.inner = static_cast<LayoutTag>(random.number(1, 3));
      if (level.inner == strided && i + 1 == levels.size())
        level.inner_strides = random.strides(tile);
    }
    const Shape shape = random.shape(rank, rank == 3 ? 6 : 11);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      levels[i].outer = static_cast<LayoutTag>(random.number(1, 3));
      if (levels[i].outer == strided)
        levels[i].outer_strides =
            random.strides(grid_of(i == 0 ? sizes_of(shape) : levels[i - 1].tile, levels[i].tile));
    }
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) levels[i].inner = LayoutTag::row_major;
    check_tiled(levels, shape);
    const bool inverse = tiled_of(levels).codec(shape).has_inverse();
    inverses += inverse ? 1 : 0;
    nested += inverse && levels.size() > 1 ? 1 : 0;
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(inverses, 200);
  EXPECT_GT(nested, 100);
  EXPECT_LT(inverses, 400);
}

TEST(Addressing, ATileOrGridThatOverlapsHasNoInverse) {
  const Shape shape{4, 4};
  EXPECT_TRUE((Tiled({2, 2}, {strided, row}, {2, 1}).codec(shape).has_inverse()));
  EXPECT_FALSE((Tiled({2, 2}, {strided, row}, {1, 1}).codec(shape).has_inverse()));
  EXPECT_FALSE((Tiled({2, 2}, {row, strided}, {}, {1, 0}).codec(shape).has_inverse()));
  // Tiles that reach into the next one: slots 0, 3, 1, 4 of four.
  EXPECT_FALSE((Tiled({2, 2}, {row, strided}, {}, {3, 1}).codec(shape).has_inverse()));
  // With a gap of one tile between tiles they do not.
  EXPECT_TRUE((Tiled({2, 2}, {strided, strided}, {4, 2}, {3, 1}).codec(shape).has_inverse()));
  check_tiled({{{2, 2}, strided, strided, {4, 2}, {3, 1}}}, shape);
  // Elements between each other: the steps of the grid are smaller than those inside a tile.
  check_tiled({{{1, 2}, strided, strided, {1, 2}, {1, 16}}}, {2, 6});
  EXPECT_TRUE((Tiled({1, 2}, {strided, strided}, {1, 2}, {1, 16}).codec({2, 6}).has_inverse()));
}

TEST(Addressing, OrderOfTiles) {
  // Grid column-major, inside row-major; the last column of tiles is cut.
  const std::vector<Index> order{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0},
                                 {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  std::vector<Index> seen;
  for (const auto& [index, e] : visits(Tiled({2, 2}, {column, row}), {3, 3})) seen.push_back(index);
  EXPECT_EQ(seen, order);
}

TEST(Addressing, EightLevels) {
  constexpr std::size_t rank = 31;
  Tiled layout;
  for (std::size_t i = 0; i < 8; ++i) {
    Index tile(rank);
    for (std::size_t k = 0; k < rank; ++k) tile[k] = k % 8 < i ? 1 : k % 8 == i ? 2 : 4;
    if (i == 0) std::ranges::fill(tile, 4u);
    if (i == 0)
      layout = Tiled(std::span<const std::uint64_t>(tile), {column, row});
    else
      layout.inside(Tiled(std::span<const std::uint64_t>(tile), {row, column}));
  }
  Shape shape;
  for (std::size_t k = 0; k < rank; ++k) shape.push_back(4);
  Random random(4);
  const auto codec = layout.codec(shape);
  EXPECT_TRUE(codec.has_inverse());
  for (int round = 0; round < 200; ++round) {
    Index index;
    Index back(rank);
    for (std::size_t k = 0; k < rank; ++k) index.push_back(random.number(0, 3));
    const std::int64_t e = codec.offset(index);
    ASSERT_GE(e, 0);
    ASSERT_LT(e, std::int64_t{1} << 62);
    ASSERT_TRUE(codec.index_of(e, back));
    ASSERT_EQ(back, index);
  }
  std::int64_t e = 0;
  EXPECT_FALSE(layout.for_each(shape, [&](std::span<const std::uint64_t> index, std::int64_t at) {
    EXPECT_EQ(at, e);
    EXPECT_EQ(codec.offset(index), e);
    return ++e < 5000;
  }));
}

TEST(Addressing, MostDigitsThereCanBe) {
  // Three digits for each size of 5. All tiles of the grid lie at one place.
  constexpr std::size_t rank = 27;
  const Index outer(rank, 4);
  const Index inner(rank, 2);
  const std::vector<std::int64_t> zero(rank);
  const Tiled layout =
      Tiled(std::span(outer), {strided, row}, zero).inside(Tiled(std::span(inner)));
  Shape shape;
  for (std::size_t k = 0; k < rank; ++k) shape.push_back(5);
  EXPECT_EQ(range(layout, shape), Range(0, (std::int64_t{1} << 54) - 1));
  Index index(rank, 4);
  EXPECT_EQ(offset(layout, shape, index), 0);
  index.back() = 1;
  EXPECT_EQ(offset(layout, shape, index), 1);
  index.back() = 2;
  EXPECT_EQ(offset(layout, shape, index), std::int64_t{1} << rank);
  EXPECT_FALSE(layout.index_of(1, shape, index));
  std::uint64_t count = 0;
  EXPECT_FALSE(layout.for_each(shape, [&](auto at, std::int64_t e) {
    EXPECT_EQ(layout.offset(at, shape), e);
    return ++count < 2000;
  }));
}

TEST(Addressing, PaddingCostsNothing) {
  const Tiled wide({std::uint64_t{1} << 31, std::uint64_t{1} << 31});
  EXPECT_EQ(visits(wide, {2, 3}).size(), 6u);
  EXPECT_EQ(visits(wide, {2, 3}).back().second, (std::int64_t{1} << 31) + 2);

  constexpr std::int64_t far = std::int64_t{1} << 40;
  const Tiled cut({static_cast<std::uint64_t>(far)});
  const Shape one_more{static_cast<std::uint64_t>(far) + 1};
  Index index(1);
  EXPECT_TRUE(cut.index_of(far, one_more, index));
  EXPECT_EQ(index[0], static_cast<std::uint64_t>(far));
  EXPECT_FALSE(cut.index_of(far + 1, one_more, index));

  EXPECT_EQ(visits(morton_of({30, 31}), {2, 3}),
            (Visits{{{0, 0}, 0}, {{1, 0}, 1}, {{0, 1}, 2}, {{1, 1}, 3}, {{0, 2}, 8}, {{1, 2}, 9}}));
}

TEST(Addressing, WithoutElements) {
  check_without_elements(RowMajor{}, {3, 0});
  check_without_elements(ColumnMajor{}, {0, 3});
  check_without_elements(Strided{{1, 1}}, {3, 0});
  check_without_elements(Tiled({2, 2}), {0, 3});
  check_without_elements(morton_of({2, 2}), {3, 0});
}

TEST(Addressing, MortonAgainstTheDefinition) {
  Random random(5);
  check_morton({3}, {7});
  check_morton({2, 2}, {4, 4});
  for (int round = 0; round < 150; ++round) {
    std::vector<std::uint32_t> bits(random.number(1, 4));
    Shape shape;
    for (std::uint32_t& n : bits) {
      n = static_cast<std::uint32_t>(random.number(1, bits.size() > 2 ? 3 : 5));
      shape.push_back(random.number(1, std::uint64_t{1} << n));
    }
    check_morton(bits, shape);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(Addressing, MortonOfManyAndOfLongDimensions) {
  Random random(6);
  for (const std::size_t rank : {1u, 2u, 3u, 7u, 21u, 31u, 32u, 62u, 63u})
    for (int round = 0; round < 20; ++round) {
      std::vector<std::uint32_t> bits(rank, 1);
      for (auto left = 63 - rank; left > 0; --left) ++bits[random.number(0, rank - 1)];
      if (round == 0) std::ranges::fill(bits, static_cast<std::uint32_t>(63 / rank));
      Shape shape;
      Index index;
      for (const std::uint32_t n : bits) {
        shape.push_back(std::uint64_t{1} << n);
        index.push_back(random.number(0, shape[shape.rank() - 1] - 1));
      }
      const std::int64_t e = morton_offset(bits, index);
      for (const BitPath path : bit_paths()) {
        const MortonCodec codec(morton_of(bits), shape, path);
        ASSERT_EQ(codec.offset(index), e);
        Index back(rank);
        ASSERT_TRUE(codec.index_of(e, back));
        ASSERT_EQ(back, index);
      }
    }
}

TEST(Addressing, MortonIsThePublishedFormulaForNearlyEqualBits) {
  const auto published = [](const std::vector<std::uint32_t>& bits, const Index& index) {
    std::uint64_t e = 0;
    for (std::size_t d = 0; d < bits.size(); ++d)
      for (std::uint32_t b = 0; b < bits[d]; ++b) e |= (index[d] >> b & 1) << (b * bits.size() + d);
    return static_cast<std::int64_t>(e);
  };
  EXPECT_EQ(published({1, 3}, {1, 4}), 33);
  for (const std::size_t rank : {1u, 2u, 3u})
    for (const Index& less : indices(Index(rank, 4))) {
      std::vector<std::uint32_t> bits;
      Shape shape;
      for (const std::uint64_t n : less) {
        bits.push_back(static_cast<std::uint32_t>(n + 1));
        shape.push_back(std::uint64_t{2} << n);
      }
      const bool equal = std::ranges::all_of(
          indices(sizes_of(shape)),
          [codec = morton_of(bits).codec(shape), &bits, &published](const Index& index) {
            return codec.offset(index) == published(bits, index);
          });
      const bool nearly_equal =
          std::ranges::is_sorted(bits, std::greater{}) && bits.front() - bits.back() <= 1;
      EXPECT_EQ(equal, nearly_equal) << ::testing::PrintToString(bits);
    }
}

TEST(Addressing, HilbertIsACurveThroughTheCube) {
  for (std::uint32_t rank = 2; rank <= 5; ++rank)
    for (std::uint32_t order = 1; order <= (rank == 5 ? 3u : 4u); ++order) {
      const Hilbert layout = hilbert(rank, order);
      const Shape shape = cube(rank, order);
      const auto last = (std::int64_t{1} << (rank * order)) - 1;
      ASSERT_EQ(range(layout, shape), Range(std::int64_t{0}, last));
      Visits expected;
      for (const Index& index : indices(sizes_of(shape)))
        expected.emplace_back(index, hilbert_offset(index, order));
      std::ranges::sort(expected, {}, &Visits::value_type::second);
      for (std::int64_t e = 0; e <= last; ++e)
        ASSERT_EQ(expected[static_cast<std::size_t>(e)].second, e);
      check(layout, shape, expected);

      Index corner(rank);
      EXPECT_EQ(expected.front().first, corner);
      corner[0] = (std::uint64_t{1} << order) - 1;
      EXPECT_EQ(expected.back().first, corner);
      for (std::size_t e = 1; e < expected.size(); ++e) {
        std::uint64_t distance = 0;
        for (std::size_t k = 0; k < rank; ++k) {
          const std::uint64_t a = expected[e].first[k];
          const std::uint64_t b = expected[e - 1].first[k];
          distance += a > b ? a - b : b - a;
        }
        ASSERT_EQ(distance, 1u) << "rank " << rank << ", order " << order << ", at " << e;
      }
    }
}

TEST(Addressing, HilbertOfEveryRankAndOrder) {
  Random random(7);
  for (std::uint32_t rank = 2; rank <= 63; ++rank)
    for (std::uint32_t order = 1; order * rank <= 63; ++order)
      for (int round = 0; round < 10; ++round) {
        Index index;
        for (std::uint32_t k = 0; k < rank; ++k)
          index.push_back(random.number(0, (std::uint64_t{1} << order) - 1));
        const std::int64_t e = hilbert_offset(index, order);
        for (const BitPath path : bit_paths()) {
          const HilbertCodec codec(hilbert(rank, order), path);
          ASSERT_EQ(codec.offset(index), e);
          Index back(rank);
          ASSERT_TRUE(codec.index_of(e, back));
          ASSERT_EQ(back, index);
          ASSERT_FALSE(codec.index_of(-1 - e, back));
          if (rank * order < 63) {
            ASSERT_FALSE(codec.index_of(std::int64_t{1} << (rank * order), back));
          }
        }
      }
}

}  // namespace
}  // namespace hurray::testing
