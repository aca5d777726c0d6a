#include "element_runs.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace hurray {
namespace {

std::uint64_t magnitude(std::int64_t stride) noexcept {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? 0 - bits : bits;
}

/// Minus one, for `times`.
constexpr std::uint64_t backwards = ~std::uint64_t{0};

/// Offsets of taken elements fit; wrapping keeps all else defined.
std::int64_t times(std::uint64_t n, std::int64_t stride) noexcept {
  return static_cast<std::int64_t>(n * static_cast<std::uint64_t>(stride));
}
std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// One stride for each dimension: the selection has strides, too. Ascends where they nest.
class StridedRuns final : public ElementRuns {
 public:
  StridedRuns(const Strides& strides, std::span<const Taken> taken) {
    for (std::size_t k = 0; k < taken.size(); ++k) {
      slot_ = plus(slot_, times(taken[k].start, strides[k]));
      if (taken[k].count == 1) continue;
      Axis axis{taken[k].count, times(taken[k].step, strides[k]), taken[k].pitch};
      if (axis.slot_step < 0) {  // from its other end
        slot_ = plus(slot_, times(axis.count - 1, axis.slot_step));
        target_ = plus(target_, times(axis.count - 1, axis.target_step));
        axis.slot_step = times(backwards, axis.slot_step);
        axis.target_step = times(backwards, axis.target_step);
      }
      const auto place =
          std::ranges::upper_bound(axes_, axis.slot_step, std::ranges::greater(), &Axis::slot_step);
      axes_.insert(place, axis);
    }
    // What one step of both memories walks through is one axis.
    std::vector<Axis> joined;
    for (const Axis& axis : axes_) {
      if (!joined.empty() && joined.back().slot_step == times(axis.count, axis.slot_step) &&
          joined.back().target_step == times(axis.count, axis.target_step))
        joined.back() = {joined.back().count * axis.count, axis.slot_step, axis.target_step};
      else
        joined.push_back(axis);
    }
    axes_ = std::move(joined);
    if (axes_.empty()) axes_.push_back({1, 1, 1});
    at_.resize(axes_.size());
  }

  bool next(ElementRun& run) noexcept override {
    if (ended_) return false;
    const Axis& fastest = axes_.back();
    run = {slot_, fastest.slot_step, target_, fastest.target_step, fastest.count, nullptr};
    for (std::size_t k = axes_.size() - 1;; --k) {
      if (k == 0) {
        ended_ = true;
        break;
      }
      const Axis& axis = axes_[k - 1];
      if (++at_[k - 1] < axis.count) {
        slot_ = plus(slot_, axis.slot_step);
        target_ = plus(target_, axis.target_step);
        break;
      }
      at_[k - 1] = 0;
      slot_ = plus(slot_, times(1 - axis.count, axis.slot_step));
      target_ = plus(target_, times(1 - axis.count, axis.target_step));
    }
    return true;
  }

 private:
  struct Axis {
    std::uint64_t count;
    std::int64_t slot_step;
    std::int64_t target_step;
  };
  std::vector<Axis> axes_;  ///< Slowest first; never empty.
  std::vector<std::uint64_t> at_;
  std::int64_t slot_ = 0;
  std::int64_t target_ = 0;
  bool ended_ = false;
};

/// The digits of tiles. Of each dimension the slower ones come first, so that a digit knows which
/// part of the dimension it divides; apart from that, larger strides come first.
class DigitRuns final : public ElementRuns {
 public:
  DigitRuns(const DigitCodec& codec, const Shape& shape, std::span<const Taken> taken)
      : taken_(taken) {
    for (const DigitCodec::Digit& digit : codec.digits()) {
      std::size_t place = levels_.size();
      while (place > 0 && levels_[place - 1].digit.dimension != digit.dimension &&
             magnitude(levels_[place - 1].digit.stride) < magnitude(digit.stride))
        --place;
      levels_.insert(levels_.begin() + static_cast<std::ptrdiff_t>(place), Level{.digit = digit});
    }
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      Level& level = levels_[i];
      level.end = shape[level.digit.dimension];
      for (std::size_t before = 0; before < i; ++before)
        if (levels_[before].digit.dimension == level.digit.dimension) {
          level.inside = before + 1;
          levels_[before].decides = false;
        }
    }
    if (!levels_.empty()) enter(0);
  }

  bool next(ElementRun& run) noexcept override {
    if (ended_) return false;
    if (levels_.empty()) {
      run = {0, 1, 0, 1, 1, nullptr};
      ended_ = true;
      return true;
    }
    const Level& fastest = levels_.back();
    const Taken& taken = taken_[fastest.digit.dimension];
    const std::uint64_t behind = std::min(fastest.end - 1, taken.last());
    run = {fastest.slot, times(taken.step, fastest.digit.stride), fastest.target, taken.pitch, 1,
           nullptr};
    run.count += (behind - fastest.start) / taken.step;
    for (std::size_t i = levels_.size() - 1;; --i) {
      if (i == 0) {
        ended_ = true;
        break;
      }
      if (choose(i - 1, levels_[i - 1].start + levels_[i - 1].digit.unit)) {
        enter(i);
        break;
      }
    }
    return true;
  }

 private:
  struct Level {
    DigitCodec::Digit digit;
    std::size_t inside = 0;  ///< The digit that this one divides, counted from 1; 0: none.
    bool decides = true;     ///< The fastest of its dimension: an index, not a part of one.
    // The part of the dimension that it divides, and the one unit of this that is walked through.
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t start = 0;
    std::uint64_t stop = 0;
    // Of all slower digits and this one.
    std::int64_t slot = 0;
    std::int64_t target = 0;
  };

  /// The unit of level `i` with the first index that is taken and not below `from`.
  bool choose(std::size_t i, std::uint64_t from) noexcept {
    Level& level = levels_[i];
    const Taken& taken = taken_[level.digit.dimension];
    std::uint64_t index = 0;
    if (!first_taken(taken, from, index) || index >= level.end) return false;
    const std::uint64_t value = (index - level.first) / level.digit.unit;
    level.start = level.first + value * level.digit.unit;
    level.stop = std::min(level.end, level.start + level.digit.unit);
    level.slot = plus(i == 0 ? 0 : levels_[i - 1].slot, times(value, level.digit.stride));
    level.target = i == 0 ? 0 : levels_[i - 1].target;
    if (level.decides)
      level.target = plus(level.target, times((index - taken.start) / taken.step, taken.pitch));
    return true;
  }

  /// The first of level `i` and of all behind it: there is one, since what they divide was chosen
  /// for it.
  void enter(std::size_t i) noexcept {
    for (; i < levels_.size(); ++i) {
      Level& level = levels_[i];
      if (level.inside != 0) {
        level.first = levels_[level.inside - 1].start;
        level.end = levels_[level.inside - 1].stop;
      }
      if (!choose(i, level.first)) ended_ = true;
    }
  }

  std::span<const Taken> taken_;
  std::vector<Level> levels_;
  bool ended_ = false;
};

/// Sizes of the boxes that aligned blocks of codes fill, as powers of two.
class Boxes {
 public:
  Boxes(const Morton& morton, const Shape&) : rank_(morton.bits.size()), step_(1) {
    std::vector<std::uint8_t> sides(rank_);
    sides_ = sides;
    std::uint32_t most = 0;
    for (const std::uint32_t b : morton.bits) most = std::max(most, b);
    for (std::uint32_t b = 0; b < most; ++b)
      for (std::size_t k = 0; k < rank_; ++k) {
        if (b >= morton.bits[k]) continue;
        ++sides[k];
        sides_.insert(sides_.end(), sides.begin(), sides.end());
        ++bits_;
      }
  }
  Boxes(const Hilbert& hilbert, const Shape&)
      : rank_(hilbert.rank), step_(hilbert.rank), bits_(hilbert.rank * hilbert.order) {
    for (std::uint32_t n = 0; n <= bits_; ++n)
      sides_.insert(sides_.end(), rank_, static_cast<std::uint8_t>(n / hilbert.rank));
  }

  /// Bits of all codes, and how many of them fewer make the next smaller box.
  std::uint32_t bits() const noexcept { return bits_; }
  std::uint32_t step() const noexcept { return step_; }
  std::uint32_t side(std::uint32_t n, std::size_t k) const noexcept {
    return sides_[n * rank_ + k];
  }
  /// The largest box that starts at `code`.
  std::uint32_t at(std::uint64_t code) const noexcept {
    if (code == 0) return bits_;
    const auto zeros = std::min(static_cast<std::uint32_t>(std::countr_zero(code)), bits_);
    return zeros - zeros % step_;
  }

 private:
  std::size_t rank_;
  std::uint32_t step_;
  std::uint32_t bits_ = 0;
  std::vector<std::uint8_t> sides_;  ///< Of every number of bits from 0 on.
};

/// Codes of a curve in rising order. What is not taken is passed over in boxes.
template <class CurveLayout>
class CurveRuns final : public ElementRuns {
 public:
  CurveRuns(const CurveLayout& layout, const Shape& shape, std::span<const Taken> taken,
            std::span<const std::int64_t> offsets)
      : codec_(layout.codec(shape)),
        boxes_(layout, shape),
        taken_(taken),
        offsets_(offsets),
        corner_(taken.size()) {}

  bool next(ElementRun& run) noexcept override {
    const std::uint64_t end = std::uint64_t{1} << boxes_.bits();
    while (code_ < end) {
      for (std::uint32_t n = boxes_.at(code_);; n -= boxes_.step()) {
        const std::uint64_t codes = std::uint64_t{1} << n;
        const Overlap overlap = look(n);
        if (overlap == Overlap::none) {
          code_ += codes;
          break;
        }
        const bool block = overlap == Overlap::all && codes <= offsets_.size();
        if (n != 0 && !block) continue;
        run = {static_cast<std::int64_t>(code_), 1, target(), 1, codes,
               block ? offsets_.data() : nullptr};
        code_ += codes;
        return true;
      }
    }
    return false;
  }

 private:
  enum class Overlap : std::uint8_t { none, some, all };

  /// How much of the box of `n` bits at `code_` is taken; `corner_` is its lowest one.
  Overlap look(std::uint32_t n) noexcept {
    if (!codec_.index_of(static_cast<std::int64_t>(code_), corner_)) return Overlap::none;
    bool all = true;
    for (std::size_t k = 0; k < corner_.size(); ++k) {
      const std::uint64_t size = std::uint64_t{1} << boxes_.side(n, k);
      std::uint64_t& low = corner_[k];
      low &= ~(size - 1);
      const Taken& taken = taken_[k];
      std::uint64_t index = 0;
      if (!first_taken(taken, low, index) || index - low >= size) return Overlap::none;
      all &= size == 1 || (taken.step == 1 && index == low && taken.last() - low >= size - 1);
    }
    return all ? Overlap::all : Overlap::some;
  }

  /// Of the element in the corner.
  std::int64_t target() const noexcept {
    std::int64_t target = 0;
    for (std::size_t k = 0; k < corner_.size(); ++k)
      target =
          plus(target, times((corner_[k] - taken_[k].start) / taken_[k].step, taken_[k].pitch));
    return target;
  }

  decltype(std::declval<const CurveLayout&>().codec(std::declval<const Shape&>())) codec_;
  Boxes boxes_;
  std::span<const Taken> taken_;
  std::span<const std::int64_t> offsets_;
  std::vector<std::uint64_t> corner_;
  std::uint64_t code_ = 0;
};

}  // namespace

bool first_taken(const Taken& taken, std::uint64_t from, std::uint64_t& index) noexcept {
  if (from <= taken.start) {
    index = taken.start;
    return true;
  }
  std::uint64_t steps = from - taken.start;
  if (taken.step != 1) steps = steps / taken.step + (steps % taken.step != 0 ? 1 : 0);
  if (steps >= taken.count) return false;
  index = taken.start + steps * taken.step;
  return true;
}

ElementRuns::~ElementRuns() = default;

std::vector<std::int64_t> block_offsets(const Layout& layout, const Shape& shape,
                                        std::span<const Taken> taken) {
  constexpr std::uint32_t most_bits = 10;
  std::vector<std::int64_t> offsets;
  const auto* morton = std::get_if<Morton>(&layout);
  if (morton == nullptr) return offsets;
  const Boxes boxes(*morton, shape);
  std::vector<std::uint32_t> bits(morton->bits.begin(), morton->bits.end());
  const Interleave lanes(bits, LowestBit::of_first_number);
  std::vector<std::uint64_t> index(taken.size());
  offsets.resize(std::size_t{1} << std::min(boxes.bits(), most_bits));
  for (std::size_t code = 0; code < offsets.size(); ++code) {
    lanes.split(code, index);
    for (std::size_t k = 0; k < index.size(); ++k)
      offsets[code] = plus(offsets[code], times(index[k], taken[k].pitch));
  }
  return offsets;
}

std::unique_ptr<ElementRuns> runs_of(const Layout& layout, const Shape& shape,
                                     std::span<const Taken> taken,
                                     std::span<const std::int64_t> offsets) {
  return std::visit(
      [&]<class T>(const T& dense) -> std::unique_ptr<ElementRuns> {
        if constexpr (StridedLayout<T>)
          return std::make_unique<StridedRuns>(dense.strides_for(shape), taken);
        else if constexpr (std::is_same_v<T, Tiled>)
          return std::make_unique<DigitRuns>(dense.codec(shape), shape, taken);
        else if constexpr (DenseLayout<T>)
          return std::make_unique<CurveRuns<T>>(dense, shape, taken, offsets);
        else
          return nullptr;
      },
      layout);
}

}  // namespace hurray
