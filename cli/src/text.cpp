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

std::string Table::text(std::string_view indent) const {
  // A longer cell pushes the rest of its own line only.
  constexpr std::size_t widest = 80;
  std::vector<std::size_t> widths(columns_.size(), 0);
  // Counts columns of the terminal as the padding below does.
  const auto width_of = [](std::string_view cell) {
    return fmt::detail::compute_width(fmt::string_view(cell.data(), cell.size()));
  };
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::clamp(static_cast<std::size_t>(width_of(row[i])), widths[i], widest);

  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text(indent);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::size_t width = std::max(widths[i], columns_[i].title.size());
      if (text.size() > indent.size()) text += "  ";
      text += columns_[i].right ? fmt::format("{:>{}}", cell(i), width)
                                : fmt::format("{:<{}}", cell(i), width);
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
