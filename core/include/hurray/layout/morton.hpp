#pragma once

#include "hurray/layout/dense.hpp"
#include "hurray/layout/interleave.hpp"

namespace hurray {

struct Morton;

namespace detail {
class MortonWalk;
}

/// The address map of a Morton layout over one shape. A value, about 4 KiB and never on the heap;
/// freely shared between threads.
class MortonCodec {
 public:
  /// Precondition: valid for the shape, which is not dynamic.
  HURRAY_EXPORT MortonCodec(const Morton& layout, const Shape& shape,
                            BitPath path = fastest_bit_path()) noexcept;

  std::int64_t offset(std::span<const std::uint64_t> index) const noexcept {
    return static_cast<std::int64_t>(lanes_.join(index));
  }
  static constexpr bool has_inverse() noexcept { return true; }
  HURRAY_EXPORT bool index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept;

  /// Ascending codes. Codes outside the shape are passed over in boxes of powers of two, each
  /// tested once: at most `code_bits` tests for an element, however large the space of codes is,
  /// and between one and two on average where the shape fills its space.
  template <class Each>
  bool for_each(Each&& each) const;

 private:
  friend class detail::MortonWalk;

  Interleave lanes_;
  std::array<std::uint64_t, Interleave::max_bits> shape_;
  bool empty_;
};

namespace detail {

/// The elements of a `MortonCodec` one by one. Precondition: not empty.
class MortonWalk {
 public:
  HURRAY_EXPORT explicit MortonWalk(const MortonCodec& codec) noexcept;

  std::span<const std::uint64_t> index() const noexcept {
    return {index_.data(), codec_.lanes_.numbers()};
  }
  std::int64_t offset() const noexcept { return static_cast<std::int64_t>(code_); }

  /// The next code is this one with a clear bit set and all bits below it cleared. That is the
  /// first corner of a box, and if the corner is outside the shape, so is the box.
  bool next() noexcept {
    for (std::size_t out = 0; out < codec_.lanes_.code_bits(); ++out) {
      const Place place = places_[out];
      std::uint64_t& i = index_[place.dimension];
      const std::uint64_t in_code = std::uint64_t{1} << out;
      const std::uint64_t in_index = std::uint64_t{1} << place.bit;
      if ((code_ & in_code) != 0) {
        code_ ^= in_code;
        i ^= in_index;
      } else if ((i | in_index) < codec_.shape_[place.dimension]) {
        code_ |= in_code;
        i |= in_index;
        return true;
      }
    }
    return false;
  }

 private:
  struct Place {
    std::uint8_t dimension;
    std::uint8_t bit;
  };
  const MortonCodec& codec_;
  std::uint64_t code_ = 0;
  std::array<std::uint64_t, Interleave::max_bits> index_{};
  std::array<Place, Interleave::max_bits> places_;  // where each bit of the code belongs
};

}  // namespace detail

template <class Each>
bool MortonCodec::for_each(Each&& each) const {
  if (empty_) return true;
  detail::MortonWalk walk(*this);
  do {
    if (!each(walk.index(), walk.offset())) return false;
  } while (walk.next());
  return true;
}

/// Elements in the order of their interleaved index bits, least significant first and dimension 0
/// first (02-layouts.md section 8, D2). `2^sum(bits)` slots.
struct Morton {
  static constexpr LayoutTag tag = LayoutTag::morton;
  static constexpr std::uint32_t max_bits = 63;
  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }

  SmallVector<std::uint32_t, 16> bits;  ///< Index bits of each dimension, at least 1.

  static void fields(auto& self, auto& io, const FieldContext& in) {
    std::uint64_t sum = 0;
    io.list("layout.morton_bits[]", self.bits, in.shape.rank(), 4, [&](auto& n, std::size_t k) {
      io({"layout.morton_bits[]", k}, n);
      io.check(n != 0, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::at_least,
                     .index = k,
                     .field = "layout.morton_bits[]",
                     .what = "bit",
                     .expected = 1,
                     .found = 0};
      });
      io.check(sum + n <= max_bits, [&] {
        return Error{.code = Errc::overflow,
                     .expect = Expect::at_most,
                     .index = k,
                     .field = "layout.morton_bits[]",
                     .what = "bits in all dimensions",
                     .expected = max_bits,
                     .found = sum + n};
      });
      if (!io.ok()) return;
      sum += n;
      io.check(in.shape[k] == dynamic || in.shape[k] <= std::uint64_t{1} << n, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::at_most,
                     .index = k,
                     .field = "layout.morton_bits[]",
                     .what = "as the size of the dimension, with so few bits",
                     .expected = std::uint64_t{1} << n,
                     .found = in.shape[k]};
      });
    });
  }

  /// As few bits as each size needs, at least 1; dynamic sizes get 1.
  HURRAY_EXPORT static Morton fitting(const Shape& shape);

  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  MortonCodec codec(const Shape& shape) const noexcept { return {*this, shape}; }
  std::int64_t offset(std::span<const std::uint64_t> index, const Shape& shape) const noexcept {
    return codec(shape).offset(index);
  }
  bool index_of(std::int64_t offset, const Shape& shape,
                std::span<std::uint64_t> index) const noexcept {
    return codec(shape).index_of(offset, index);
  }
  template <class Each>
  bool for_each(const Shape& shape, Each&& each) const {
    return codec(shape).for_each(each);
  }
  friend bool operator==(const Morton&, const Morton&) = default;
};

}  // namespace hurray
