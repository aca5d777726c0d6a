#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray/io/translation.hpp"

namespace hurray::formats {

/// Of a file's first bytes, enough to tell its format.
inline constexpr std::size_t head_bytes = 512;

io::Result<io::Translation> see_safetensors(const io::ForeignSource& source);
io::Result<io::Translation> see_npy(const io::ForeignSource& source);
io::Result<io::Translation> see_gguf(const io::ForeignSource& source);

bool is_safetensors(std::span<const std::byte> head, std::uint64_t size) noexcept;
bool is_npy(std::span<const std::byte> head, std::uint64_t size) noexcept;
bool is_gguf(std::span<const std::byte> head, std::uint64_t size) noexcept;

/// One byte for each truth value, 0 for false, to bits, the first one lowest.
extern const io::Conversion pack_bools;
/// Numbers of 2, 4 or 8 bytes with their bytes turned round; null for others.
const io::Conversion* swap_bytes(std::size_t width) noexcept;

/// `text` as it may be shown, in quotes, cut after 200 bytes.
inline std::string quote(std::string_view text) {
  const std::string shown = io::printable(text.substr(0, 200));
  return '"' + shown + (text.size() > 200 ? "\"…" : "\"");
}

/// Of entries in the order of a file: those of two equal names, the earlier one first.
template <class List, class Name>
std::optional<std::pair<std::size_t, std::size_t>> find_duplicate(const List& list, Name name) {
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) { return std::string_view(name(list[i])); };
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(key(i), i); });
  const auto same = std::ranges::adjacent_find(order, {}, key);
  if (same == order.end()) return std::nullopt;
  return std::pair(*same, *std::next(same));
}

}  // namespace hurray::formats
