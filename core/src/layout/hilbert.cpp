#include "hurray/layout/hilbert.hpp"

#include <algorithm>
#include <utility>

namespace hurray {
namespace {

constexpr std::uint64_t low(std::uint32_t bits) noexcept { return (std::uint64_t{1} << bits) - 1; }

/// One step, acts on the bits below b of X[0] and X[j]: reflect X[0] where bit b of X[j] is 1, else
/// exchange the two.
inline void twist(std::span<std::uint64_t> x, std::size_t j, std::uint32_t b) noexcept {
  const std::uint64_t reflect = 0 - (x[j] >> b & 1);
  const std::uint64_t exchanged = (x[0] ^ x[j]) & low(b) & ~reflect;
  x[0] ^= (low(b) & reflect) ^ exchanged;
  x[j] ^= exchanged;
}

/// All of `encode` before the bits of X are interleaved.
void to_transposed(std::span<std::uint64_t> x, std::uint32_t order) noexcept {
  for (std::uint32_t b = order; b-- > 1;)
    for (std::size_t j = 0; j < x.size(); ++j) twist(x, j, b);
  for (std::size_t j = 1; j < x.size(); ++j) x[j] ^= x[j - 1];
  std::uint64_t g = 0;
  for (std::uint32_t b = order; b-- > 1;) g ^= low(b) & (0 - (x.back() >> b & 1));
  for (std::uint64_t& n : x) n ^= g;
}

/// All of `decode` after the bits of e are distributed.
void from_transposed(std::span<std::uint64_t> x, std::uint32_t order) noexcept {
  const std::uint64_t g = x.back() >> 1;
  for (std::size_t j = x.size(); j-- > 1;) x[j] ^= x[j - 1];
  x[0] ^= g;
  for (std::uint32_t b = 1; b < order; ++b)
    for (std::size_t j = x.size(); j-- > 0;) twist(x, j, b);
}

/// The same transform from the highest bits down. What the steps at one bit do to all bits below it
/// is an exchange and reflection of whole coordinates; the parity g, which complements every digit
/// of e, acts like one more reflection of X[0]. So a few orientations of the cube are all there is
/// to know about the bits above, and tables take from one to the next. `Levels` bits of each
/// coordinate, coordinate 0 the highest of each group, are one digit.
template <unsigned Rank, unsigned Levels>
class Tables {
 public:
  static constexpr unsigned digit_bits = Rank * Levels;

  static std::uint64_t forward(std::uint64_t code, std::uint32_t order) noexcept {
    return map(steps.forward, code, order);
  }
  static std::uint64_t backward(std::uint64_t code, std::uint32_t order) noexcept {
    return map(steps.backward, code, order);
  }

 private:
  static constexpr unsigned digits = 1u << digit_bits;

  struct Orientation {
    std::array<std::uint8_t, Rank> from{};  // X[j] is this coordinate of the index,
    std::array<bool, Rank> reflected{};     // complemented
    friend bool operator==(const Orientation&, const Orientation&) = default;
  };
  /// One bit of each coordinate, and the orientation for the bits below.
  static constexpr unsigned level(Orientation& o, unsigned bits) noexcept {
    std::array<bool, Rank> x{};
    for (unsigned j = 0; j < Rank; ++j)
      x[j] = (bits >> (Rank - 1 - o.from[j]) & 1) != static_cast<unsigned>(o.reflected[j]);
    for (unsigned j = 0; j < Rank; ++j) {
      if (x[j]) {
        o.reflected[0] = !o.reflected[0];
      } else {
        std::swap(o.from[0], o.from[j]);
        std::swap(o.reflected[0], o.reflected[j]);
      }
    }
    unsigned e = 0;
    bool sum = false;
    for (unsigned j = 0; j < Rank; ++j) {
      sum = sum != x[j];
      e = 2 * e + static_cast<unsigned>(sum);
    }
    if (sum) o.reflected[0] = !o.reflected[0];
    return e;
  }

  struct Step {
    std::uint8_t digit;
    std::uint8_t next;  // the orientation for the bits below
  };

  /// All orientations that are reached, the upright one first, and their steps by one level.
  struct Orientations {
    std::array<Orientation, 64> all{};
    std::array<std::array<Step, 1u << Rank>, 64> levels{};
    unsigned count = 0;

    constexpr std::uint8_t find(const Orientation& o) noexcept {
      unsigned i = 0;
      while (i < count && all[i] != o) ++i;
      all[i] = o;
      count = std::max(count, i + 1);
      return static_cast<std::uint8_t>(i);
    }
  };
  static constexpr Orientations orientations = [] {
    Orientations found;
    Orientation upright;
    for (unsigned j = 0; j < Rank; ++j) upright.from[j] = static_cast<std::uint8_t>(j);
    found.find(upright);
    for (unsigned i = 0; i < found.count; ++i)
      for (unsigned bits = 0; bits < 1u << Rank; ++bits) {
        Orientation next = found.all[i];
        const auto e = static_cast<std::uint8_t>(level(next, bits));
        found.levels[i][bits] = {e, found.find(next)};
      }
    return found;
  }();

  using Rows = std::array<std::array<Step, digits>, orientations.count>;
  struct Steps {
    Rows forward{};
    Rows backward{};
    /// Where to start so that the upright orientation follows after so many zero bits of each
    /// coordinate, which give zeros.
    std::array<std::uint8_t, Levels> start{};
  };
  static constexpr Steps steps = [] {
    Steps made;
    for (std::uint8_t first = 0; first < orientations.count; ++first) {
      for (unsigned bits = 0; bits < digits; ++bits) {
        Step all{0, first};
        for (unsigned shift = digit_bits; shift > 0;) {
          shift -= Rank;
          const Step one = orientations.levels[all.next][bits >> shift & ((1u << Rank) - 1)];
          all = {static_cast<std::uint8_t>(all.digit << Rank | one.digit), one.next};
        }
        made.forward[first][bits] = all;
        made.backward[first][all.digit] = {static_cast<std::uint8_t>(bits), all.next};
      }
      Step zeros{0, first};
      for (unsigned count = 0; count < Levels && zeros.digit == 0; ++count) {
        if (zeros.next == 0) made.start[count] = first;
        zeros = orientations.levels[zeros.next][0];
      }
    }
    return made;
  }();

  static std::uint64_t map(const Rows& rows, std::uint64_t code, std::uint32_t order) noexcept {
    const std::uint32_t turns = (order + Levels - 1) / Levels;
    std::size_t state = steps.start[turns * Levels - order];
    std::uint64_t mapped = 0;
    for (std::uint32_t shift = turns * digit_bits; shift > 0;) {
      shift -= digit_bits;
      const Step step = rows[state][code >> shift & (digits - 1)];
      mapped = mapped << digit_bits | step.digit;
      state = step.next;
    }
    return mapped;
  }
};
using Plane = Tables<2, 4>;
using Space = Tables<3, 2>;

}  // namespace

std::optional<ElementRange> Hilbert::range(const Shape&) const noexcept {
  const std::uint64_t bits = std::uint64_t{order} * rank;
  if (bits > max_bits) return std::nullopt;
  return ElementRange{0, static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1)};
}

HilbertCodec::HilbertCodec(const Hilbert& layout, BitPath path) noexcept
    : lanes_(layout.rank, layout.order, LowestBit::of_last_number, path), order_(layout.order) {}

std::int64_t HilbertCodec::offset(std::span<const std::uint64_t> index) const noexcept {
  if (index.size() == 2)
    return static_cast<std::int64_t>(Plane::forward(lanes_.join(index), order_));
  if (index.size() == 3)
    return static_cast<std::int64_t>(Space::forward(lanes_.join(index), order_));
  std::array<std::uint64_t, Interleave::max_bits> copy;
  const std::span x(copy.data(), index.size());
  std::ranges::copy(index, x.begin());
  to_transposed(x, order_);
  return static_cast<std::int64_t>(lanes_.join(x));
}

bool HilbertCodec::index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept {
  const auto code = static_cast<std::uint64_t>(offset);
  if (offset < 0 || code >> lanes_.code_bits() != 0) return false;
  if (index.size() == 2) {
    lanes_.split(Plane::backward(code, order_), index);
  } else if (index.size() == 3) {
    lanes_.split(Space::backward(code, order_), index);
  } else {
    lanes_.split(code, index);
    from_transposed(index, order_);
  }
  return true;
}

}  // namespace hurray
