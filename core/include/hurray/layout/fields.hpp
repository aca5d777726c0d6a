#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/options.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// What a layout's fields are judged with, beside themselves.
struct FieldContext {
  const Shape& shape;
  const DecodeOptions& options;
};

/// The field `nnz` of every sparse layout: stored elements, at most as many as there are places
/// (02-layouts.md L11). The rule waits for dynamic sizes.
void nnz_field(auto& nnz, auto& io, const Shape& shape) {
  io("layout.nnz", nnz);
  if (shape.is_dynamic()) return;
  io.check(nnz <= shape.count(), [&] {
    return Error{.code = Errc::out_of_bounds,
                 .expect = Expect::at_most,
                 .field = "layout.nnz",
                 .what = "stored elements",
                 .expected = shape.count(),
                 .found = nnz};
  });
}

/// A field whose values are the tags of `Table`'s rows; others break `code`.
template <const auto& Table>
void tag_field(Field field, auto& value, auto& io, std::string_view what) {
  io(field, value);
  io.check(find_row(Table, value) != nullptr, [&] {
    return Error{.code = Errc::invalid_value,
                 .expect = Expect::as_said,
                 .field = field.name,
                 .what = what,
                 .found = static_cast<std::uint64_t>(value)};
  });
}

/// Bytes of `count` 64-bit integers; none when that overflows.
constexpr std::optional<std::uint64_t> uint64_bytes(std::optional<std::uint64_t> count) noexcept {
  return count ? checked_mul<std::uint64_t>(*count, 8) : std::nullopt;
}

}  // namespace hurray
