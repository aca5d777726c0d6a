// Index bytes in memory that others write to: they may change between any two reads.
#include <gtest/gtest.h>

#include <vector>

#include "hurray/elements.hpp"
#include "memory_support.hpp"
#include "support.hpp"

namespace hurray {
namespace {

using namespace hurray::testing;

constexpr std::uint64_t top = std::uint64_t{1} << 63;

Tensor tensor_of(Shape shape, Layout layout, std::vector<Buffer> buffers) {
  Descriptor d;
  d.dtype = DType::int8;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  buffers.insert(buffers.begin(), *Buffer::allocate(64, true));
  auto tensor = bind(std::move(d), std::move(buffers));
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  return *tensor;
}

void set(const Buffer& buffer, std::size_t entry, std::uint64_t value, std::size_t bytes = 8) {
  std::byte* at = const_cast<std::byte*>(buffer.bytes().data()) + bytes * entry;
  if (bytes == 8)
    detail::store(at, value);
  else
    detail::store(at, static_cast<std::uint32_t>(value));
}

/// What `for_each` says when `change` is made while it passes its first element.
template <class Change>
std::string walk(const Tensor& tensor, Change change, std::size_t* passed = nullptr) {
  const auto elements = Elements::over(tensor);
  EXPECT_TRUE(elements);
  std::size_t count = 0;
  const auto done = elements->for_each([&](std::span<const std::uint64_t> index, std::int64_t) {
    for (std::size_t k = 0; k < index.size() && index.size() == tensor.descriptor().shape.rank();
         ++k)
      EXPECT_LT(index[k], tensor.descriptor().shape[k]);
    if (count++ == 0) change();
    return true;
  });
  if (passed != nullptr) *passed = count;
  if (done) return *done ? "" : "stopped";
  EXPECT_EQ(done.error().code, Errc::out_of_bounds);
  EXPECT_EQ(done.error().origin, Origin::buffer);
  return std::string(done.error().what);
}

constexpr const char* changed = "the index buffers changed while they were read";

TEST(ChangingBytes, CoordinatesAreJudgedWhereTheyArePassed) {
  for (const std::uint64_t value : {std::uint64_t{4}, top, dynamic, dynamic - 7}) {
    const Buffer indices = u64({0, 0, 1, 2, 3, 4});
    const Tensor coo = tensor_of({4, 5}, Coo{.nnz = 3}, {indices});
    EXPECT_EQ(walk(coo, [] {}), "");
    std::size_t passed = 0;
    EXPECT_EQ(walk(coo, [&] { set(indices, 2, value); }, &passed), changed);
    EXPECT_EQ(passed, 1u);

    const Buffer columns = u64({0, 1, 2});
    const Tensor csr = tensor_of({2, 4}, Csr{.nnz = 3}, {columns, u64({0, 2, 3})});
    EXPECT_EQ(walk(csr, [&] { set(columns, 1, value); }), changed);
    const Buffer rows = u64({0, 1, 2});
    const Tensor csc = tensor_of({4, 2}, Csc{.nnz = 3}, {rows, u64({0, 2, 3})});
    EXPECT_EQ(walk(csc, [&] { set(rows, 2, value); }), changed);

    const Buffer leaves = u64({0, 1, 2});
    Csf layout{.nnz = 3, .mode_order = {}};
    layout.mode_order.assign(std::vector<std::uint32_t>{2, 1, 0});
    const Tensor csf =
        tensor_of({4, 4, 1}, layout,
                  {u64({0, 1}), u64({0}), u64({0, 2}), u64({1, 3}), u64({0, 2, 3}), leaves});
    EXPECT_EQ(walk(csf, [] {}), "");
    EXPECT_EQ(walk(csf, [&] { set(leaves, 1, value); }), changed);
  }
}

TEST(ChangingBytes, AWalkIsNoLongerThanTheEntries) {
  constexpr std::size_t n = 64;
  std::vector<std::uint64_t> ascending(n);
  std::vector<std::uint64_t> pointers(n + 1);
  for (std::size_t i = 0; i < n; ++i) pointers[i + 1] = i + 1;
  // Every line names all entries.
  const Buffer ends = u64(pointers);
  const auto all = [&](const Buffer& buffer) {
    for (std::size_t i = 1; i <= n; ++i) set(buffer, i, i % 2 == 1 ? n : 0);
  };
  const Tensor csr = tensor_of({n, 1}, Csr{.nnz = n}, {u64(ascending), ends});
  std::size_t passed = 0;
  (void)walk(csr, [&] { all(ends); }, &passed);
  EXPECT_LE(passed, n);

  std::vector<std::uint64_t> coordinates(n);
  for (std::size_t i = 0; i < n; ++i) coordinates[i] = i;
  const Buffer middle = u64(pointers);
  const Buffer last = u64(pointers);
  Csf layout{.nnz = n, .mode_order = {}};
  layout.mode_order.assign(std::vector<std::uint32_t>{0, 1, 2});
  const Tensor csf =
      tensor_of({n, n, n}, layout,
                {u64({0, n}), u64(coordinates), middle, u64(coordinates), last, u64(coordinates)});
  EXPECT_EQ(walk(csf, [] {}, &passed), "");
  EXPECT_EQ(passed, n);
  (void)walk(csf, [&] { all(middle), all(last); }, &passed);
  EXPECT_LE(passed, n);
}

TEST(ChangingBytes, PagesThatAreNotThereAnyMore) {
  const Buffer table = u32({1, 0});
  const Buffer starts = u32({0, 2});
  const Tensor paged = tensor_of(
      {4, 1, 1}, BlockPaged{.num_pages = 2, .page_size = 2, .num_seqs = 1}, {table, starts});
  EXPECT_EQ(walk(paged, [] {}), "");
  EXPECT_EQ(walk(paged, [&] { set(table, 1, 2, 4); }), changed);
  set(table, 1, 0, 4);
  EXPECT_EQ(walk(paged, [&] { set(starts, 1, 1, 4); }), changed);
}

// Class D checks in the order in which they may see other bytes than the ones before them.
TEST(ChangingBytes, ChecksOfTheFormEndWhateverTheyRead) {
  constexpr std::size_t n = 4096;
  std::vector<std::uint64_t> coordinates(n);
  std::vector<std::uint64_t> pointers(n + 1);
  for (std::size_t i = 0; i < n; ++i) coordinates[i] = i;
  for (std::size_t i = 1; i <= n; ++i) pointers[i] = i % 2 == 1 ? n : 0;
  for (const std::uint64_t roots : {std::uint64_t{n}, std::uint64_t{n + 1}, top, dynamic}) {
    Csf layout{.nnz = n, .mode_order = {}};
    layout.mode_order.assign(std::vector<std::uint32_t>{0, 1});
    const std::vector<Buffer> buffers{Buffer(), u64({0, roots}), u64(coordinates), u64(pointers),
                                      u64(coordinates)};
    const IndexBuffers indices(buffers);
    const auto canonical = layout.check_canonical(indices, {n, n});
    const auto childless = layout.childless(indices);
    if (roots <= n) continue;
    ASSERT_TRUE(canonical);
    EXPECT_EQ(canonical->what, changed);
    ASSERT_TRUE(childless);
  }
  const std::vector<Buffer> buffers{Buffer(), u64(coordinates), u64(pointers)};
  EXPECT_FALSE(Csr{.nnz = n}.check_canonical(IndexBuffers(buffers), {dynamic - 1, n}));
}

TEST(ChangingBytes, TokensOfSequencesAddUp) {
  const BlockPaged layout{.num_pages = 2, .page_size = 2, .num_seqs = 2};
  const auto tokens = [&](const std::vector<std::uint32_t>& starts, std::uint64_t total) {
    const std::vector<Buffer> buffers{Buffer(), u32({0, 1}), u32(starts)};
    return layout.sequence_tokens(IndexBuffers(buffers, 4), {total, 1, 1});
  };
  EXPECT_EQ(*tokens({0, 1, 2}, 4), (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(tokens({0, 2, 1}, 2).error().what, changed);
  EXPECT_EQ(tokens({1, 1, 2}, 4).error().what, changed);
  EXPECT_EQ(tokens({0, 0, 0}, 2).error().what, changed);
}

}  // namespace
}  // namespace hurray
