#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hurray {

/// Every tag space is one constexpr array of rows whose first member is the tag, sorted by it.
/// These two questions are asked of all of them.
template <class Table, class Tag>
constexpr const typename Table::value_type* find_row(const Table& table, Tag tag) noexcept {
  const auto row = std::ranges::lower_bound(table, tag, {}, &Table::value_type::tag);
  return row != table.end() && row->tag == tag ? &*row : nullptr;
}

template <class Table>
constexpr const typename Table::value_type* find_name(const Table& table,
                                                      std::string_view name) noexcept {
  const auto row = std::ranges::find(table, name, &Table::value_type::name);
  return row != table.end() ? &*row : nullptr;
}

namespace detail {
inline constexpr std::uint8_t no_row = 0xFF;

template <const auto& Table>
inline constexpr auto rows_by_tag = [] {
  static_assert(Table.size() < no_row);
  std::array<std::uint8_t, 256> rows{};
  rows.fill(no_row);
  for (std::size_t i = 0; i < Table.size(); ++i)
    rows[static_cast<std::uint8_t>(Table[i].tag)] = static_cast<std::uint8_t>(i);
  return rows;
}();
}  // namespace detail

/// The same question of a table of byte tags, answered by one look-up.
template <const auto& Table, class Tag>
constexpr auto row_of(Tag tag) noexcept -> decltype(Table.data()) {
  static_assert(sizeof(Tag) == 1);
  const std::uint8_t i = detail::rows_by_tag<Table>[static_cast<std::uint8_t>(tag)];
  return i == detail::no_row ? nullptr : Table.data() + i;
}

template <class Table>
constexpr bool strictly_sorted(const Table& table) noexcept {
  return std::ranges::adjacent_find(table, std::ranges::greater_equal{}, &Table::value_type::tag) ==
         table.end();
}

/// `0xF0`-`0xFE`: values that two parties agree on between themselves, in every tag space.
constexpr bool is_private(std::uint8_t tag) noexcept { return tag >= 0xF0 && tag <= 0xFE; }

}  // namespace hurray
