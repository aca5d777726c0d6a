#include "hurray/io/error.hpp"

#include <cstdint>

#include "hurray/io/key_values.hpp"
#include "system.hpp"

namespace hurray::io {

namespace {

void append_hex(std::string& text, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += "0123456789abcdef"[value >> shift & 0xF];
}

/// Bytes of the character that `text` begins with; 0 where it begins with none.
std::size_t character(std::string_view text) noexcept {
  for (std::size_t n = 1; n <= 4 && n <= text.size(); ++n)
    if (is_utf8(text.substr(0, n))) return n;
  return 0;
}

std::uint32_t code_point(std::string_view character) noexcept {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  std::uint32_t value = lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1))
    value = value << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return value;
}

bool is_plain(std::uint32_t c) noexcept {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool separator = c == 0x2028 || c == 0x2029;
  const bool direction = c == 0x061C || c == 0x200E || c == 0x200F ||
                         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  const bool invisible = c == 0x00AD || c == 0x200B || c == 0xFEFF || (c >= 0xE0000 && c < 0xE0080);
  return !control && !separator && !direction && !invisible && c != '\\';
}

/// The core's sentence without its general advice, where `error` has better.
std::string sentence(const Error& error) {
  const bool only_system = error.system_errno != 0 && error.field.empty();
  std::string text =
      only_system ? std::string(error.what) : to_string(static_cast<const hurray::Error&>(error));
  const std::string_view hint = info(error.code).hint;
  if (!only_system && !error.detail.empty() && !hint.empty() && text.ends_with(hint))
    text.resize(text.size() - hint.size() - 2);
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = character(text);
    const std::uint32_t value =
        size != 0 ? code_point(text.substr(0, size)) : static_cast<unsigned char>(text[0]);
    const std::string_view here = text.substr(0, size != 0 ? size : 1);
    if (size != 0 && is_plain(value)) {
      result += here;
    } else if (value == '\\') {
      result += "\\\\";
    } else if (value == '\n') {
      result += "\\n";
    } else if (value == '\t') {
      result += "\\t";
    } else {
      const int digits = value < 0x100 ? 2 : value < 0x10000 ? 4 : 8;
      result += size == 0 || digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
      append_hex(result, value, digits);
    }
    text.remove_prefix(here.size());
  }
  return result;
}

std::string to_string(const Error& error) {
  std::string text;
  if (!error.path.empty()) text += printable(error.path) + ": ";
  if (!error.tensor.empty()) text += "tensor \"" + printable(error.tensor) + "\": ";
  text += sentence(error);
  if (error.system_errno != 0) {
    if (!text.empty() && !text.ends_with(": ")) text += ": ";
    text += system::words(error.system_errno);
  }
  if (!error.detail.empty()) text += "; " + error.detail;
  return text;
}

}  // namespace hurray::io
