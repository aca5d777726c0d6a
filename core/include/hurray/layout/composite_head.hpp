#pragma once

#include <limits>

#include "hurray/layout/fields.hpp"
#include "hurray/layout/tags.hpp"
#include "hurray/volume.hpp"

namespace hurray {

/// How a view is made of its members (02-layouts.md section 14).
enum class CompositionRule : std::uint8_t { partition = 1, overlay = 2, group = 3 };

/// How an overlay's corrections act.
enum class CombineOp : std::uint8_t { none = 0, replace = 1, add = 2 };

/// One rule. `first_op` and `last_op` are the raw combine operations that it allows.
struct CompositionRuleInfo {
  CompositionRule tag;
  std::string_view name;
  std::uint8_t first_op;
  std::uint8_t last_op;
};

inline constexpr auto composition_rules = std::to_array<CompositionRuleInfo>({
    {CompositionRule::partition, "partition", 0, 0},
    {CompositionRule::overlay, "overlay", 1, 2},
    {CompositionRule::group, "group", 0, 0},
});
static_assert(strictly_sorted(composition_rules));

struct CombineOpInfo {
  CombineOp tag;
  std::string_view name;
};

inline constexpr auto combine_ops = std::to_array<CombineOpInfo>({
    {CombineOp::none, "none"},
    {CombineOp::replace, "replace"},
    {CombineOp::add, "add"},
});
static_assert(strictly_sorted(combine_ops));

/// "extension" for a private rule.
constexpr std::string_view name(CompositionRule rule) noexcept {
  const CompositionRuleInfo* row = find_row(composition_rules, rule);
  return row != nullptr ? row->name : "extension";
}
constexpr std::string_view name(CombineOp op) noexcept {
  const CombineOpInfo* row = find_row(combine_ops, op);
  return row != nullptr ? row->name : "extension";
}

/// Stores nothing itself: a view over the `member_count` tensors that follow it (02-layouts.md
/// section 14).
struct CompositeHead {
  static constexpr LayoutTag tag = LayoutTag::composite;
  static constexpr std::string_view role(std::size_t) noexcept { return ""; }
  static constexpr std::uint32_t open = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t member_count = 0;
  CompositionRule rule = CompositionRule::group;
  CombineOp combine_op = CombineOp::none;  ///< Overlays only.

  /// The members tile or cover the head's index space.
  bool has_boxes() const noexcept {
    return rule == CompositionRule::partition || rule == CompositionRule::overlay;
  }

  static void fields(auto& self, auto& io, const FieldContext& in) {
    io("layout.composition_rule", self.rule);
    const auto rule = static_cast<std::uint8_t>(self.rule);
    const CompositionRuleInfo* row = find_row(composition_rules, self.rule);
    const bool agreed = is_private(rule) && in.options.permissive &&
                        in.options.agreed.has(in.options.agreed.composition_rules, rule);
    io.check(row != nullptr || agreed, [&] { return unassigned("layout.composition_rule", rule); });
    io("layout.combine_op", self.combine_op);
    const auto op = static_cast<std::uint8_t>(self.combine_op);
    io.check(row == nullptr || (op >= row->first_op && op <= row->last_op), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "layout.combine_op",
                   .what = self.rule == CompositionRule::overlay
                               ? std::string_view("1 (replace) or 2 (add) for an overlay")
                               : std::string_view("0 for this rule"),
                   .found = op};
    });
    io.reserved("layout.reserved", 2);
    io("layout.member_count", self.member_count);
    io.check(self.member_count != open, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_most,
                   .field = "layout.member_count",
                   .what = "members",
                   .expected = open - 1,
                   .found = open};
    });
    io.check(self.rule != CompositionRule::overlay || self.member_count != 0, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "layout.member_count",
                   .what = "member (the base) in an overlay",
                   .expected = 1,
                   .found = 0};
    });
    for (std::size_t k = 0; self.has_boxes() && k < in.shape.rank(); ++k)
      io.check(in.shape[k] != dynamic, [&] {
        return Error{.code = Errc::inconsistent,
                     .index = k,
                     .field = "shape[]",
                     .what = "the head of a partition or overlay has no dynamic sizes",
                     .offset = shape_offset + 8 * k};
      });
    io.check(
        self.rule != CompositionRule::partition || in.shape.is_dynamic() || Volume::of(in.shape),
        [&] {
          return Error{.code = Errc::overflow,
                       .field = "shape",
                       .what = "the volume of a partition is below 2^128",
                       .offset = shape_offset};
        });
  }

  /// Nothing is stored, so nothing is needed.
  std::optional<std::uint64_t> required_bytes(std::size_t, unsigned, const Shape&) const noexcept {
    return 0;
  }
  friend bool operator==(const CompositeHead&, const CompositeHead&) = default;
};

}  // namespace hurray
