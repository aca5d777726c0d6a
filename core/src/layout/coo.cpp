#include "hurray/layout/coo.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace hurray {
namespace {

constexpr std::string_view entries = "indices[]";

/// Coordinates of stored entries, compared as tuples, dimension 0 first.
struct Tuples {
  IndexArray indices;
  std::uint64_t rank;

  std::uint64_t at(std::uint64_t entry, std::uint64_t d) const noexcept {
    return indices[entry * rank + d];
  }
  /// The first dimension in which two entries differ; `rank` when they do not.
  std::uint64_t differ(std::uint64_t a, std::uint64_t b) const noexcept {
    std::uint64_t d = 0;
    while (d < rank && at(a, d) == at(b, d)) ++d;
    return d;
  }
  bool less(std::uint64_t a, std::uint64_t b) const noexcept {
    const std::uint64_t d = differ(a, b);
    return d < rank && at(a, d) < at(b, d);
  }
};

Error repeated(const IndexBuffers& buffers, std::uint64_t rank, std::uint64_t first,
               std::uint64_t again) noexcept {
  return buffers.at(entries, again * rank,
                    {.code = Errc::duplicate,
                     .expect = Expect::as_said,
                     .what = "coordinates that no entry before this one has",
                     .expected = first,
                     .found = again});
}

/// Entry numbers in the order of their tuples, equal ones as they are stored: merged upwards from
/// one to all in two arrays, so that no comparison, whatever it says, leads out of them.
std::span<std::uint64_t> sort(const Tuples& tuples, std::span<std::uint64_t> order,
                              std::span<std::uint64_t> scratch) noexcept {
  const std::size_t n = order.size();
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t run = 1; run < n; run *= 2) {
    for (std::size_t begin = 0; begin < n; begin += std::min(2 * run, n - begin)) {
      std::size_t left = begin;
      const std::size_t middle = begin + std::min(run, n - begin);
      std::size_t right = middle;
      const std::size_t end = middle + std::min(run, n - middle);
      for (std::size_t to = begin; to < end; ++to) {
        const bool take_right =
            left == middle || (right < end && tuples.less(order[right], order[left]));
        scratch[to] = take_right ? order[right++] : order[left++];
      }
    }
    std::swap(order, scratch);
  }
  return order;
}

}  // namespace

std::optional<Error> Coo::check_bounds(const IndexBuffers& buffers,
                                       const Shape& shape) const noexcept {
  const std::uint64_t rank = shape.rank();
  const auto numbers = checked_mul(nnz, rank);
  if (auto error = buffers.check_room(1, numbers.value_or(dynamic))) return error;
  const IndexArray indices = buffers[1];
  for (std::uint64_t entry = 0; entry < nnz; ++entry)
    for (std::uint64_t d = 0; d < rank; ++d) {
      const std::uint64_t number = entry * rank + d;
      const std::uint64_t size = shape[d];
      if (size != dynamic && indices[number] >= size)
        return buffers.at(entries, number, beyond(indices[number], size));
    }
  return std::nullopt;
}

std::optional<Error> Coo::check_canonical(const IndexBuffers& buffers, const Shape& shape) const {
  const Tuples tuples{buffers[1], shape.rank()};
  const std::uint64_t n = stored(tuples.indices, shape.rank());
  std::uint64_t ascending = 1;
  while (ascending < n && tuples.less(ascending - 1, ascending)) ++ascending;
  if (ascending >= n) return std::nullopt;
  if (is_sorted != 0) {
    const std::uint64_t d = tuples.differ(ascending - 1, ascending);
    if (d == tuples.rank) return repeated(buffers, tuples.rank, ascending - 1, ascending);
    return buffers.at(entries, ascending * tuples.rank + d,
                      {.code = Errc::invalid_value,
                       .expect = Expect::at_least,
                       .what = "since the entries are said to be sorted",
                       .expected = tuples.at(ascending - 1, d),
                       .found = tuples.at(ascending, d)});
  }
  const auto bytes = checked_mul<std::uint64_t>(n, 2 * sizeof(std::uint64_t));
  const auto memory = Buffer::allocate(bytes.value_or(dynamic));
  if (!memory) return memory.error();
  const std::span<std::uint64_t> numbers(reinterpret_cast<std::uint64_t*>(memory->data()),
                                         2 * *to_size(n));
  const std::span<std::uint64_t> order =
      sort(tuples, numbers.first(numbers.size() / 2), numbers.last(numbers.size() / 2));
  std::optional<std::pair<std::uint64_t, std::uint64_t>> first;
  for (std::size_t i = 1; i < order.size(); ++i)
    if (tuples.differ(order[i - 1], order[i]) == tuples.rank &&
        (!first || order[i] < first->second))
      first = {order[i - 1], order[i]};
  if (first) return repeated(buffers, tuples.rank, first->first, first->second);
  return std::nullopt;
}

std::optional<std::uint64_t> Coo::find(std::span<const std::uint64_t> index, const Shape& shape,
                                       const IndexBuffers& buffers) const noexcept {
  const Tuples tuples{buffers[1], shape.rank()};
  IndexSlice in{0, stored(tuples.indices, shape.rank())};
  const auto differ = [&](std::uint64_t entry) {
    std::uint64_t d = 0;
    while (d < tuples.rank && tuples.at(entry, d) == index[static_cast<std::size_t>(d)]) ++d;
    return d;
  };
  if (is_sorted == 0) {
    for (; !in.empty(); ++in.first)
      if (differ(in.first) == tuples.rank) return in.first;
    return std::nullopt;
  }
  while (!in.empty()) {
    const std::uint64_t middle = in.first + (in.last - in.first) / 2;
    const std::uint64_t d = differ(middle);
    if (d == tuples.rank) return middle;
    if (tuples.at(middle, d) < index[static_cast<std::size_t>(d)])
      in.first = middle + 1;
    else
      in.last = middle;
  }
  return std::nullopt;
}

bool Coo::index_of(std::uint64_t slot, const Shape& shape, const IndexBuffers& buffers,
                   std::span<std::uint64_t> index) const noexcept {
  const Tuples tuples{buffers[1], shape.rank()};
  if (slot >= stored(tuples.indices, shape.rank())) return false;
  for (std::size_t d = 0; d < shape.rank(); ++d) index[d] = tuples.at(slot, d);
  return true;
}

}  // namespace hurray
