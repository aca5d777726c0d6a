#include "hurray/elements.hpp"

#include <gtest/gtest.h>

#include <set>

#include "dense_support.hpp"
#include "hurray/statistics_of.hpp"
#include "hurray/to_dense.hpp"

namespace hurray::testing {
namespace {

using Index = std::vector<std::uint64_t>;

TEST(Place, TheTableOfTheReference) {
  const auto at = [](unsigned width, std::int64_t slot) { return place(width, 100, slot); };
  EXPECT_EQ(at(1, 7), (Place{100, 7}));
  EXPECT_EQ(at(2, 7), (Place{101, 6}));
  EXPECT_EQ(at(4, 7), (Place{103, 4}));
  EXPECT_EQ(at(6, 7), (Place{105, 2}));
  EXPECT_EQ(at(1, 5), (Place{100, 5}));
  EXPECT_EQ(at(2, 5), (Place{101, 2}));
  EXPECT_EQ(at(4, 5), (Place{102, 4}));
  EXPECT_EQ(at(6, 5), (Place{103, 6}));
  EXPECT_EQ(at(1, -5), (Place{99, 3}));
  EXPECT_EQ(at(2, -5), (Place{98, 6}));
  EXPECT_EQ(at(4, -5), (Place{97, 4}));
  EXPECT_EQ(at(6, -5), (Place{96, 2}));
  EXPECT_EQ(place(16, 64, 22), (Place{108, 0}));
  EXPECT_EQ(place(128, 64, -4), (Place{0, 0}));
}

TEST(Place, AgreesWithTheUnifiedFormula) {
  for (const unsigned width : widths)
    for (std::int64_t slot = -64; slot <= 64; ++slot) {
      const std::int64_t bit = 8 * 4096 + static_cast<std::int64_t>(width) * slot;
      const auto found = place(width, 4096, slot);
      ASSERT_EQ(found, (Place{static_cast<std::uint64_t>(bit) / 8,
                              static_cast<unsigned>(static_cast<std::uint64_t>(bit) % 8)}))
          << width << " " << slot;
    }
}

TEST(Place, OutsideTheAddressableBytes) {
  constexpr auto top = std::numeric_limits<std::int64_t>::max();
  constexpr auto bottom = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(place(8, 4, -5), std::nullopt);
  EXPECT_EQ(place(4, 2, -5), std::nullopt);
  EXPECT_EQ(place(1, 0, -1), std::nullopt);
  EXPECT_EQ(place(1, 0, bottom), std::nullopt);
  EXPECT_EQ(place(8, 1, top), std::nullopt);
  EXPECT_EQ(place(16, 0, top), std::nullopt);
  EXPECT_EQ(place(128, 0, bottom), std::nullopt);
  EXPECT_EQ(place(8, dynamic, 0), std::nullopt);
  EXPECT_EQ(place(8, std::uint64_t{1} << 63, 0), std::nullopt);
  EXPECT_EQ(place(6, 0, top), (Place{0x5FFFFFFFFFFFFFFF, 2}));
  EXPECT_EQ(place(8, 0, top), (Place{0x7FFFFFFFFFFFFFFF, 0}));
}

Elements open(const Tensor& tensor, const ElementOptions& options = {}) {
  auto elements = Elements::over(tensor, options);
  if (!elements) throw std::logic_error(to_string(elements.error()));
  return *elements;
}

std::int64_t slot_of(const Elements& elements, const Index& index) {
  const auto slot = elements.slot(index);
  if (!slot) throw std::logic_error(to_string(slot.error()));
  if (!*slot) throw std::logic_error("not stored");
  return **slot;
}

Tensor own(Descriptor d, Buffer buffer) {
  auto tensor = bind(std::move(d), {std::move(buffer)});
  if (!tensor) throw std::logic_error(to_string(tensor.error()));
  return *tensor;
}

TEST(Elements, ExamplesOfTheReference) {
  std::mt19937 random(3);
  Descriptor row = described(DType::float16, {2, 5, 3}, RowMajor{});
  row.byte_offset = 64;
  const Elements rows = open(own(row, random_bytes(124, random)));
  EXPECT_EQ(slot_of(rows, {1, 2, 1}), 22);
  EXPECT_EQ(rows.place(22), (Place{108, 0}));
  const Elements columns =
      open(own(described(DType::int8, {2, 5, 3}, ColumnMajor{}), random_bytes(30, random)));
  EXPECT_EQ(slot_of(columns, {1, 2, 1}), 15);
  Descriptor reversed = described(DType::float32, {5, 2}, Strided{{-3, 1}});
  reversed.byte_offset = 48;
  const Elements back = open(own(reversed, random_bytes(56, random)));
  EXPECT_EQ(slot_of(back, {4, 1}), -11);
  EXPECT_EQ(back.place(-11), (Place{4, 0}));
  EXPECT_EQ(back.place(-13), std::nullopt);
  EXPECT_EQ(back.place(2), std::nullopt);
  Descriptor nibbles = described(DType::int4, {3, 2}, Strided{{-2, 1}});
  nibbles.byte_offset = 2;
  const Elements halves = open(own(nibbles, random_bytes(3, random)));
  EXPECT_EQ(halves.place(slot_of(halves, {2, 1})), (Place{0, 4}));
}

TEST(Elements, EveryWidthIsReadAndWrittenWithoutItsNeighbours) {
  std::mt19937 random(5);
  for (const unsigned width : widths) {
    Descriptor d;
    d.shape = {13};
    set_width(d, width);
    ASSERT_EQ(element_bits(d), width);
    const Tensor tensor = filled(d, random);
    const Elements elements = open(tensor, {.write = true});
    EXPECT_EQ(elements.width(), width);
    EXPECT_EQ(elements.index_size(), 1u);
    const std::uint64_t first = 8 * tensor.descriptor().byte_offset;
    for (std::uint64_t i = 0; i < 13; ++i) {
      const auto before =
          std::vector(tensor.buffer(0).bytes().begin(), tensor.buffer(0).bytes().end());
      const std::int64_t slot = slot_of(elements, {i});
      std::vector<std::byte> value(touched_bytes(width, 0));
      ASSERT_TRUE(elements.load(slot, value));
      for (unsigned b = 0; b < 8 * value.size(); ++b)
        ASSERT_EQ(bit(value, b), b < width && bit(before, first + i * width + b));
      if (width <= 128) {
        const Code code = *elements.load(slot);
        for (unsigned b = 0; b < 128; ++b)
          ASSERT_EQ(((b < 64 ? code.low >> b : code.high >> (b - 64)) & 1) != 0,
                    b < width && bit(before, first + i * width + b));
      } else {
        EXPECT_EQ(elements.load(slot).error().code, Errc::unsupported);
        EXPECT_EQ(elements.store(slot, Code{}).error().code, Errc::unsupported);
      }
      for (std::byte& b : value) b = static_cast<std::byte>(random());
      if (width <= 64 && i % 2 == 0) {
        std::uint64_t low = 0;
        std::memcpy(&low, value.data(), value.size());
        ASSERT_TRUE(elements.store(slot, Code{low, ~std::uint64_t{0}}));
      } else {
        ASSERT_TRUE(elements.store(slot, std::span<const std::byte>(value)));
      }
      const auto after = tensor.buffer(0).bytes();
      for (std::uint64_t b = 0; b < 8 * after.size(); ++b) {
        const bool ours = b >= first + i * width && b < first + (i + 1) * width;
        ASSERT_EQ(bit(after, b), ours ? bit(value, b - first - i * width) : bit(before, b));
      }
    }
  }
}

TEST(Elements, AnyDenseLayoutAnyWidth) {
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    Descriptor d = random_dense(random);
    const unsigned width = widths[pick(random, std::size(widths))];
    set_width(d, width);
    const Tensor tensor = filled(d, random);
    const Elements elements = open(tensor);
    std::set<std::int64_t> slots;
    std::uint64_t count = 0;
    for_each_index(d.shape, [&](std::span<const std::uint64_t> index) {
      const auto slot = elements.slot(index);
      ASSERT_TRUE(slot && *slot);
      slots.insert(**slot);
      ++count;
      std::vector<std::byte> value(touched_bytes(width, 0));
      ASSERT_TRUE(elements.load(**slot, value));
      const std::int64_t first = 8 * static_cast<std::int64_t>(tensor.descriptor().byte_offset) +
                                 **slot * static_cast<std::int64_t>(width);
      for (unsigned b = 0; b < width; ++b)
        ASSERT_EQ(bit(value, b),
                  bit(tensor.buffer(0).bytes(), static_cast<std::uint64_t>(first) + b));
      Index back(index.size());
      if (elements.index_of(**slot, back)) {
        ASSERT_TRUE(std::ranges::equal(back, index));
      }
    });
    std::uint64_t visited = 0;
    const auto done =
        elements.for_each([&](std::span<const std::uint64_t> index, std::int64_t slot) {
          EXPECT_EQ(**elements.slot(index), slot);
          ++visited;
          return true;
        });
    ASSERT_TRUE(done && *done);
    EXPECT_EQ(visited, count);
    // Writing is refused exactly where elements share a slot.
    const auto writable = Elements::over(tensor, {.write = true});
    ASSERT_EQ(writable.has_value(), slots.size() == count) << slots.size() << " of " << count;
    if (!writable) {
      EXPECT_EQ(writable.error().code, Errc::unsupported);
    }
  }
}

TEST(Elements, StopsWhenTold) {
  std::mt19937 random(11);
  const Elements elements =
      open(own(described(DType::int8, {3, 3}, RowMajor{}), random_bytes(9, random)));
  int visited = 0;
  const auto done = elements.for_each(
      [&](std::span<const std::uint64_t>, std::int64_t) { return ++visited < 4; });
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_EQ(visited, 4);
}

TEST(Elements, IndicesAreChecked) {
  const Elements elements =
      open(own(described(DType::int8, {2, 3}, RowMajor{}), *Buffer::allocate(6)));
  const auto wrong = elements.slot(Index{1});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(to_string(wrong.error()),
            "index: expected 2 numbers, found 1 (inconsistent); two fields contradict each other");
  const auto outside = elements.slot(Index{1, 3});
  ASSERT_FALSE(outside);
  EXPECT_EQ(to_string(outside.error()),
            "index[1]: expected at most 2 in a dimension of this size, found 3 (out of bounds)");
  EXPECT_EQ(elements.slot(Index{dynamic, 0}).error().code, Errc::out_of_bounds);
  Index back(2);
  EXPECT_TRUE(elements.index_of(5, back));
  EXPECT_EQ(back, (Index{1, 2}));
  EXPECT_FALSE(elements.index_of(6, back));
  EXPECT_FALSE(elements.index_of(-1, back));
  EXPECT_FALSE(elements.index_of(0, std::span(back).first(1)));
  const Elements empty =
      open(own(described(DType::int8, {2, 0}, RowMajor{}), *Buffer::allocate(0)));
  EXPECT_EQ(empty.slot(Index{0, 0}).error().code, Errc::out_of_bounds);
  EXPECT_FALSE(empty.index_of(0, back));
  EXPECT_TRUE(*empty.for_each([](std::span<const std::uint64_t>, std::int64_t) { return false; }));
}

TEST(Elements, SlotsOutsideTheBufferAreRefused) {
  for (const unsigned width : widths) {
    Descriptor d;
    d.shape = {4};
    set_width(d, width);
    const Tensor tensor = own(d, *Buffer::allocate(*packed_bytes(width, 4)));
    const Elements elements = open(tensor, {.write = true});
    std::vector<std::byte> bytes(touched_bytes(width, 0));
    for (const std::int64_t slot :
         {std::int64_t{-1}, std::int64_t{8}, std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
      EXPECT_EQ(elements.place(slot), std::nullopt);
      EXPECT_EQ(elements.load(slot, bytes).error().code, Errc::out_of_bounds);
      EXPECT_EQ(elements.store(slot, std::span<const std::byte>(bytes)).error().code,
                Errc::out_of_bounds);
    }
  }
}

TEST(Elements, ScalarsAndSurplusBytes) {
  const Tensor scalar = own(described(DType::int16, {}, RowMajor{}), i16({-7, 99}));
  const Elements elements = open(scalar);
  EXPECT_EQ(elements.index_size(), 0u);
  EXPECT_EQ(slot_of(elements, {}), 0);
  EXPECT_EQ(elements.load(0)->low, 0xFFF9u);
}

TEST(Elements, SparseTensors) {
  const auto csr = bind(described(DType::int16, {4, 6}, Csr{.nnz = 5}),
                        {i16({7, -2, 9, 4, 1}), u64({4, 0, 3, 5, 3}), u64({0, 1, 4, 4, 5})});
  ASSERT_TRUE(csr);
  const Elements elements = open(*csr);
  EXPECT_EQ(slot_of(elements, {1, 3}), 2);
  EXPECT_EQ(elements.load(2)->low, 9u);
  const auto none = elements.slot(Index{2, 2});
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, std::nullopt);
  EXPECT_FALSE(elements.slot(Index{4, 0}));
  Index index(2);
  EXPECT_TRUE(elements.index_of(3, index));
  EXPECT_EQ(index, (Index{1, 5}));
  EXPECT_FALSE(elements.index_of(-1, index));
  EXPECT_FALSE(elements.index_of(5, index));
  std::vector<std::int64_t> slots;
  EXPECT_TRUE(*elements.for_each([&](std::span<const std::uint64_t>, std::int64_t slot) {
    slots.push_back(slot);
    return true;
  }));
  EXPECT_EQ(slots, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(Elements::over(*csr, {.write = true}));

  const auto broken = bind(described(DType::int16, {4, 6}, Csr{.nnz = 5}),
                           {i16({7, -2, 9, 4, 1}), u64({4, 0, 3, 5, 6}), u64({0, 1, 4, 4, 5})});
  const auto refused = Elements::over(*broken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(field_name(refused.error()), "col_indices[4]");
  EXPECT_EQ(refused.error().origin, Origin::buffer);
}

Tensor paged(std::uint64_t tokens, const std::vector<std::uint32_t>& table) {
  BlockPaged layout{.num_pages = 6, .page_size = 2, .num_seqs = 3};
  std::vector<std::int16_t> pool(144);
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<std::int16_t>(i);
  auto tensor = bind(described(DType::int16, {tokens, 3, 4}, layout),
                     {i16(pool), u32(table), u32({0, 2, 2, 5})});
  if (!tensor) throw std::logic_error(to_string(tensor.error()));
  return *tensor;
}

TEST(Elements, PagedTensors) {
  const Tensor shared = paged(8, {4, 1, 4, 0, 5});
  const Index counts = {3, 0, 5};
  const Elements known = open(shared, {.sequence_tokens = counts});
  EXPECT_EQ(known.index_size(), 4u);
  EXPECT_EQ(slot_of(known, {2, 3, 1, 2}), 18);
  EXPECT_EQ(known.load(131)->low, 131u);
  const auto beyond_tokens = known.slot(Index{0, 3, 0, 0});
  ASSERT_FALSE(beyond_tokens);
  EXPECT_EQ(field_name(beyond_tokens.error()), "index[1]");
  EXPECT_EQ(known.slot(Index{1, 0, 0, 0}).error().code, Errc::out_of_bounds);
  EXPECT_EQ(known.slot(Index{3, 0, 0, 0}).error().index, 0u);
  EXPECT_EQ(known.slot(Index{0, 0, 3, 0}).error().index, 2u);
  EXPECT_EQ(known.slot(Index{0, 0, 0, 4}).error().index, 3u);
  EXPECT_EQ(known.slot(Index{0, 0, 0}).error().code, Errc::inconsistent);
  Index index(4);
  EXPECT_FALSE(known.index_of(30, index));
  std::uint64_t visited = 0;
  EXPECT_TRUE(*known.for_each([&](std::span<const std::uint64_t> at, std::int64_t slot) {
    EXPECT_EQ(slot_of(known, Index(at.begin(), at.end())), slot);
    ++visited;
    return true;
  }));
  EXPECT_EQ(visited, 96u);

  // Without counts elements are found up to the end of the pages, but not visited.
  const Elements open_end = open(shared);
  EXPECT_EQ(slot_of(open_end, {0, 3, 0, 0}), 36);
  EXPECT_FALSE(open_end.slot(Index{0, 4, 0, 0}));
  EXPECT_EQ(open_end.sequence_tokens().error().code, Errc::unsupported);
  EXPECT_EQ(open_end.for_each([](std::span<const std::uint64_t>, std::int64_t) { return true; })
                .error()
                .code,
            Errc::unsupported);
  const Index wrong = {3, 1, 4};
  EXPECT_EQ(Elements::over(shared, {.sequence_tokens = wrong}).error().code, Errc::inconsistent);
  EXPECT_EQ(*open(paged(10, {4, 1, 4, 0, 5})).sequence_tokens()->begin(), 4u);

  // Page 4 belongs to two sequences: what one writes the other would read.
  EXPECT_EQ(Elements::over(shared, {.write = true}).error().code, Errc::unsupported);
  EXPECT_TRUE(Elements::over(paged(8, {4, 1, 3, 0, 5}), {.write = true}));
  EXPECT_FALSE(Elements::over(paged(8, {4, 1, 6, 0, 5})));
}

TEST(Elements, WhatIsRefused) {
  const auto code = [](const Result<Tensor>& tensor, const ElementOptions& options = {}) {
    EXPECT_TRUE(tensor) << to_string(tensor.error());
    const auto elements = Elements::over(*tensor, options);
    EXPECT_FALSE(elements);
    return elements.error();
  };
  const auto buffer = [] { return *Buffer::allocate(64); };
  EXPECT_EQ(code(bind(described(DType::int8, {2, 3}, CompositeHead{}), {})).code,
            Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::int8, {2, 3}, PrivateLayout{}), {buffer()})).code,
            Errc::unsupported);
  UnknownLayout unknown;
  EXPECT_EQ(code(bind(described(DType::int8, {2}, unknown), {}, {.permissive = true})).code,
            Errc::unsupported);
  EXPECT_EQ(
      code(bind(described(DType{0x05}, {2}, RowMajor{}), {buffer()}, {.permissive = true})).field,
      "type_tag");
  const Error sized = code(bind(described(DType::int8, {2, dynamic}, RowMajor{}), {buffer()}));
  EXPECT_EQ(field_name(sized), "shape[1]");
  Csf csf{.nnz = 0, .mode_order = {0, 0, 1}};
  EXPECT_EQ(code(bind(described(DType::int8, {2, 2, 2}, csf),
                      {Buffer(), u64({0, 0}), Buffer(), u64({0}), Buffer(), u64({0}), Buffer()},
                      {.permissive = true}))
                .field,
            "layout.mode_order");
  Descriptor elsewhere = described(DType::int8, {64}, RowMajor{});
  elsewhere.buffers.resize(1);
  elsewhere.buffers[0].device = Device::cuda;
  elsewhere.buffers[0].alignment = 64;
  EXPECT_EQ(field_name(code(bind(elsewhere, {buffer()}))), "buffers[0].device_tag");
  EXPECT_EQ(field_name(code(bind(elsewhere, {buffer()}, {.memory_device = Device::cuda}))),
            "buffers[0].device_tag");
  elsewhere.buffers[0].sync_mode = SyncMode::event;
  EXPECT_EQ(field_name(code(bind(elsewhere, {buffer()}, {.memory_device = Device::cuda}))),
            "buffers[0].sync_mode");
  EXPECT_EQ(code(bind(described(DType::int8, {4}, RowMajor{}),
                      {exact(buffer().bytes(), /*readonly=*/true)}),
                 {.write = true})
                .what,
            "read-only memory is not written to; copy the tensor");
  EXPECT_EQ(
      code(bind(described(DType::int8, {1000, 4}, Strided{{0, 1}}), {buffer()}), {.write = true})
          .field,
      "layout");
  const Elements reading = open(own(described(DType::int8, {4}, RowMajor{}), buffer()));
  EXPECT_EQ(reading.store(0, Code{}).error().code, Errc::invalid_state);
}

TEST(Elements, StridesThatDoNotNestAreWrittenWhenNothingCoincides) {
  EXPECT_TRUE(Elements::over(
      own(described(DType::int8, {2, 3}, Strided{{3, 2}}), *Buffer::allocate(8)), {.write = true}));
  EXPECT_FALSE(
      Elements::over(own(described(DType::int8, {3, 3}, Strided{{4, 2}}), *Buffer::allocate(13)),
                     {.write = true}));
  // Far more elements than places: settled before any of them is looked at.
  EXPECT_FALSE(Elements::over(
      own(described(DType::int8, {std::uint64_t{1} << 62}, Strided{{0}}), *Buffer::allocate(1)),
      {.write = true}));
}

TEST(Elements, KeepTheTensorAlive) {
  std::optional<Elements> elements;
  {
    const Tensor tensor = own(described(DType::int16, {3}, RowMajor{}), i16({1, 2, 3}));
    elements = open(tensor);
  }
  EXPECT_EQ(elements->load(2)->low, 3u);
  const Elements copy = *elements;
  elements.reset();
  EXPECT_EQ(copy.load(0)->low, 1u);
}

TEST(Elements, RunsOfPackedElementsAreCopiedBetweenAnyPlaces) {
  std::mt19937 random(13);
  for (int round = 0; round < 3000; ++round) {
    const unsigned width = widths[pick(random, 5)];
    const std::uint64_t count = pick(random, 90);
    const std::uint64_t from = pick(random, 20);
    const std::uint64_t to = pick(random, 20);
    const auto bytes = [&](std::uint64_t first) { return ((first + count) * width + 7) / 8; };
    const Buffer source = random_bytes(bytes(from), random);
    const Buffer target = random_bytes(bytes(to), random);
    const std::vector before(target.bytes().begin(), target.bytes().end());
    const auto at = [&](std::uint64_t slot) {
      return *place(width, 0, static_cast<std::int64_t>(slot));
    };
    if (source.size() == 0 || target.size() == 0) continue;
    detail::copy_run(width, target.data(), at(to), source.data(), at(from), count);
    for (std::uint64_t b = 0; b < 8 * before.size(); ++b) {
      const bool copied = b >= to * width && b < (to + count) * width;
      ASSERT_EQ(bit(target.bytes(), b),
                copied ? bit(source.bytes(), b - to * width + from * width) : bit(before, b));
    }
  }
}

TEST(AmbiguousBool, OneByteForEachStoredElementFromOutside) {
  const BindOptions outside{.provenance = Provenance::outside};
  const auto tensor = [&](std::uint64_t bytes, const BindOptions& options) {
    return *bind(described(DType::bool_, {10}, RowMajor{}), {*Buffer::allocate(bytes, true)},
                 options);
  };
  EXPECT_TRUE(ambiguous_bool(tensor(10, outside)));
  EXPECT_FALSE(ambiguous_bool(tensor(2, outside)));
  EXPECT_FALSE(ambiguous_bool(tensor(11, outside)));
  EXPECT_FALSE(ambiguous_bool(tensor(10, {})));
  const auto coo = [&](std::uint64_t bytes) {
    return *bind(described(DType::bool_, {4, 6}, Coo{.nnz = 2, .is_sorted = 1}),
                 {*Buffer::allocate(bytes, true), u64({0, 1, 2, 3})}, outside);
  };
  EXPECT_TRUE(ambiguous_bool(coo(2)));
  EXPECT_FALSE(ambiguous_bool(coo(1)));
}

TEST(AmbiguousBool, EveryLayoutWithItsPadding) {
  constexpr auto row = LayoutTag::row_major;
  struct Case {
    const char* what;
    Shape shape;
    Layout layout;
    std::uint64_t byte_offset;
    std::vector<std::uint64_t> ambiguous;  // sizes of buffer 0
    std::uint64_t plain;
  };
  const std::vector<Case> cases{
      {"row_major", {3, 3}, RowMajor{}, 0, {9}, 10},
      {"row_major behind other bytes", {3, 3}, RowMajor{}, 4, {9, 13}, 12},
      {"col_major", {3, 3}, ColumnMajor{}, 0, {9}, 2},
      {"strided with gaps", {3, 3}, Strided{.strides = {8, 1}}, 0, {9, 19}, 18},
      {"strided backwards", {6}, Strided{.strides = {-2}}, 10, {11}, 12},
      {"strided backwards over bits", {6}, Strided{.strides = {-2}}, 2, {6, 11}, 3},
      {"tiled", {3, 3}, Tiled({2, 2}, {row, row}), 0, {9, 16}, 15},
      {"tiled twice", {5}, Tiled({4}).inside(Tiled({2})), 0, {5, 8}, 7},
      {"morton", {3, 3}, Morton{.bits = {2, 2}}, 0, {9, 16}, 15},
      {"hilbert", {4, 4}, Hilbert{.order = 2, .rank = 2}, 0, {16}, 15},
  };
  const auto bound = [](const Case& c, std::uint64_t bytes, Provenance provenance) {
    Descriptor d = described(DType::bool_, c.shape, c.layout);
    d.byte_offset = c.byte_offset;
    auto tensor = bind(d, {*Buffer::allocate(bytes, true)}, {.provenance = provenance});
    EXPECT_TRUE(tensor) << c.what << to_string(tensor.error());
    return *std::move(tensor);
  };
  for (const Case& c : cases) {
    for (const std::uint64_t bytes : c.ambiguous) {
      const Tensor tensor = bound(c, bytes, Provenance::outside);
      EXPECT_TRUE(ambiguous_bool(tensor)) << c.what << bytes;
      EXPECT_EQ(to_dense(tensor).error().code, Errc::unsupported) << c.what << bytes;
      EXPECT_EQ(statistics_of(tensor).error().code, Errc::unsupported) << c.what << bytes;
      EXPECT_FALSE(ambiguous_bool(bound(c, bytes, Provenance::own))) << c.what << bytes;
    }
    EXPECT_FALSE(ambiguous_bool(bound(c, c.plain, Provenance::outside))) << c.what;
    EXPECT_TRUE(to_dense(bound(c, c.plain, Provenance::outside))) << c.what;
  }
  const auto paged = [](std::uint64_t bytes) {
    const Layout layout = BlockPaged{.num_pages = 3, .page_size = 2, .num_seqs = 1};
    return *bind(described(DType::bool_, {4, 2, 2}, layout),
                 {*Buffer::allocate(bytes, true), u32({0, 1}), u32({0, 2})},
                 {.provenance = Provenance::outside});
  };
  EXPECT_TRUE(ambiguous_bool(paged(24))) << "all pages, used or not";
  EXPECT_EQ(to_dense(paged(24)).error().code, Errc::unsupported);
  EXPECT_EQ(statistics_of(paged(24)).error().code, Errc::unsupported);
  EXPECT_FALSE(ambiguous_bool(paged(3)));
  EXPECT_TRUE(to_dense(paged(3)));
}

TEST(Elements, BytesOfOneElementAndNoOthers) {
  for (const DType dtype : {DType::int4, DType::int16, DType::complex128}) {
    const auto bytes = static_cast<std::size_t>(touched_bytes(bits(dtype), 0));
    const Tensor tensor = *bind(described(dtype, {4}, RowMajor{}), {*Buffer::allocate(64, true)});
    const Elements elements = open(tensor, {.write = true});
    std::vector<std::byte> memory(bytes + 1);
    for (const std::size_t wrong : {std::size_t{0}, bytes - 1, memory.size()}) {
      const auto part = std::span(memory).first(wrong);
      EXPECT_EQ(elements.load(0, part).error().code, Errc::inconsistent);
      EXPECT_EQ(elements.store(0, std::span<const std::byte>(part)).error().expected, bytes);
    }
    EXPECT_TRUE(elements.load(0, std::span(memory).first(bytes)));
    EXPECT_TRUE(elements.store(0, std::span<const std::byte>(memory).first(bytes)));
  }
}

}  // namespace
}  // namespace hurray::testing
