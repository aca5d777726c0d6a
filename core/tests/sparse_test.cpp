#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "hurray/data_checks.hpp"
#include "hurray/elements.hpp"
#include "memory_support.hpp"

namespace hurray::testing {
namespace {

using Index = std::vector<std::uint64_t>;
using Buffers = std::vector<Buffer>;

/// A layout over its shape and index buffers. Buffer 0, the values, is never looked at here.
template <class T>
struct Sparse {
  T layout;
  Shape shape;
  Buffers buffers;

  IndexBuffers indices() const {
    std::uint64_t width = 8;
    if constexpr (std::is_same_v<T, BlockPaged>) width = layout.index_bytes();
    return IndexBuffers(buffers, width);
  }
  std::optional<Error> bounds() const { return layout.check_bounds(indices(), shape); }
  std::optional<Error> canonical() const { return layout.check_canonical(indices(), shape); }
  std::optional<std::uint64_t> find(const Index& index) const {
    return layout.find(index, shape, indices());
  }
  std::vector<Index> order() const {
    std::vector<Index> found;
    layout.for_each(shape, indices(), [&](std::span<const std::uint64_t> index, std::uint64_t at) {
      EXPECT_EQ(at, found.size());
      found.emplace_back(index.begin(), index.end());
      return true;
    });
    return found;
  }
  /// The same with one number of one buffer changed.
  Sparse with(std::size_t buffer, std::size_t at, std::uint64_t value) const {
    Sparse changed = *this;
    std::vector<std::byte> bytes(buffers[buffer].bytes().begin(), buffers[buffer].bytes().end());
    if (indices().entry_bytes() == 8)
      detail::store(bytes.data() + 8 * at, value);
    else
      detail::store(bytes.data() + 4 * at, static_cast<std::uint32_t>(value));
    changed.buffers[buffer] = exact(bytes);
    return changed;
  }
  /// The same with `less` bytes missing from the end of one buffer.
  Sparse shorter(std::size_t buffer, std::size_t less) const {
    Sparse changed = *this;
    const auto bytes = buffers[buffer].bytes();
    changed.buffers[buffer] = exact(bytes.first(bytes.size() - less));
    return changed;
  }
};

struct Expected {
  Errc code;
  std::string field;
  std::uint64_t offset;
  std::uint64_t expected;
  std::uint64_t found;
};

void expect_error(const std::optional<Error>& error, const Expected& wanted) {
  ASSERT_TRUE(error) << wanted.field;
  EXPECT_EQ(error->code, wanted.code) << to_string(*error);
  EXPECT_EQ(error->origin, Origin::buffer);
  EXPECT_EQ(field_name(*error), wanted.field);
  EXPECT_EQ(error->offset, wanted.offset) << to_string(*error);
  EXPECT_EQ(error->expected, wanted.expected) << to_string(*error);
  EXPECT_EQ(error->found, wanted.found) << to_string(*error);
}

// The matrix M of 02-layouts.md sections 9 to 11.
const std::map<Index, int> m = {{{0, 4}, 7}, {{1, 0}, -2}, {{1, 3}, 9}, {{1, 5}, 4}, {{3, 3}, 1}};

Sparse<Coo> coo_m(std::uint8_t sorted = 1) {
  return {{.nnz = 5, .is_sorted = sorted},
          {4, 6},
          {i16({7, -2, 9, 4, 1}), u64({0, 4, 1, 0, 1, 3, 1, 5, 3, 3})}};
}
Sparse<Csr> csr_m() {
  return {{.nnz = 5}, {4, 6}, {i16({7, -2, 9, 4, 1}), u64({4, 0, 3, 5, 3}), u64({0, 1, 4, 4, 5})}};
}
Sparse<Csc> csc_m() {
  return {{.nnz = 5},
          {4, 6},
          {i16({-2, 9, 1, 7, 4}), u64({1, 1, 3, 0, 1}), u64({0, 1, 1, 1, 3, 4, 5})}};
}
// The example of section 12.
Sparse<Csf> csf_example() {
  return {{.nnz = 5, .mode_order = {2, 0, 1}},
          {3, 4, 5},
          {i16({13, 14, 10, 11, 12}), u64({0, 2}), u64({1, 4}), u64({0, 2, 4}), u64({0, 1, 0, 2}),
           u64({0, 1, 2, 3, 5}), u64({0, 2, 1, 1, 3})}};
}
// The example of section 13: sequences of 3, 0 and 5 tokens.
Sparse<BlockPaged> paged_example() {
  return {{.num_pages = 6,
           .page_size = 2,
           .num_seqs = 3,
           .layer_index = 7,
           .kv_role = KvRole::value,
           .index_type = IndexType::uint32},
          {8, 3, 4},
          {Buffer(), u32({4, 1, 4, 0, 5}), u32({0, 2, 2, 5})}};
}

template <class T>
void expect_matrix(const Sparse<T>& sparse, const std::vector<std::int16_t>& values,
                   const std::vector<Index>& order) {
  EXPECT_FALSE(sparse.bounds());
  EXPECT_FALSE(sparse.canonical());
  for_each_index(sparse.shape, [&](std::span<const std::uint64_t> at) {
    const Index index(at.begin(), at.end());
    const auto slot = sparse.find(index);
    const auto wanted = m.find(index);
    ASSERT_EQ(slot.has_value(), wanted != m.end());
    if (!slot) return;
    EXPECT_EQ(values[*slot], wanted->second);
    Index back(2);
    EXPECT_TRUE(sparse.layout.index_of(*slot, sparse.shape, sparse.indices(), back));
    EXPECT_EQ(back, index);
  });
  Index none(2);
  EXPECT_FALSE(sparse.layout.index_of(5, sparse.shape, sparse.indices(), none));
  EXPECT_EQ(sparse.order(), order);
}

TEST(Sparse, TheMatrixOfTheReferenceInThreeLayouts) {
  const std::vector<Index> rows = {{0, 4}, {1, 0}, {1, 3}, {1, 5}, {3, 3}};
  const std::vector<Index> columns = {{1, 0}, {1, 3}, {3, 3}, {0, 4}, {1, 5}};
  expect_matrix(coo_m(1), {7, -2, 9, 4, 1}, rows);
  expect_matrix(coo_m(0), {7, -2, 9, 4, 1}, rows);
  expect_matrix(csr_m(), {7, -2, 9, 4, 1}, rows);
  expect_matrix(csc_m(), {-2, 9, 1, 7, 4}, columns);
}

TEST(Sparse, TheTreeOfTheReference) {
  const auto csf = csf_example();
  EXPECT_FALSE(csf.bounds());
  EXPECT_FALSE(csf.canonical());
  EXPECT_EQ(csf.find({2, 3, 4}), 4u);
  EXPECT_EQ(csf.find({1, 2, 4}), std::nullopt);
  const std::vector<Index> leaves = {{0, 0, 1}, {1, 2, 1}, {0, 1, 4}, {2, 1, 4}, {2, 3, 4}};
  EXPECT_EQ(csf.order(), leaves);
  std::size_t found = 0;
  for_each_index(csf.shape, [&](std::span<const std::uint64_t> at) {
    const Index index(at.begin(), at.end());
    const auto slot = csf.find(index);
    const auto leaf = std::ranges::find(leaves, index);
    ASSERT_EQ(slot.has_value(), leaf != leaves.end());
    if (!slot) return;
    ++found;
    EXPECT_EQ(*slot, static_cast<std::uint64_t>(leaf - leaves.begin()));
    Index back(3);
    EXPECT_TRUE(csf.layout.index_of(*slot, csf.shape, csf.indices(), back));
    EXPECT_EQ(back, index);
  });
  EXPECT_EQ(found, 5u);
}

TEST(Sparse, ThePagesOfTheReference) {
  auto paged = paged_example();
  EXPECT_FALSE(paged.bounds());
  EXPECT_FALSE(paged.canonical());
  EXPECT_EQ(paged.find({0, 2, 1, 2}), 30u);
  EXPECT_EQ(paged.find({2, 0, 0, 0}), 96u);
  EXPECT_EQ(paged.find({2, 3, 1, 2}), 18u);
  EXPECT_EQ(paged.find({2, 4, 2, 3}), 131u);
  EXPECT_EQ(paged.find({0, 4, 0, 0}), std::nullopt);
  EXPECT_EQ(paged.find({1, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(paged.layout.capacity(0, paged.indices()), 4u);
  EXPECT_EQ(paged.layout.capacity(1, paged.indices()), 0u);
  EXPECT_EQ(paged.layout.capacity(2, paged.indices()), 6u);

  // Two of the ten slots are free, and the format does not say where.
  const auto open = paged.layout.sequence_tokens(paged.indices(), paged.shape);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Errc::unsupported);
  const Index counts = {3, 0, 5};
  EXPECT_EQ(*paged.layout.sequence_tokens(paged.indices(), paged.shape, counts), counts);

  std::vector<Index> visited;
  std::vector<std::uint64_t> slots;
  paged.layout.for_each(paged.shape, paged.indices(), counts,
                        [&](std::span<const std::uint64_t> index, std::uint64_t slot) {
                          visited.emplace_back(index.begin(), index.end());
                          slots.push_back(slot);
                          return visited.size() < 96;
                        });
  ASSERT_EQ(visited.size(), 96u);
  std::size_t at = 0;
  for (std::uint64_t s = 0; s < 3; ++s)
    for (std::uint64_t t = 0; t < counts[s]; ++t)
      for (std::uint64_t h = 0; h < 3; ++h)
        for (std::uint64_t e = 0; e < 4; ++e, ++at) {
          EXPECT_EQ(visited[at], (Index{s, t, h, e}));
          EXPECT_EQ(slots[at], paged.find({s, t, h, e}));
        }

  // The same with 64-bit indices.
  paged.layout.index_type = IndexType::uint64;
  paged.buffers[1] = u64({4, 1, 4, 0, 5});
  paged.buffers[2] = u64({0, 2, 2, 5});
  EXPECT_FALSE(paged.bounds());
  EXPECT_EQ(paged.find({2, 4, 2, 3}), 131u);
}

TEST(Sparse, TokensAreDerivedOnlyWhenForced) {
  auto paged = paged_example();
  const auto derived = [&] { return paged.layout.sequence_tokens(paged.indices(), paged.shape); };
  paged.shape[0] = 10;  // every slot
  EXPECT_EQ(*derived(), (Index{4, 0, 6}));
  paged.shape[0] = 0;
  EXPECT_EQ(*derived(), (Index{0, 0, 0}));
  paged.shape[0] = 7;
  EXPECT_EQ(derived().error().code, Errc::unsupported);
  paged.buffers[2] = u32({0, 0, 5, 5});  // one sequence owns all pages
  EXPECT_EQ(*derived(), (Index{0, 7, 0}));

  paged = paged_example();
  const auto supplied = [&](const Index& counts) {
    return paged.layout.sequence_tokens(paged.indices(), paged.shape, counts);
  };
  EXPECT_EQ(*supplied({2, 0, 6}), (Index{2, 0, 6}));
  const auto expect_unfit = [&](const Index& counts, const std::string& field,
                                std::uint64_t expected, std::uint64_t found) {
    const auto result = supplied(counts);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::inconsistent);
    EXPECT_EQ(field_name(result.error()), field);
    EXPECT_EQ(result.error().expected, expected);
    EXPECT_EQ(result.error().found, found);
  };
  expect_unfit({3, 5}, "sequence_tokens", 3, 2);
  expect_unfit({5, 0, 3}, "sequence_tokens[0]", 4, 5);
  expect_unfit({3, 1, 4}, "sequence_tokens[1]", 0, 1);
  expect_unfit({4, 0, 5}, "sequence_tokens[2]", 4, 5);
  expect_unfit({3, 0, 4}, "sequence_tokens", 8, 7);
  expect_unfit({dynamic, 0, 1}, "sequence_tokens[0]", 4, dynamic);
}

TEST(Sparse, EveryBoundsCheckNamesItsPlace) {
  // O3
  expect_error(coo_m().with(1, 5, 6).bounds(), {Errc::out_of_bounds, "indices[5]", 40, 5, 6});
  expect_error(coo_m().with(1, 8, dynamic).bounds(),
               {Errc::out_of_bounds, "indices[8]", 64, 3, dynamic});
  expect_error(coo_m().shorter(1, 1).bounds(),
               {Errc::out_of_bounds, "buffers[1].byte_size", Error::no_offset, 80, 79});
  // R2, R3
  expect_error(csr_m().with(2, 0, 1).bounds(), {Errc::invalid_value, "row_ptr[0]", 0, 0, 1});
  expect_error(csr_m().with(2, 3, 3).bounds(), {Errc::invalid_value, "row_ptr[3]", 24, 4, 3});
  expect_error(csr_m().with(2, 2, 6).bounds(), {Errc::out_of_bounds, "row_ptr[2]", 16, 5, 6});
  expect_error(csr_m().with(2, 4, 4).bounds(), {Errc::inconsistent, "row_ptr[4]", 32, 5, 4});
  expect_error(csr_m().with(1, 3, 6).bounds(), {Errc::out_of_bounds, "col_indices[3]", 24, 5, 6});
  expect_error(csr_m().shorter(2, 1).bounds(),
               {Errc::out_of_bounds, "buffers[2].byte_size", Error::no_offset, 40, 39});
  expect_error(csr_m().shorter(1, 8).bounds(),
               {Errc::out_of_bounds, "buffers[1].byte_size", Error::no_offset, 40, 32});
  expect_error(csc_m().with(2, 5, 2).bounds(), {Errc::invalid_value, "col_ptr[5]", 40, 3, 2});
  expect_error(csc_m().with(1, 4, 4).bounds(), {Errc::out_of_bounds, "row_indices[4]", 32, 3, 4});
  // F3
  const auto csf = csf_example();
  expect_error(csf.with(1, 0, 2).bounds(), {Errc::invalid_value, "pos[0][0]", 0, 0, 2});
  expect_error(csf.with(1, 1, 3).bounds(), {Errc::out_of_bounds, "pos[0][1]", 8, 2, 3});
  expect_error(csf.with(3, 2, 1).bounds(), {Errc::invalid_value, "pos[1][2]", 16, 2, 1});
  expect_error(csf.with(3, 2, dynamic).bounds(),
               {Errc::out_of_bounds, "pos[1][2]", 16, 4, dynamic});
  expect_error(csf.with(5, 2, 0).bounds(), {Errc::invalid_value, "pos[2][2]", 16, 1, 0});
  expect_error(csf.with(5, 4, 6).bounds(), {Errc::out_of_bounds, "pos[2][4]", 32, 5, 6});
  expect_error(csf.with(5, 4, 4).bounds(), {Errc::inconsistent, "pos[2][4]", 32, 5, 4});
  expect_error(csf.shorter(1, 8).bounds(),
               {Errc::out_of_bounds, "buffers[1].byte_size", Error::no_offset, 16, 8});
  expect_error(csf.shorter(3, 1).bounds(),
               {Errc::out_of_bounds, "buffers[3].byte_size", Error::no_offset, 24, 23});
  expect_error(csf.shorter(4, 8).bounds(), {Errc::out_of_bounds, "pos[1][2]", 16, 3, 4});
  expect_error(csf.shorter(5, 8).bounds(),
               {Errc::out_of_bounds, "buffers[5].byte_size", Error::no_offset, 40, 32});
  expect_error(csf.shorter(6, 8).bounds(),
               {Errc::out_of_bounds, "buffers[6].byte_size", Error::no_offset, 40, 32});
  // F4
  expect_error(csf.with(2, 1, 5).bounds(), {Errc::out_of_bounds, "crd[0][1]", 8, 4, 5});
  expect_error(csf.with(4, 3, 3).bounds(), {Errc::out_of_bounds, "crd[1][3]", 24, 2, 3});
  expect_error(csf.with(6, 0, 4).bounds(), {Errc::out_of_bounds, "crd[2][0]", 0, 3, 4});
  // K5 to K7
  const auto paged = paged_example();
  expect_error(paged.with(2, 0, 1).bounds(), {Errc::invalid_value, "seq_ptr[0]", 0, 0, 1});
  expect_error(paged.with(2, 2, 1).bounds(), {Errc::invalid_value, "seq_ptr[2]", 8, 2, 1});
  expect_error(paged.with(2, 3, 6).bounds(), {Errc::out_of_bounds, "seq_ptr[3]", 12, 5, 6});
  expect_error(paged.shorter(2, 1).bounds(),
               {Errc::out_of_bounds, "buffers[2].byte_size", Error::no_offset, 16, 15});
  expect_error(paged.shorter(1, 4).bounds(), {Errc::out_of_bounds, "seq_ptr[3]", 12, 4, 5});
  expect_error(paged.with(1, 3, 6).bounds(), {Errc::out_of_bounds, "block_table[3]", 12, 5, 6});
  auto crowded = paged;
  crowded.shape[0] = 11;
  expect_error(crowded.bounds(), {Errc::inconsistent, "seq_ptr[3]", 12, 6, 5});
  crowded.layout.num_pages = 0;
  expect_error(crowded.bounds(), {Errc::out_of_bounds, "block_table[0]", 0, 0, 4});
}

TEST(Sparse, EveryCanonicalCheckNamesItsPlace) {
  // O4: entry 4 repeats entry 1, entry 3 repeats entry 0; 3 is the first that was there before.
  const Sparse<Coo> repeats = {
      {.nnz = 5, .is_sorted = 0}, {4, 6}, {Buffer(), u64({3, 1, 0, 2, 2, 2, 3, 1, 0, 2})}};
  EXPECT_FALSE(repeats.bounds());
  expect_error(repeats.canonical(), {Errc::duplicate, "indices[6]", 48, 0, 3});
  // O5
  expect_error(coo_m(1).with(1, 6, 0).canonical(), {Errc::invalid_value, "indices[6]", 48, 1, 0});
  expect_error(coo_m(1).with(1, 5, 0).canonical(), {Errc::duplicate, "indices[4]", 32, 1, 2});
  EXPECT_FALSE(coo_m(0).with(1, 6, 0).canonical());
  // R4
  expect_error(csr_m().with(1, 2, 5).canonical(), {Errc::duplicate, "col_indices[3]", 24, 0, 5});
  expect_error(csr_m().with(1, 1, 4).canonical(),
               {Errc::invalid_value, "col_indices[2]", 16, 5, 3});
  expect_error(csc_m().with(1, 1, 3).canonical(), {Errc::duplicate, "row_indices[2]", 16, 0, 3});
  // F5
  const auto csf = csf_example();
  expect_error(csf.with(2, 0, 4).canonical(), {Errc::duplicate, "crd[0][1]", 8, 0, 4});
  expect_error(csf.with(4, 0, 2).canonical(), {Errc::invalid_value, "crd[1][1]", 8, 3, 1});
  expect_error(csf.with(6, 3, 3).canonical(), {Errc::duplicate, "crd[2][4]", 32, 0, 3});
  // F6
  const Sparse<Csf> leafless = {
      {.nnz = 0, .mode_order = {0, 1, 2}},
      {3, 4, 5},
      {Buffer(), u64({0, 1}), u64({2}), u64({0, 0}), Buffer(), u64({0}), Buffer()}};
  EXPECT_FALSE(leafless.bounds());
  expect_error(leafless.canonical(), {Errc::inconsistent, "pos[0][1]", 8, 0, 1});
}

TEST(Sparse, NodesWithoutChildrenAreRead) {
  // L14: node 1 of level 0 has no children; level 1 has more nodes than there are leaves.
  const Sparse<Csf> csf = {
      {.nnz = 1, .mode_order = {0, 1, 2}},
      {3, 4, 5},
      {Buffer(), u64({0, 2}), u64({0, 2}), u64({0, 2, 2}), u64({1, 3}), u64({0, 0, 1}), u64({4})}};
  EXPECT_FALSE(csf.bounds());
  EXPECT_FALSE(csf.canonical());
  expect_error(csf.layout.childless(csf.indices()), {Errc::invalid_value, "pos[1][2]", 16, 3, 2});
  EXPECT_FALSE(csf_example().layout.childless(csf_example().indices()));
  EXPECT_EQ(csf.find({0, 3, 4}), 0u);
  EXPECT_EQ(csf.find({0, 1, 4}), std::nullopt);
  EXPECT_EQ(csf.find({2, 1, 4}), std::nullopt);
  EXPECT_EQ(csf.order(), (std::vector<Index>{{0, 3, 4}}));
  Index index(3);
  EXPECT_TRUE(csf.layout.index_of(0, csf.shape, csf.indices(), index));
  EXPECT_EQ(index, (Index{0, 3, 4}));
}

TEST(Sparse, NothingStored) {
  const Sparse<Coo> coo = {{.nnz = 0, .is_sorted = 1}, {0, 6}, {Buffer(), Buffer()}};
  const Sparse<Csr> csr = {{.nnz = 0}, {0, 6}, {Buffer(), Buffer(), u64({0})}};
  const Sparse<Csc> csc = {{.nnz = 0}, {4, 0}, {Buffer(), Buffer(), u64({0})}};
  const Sparse<Csf> csf = {
      {.nnz = 0, .mode_order = {0, 1, 2}},
      {3, 4, 5},
      {Buffer(), u64({0, 0}), Buffer(), u64({0}), Buffer(), u64({0}), Buffer()}};
  const auto check = [](const auto& sparse) {
    EXPECT_FALSE(sparse.bounds());
    EXPECT_FALSE(sparse.canonical());
    EXPECT_TRUE(sparse.order().empty());
    Index index(sparse.shape.rank());
    EXPECT_EQ(sparse.find(index), std::nullopt);
    EXPECT_FALSE(sparse.layout.index_of(0, sparse.shape, sparse.indices(), index));
  };
  check(coo);
  check(csr);
  check(csc);
  check(csf);
  EXPECT_FALSE(csf.layout.childless(csf.indices()));
  EXPECT_EQ(field_name(*csr.with(2, 0, 1).bounds()), "row_ptr[0]");
}

TEST(Sparse, ChecksWaitForDynamicSizes) {
  auto coo = coo_m();
  coo.shape[1] = dynamic;
  EXPECT_FALSE(coo.with(1, 1, 1000).bounds());
  expect_error(coo.with(1, 0, 4).bounds(), {Errc::out_of_bounds, "indices[0]", 0, 3, 4});
  auto csr = csr_m();
  csr.shape[0] = dynamic;
  EXPECT_FALSE(csr.with(2, 2, 99).bounds());
  EXPECT_FALSE(csr.with(1, 2, 5).canonical());
  expect_error(csr.with(1, 0, 9).bounds(), {Errc::out_of_bounds, "col_indices[0]", 0, 5, 9});
  auto csf = csf_example();
  csf.shape[2] = dynamic;
  EXPECT_FALSE(csf.with(2, 1, 1000).bounds());
  auto paged = paged_example();
  paged.shape[0] = dynamic;
  EXPECT_FALSE(paged.bounds());
}

TEST(Sparse, LevelsHaveNames) {
  EXPECT_EQ(Csf::pointers(0), "pos[0][]");
  EXPECT_EQ(Csf::coordinates(9), "crd[9][]");
  EXPECT_EQ(Csf::pointers(63), "pos[63][]");
}

/// The stored coordinates of a random tensor, sorted.
std::vector<Index> random_entries(const Shape& shape, std::mt19937& random) {
  std::vector<Index> all;
  for_each_index(shape,
                 [&](std::span<const std::uint64_t> i) { all.emplace_back(i.begin(), i.end()); });
  std::ranges::shuffle(all, random);
  all.resize(pick(random, all.size() + 1));
  std::ranges::sort(all);
  return all;
}

Index flat(const std::vector<Index>& entries) {
  Index numbers;
  for (const Index& entry : entries) numbers.insert(numbers.end(), entry.begin(), entry.end());
  return numbers;
}

template <std::size_t Major, class T>
Sparse<T> compress(const Shape& shape, std::vector<Index> entries) {
  std::ranges::sort(entries, {}, [](const Index& e) { return std::pair(e[Major], e[1 - Major]); });
  Index pointers(shape[Major] + 1);
  Index coordinates;
  for (const Index& entry : entries) {
    for (std::uint64_t line = entry[Major] + 1; line <= shape[Major]; ++line) ++pointers[line];
    coordinates.push_back(entry[1 - Major]);
  }
  return {{.nnz = entries.size()}, shape, {Buffer(), u64(coordinates), u64(pointers)}};
}

Sparse<Csf> tree(const Shape& shape, std::vector<Index> entries, std::mt19937& random) {
  std::vector<std::uint32_t> modes(shape.rank());
  std::iota(modes.begin(), modes.end(), 0u);
  std::ranges::shuffle(modes, random);
  const auto permuted = [&](const Index& entry) {
    Index out;
    for (const std::uint32_t mode : modes) out.push_back(entry[mode]);
    return out;
  };
  std::ranges::sort(entries, {}, permuted);
  Sparse<Csf> csf{{.nnz = entries.size(), .mode_order = {}}, shape, {Buffer()}};
  csf.layout.mode_order.assign(modes);
  std::vector<Index> nodes = {{}};  // prefixes of the level above
  for (std::size_t level = 0; level < modes.size(); ++level) {
    Index pos = {0};
    Index crd;
    std::vector<Index> below;
    for (const Index& node : nodes) {
      for (const Index& entry : entries) {
        Index prefix = permuted(entry);
        if (!std::equal(node.begin(), node.end(), prefix.begin())) continue;
        prefix.resize(level + 1);
        if (!below.empty() && below.back() == prefix) continue;
        crd.push_back(prefix.back());
        below.push_back(std::move(prefix));
      }
      pos.push_back(crd.size());
    }
    csf.buffers.push_back(u64(pos));
    csf.buffers.push_back(u64(crd));
    nodes = std::move(below);
  }
  return csf;
}

template <class T>
void expect_entries(const Sparse<T>& sparse, const std::vector<Index>& entries) {
  const auto bounds = sparse.bounds();
  ASSERT_FALSE(bounds) << to_string(*bounds);
  const auto canonical = sparse.canonical();
  ASSERT_FALSE(canonical) << to_string(*canonical);
  const auto order = sparse.order();
  EXPECT_TRUE(std::ranges::is_permutation(order, entries));
  std::size_t found = 0;
  for_each_index(sparse.shape, [&](std::span<const std::uint64_t> at) {
    const Index index(at.begin(), at.end());
    const auto slot = sparse.find(index);
    ASSERT_EQ(slot.has_value(), std::ranges::binary_search(entries, index));
    if (!slot) return;
    ++found;
    ASSERT_EQ(order[*slot], index);
    Index back(index.size());
    ASSERT_TRUE(sparse.layout.index_of(*slot, sparse.shape, sparse.indices(), back));
    ASSERT_EQ(back, index);
  });
  EXPECT_EQ(found, entries.size());
}

TEST(Sparse, LookupsAgreeWithADenseOracle) {
  std::mt19937 random(41);
  for (int round = 0; round < 300; ++round) {
    Shape shape;
    shape.resize(1 + pick(random, 4));
    for (std::uint64_t& n : shape) n = pick(random, 12) == 0 ? 0 : 1 + pick(random, 6);
    const auto entries = random_entries(shape, random);
    expect_entries(
        Sparse<Coo>{{.nnz = entries.size(), .is_sorted = 1}, shape, {Buffer(), u64(flat(entries))}},
        entries);
    auto shuffled = entries;
    std::ranges::shuffle(shuffled, random);
    const Sparse<Coo> unsorted = {
        {.nnz = entries.size(), .is_sorted = 0}, shape, {Buffer(), u64(flat(shuffled))}};
    expect_entries(unsorted, entries);
    EXPECT_EQ(unsorted.order(), shuffled);
    if (shape.rank() == 2) {
      const auto rows = compress<0, Csr>(shape, entries);
      expect_entries(rows, entries);
      EXPECT_EQ(rows.order(), entries);
      expect_entries(compress<1, Csc>(shape, entries), entries);
    }
    if (shape.rank() >= 3) expect_entries(tree(shape, entries, random), entries);
  }
}

TEST(Sparse, RepeatedEntriesAreFoundWhereverTheyAre) {
  std::mt19937 random(43);
  for (int round = 0; round < 300; ++round) {
    const Shape shape = {3, 4, 5};
    auto entries = random_entries(shape, random);
    if (entries.size() < 2) continue;
    std::ranges::shuffle(entries, random);
    const std::size_t from = pick(random, entries.size() - 1);
    const std::size_t to = from + 1 + pick(random, entries.size() - 1 - from);
    entries[to] = entries[from];
    const Sparse<Coo> coo = {
        {.nnz = entries.size(), .is_sorted = 0}, shape, {Buffer(), u64(flat(entries))}};
    expect_error(coo.canonical(),
                 {Errc::duplicate, "indices[" + std::to_string(3 * to) + "]", 24 * to, from, to});
  }
}

/// Whatever the buffers hold, lookups stay inside them, and so does everything after checks that
/// found nothing.
template <class T>
void expect_safe(const Sparse<T>& sparse, std::mt19937& random) {
  const auto random_index = [&](std::size_t n) {
    Index index(n);
    for (std::size_t k = 0; k < n; ++k) index[k] = pick(random, 8);
    return index;
  };
  constexpr bool paged = std::is_same_v<T, BlockPaged>;
  for (int i = 0; i < 8; ++i) (void)sparse.find(random_index(paged ? 4 : sparse.shape.rank()));
  if constexpr (!paged) {
    Index index(sparse.shape.rank());
    for (std::uint64_t slot = 0; slot < 8; ++slot)
      (void)sparse.layout.index_of(slot, sparse.shape, sparse.indices(), index);
  }
  const auto bounds = sparse.bounds();
  if (bounds) {
    EXPECT_EQ(bounds->origin, Origin::buffer);
    EXPECT_FALSE(field_name(*bounds).empty());
    return;
  }
  const auto canonical = sparse.canonical();
  EXPECT_TRUE(!canonical || canonical->origin == Origin::buffer);
  if constexpr (paged) {
    const auto tokens = sparse.layout.sequence_tokens(sparse.indices(), sparse.shape);
    if (!tokens) return;
    std::uint64_t visited = 0;
    sparse.layout.for_each(
        sparse.shape, sparse.indices(), *tokens,
        [&](std::span<const std::uint64_t>, std::uint64_t) { return ++visited < 1000; });
  } else {
    std::uint64_t visited = 0;
    sparse.layout.for_each(sparse.shape, sparse.indices(),
                           [&](std::span<const std::uint64_t> index, std::uint64_t slot) {
                             EXPECT_EQ(slot, visited++);
                             for (std::size_t k = 0; k < index.size(); ++k)
                               EXPECT_LT(index[k], sparse.shape[k]);
                             return true;
                           });
    EXPECT_EQ(visited, sparse.layout.nnz);
  }
}

template <class T>
void corrupt(const Sparse<T>& good, std::mt19937& random) {
  for (int round = 0; round < 400; ++round) {
    Sparse<T> bad = good;
    for (std::uint64_t edits = 1 + pick(random, 3); edits-- > 0;) {
      const std::size_t b = 1 + pick(random, bad.buffers.size() - 1);
      const std::size_t size = bad.buffers[b].bytes().size();
      const std::size_t entries = size / bad.indices().entry_bytes();
      if (entries == 0) continue;
      if (pick(random, 4) == 0) {
        bad = bad.shorter(b, 1 + pick(random, size));
        continue;
      }
      constexpr std::uint64_t top = std::uint64_t{1} << 63;
      const std::uint64_t values[] = {pick(random, 8),        dynamic, dynamic - 1, top, top - 1,
                                      std::uint64_t{1} << 61, random()};
      bad = bad.with(b, pick(random, entries), values[pick(random, std::size(values))]);
    }
    expect_safe(bad, random);
  }
}

TEST(Sparse, HostileBuffersAreNeverFollowed) {
  std::mt19937 random(47);
  corrupt(coo_m(1), random);
  corrupt(coo_m(0), random);
  corrupt(csr_m(), random);
  corrupt(csc_m(), random);
  corrupt(csf_example(), random);
  corrupt(paged_example(), random);
  // Counts that the buffers do not bear out.
  auto coo = coo_m();
  coo.layout.nnz = std::uint64_t{1} << 62;
  expect_safe(coo, random);
  EXPECT_EQ(coo.bounds()->expected, dynamic);
  auto csr = csr_m();
  csr.layout.nnz = dynamic;
  csr.shape[0] = dynamic - 1;
  expect_safe(csr, random);
  auto csf = csf_example();
  csf.layout.nnz = dynamic - 1;
  expect_safe(csf, random);
  auto paged = paged_example();
  paged.layout.num_seqs = 0xFFFFFFFF;
  paged.layout.page_size = 0xFFFFFFFF;
  paged.layout.num_pages = dynamic;
  expect_safe(paged, random);
  const auto no_buffers = [&](auto sparse) {
    sparse.buffers.clear();
    expect_safe(sparse, random);
    ASSERT_TRUE(sparse.bounds());
  };
  no_buffers(coo_m());
  no_buffers(csr_m());
  no_buffers(csf_example());
  no_buffers(paged_example());
}

template <class T>
Tensor bound(const Sparse<T>& sparse, DType dtype = DType::int16) {
  auto tensor = bind(described(dtype, sparse.shape, sparse.layout), sparse.buffers);
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  return *tensor;
}

TEST(DataChecks, JudgeTheBuffersOfATensor) {
  EXPECT_TRUE(check_data(bound(csr_m())));
  EXPECT_TRUE(check_data(bound(csf_example())));
  const auto bounds = check_data(bound(csr_m().with(2, 3, 3)));
  ASSERT_FALSE(bounds);
  EXPECT_EQ(to_string(bounds.error()),
            "row_ptr[3]: expected at least 4 (the pointer before it), found 3 (invalid value at "
            "byte 24 of the buffer)");
  const auto order = check_data(bound(csr_m().with(1, 1, 4)));
  ASSERT_FALSE(order);
  EXPECT_EQ(to_string(order.error()),
            "col_indices[2]: expected at least 5 (above the coordinate before it), found 3 "
            "(invalid value at byte 16 of the buffer)");
  EXPECT_TRUE(check_data(bound(csr_m().with(1, 1, 4)), {.canonical = false}));
  EXPECT_TRUE(check_data(bound(csr_m().with(2, 3, 3)), {.bounds = false, .canonical = false}));
  EXPECT_FALSE(check_data(bound(csr_m().with(2, 3, 3)), {.bounds = false}));
  const auto repeated = check_data(bound(coo_m(0).with(1, 5, 0)));
  ASSERT_FALSE(repeated);
  EXPECT_EQ(to_string(repeated.error()),
            "indices[4]: expected coordinates that no entry before this one has, found 2 "
            "(duplicate at byte 32 of the buffer)");
}

TEST(DataChecks, DenseTensorsAndHeadsHaveNothingToJudge) {
  EXPECT_TRUE(
      check_data(*bind(described(DType::int8, {2, 3}, RowMajor{}), {*Buffer::allocate(6)})));
  EXPECT_TRUE(check_data(*bind(described(DType::int8, {2, 3}, CompositeHead{}), {})));
}

TEST(DataChecks, JudgeTheParametersToo) {
  Descriptor d = described(DType::int8, {2, 3}, RowMajor{});
  d.set_quantization(Quantization{PerChannelAffine{.axis = 0}, {}});
  const auto tensor = bind(d, {*Buffer::allocate(6), u32({0x3F800000, 0x7FC00000})});
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  const auto checked = check_data(*tensor);
  ASSERT_FALSE(checked);
  EXPECT_EQ(field_name(checked.error()), "scale[1]");
  EXPECT_EQ(checked.error().offset, 4u);
  EXPECT_TRUE(check_data(*tensor, {.parameters = false}));
}

TEST(DataChecks, RefuseWhatIsOpaqueOrElsewhere) {
  PrivateLayout agreed;
  const auto opaque =
      check_data(*bind(described(DType::int8, {2}, agreed), {*Buffer::allocate(2)}));
  ASSERT_FALSE(opaque);
  EXPECT_EQ(opaque.error().code, Errc::unsupported);
  Descriptor elsewhere = described(DType::int16, {4, 6}, csr_m().layout);
  elsewhere.buffers.resize(3);
  for (BufferHandle& handle : elsewhere.buffers) handle.device = Device::cuda;
  const auto declared = check_data(*bind(elsewhere, csr_m().buffers));
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().code, Errc::unsupported);
  const auto there = check_data(*bind(elsewhere, csr_m().buffers, {.memory_device = Device::cuda}));
  ASSERT_FALSE(there);
  EXPECT_EQ(field_name(there.error()), "buffers[0].device_tag");
}

}  // namespace
}  // namespace hurray::testing
