#include "hurray/to_dense.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "dense_support.hpp"
#include "hurray/data_checks.hpp"

namespace hurray::testing {
namespace {

using Index = std::vector<std::uint64_t>;

/// The bits that a dense copy must have: one element after the other, found and read singly.
std::vector<bool> slow(const Elements& elements, const Shape& shape) {
  std::vector<bool> bits;
  std::vector<std::byte> value(touched_bytes(elements.width(), 0));
  for_each_index(shape, [&](std::span<const std::uint64_t> index) {
    const auto slot = elements.slot(index);
    ASSERT_TRUE(slot);
    std::ranges::fill(value, std::byte{0});
    if (*slot) {
      ASSERT_TRUE(elements.load(**slot, value));
    }
    for (unsigned b = 0; b < elements.width(); ++b) bits.push_back(bit(value, b));
  });
  return bits;
}

void expect_dense(const Result<Tensor>& dense, const Tensor& from, const std::vector<bool>& bits) {
  ASSERT_TRUE(dense) << to_string(dense.error());
  const Descriptor& d = dense->descriptor();
  EXPECT_TRUE(std::holds_alternative<RowMajor>(d.layout));
  EXPECT_EQ(d.shape, from.descriptor().shape);
  EXPECT_EQ(d.dtype, from.descriptor().dtype);
  EXPECT_EQ(d.byte_offset, 0u);
  const unsigned width = element_bits(d);
  ASSERT_EQ(width, element_bits(from.descriptor()));
  const auto bytes = dense->buffer(0).bytes();
  ASSERT_EQ(bytes.size(), *packed_bytes(width, d.shape.count()));
  const bool itself = bytes.data() == from.buffer(0).data() && !bytes.empty();
  for (std::uint64_t b = 0; b < 8 * bytes.size() && !itself; ++b)
    ASSERT_EQ(bit(bytes, b), b < bits.size() && bits[b]) << b;
  EXPECT_TRUE(validate(d));
}

TEST(ToDense, EveryDenseLayoutAndWidth) {
  std::mt19937 random(17);
  for (int round = 0; round < 3000; ++round) {
    Descriptor d = random_dense(random);
    set_width(d, widths[pick(random, std::size(widths))]);
    const Tensor tensor = filled(d, random, pick(random, 3) != 0);
    const auto elements = Elements::over(tensor);
    ASSERT_TRUE(elements) << to_string(elements.error());
    expect_dense(to_dense(tensor), tensor, slow(*elements, d.shape));
    if (HasFatalFailure()) FAIL() << "round " << round << ", " << name(d.layout);
  }
}

/// A sparse tensor of random entries, canonical.
Tensor random_sparse(std::mt19937& random) {
  Descriptor d;
  d.shape.resize(1 + pick(random, 4));
  for (std::uint64_t& n : d.shape) n = pick(random, 20) == 0 ? 0 : 1 + pick(random, 6);
  const std::size_t rank = d.shape.rank();
  std::vector<Index> entries;
  for_each_index(d.shape, [&](std::span<const std::uint64_t> i) {
    if (pick(random, 3) == 0) entries.emplace_back(i.begin(), i.end());
  });
  const std::uint64_t nnz = entries.size();
  const unsigned width = widths[pick(random, std::size(widths))];
  set_width(d, width);
  std::vector<Buffer> buffers = {random_bytes(*packed_bytes(width, nnz), random)};
  const auto column = [&](std::size_t k) {
    Index numbers;
    for (const Index& entry : entries) numbers.push_back(entry[k]);
    return u64(numbers);
  };
  if (rank == 2 && pick(random, 2) == 0) {
    const std::size_t major = pick(random, 2);
    std::ranges::sort(entries, {},
                      [&](const Index& e) { return std::pair(e[major], e[1 - major]); });
    Index pointers(d.shape[major] + 1);
    for (const Index& entry : entries)
      for (std::uint64_t line = entry[major] + 1; line <= d.shape[major]; ++line) ++pointers[line];
    if (major == 0)
      d.layout = Csr{.nnz = nnz};
    else
      d.layout = Csc{.nnz = nnz};
    buffers.push_back(column(1 - major));
    buffers.push_back(u64(pointers));
  } else if (rank >= 3 && pick(random, 2) == 0) {
    Csf csf{.nnz = nnz, .mode_order = {}};
    for (std::uint32_t k = 0; k < rank; ++k) csf.mode_order.push_back(k);
    Index parents = {nnz};  // leaves below each node of the level above
    for (std::size_t level = 0; level < rank; ++level) {
      Index pos = {0};
      Index crd;
      Index leaves;
      std::size_t at = 0;
      for (const std::uint64_t below : parents) {
        for (std::uint64_t i = 0; i < below; ++i, ++at) {
          if (i == 0 || entries[at][level] != crd.back()) {
            crd.push_back(entries[at][level]);
            leaves.push_back(0);
          }
          ++leaves.back();
        }
        pos.push_back(crd.size());
      }
      buffers.push_back(u64(pos));
      buffers.push_back(u64(crd));
      parents = leaves;
    }
    d.layout = csf;
  } else {
    const bool sorted = pick(random, 2) == 0;
    if (!sorted) std::ranges::shuffle(entries, random);
    Index numbers;
    for (const Index& entry : entries) numbers.insert(numbers.end(), entry.begin(), entry.end());
    d.layout = Coo{.nnz = nnz, .is_sorted = sorted};
    buffers.push_back(u64(numbers));
  }
  auto tensor = bind(std::move(d), std::move(buffers));
  if (!tensor) throw std::logic_error(to_string(tensor.error()));
  return *tensor;
}

TEST(ToDense, EverySparseLayoutAndWidth) {
  std::mt19937 random(19);
  for (int round = 0; round < 1500; ++round) {
    const Tensor tensor = random_sparse(random);
    const auto elements = Elements::over(tensor);
    ASSERT_TRUE(elements) << to_string(elements.error());
    expect_dense(to_dense(tensor), tensor, slow(*elements, tensor.descriptor().shape));
    if (HasFatalFailure()) FAIL() << "round " << round << ", " << name(tensor.descriptor().layout);
  }
}

TEST(ToDense, PagesFollowEachOther) {
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    BlockPaged layout{.num_pages = 1 + pick(random, 6),
                      .page_size = static_cast<std::uint32_t>(1 + pick(random, 4)),
                      .num_seqs = static_cast<std::uint32_t>(pick(random, 4)),
                      .index_type = pick(random, 2) == 0 ? IndexType::uint32 : IndexType::uint64};
    Index pointers = {0};
    Index table;
    Index counts;
    for (std::uint32_t s = 0; s < layout.num_seqs; ++s) {
      const std::uint64_t pages = pick(random, 4);
      for (std::uint64_t p = 0; p < pages; ++p) table.push_back(pick(random, layout.num_pages));
      pointers.push_back(table.size());
      counts.push_back(pick(random, pages * layout.page_size + 1));
    }
    const std::uint64_t heads = 1 + pick(random, 3);
    const std::uint64_t size = pick(random, 5);
    Descriptor d;
    d.shape = {std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), heads, size};
    d.layout = layout;
    const unsigned width = widths[pick(random, std::size(widths))];
    set_width(d, width);
    const auto indices = [&](const Index& values) {
      if (layout.index_type == IndexType::uint64) return u64(values);
      return u32({values.begin(), values.end()});
    };
    const std::uint64_t slots = layout.num_pages * layout.page_size * heads * size;
    const auto tensor = bind(
        d, {random_bytes(*packed_bytes(width, slots), random), indices(table), indices(pointers)});
    ASSERT_TRUE(tensor) << to_string(tensor.error());
    const auto elements = Elements::over(*tensor, {.sequence_tokens = counts});
    ASSERT_TRUE(elements) << to_string(elements.error());
    std::vector<bool> bits;
    for (std::uint64_t s = 0; s < counts.size(); ++s)
      for_each_index({counts[s], heads, size}, [&](std::span<const std::uint64_t> i) {
        std::vector<std::byte> value(touched_bytes(width, 0));
        ASSERT_TRUE(elements->load(**elements->slot(Index{s, i[0], i[1], i[2]}), value));
        for (unsigned b = 0; b < width; ++b) bits.push_back(bit(value, b));
      });
    expect_dense(to_dense(*tensor, {.sequence_tokens = counts}), *tensor, bits);
  }
}

Tensor csr_m(DType dtype = DType::int16, Buffer values = i16({7, -2, 9, 4, 1})) {
  Descriptor d = described(dtype, {4, 6}, Csr{.nnz = 5});
  Statistics statistics;
  statistics.computed_mask = 0x3F;
  statistics.nnz = 5;
  statistics.sparsity_ratio = 19.0 / 24;
  statistics.value_min = -2;
  d.set_statistics(statistics);
  const Index parent = {8, 6};
  const Index offset = {4, 0};
  d.set_shard(Shard(parent, offset));
  d.set_member_role(MemberRole::correction);
  auto tensor = bind(d, {std::move(values), u64({4, 0, 3, 5, 3}), u64({0, 1, 4, 4, 5})});
  if (!tensor) throw std::logic_error(to_string(tensor.error()));
  return *tensor;
}

TEST(ToDense, SectionsThatAreStillTrueAreKept) {
  const auto dense = to_dense(csr_m());
  ASSERT_TRUE(dense);
  ASSERT_NE(dense->descriptor().shard(), nullptr);
  EXPECT_EQ(*dense->descriptor().shard(), *csr_m().descriptor().shard());
  EXPECT_EQ(*dense->descriptor().statistics(), *csr_m().descriptor().statistics());
  EXPECT_EQ(dense->descriptor().member_role(), nullptr);
  const std::int16_t wanted[4][6] = {
      {0, 0, 0, 0, 7, 0}, {-2, 0, 0, 9, 0, 4}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0}};
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_EQ(detail::load<std::int16_t>(dense->buffer(0).data() + 2 * i), wanted[i / 6][i % 6]);

  // A stored zero counts as stored; among dense elements it does not.
  const auto zero = to_dense(csr_m(DType::int16, i16({7, 0, 9, 4, 1})));
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->descriptor().statistics()->computed_mask, 0x3Cu);
  EXPECT_EQ(zero->descriptor().statistics()->nnz, 0u);
  EXPECT_EQ(zero->descriptor().statistics()->value_min, -2);
  const auto negative_zero = to_dense(csr_m(DType::float16, i16({1, 2, 3, -32768, 1})));
  EXPECT_EQ(negative_zero->descriptor().statistics()->computed_mask, 0x3Cu);
}

TEST(ToDense, GroupsThatBreakARuleAreNotKept) {
  Descriptor d = described(DType::int8, {4}, Strided{.strides = {2}});
  d.set_statistics(
      Statistics{.computed_mask = 0x32, .nm_n = 1, .nm_m = 2, .has_nan = 2, .sparsity_ratio = .5});
  d.buffers = BufferTable{{.byte_size = 7, .alignment = 64}};
  const auto tensor = bind(d, {*Buffer::allocate(7, true)}, {.permissive = true});
  ASSERT_TRUE(tensor) << to_string(tensor.error());
  const auto dense = to_dense(*tensor);
  ASSERT_TRUE(dense) << to_string(dense.error());
  EXPECT_EQ(dense->descriptor().statistics()->computed_mask, 0x12u);
}

/// Padding bits of the source are 1 here.
TEST(ToDense, BitsBehindTheLastElementAreZero) {
  for (const DType dtype : {DType::bool_, DType::uint2, DType::int4, DType::float6_e2m3})
    for (std::uint64_t n = 1; n <= 9; ++n) {
      const std::vector<Layout> layouts{RowMajor{},
                                        ColumnMajor{},
                                        Strided{.strides = {-1}},
                                        Strided{.strides = {2}},
                                        Tiled({4}),
                                        Coo{.nnz = n, .is_sorted = 1}};
      for (const Layout& layout : layouts) {
        Descriptor d = described(dtype, {n}, layout);
        d.byte_offset = std::holds_alternative<Coo>(layout) ? 0 : 12;
        std::vector<Buffer> buffers{*Buffer::allocate(40)};
        std::ranges::fill(buffers[0].bytes(), std::byte{0xFF});
        if (std::holds_alternative<Coo>(layout)) {
          Index all(n);
          std::iota(all.begin(), all.end(), 0u);
          buffers.push_back(u64(all));
        }
        const auto dense = to_dense(*bind(d, buffers));
        ASSERT_TRUE(dense) << to_string(dense.error());
        const auto bytes = dense->buffer(0).bytes();
        ASSERT_EQ(bytes.size(), *packed_bytes(bits(dtype), n));
        for (std::uint64_t b = 0; b < 8 * bytes.size(); ++b)
          ASSERT_EQ(bit(bytes, b), b < n * bits(dtype)) << name(dtype) << n << name(layout) << b;
      }
    }
}

TEST(ToDense, RowMajorComesBackAsItIs) {
  const Descriptor d = described(DType::int16, {2, 3}, RowMajor{});
  const Tensor tensor = *bind(d, {*Buffer::allocate(12)});
  EXPECT_EQ(to_dense(tensor)->buffer(0).data(), tensor.buffer(0).data());
  const Tensor longer = *bind(d, {*Buffer::allocate(13)});
  const auto copy = to_dense(longer);
  EXPECT_NE(copy->buffer(0).data(), longer.buffer(0).data());
  EXPECT_EQ(copy->buffer(0).size(), 12u);
  const Tensor readonly = *bind(d, {exact(tensor.buffer(0).bytes(), true)});
  EXPECT_TRUE(to_dense(readonly)->readonly());
}

TEST(ToDense, WhatIsRefused) {
  const auto code = [](const Result<Tensor>& tensor, const ElementOptions& options = {}) {
    EXPECT_TRUE(tensor) << to_string(tensor.error());
    const auto dense = to_dense(*tensor, options);
    EXPECT_FALSE(dense);
    return dense ? Errc::not_found : dense.error().code;
  };
  Descriptor quantized = described(DType::int8, {4}, RowMajor{});
  quantized.set_quantization(Quantization{PerTensorAffine{.scale = 2}, {}});
  EXPECT_EQ(code(bind(quantized, {*Buffer::allocate(4)})), Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::int8, {4}, PrivateLayout{}), {*Buffer::allocate(4)})),
            Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::int8, {4}, CompositeHead{}), {})), Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::int8, {dynamic}, RowMajor{}), {*Buffer::allocate(4)})),
            Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::bool_, {10}, RowMajor{}), {*Buffer::allocate(10)},
                      {.provenance = Provenance::outside})),
            Errc::unsupported);
  EXPECT_EQ(code(bind(described(DType::float8_e8m0, {4}, Coo{.nnz = 1, .is_sorted = 1}),
                      {*Buffer::allocate(1), u64({2})})),
            Errc::unsupported);
  const BlockPaged paged{.num_pages = 3, .page_size = 2, .num_seqs = 2};
  EXPECT_EQ(code(bind(described(DType::int8, {4, 1, 1}, paged),
                      {*Buffer::allocate(6), u32({0, 1, 2}), u32({0, 1, 3})})),
            Errc::unsupported);
  // Class D: bounds always, form unless it is switched off.
  const auto twice = [](std::uint64_t second) {
    return bind(described(DType::int8, {4}, Coo{.nnz = 2, .is_sorted = 0}),
                {*Buffer::allocate(2, true), u64({1, second})});
  };
  EXPECT_EQ(code(twice(4), {.canonical = false}), Errc::out_of_bounds);
  EXPECT_EQ(code(twice(1)), Errc::duplicate);
  EXPECT_TRUE(to_dense(*twice(1), {.canonical = false}));
}

TEST(ToDense, AFullTensorOfExponentsNeedsNoZero) {
  const auto tensor = bind(described(DType::float8_e8m0, {2}, Coo{.nnz = 2, .is_sorted = 1}),
                           {*Buffer::allocate(2, true), u64({0, 1})});
  EXPECT_TRUE(to_dense(*tensor));
}

TEST(ToDense, ShapesThatNoMemoryHolds) {
  const auto coo = [](DType dtype, Shape shape) {
    const Index origin(shape.rank());
    return *bind(described(dtype, shape, Coo{.nnz = 1, .is_sorted = 1}),
                 {*Buffer::allocate(16, true), u64(origin)});
  };
  constexpr std::uint64_t big = std::uint64_t{1} << 40;
  EXPECT_EQ(to_dense(coo(DType::int8, {big, big})).error().code, Errc::overflow);
  EXPECT_EQ(to_dense(coo(DType::int8, {big, big, big, big})).error().code, Errc::overflow);
  EXPECT_EQ(to_dense(coo(DType::float128, {std::uint64_t{1} << 60})).error().code, Errc::overflow);
  EXPECT_EQ(to_dense(coo(DType::bool_, {std::uint64_t{1} << 63})).error().code, Errc::overflow);
  EXPECT_EQ(to_dense(coo(DType::int8, {std::uint64_t{1} << 62})).error().code, Errc::out_of_memory);
  EXPECT_EQ(to_dense(coo(DType::int8, {dynamic - 1})).error().code, Errc::overflow);
  const auto broadcast =
      bind(described(DType::int8, {std::uint64_t{1} << 62}, Strided{{0}}), {*Buffer::allocate(1)});
  EXPECT_EQ(to_dense(*broadcast).error().code, Errc::out_of_memory);
  // Nothing in it, so nothing to hold, whatever the other sizes are.
  const auto empty = bind(described(DType::int8, {big, big, 0}, Coo{}), {Buffer(), Buffer()});
  EXPECT_EQ(to_dense(*empty)->buffer(0).size(), 0u);
}

TEST(ToDense, AResultOfExactlyTheLimitIsTaken) {
  const Tensor sparse = *bind(described(DType::int16, {2, 4}, Coo{}), {Buffer(), Buffer()});
  EXPECT_TRUE(to_dense(sparse, {.max_bytes = 16}));
  EXPECT_EQ(to_dense(sparse, {.max_bytes = 15}).error().code, Errc::limit_exceeded);
  // What comes back as it is takes none.
  const Tensor dense = *to_dense(sparse);
  EXPECT_TRUE(to_dense(dense, {.max_bytes = 0}));
}

// The coordinates of lines are judged while they are moved: what is found is named all the same,
// and comes before what only the shape or the options say.
TEST(ToDense, LinesThatBreakARuleAreNamed) {
  struct Case {
    Index coordinates;
    Index pointers;
    bool form = false;  // class D's form, which may be switched off
  };
  const std::vector<Case> cases = {
      {{0, 1, 4}, {0, 2, 3, 3}},       {{0, 4, 1}, {0, 2, 3, 3}},
      {{0, dynamic, 1}, {0, 2, 3, 3}}, {{0, std::uint64_t{1} << 63, 1}, {0, 2, 3, 3}},
      {{0, 1, 1}, {1, 2, 3, 3}},       {{0, 1, 2}, {0, 2, 1, 3}},
      {{0, 1, 2}, {0, 1, 2, 2}},       {{0, 1, 2}, {0, 1, 2, 4}},
      {{0, 1, 1}, {0, 1, 3, 3}, true}, {{0, 3, 1}, {0, 1, 3, 3}, true},
      {{1, 0, 2}, {0, 2, 3, 3}, true},
  };
  for (const DType dtype :
       {DType::int8, DType::int16, DType::float32, DType::float64, DType::complex128, DType::int4})
    for (const Case& one : cases)
      for (const Layout& layout : {Layout(Csr{.nnz = 3}), Layout(Csc{.nnz = 3})}) {
        const bool rows = std::holds_alternative<Csr>(layout);
        const auto tensor =
            bind(described(dtype, rows ? Shape{3, 4} : Shape{4, 3}, layout),
                 {*Buffer::allocate(48, true), u64(one.coordinates), u64(one.pointers)});
        ASSERT_TRUE(tensor);
        const auto checked = check_data(*tensor);
        ASSERT_FALSE(checked);
        for (const ElementOptions& options : {ElementOptions{}, ElementOptions{.max_bytes = 1}}) {
          const auto dense = to_dense(*tensor, options);
          ASSERT_FALSE(dense);
          EXPECT_EQ(to_string(dense.error()), to_string(checked.error()));
        }
        EXPECT_EQ(to_dense(*tensor, {.canonical = false}).has_value(), one.form);
      }
}

TEST(ToDense, ReadsNothingBeyondHostileBuffers) {
  std::mt19937 random(29);
  for (int round = 0; round < 1500; ++round) {
    const Tensor good = random_sparse(random);
    std::vector<Buffer> buffers = good.buffers();
    const std::size_t b = 1 + pick(random, buffers.size() - 1);
    const std::size_t entries = buffers[b].bytes().size() / 8;
    if (entries == 0) continue;
    std::vector<std::byte> bytes(buffers[b].bytes().begin(), buffers[b].bytes().end());
    const std::uint64_t values[] = {pick(random, 8), dynamic, std::uint64_t{1} << 61,
                                    std::uint64_t{1} << 63};
    detail::store(bytes.data() + 8 * pick(random, entries), values[pick(random, 4)]);
    buffers[b] = exact(bytes);
    const auto bad = bind(good.descriptor(), buffers);
    ASSERT_TRUE(bad);
    const auto dense = to_dense(*bad);
    if (!dense) {
      EXPECT_EQ(dense.error().origin, Origin::buffer);
    }
    (void)to_dense(*bad, {.canonical = false});
  }
}

}  // namespace
}  // namespace hurray::testing
