#include "opened.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hurray/formats/formats.hpp"
#include "hurray/formats/open.hpp"
#include "hurray/io/file.hpp"
#include "system.hpp"

namespace hurray::cli {
namespace {

/// The next character of `text`, which has one: a code point of UTF-8, or a byte that begins none.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  const std::size_t size = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size == 1 || size > text.size() - at || !io::is_utf8(text.substr(at, size))) {
    ++at;
    return lead;
  }
  char32_t code = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(at + i) & 0x3Fu);
  at += size;
  return code;
}

/// Whether the bracket that `pattern` has at `at` stands for `c`; `at` moves behind it. None where
/// nothing closes it.
std::optional<bool> in_bracket(std::string_view pattern, std::size_t& at, char32_t c) {
  std::size_t i = at + 1;
  const bool without = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (without) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const char32_t low = next_character(pattern, i);
    char32_t high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
      high = next_character(pattern, i);
    }
    found = found || (low <= c && c <= high);
  }
  if (i >= pattern.size()) return std::nullopt;
  at = i + 1;
  return found != without;
}

}  // namespace

io::Result<io::FileSet> open_any(const std::string& path) {
  io::OpenOptions options;
  options.mode = io::Mode::memory;
  options.agreed.all = true;
  options.interrupted = signalled;
  options.foreign = formats::reader();
  return formats::open(path, [&](const std::string&) { return options; });
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern == name) return true;
  std::size_t p = 0;
  std::size_t n = 0;
  // Behind the last star, and the text that it may still grow by.
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_name = n;
      continue;
    }
    std::size_t after = n;
    bool same = false;
    if (p < pattern.size() && n < name.size()) {
      const char32_t c = next_character(name, after);
      std::optional<bool> one;
      if (pattern[p] == '[') one = in_bracket(pattern, p, c);
      if (one) {
        same = *one;
      } else if (pattern[p] == '?') {
        ++p;
        same = true;
      } else {
        if (pattern[p] == '\\' && p + 1 < pattern.size()) ++p;
        same = next_character(pattern, p) == c;
      }
    }
    if (same) {
      n = after;
      continue;
    }
    if (star == std::string_view::npos || star_name >= name.size()) return false;
    (void)next_character(name, star_name);
    n = star_name;
    p = star;
  }
  return true;
}

io::Result<std::vector<std::size_t>> chosen(const io::FileSet& set,
                                            const std::vector<std::string>& patterns) {
  std::vector<bool> used(patterns.size());
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < set.size(); ++i) {
    bool wanted = patterns.empty();
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      if (!matches(patterns[p], set.name(i))) continue;
      wanted = true;
      used[p] = true;
    }
    if (wanted) entries.push_back(i);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused == used.end()) return entries;
  return io::Error({.code = Errc::not_found, .origin = Origin::file, .what = "no name matches"},
                   set.path(), patterns[static_cast<std::size_t>(unused - used.begin())],
                   fmt::format("`hurray ls {}` lists the names", io::printable(set.path())));
}

io::Result<std::size_t> named(const io::FileSet& set, const std::string& name) {
  if (const auto found = set.find(name)) return *found;
  return io::Error(
      {.code = Errc::not_found, .origin = Origin::file, .what = "there is no tensor of this name"},
      set.path(), name, fmt::format("`hurray ls {}` lists the names", io::printable(set.path())));
}

}  // namespace hurray::cli
