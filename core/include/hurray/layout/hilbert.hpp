#pragma once

#include "hurray/layout/dense.hpp"
#include "hurray/layout/interleave.hpp"

namespace hurray {

struct Hilbert;

/// The address map of a Hilbert layout. Ranks 2 and 3 go by tables, several bits of each coordinate
/// at a time, others by Skilling's steps, one bit at a time. A value, about 4 KiB and never on the
/// heap; freely shared between threads.
class HilbertCodec {
 public:
  /// Precondition: valid for a shape, which then is a cube and needs no further word.
  HURRAY_EXPORT explicit HilbertCodec(const Hilbert& layout,
                                      BitPath path = fastest_bit_path()) noexcept;

  HURRAY_EXPORT std::int64_t offset(std::span<const std::uint64_t> index) const noexcept;
  static constexpr bool has_inverse() noexcept { return true; }
  HURRAY_EXPORT bool index_of(std::int64_t offset, std::span<std::uint64_t> index) const noexcept;

  /// Along the curve; every slot is an element.
  template <class Each>
  bool for_each(Each&& each) const {
    std::array<std::uint64_t, Interleave::max_bits> numbers;
    const std::span<std::uint64_t> index(numbers.data(), lanes_.numbers());
    for (std::uint64_t code = 0;; ++code) {
      const auto e = static_cast<std::int64_t>(code);
      if (!index_of(e, index)) return true;
      if (!each(std::span<const std::uint64_t>(index), e)) return false;
    }
  }

 private:
  Interleave lanes_;
  std::uint32_t order_;
};

/// Elements along a Hilbert curve through a cube of side `2^order` (02-layouts.md section 15).
struct Hilbert {
  static constexpr LayoutTag tag = LayoutTag::hilbert;
  static constexpr std::uint32_t max_bits = 63;
  static constexpr std::string_view role(std::size_t i) noexcept { return i == 0 ? "data" : ""; }

  std::uint32_t order = 1;
  std::uint32_t rank = 2;  ///< The tensor's rank.

  static void fields(auto& self, auto& io, const FieldContext& in) {
    const std::uint64_t rank = in.shape.rank();
    io("layout.hilbert_order", self.order);
    io.check(self.order != 0, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "layout.hilbert_order",
                   .expected = 1,
                   .found = 0};
    });
    io.check(self.order * rank <= max_bits, [&] {
      return Error{.code = Errc::overflow,
                   .expect = Expect::at_most,
                   .field = "layout.hilbert_order",
                   .what = "bits (order times rank)",
                   .expected = max_bits,
                   .found = self.order * rank};
    });
    const std::uint64_t at_order = io.last();
    io("layout.hilbert_rank", self.rank);
    io.check(self.rank >= 2, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "layout.hilbert_rank",
                   .expected = 2,
                   .found = self.rank};
    });
    io.check(self.rank == rank, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "layout.hilbert_rank",
                   .what = "as the tensor's rank",
                   .expected = rank,
                   .found = self.rank};
    });
    if (!io.ok()) return;
    for (std::size_t k = 0; k < in.shape.rank(); ++k)
      io.check(in.shape[k] == dynamic || in.shape[k] == std::uint64_t{1} << self.order, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = "layout.hilbert_order",
                     .what = "(2^order) in every dimension",
                     .offset = at_order,
                     .expected = std::uint64_t{1} << self.order,
                     .found = in.shape[k]};
      });
  }

  HURRAY_EXPORT std::optional<ElementRange> range(const Shape& shape) const noexcept;
  HilbertCodec codec(const Shape&) const noexcept { return HilbertCodec(*this); }
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
  friend bool operator==(const Hilbert&, const Hilbert&) = default;
};

}  // namespace hurray
