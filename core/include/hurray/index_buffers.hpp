#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hurray/buffer.hpp"
#include "hurray/cursor.hpp"
#include "hurray/error.hpp"

namespace hurray {

/// Entries `[first, last)` of an index array; `first <= last`.
struct IndexSlice {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool empty() const noexcept { return first == last; }

  /// What of the slice comes after entry `done`, which moves to its end. Slices that follow each
  /// other stay whole; whatever else they are, no entry is in two of them.
  IndexSlice after(std::uint64_t& done) const noexcept {
    const IndexSlice rest{std::max(first, done), last};
    if (rest.first >= rest.last) return {};
    done = rest.last;
    return rest;
  }
};

/// Little-endian unsigned integers of 4 or 8 bytes, as many as their bytes hold: a surplus fraction
/// is ignored. A view, freely shared between threads; whoever uses it keeps the bytes alive.
class IndexArray {
 public:
  IndexArray() = default;
  IndexArray(std::span<const std::byte> bytes, std::uint64_t entry_bytes) noexcept
      : data_(bytes.data()), size_(bytes.size() / entry_bytes), wide_(entry_bytes == 8) {}

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t entry_bytes() const noexcept { return wide_ ? 8 : 4; }
  IndexSlice all() const noexcept { return {0, size_}; }

  /// Precondition: `i < size()`.
  std::uint64_t operator[](std::uint64_t i) const noexcept {
    const std::size_t at = *to_size(i);
    return wide_ ? detail::load<std::uint64_t>(data_ + 8 * at)
                 : detail::load<std::uint32_t>(data_ + 4 * at);
  }

  /// What pointers `k` and `k + 1` delimit. Empty where one of them is missing, they descend, or
  /// they leave `[0, limit]`: whatever the array holds, the result is inside what it points into.
  IndexSlice slice(std::uint64_t k, std::uint64_t limit) const noexcept {
    if (size_ < 2 || k > size_ - 2) return {};
    const IndexSlice found{(*this)[k], (*this)[k + 1]};
    return found.first <= found.last && found.last <= limit ? found : IndexSlice{};
  }

  /// The first entry of `in` (inside the array, ascending) that is at least `value`, else
  /// `in.last`.
  std::uint64_t lower_bound(IndexSlice in, std::uint64_t value) const noexcept {
    while (!in.empty()) {
      const std::uint64_t middle = in.first + (in.last - in.first) / 2;
      if ((*this)[middle] < value)
        in.first = middle + 1;
      else
        in.last = middle;
    }
    return in.first;
  }

  /// Which pointer slice holds target `value`: the last `k` with `pointer[k] <= value` among the
  /// first `slices` of them; none when there is none.
  HURRAY_EXPORT std::optional<std::uint64_t> slice_of(std::uint64_t value,
                                                      std::uint64_t slices) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  bool wide_ = true;
};

/// The buffers of a sparse or indirect tensor as index arrays (02-layouts.md sections 9 to 13).
/// Numbers follow the descriptor's buffer table. A view, freely shared between threads.
class IndexBuffers {
 public:
  IndexBuffers() = default;
  explicit IndexBuffers(std::span<const Buffer> buffers, std::uint64_t entry_bytes = 8) noexcept
      : buffers_(buffers), entry_bytes_(entry_bytes) {}

  /// Buffer `i`; no entries where there is no such buffer.
  IndexArray operator[](std::size_t i) const noexcept {
    return i < buffers_.size() ? IndexArray(buffers_[i].bytes(), entry_bytes_) : IndexArray();
  }
  std::uint64_t entry_bytes() const noexcept { return entry_bytes_; }
  /// Bytes of buffer `i`, 0 where there is none.
  std::uint64_t bytes(std::size_t i) const noexcept {
    return i < buffers_.size() ? buffers_[i].size() : 0;
  }

  /// Buffer `i` holds `entries` entries; else the error says so of its size.
  HURRAY_EXPORT std::optional<Error> check_room(std::size_t i,
                                                std::uint64_t entries) const noexcept;

  /// Buffer `i`, called `field`, holds `slices + 1` pointers that start at 0, do not descend and
  /// stay within `limit`, of which `what` says what it is.
  HURRAY_EXPORT std::optional<Error> check_pointers(std::size_t i, std::string_view field,
                                                    std::uint64_t slices, std::uint64_t limit,
                                                    std::string_view what) const noexcept;

  /// The last of `slices + 1` pointers is `nnz`. Precondition: they are there.
  HURRAY_EXPORT std::optional<Error> check_total(std::size_t i, std::string_view field,
                                                 std::uint64_t slices,
                                                 std::uint64_t nnz) const noexcept;

  /// The first `count` coordinates of buffer `i` are there and below `size`, unless it is dynamic.
  HURRAY_EXPORT std::optional<Error> check_coordinates(std::size_t i, std::string_view field,
                                                       std::uint64_t count,
                                                       std::uint64_t size) const noexcept;

  /// The coordinates of one slice of buffer `i` ascend strictly. Precondition: inside the buffer.
  HURRAY_EXPORT std::optional<Error> check_ascending(std::size_t i, std::string_view field,
                                                     IndexSlice in) const noexcept;

  /// `error` placed at entry `entry` of a buffer called `field` ("row_ptr[]").
  Error at(std::string_view field, std::uint64_t entry, Error error) const noexcept {
    error.origin = Origin::buffer;
    error.field = field;
    error.index = entry;
    error.offset = entry * entry_bytes_;
    return error;
  }

 private:
  std::span<const Buffer> buffers_;
  std::uint64_t entry_bytes_ = 8;
};

/// A coordinate that is not below the `size` of its dimension.
constexpr Error beyond(std::uint64_t coordinate, std::uint64_t size) noexcept {
  if (size == 0)
    return {.code = Errc::out_of_bounds,
            .expect = Expect::as_said,
            .what = "no coordinate, since the dimension is empty",
            .found = coordinate};
  return {.code = Errc::out_of_bounds,
          .expect = Expect::at_most,
          .what = "in a dimension of this size",
          .expected = size - 1,
          .found = coordinate};
}

/// What else a lookup beyond what was checked tells: others may write to shared memory.
constexpr Error index_buffers_changed() noexcept {
  return {.code = Errc::out_of_bounds,
          .origin = Origin::buffer,
          .field = "layout",
          .what = "the index buffers changed while they were read"};
}

/// A buffer's role from the name of its entries: "row_ptr" of "row_ptr[]".
constexpr std::string_view role_of(std::string_view entries) noexcept {
  return entries.substr(0, entries.size() - std::string_view("[]").size());
}

}  // namespace hurray
