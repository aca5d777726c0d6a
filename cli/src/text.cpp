#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hurray/io/error.hpp"

namespace hurray::cli {
std::string quote(std::string_view text, std::size_t longest) {
  const std::size_t whole = text.size();
  if (whole > longest) {
    while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
    text = text.substr(0, longest);
  }
  std::string out = "\"";
  for (const char c : io::printable(text)) {
    if (c == '"') out += '\\';
    out += c;
  }
  out += '"';
  if (text.size() < whole) out += fmt::format("… ({} bytes)", whole);
  return out;
}

std::string hex(std::span<const std::byte> bytes, std::size_t longest) {
  std::string out;
  for (const std::byte b : bytes.first(std::min(bytes.size(), longest))) {
    if (!out.empty()) out += ' ';
    out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  }
  if (bytes.size() > longest) out += " …";
  return out;
}

std::string human(std::uint64_t bytes) {
  static constexpr auto units =
      std::to_array<std::string_view>({"KiB", "MiB", "GiB", "TiB", "PiB"});
  if (bytes < 1024) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string plural(std::uint64_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      fmt::detail::compute_width(fmt::string_view(text.data(), text.size())));
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width || width == 0) return text;
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    characters.push_back(std::string_view(text).substr(at, end - at));
    at = end;
  }
  // Names differ at their ends: both stay.
  std::string front;
  std::size_t back = text.size();
  std::size_t taken = 1;
  for (std::size_t i = 0, j = characters.size(); i < j;) {
    const std::string_view next = characters[i++];
    taken += width_of(next);
    if (taken > width) break;
    front += next;
    if (i == j) break;
    const std::string_view last = characters[--j];
    taken += width_of(last);
    if (taken > width) break;
    back -= last.size();
  }
  return front + "…" + text.substr(back);
}

std::string Table::text(const TableForm& form) const {
  // A longer cell pushes the rest of its own line only.
  constexpr std::size_t widest = 80;
  constexpr std::size_t narrowest = 8;
  std::vector<std::size_t> widths(columns_.size(), 0);
  std::vector<std::size_t> longest(columns_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      longest[i] = std::max(longest[i], width_of(row[i]));
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (longest[i] != 0)
      widths[i] = std::max(form.width ? longest[i] : std::min(longest[i], widest),
                           columns_[i].title.size());

  // Counts columns of the terminal as the padding below does.
  const auto total = [&] {
    std::size_t sum = width_of(form.indent);
    bool first = true;
    for (const std::size_t width : widths) {
      if (width == 0) continue;
      sum += width + (std::exchange(first, false) ? 0 : 2);
    }
    return sum;
  };
  while (form.width && total() > *form.width) {
    const auto wide = std::ranges::max_element(widths);
    if (wide == widths.end() || *wide <= narrowest) break;
    *wide -= std::min(*wide - narrowest, total() - *form.width);
  }

  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text(form.indent);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      if (text.size() > form.indent.size()) text += "  ";
      std::string held(cell(i));
      if (form.width) held = shortened(held, widths[i]);
      text += columns_[i].right ? fmt::format("{:>{}}", held, widths[i])
                                : fmt::format("{:<{}}", held, widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  if (rows_.empty()) return out;
  line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) { return std::string_view(row[i]); });
  return out;
}

}  // namespace hurray::cli
