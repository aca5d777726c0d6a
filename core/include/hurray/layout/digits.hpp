#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hurray/export.hpp"
#include "hurray/layout/tags.hpp"
#include "hurray/shape.hpp"

namespace hurray {

namespace detail {
class DigitWalk;
}

/// `steps` elements at equal distances, from `index` and `offset` on: each is `unit` further along
/// `dimension` and `stride` elements further in memory. `index` lives as long as the call that
/// hands it out.
struct DigitRun {
  std::span<const std::uint64_t> index;
  std::int64_t offset;
  std::uint64_t steps;
  std::size_t dimension;
  std::uint64_t unit;
  std::int64_t stride;
};

/// Row-major, column-major, strided and tiled addresses in one form, over one shape: each dimension
/// of the index is a sum of digits times their units (a tile, an element), the offset is the sum of
/// all digits times their strides. Offsets count logical elements from `byte_offset`. A value,
/// about 5 KiB and never on the heap; freely shared between threads.
class DigitCodec {
 public:
  /// `size` values (at least 2) of which each is `unit` elements along `dimension` and `stride`
  /// elements in memory.
  struct Digit {
    std::uint64_t size;
    std::uint64_t unit;
    std::int64_t stride;
    std::uint8_t dimension;
    bool leads;   ///< No slower digit of its dimension.
    bool ragged;  ///< Has fewer values in the last unit of the slower digits.
  };

  /// Precondition: not dynamic, and the product of the sizes fits in 63 bits or is 0.
  HURRAY_EXPORT explicit DigitCodec(const Shape& shape) noexcept;

  /// Adds one digit for every dimension, faster than all before: `order` is row_major, col_major or
  /// strided over `sizes` digits, then with `strides`. One step of dimension k is `units[k]`
  /// elements along it, 1 when `units` is empty; the strides count `pitch` elements.
  /// Precondition: a level of a layout that is valid for the shape.
  HURRAY_EXPORT void add(LayoutTag order, std::span<const std::uint64_t> sizes,
                         std::span<const std::int64_t> strides = {},
                         std::span<const std::uint64_t> units = {},
                         std::int64_t pitch = 1) noexcept;

  /// Precondition: `index` is inside the shape.
  HURRAY_EXPORT std::int64_t offset(std::span<const std::uint64_t> index) const noexcept;

  /// The strides nest: in ascending order of magnitude each is larger than the sum of the spans
  /// before it, so that no two offsets coincide and each offset has its own digits. Not every set
  /// of strides without coinciding offsets nests (sizes 2 and 3 with strides 3 and 2 do not).
  HURRAY_EXPORT bool has_inverse() const noexcept;

  /// The index, as long as the rank, of the element at `offset`; false where there is none or
  /// without an inverse, and then `index` holds nothing of use.
  HURRAY_EXPORT bool index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept;

  /// Slowest first; those that never move are left out. None where the shape is empty.
  std::span<const Digit> digits() const noexcept { return {digits_.data(), count_}; }

  /// Calls `each(index, offset)` for all elements in the order of the digits, until it is false;
  /// returns whether it was true to the end. Padding costs nothing.
  template <class Each>
  bool for_each(Each&& each) const;
  /// The same by runs of the fastest digit: `each(const DigitRun&)`.
  template <class Each>
  bool for_each_run(Each&& each) const;

 private:
  friend class detail::DigitWalk;

  // Not more than 62 sizes above 1 have a product below 2^63: once the sizes of the grid, once
  // those of all digits inside a tile.
  static constexpr std::size_t max_digits = 124;

  std::uint64_t least() const noexcept;

  std::array<std::uint64_t, max_rank> shape_;
  std::array<Digit, max_digits> digits_;            // slowest first
  std::array<std::uint8_t, max_digits> by_stride_;  // smallest magnitude first
  std::uint64_t has_digits_ = 0;                    // a bit for each dimension
  std::uint8_t rank_ = 0;
  std::uint8_t count_ = 0;
  bool empty_ = false;
};

namespace detail {

/// The elements of a `DigitCodec` one by one. Precondition: not empty.
class DigitWalk {
 public:
  HURRAY_EXPORT explicit DigitWalk(const DigitCodec& codec) noexcept;

  std::span<const std::uint64_t> index() const noexcept { return {index_.data(), codec_.rank_}; }
  std::int64_t offset() const noexcept { return offset_; }

  DigitRun run() const noexcept {
    return {index(), offset_, left_ + 1, dimension_, unit_, stride_};
  }
  /// The first element of the next run.
  bool next_run() noexcept {
    index_[dimension_] += left_ * unit_;
    offset_ += static_cast<std::int64_t>(left_) * stride_;
    left_ = 0;
    return carry();
  }

  bool next() noexcept {
    if (left_ == 0) return carry();
    --left_;
    index_[dimension_] += unit_;
    offset_ += stride_;
    return true;
  }

 private:
  HURRAY_EXPORT bool carry() noexcept;
  std::uint64_t limit(const DigitCodec::Digit& digit) const noexcept;

  const DigitCodec& codec_;
  std::int64_t offset_ = 0;
  std::uint64_t left_ = 0;  // steps of the fastest digit
  std::uint64_t unit_ = 0;
  std::int64_t stride_ = 0;
  std::size_t dimension_ = 0;
  std::array<std::uint64_t, max_rank> index_{};
  std::array<std::uint64_t, DigitCodec::max_digits> values_;
  std::array<std::uint64_t, DigitCodec::max_digits> limits_;
};

}  // namespace detail

template <class Each>
bool DigitCodec::for_each(Each&& each) const {
  if (empty_) return true;
  detail::DigitWalk walk(*this);
  do {
    if (!each(walk.index(), walk.offset())) return false;
  } while (walk.next());
  return true;
}

template <class Each>
bool DigitCodec::for_each_run(Each&& each) const {
  if (empty_) return true;
  detail::DigitWalk walk(*this);
  do {
    if (!each(walk.run())) return false;
  } while (walk.next_run());
  return true;
}

}  // namespace hurray
