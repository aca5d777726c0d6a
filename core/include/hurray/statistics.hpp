#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hurray/cursor.hpp"
#include "hurray/table.hpp"

namespace hurray {

/// Bits of `computed_mask` (01-descriptor.md section 3.7).
enum class StatisticsBit : std::uint32_t {
  nnz = 1u << 0,
  sparsity = 1u << 1,
  value_range = 1u << 2,
  value_stats = 1u << 3,
  nm_sparsity = 1u << 4,
  nan_inf = 1u << 5,
};

struct StatisticsBitInfo {
  StatisticsBit tag;
  std::string_view name;
};

inline constexpr auto statistics_bits = std::to_array<StatisticsBitInfo>({
    {StatisticsBit::nnz, "NNZ_VALID"},
    {StatisticsBit::sparsity, "SPARSITY_VALID"},
    {StatisticsBit::value_range, "VALUE_RANGE_VALID"},
    {StatisticsBit::value_stats, "VALUE_STATS_VALID"},
    {StatisticsBit::nm_sparsity, "NM_SPARSITY_VALID"},
    {StatisticsBit::nan_inf, "NAN_INF_VALID"},
});
static_assert(strictly_sorted(statistics_bits));

/// Advisory numbers about the elements, each claimed by its bit of `computed_mask`; what stands
/// under a clear bit is kept and means nothing. Floats compare by bit pattern. A value, freely
/// shared between threads.
///
/// Permissive mode also lets groups through that break a rule (row 58): they are kept as they came,
/// so that encoding gives the same bytes, and count as not there (`has`).
struct Statistics {
  std::uint32_t computed_mask = 0;
  std::uint8_t nm_n = 0;
  std::uint8_t nm_m = 0;
  std::uint8_t has_nan = 0;
  std::uint8_t has_inf = 0;
  std::uint64_t nnz = 0;
  double sparsity_ratio = 0;
  double value_min = 0;
  double value_max = 0;
  double value_abs_max = 0;
  double value_mean = 0;
  double value_stddev = 0;

  /// The group's bit is set, and its values break no rule.
  bool has(StatisticsBit bit) const noexcept {
    return (computed_mask & ~dropped() & static_cast<std::uint32_t>(bit)) != 0;
  }

  /// Bits of `computed_mask` whose values break a rule of row 58.
  std::uint32_t dropped() const noexcept {
    std::uint32_t bits = 0;
    const auto rule = [&](StatisticsBit bit, bool holds) {
      if (!holds) bits |= computed_mask & static_cast<std::uint32_t>(bit);
    };
    rule(StatisticsBit::sparsity, sparsity_holds());
    rule(StatisticsBit::value_stats, stddev_holds());
    rule(StatisticsBit::nm_sparsity, nm_holds());
    rule(StatisticsBit::nan_inf, is_flag(has_nan) && is_flag(has_inf));
    return bits;
  }

  /// Those groups alone that are there: what a new tensor may claim.
  Statistics sound() const noexcept {
    Statistics kept = *this;
    kept.computed_mask &= ~dropped();
    return kept;
  }

  /// Fields and rules of 01-descriptor.md section 3.7; a NaN float means unknown and passes.
  /// `layout_nnz` is a sparse layout's own count. With `permissive` the rules of row 58 pass.
  static void fields(auto& self, auto& io, const std::optional<std::uint64_t>& layout_nnz,
                     bool permissive = false) {
    const auto rule = [&](StatisticsBit bit, bool holds, const auto& error) {
      const bool claimed = (self.computed_mask & static_cast<std::uint32_t>(bit)) != 0;
      io.check(permissive || !claimed || holds, error);
    };
    io.bits("statistics.computed_mask", self.computed_mask, statistics_bits);
    const std::uint32_t surplus = self.computed_mask & ~((1u << statistics_bits.size()) - 1);
    io.check(surplus == 0, [&] {
      return Error{.code = Errc::reserved_bits,
                   .expect = Expect::exactly,
                   .field = "statistics.computed_mask",
                   .what = "in bits 6 to 31",
                   .expected = 0,
                   .found = surplus};
    });
    io.reserved("statistics.reserved", 4);
    io("statistics.nnz", self.nnz);
    io.check(!layout_nnz || !self.has(StatisticsBit::nnz) || self.nnz == *layout_nnz, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "statistics.nnz",
                   .what = "as in the layout",
                   .expected = layout_nnz.value_or(0),
                   .found = self.nnz};
    });
    io("statistics.sparsity_ratio", self.sparsity_ratio);
    rule(StatisticsBit::sparsity, self.sparsity_holds(), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::float_as_said,
                   .field = "statistics.sparsity_ratio",
                   .what = "0 to 1",
                   .found = std::bit_cast<std::uint64_t>(double{self.sparsity_ratio})};
    });
    io("statistics.value_min", self.value_min);
    io("statistics.value_max", self.value_max);
    io("statistics.value_abs_max", self.value_abs_max);
    io("statistics.value_mean", self.value_mean);
    io("statistics.value_stddev", self.value_stddev);
    rule(StatisticsBit::value_stats, self.stddev_holds(), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::float_as_said,
                   .field = "statistics.value_stddev",
                   .what = "0 or more",
                   .found = std::bit_cast<std::uint64_t>(double{self.value_stddev})};
    });
    const std::uint64_t at_n = io.position();
    io("statistics.nm_n", self.nm_n);
    io("statistics.nm_m", self.nm_m);
    rule(StatisticsBit::nm_sparsity, self.nm_holds(), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_most,
                   .field = "statistics.nm_n",
                   .what = "(nm_m)",
                   .offset = at_n,
                   .expected = self.nm_m,
                   .found = self.nm_n};
    });
    const auto yes_or_no = [&](std::string_view field, auto& value) {
      io(field, value);
      rule(StatisticsBit::nan_inf, is_flag(value), [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::at_most,
                     .field = field,
                     .expected = 1,
                     .found = value};
      });
    };
    yes_or_no("statistics.has_nan", self.has_nan);
    yes_or_no("statistics.has_inf", self.has_inf);
    io.reserved("statistics.reserved", 4);
  }

  friend bool operator==(const Statistics& a, const Statistics& b) noexcept {
    using Words = std::array<std::uint64_t, 8>;
    static_assert(sizeof(Statistics) == sizeof(Words));
    return std::bit_cast<Words>(a) == std::bit_cast<Words>(b);
  }

 private:
  bool sparsity_holds() const noexcept { return !(sparsity_ratio < 0 || sparsity_ratio > 1); }
  bool stddev_holds() const noexcept { return !(value_stddev < 0); }
  bool nm_holds() const noexcept { return nm_n <= nm_m; }
  static bool is_flag(std::uint8_t value) noexcept { return value <= 1; }
};

}  // namespace hurray
