#include "hurray/index_buffers.hpp"

#include <algorithm>
#include <limits>

#include "hurray/checked.hpp"
#include "hurray/shape.hpp"

namespace hurray {
namespace {

// Many entries without a branch. Numbers below 2^63 compare by the top bit of their difference; of
// others nothing is said here, and they are judged one by one.
constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

/// All entries of `in` are seen to be below `size`.
bool all_below(const IndexArray entries, IndexSlice in, std::uint64_t size) noexcept {
  if (size > top_bit) return false;
  std::uint64_t seen = 0;
  for (std::uint64_t j = in.first; j < in.last; ++j) seen |= entries[j] | (size - 1 - entries[j]);
  return (seen & top_bit) == 0;
}

/// The entries of `in` are seen to ascend strictly.
bool all_ascend(const IndexArray entries, IndexSlice in) noexcept {
  if (in.last - in.first < 2) return true;
  std::uint64_t seen = entries[in.first];
  std::uint64_t rises = top_bit;
  for (std::uint64_t j = in.first + 1; j < in.last; ++j) {
    seen |= entries[j];
    rises &= entries[j - 1] - entries[j];
  }
  return (rises & ~seen & top_bit) != 0;
}

}  // namespace

std::optional<std::uint64_t> IndexArray::slice_of(std::uint64_t value,
                                                  std::uint64_t slices) const noexcept {
  IndexSlice in{0, std::min(slices, size_)};
  while (!in.empty()) {
    const std::uint64_t middle = in.first + (in.last - in.first) / 2;
    if ((*this)[middle] <= value)
      in.first = middle + 1;
    else
      in.last = middle;
  }
  if (in.first == 0) return std::nullopt;
  return in.first - 1;
}

std::optional<Error> IndexBuffers::check_room(std::size_t i, std::uint64_t entries) const noexcept {
  if (entries <= (*this)[i].size()) return std::nullopt;
  return Error{
      .code = Errc::out_of_bounds,
      .origin = Origin::buffer,
      .expect = Expect::at_least,
      .index = i,
      .field = "buffers[].byte_size",
      .what = "bytes",
      .expected =
          checked_mul(entries, entry_bytes_).value_or(std::numeric_limits<std::uint64_t>::max()),
      .found = bytes(i)};
}

std::optional<Error> IndexBuffers::check_pointers(std::size_t i, std::string_view field,
                                                  std::uint64_t slices, std::uint64_t limit,
                                                  std::string_view what) const noexcept {
  const auto entries = checked_add<std::uint64_t>(slices, 1);
  if (auto error = check_room(i, entries.value_or(slices))) return error;
  const IndexArray pointers = (*this)[i];
  if (pointers[0] != 0)
    return at(field, 0,
              {.code = Errc::invalid_value,
               .expect = Expect::exactly,
               .what = "as the first pointer",
               .expected = 0,
               .found = pointers[0]});
  std::uint64_t before = 0;
  for (std::uint64_t k = 1; k <= slices; ++k) {
    const std::uint64_t pointer = pointers[k];
    if (pointer < before)
      return at(field, k,
                {.code = Errc::invalid_value,
                 .expect = Expect::at_least,
                 .what = "(the pointer before it)",
                 .expected = before,
                 .found = pointer});
    if (pointer > limit)
      return at(field, k,
                {.code = Errc::out_of_bounds,
                 .expect = Expect::at_most,
                 .what = what,
                 .expected = limit,
                 .found = pointer});
    before = pointer;
  }
  return std::nullopt;
}

std::optional<Error> IndexBuffers::check_total(std::size_t i, std::string_view field,
                                               std::uint64_t slices,
                                               std::uint64_t nnz) const noexcept {
  const std::uint64_t total = (*this)[i][slices];
  if (total == nnz) return std::nullopt;
  return at(field, slices,
            {.code = Errc::inconsistent,
             .expect = Expect::exactly,
             .what = "(nnz) as the last pointer",
             .expected = nnz,
             .found = total});
}

std::optional<Error> IndexBuffers::check_coordinates(std::size_t i, std::string_view field,
                                                     std::uint64_t count,
                                                     std::uint64_t size) const noexcept {
  if (auto error = check_room(i, count)) return error;
  if (size == dynamic) return std::nullopt;
  const IndexArray coordinates = (*this)[i];
  if (all_below(coordinates, {0, count}, size)) return std::nullopt;
  for (std::uint64_t j = 0; j < count; ++j)
    if (coordinates[j] >= size) return at(field, j, beyond(coordinates[j], size));
  return std::nullopt;
}

std::optional<Error> IndexBuffers::check_ascending(std::size_t i, std::string_view field,
                                                   IndexSlice in) const noexcept {
  const IndexArray coordinates = (*this)[i];
  if (all_ascend(coordinates, in)) return std::nullopt;
  for (std::uint64_t j = in.first; j + 1 < in.last; ++j) {
    const std::uint64_t before = coordinates[j];
    const std::uint64_t here = coordinates[j + 1];
    if (here > before) continue;
    if (here == before)
      return at(field, j + 1,
                {.code = Errc::duplicate,
                 .expect = Expect::as_said,
                 .what = "a coordinate that was not stored before",
                 .found = here});
    return at(field, j + 1,
              {.code = Errc::invalid_value,
               .expect = Expect::at_least,
               .what = "(above the coordinate before it)",
               .expected = before + 1,
               .found = here});
  }
  return std::nullopt;
}

}  // namespace hurray
