#include "hurray/printer.hpp"

#include <charconv>
#include <string_view>

namespace hurray {

namespace {

template <class T>
std::string shortest(T value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return {digits, end};
}

}  // namespace

std::string to_text(double value) { return shortest(value); }
std::string to_text(float value) { return shortest(value); }

std::string to_hex(std::uint64_t value) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text = "0x";
  int shift = 4;
  while (shift < 60 && value >> (shift + 4) != 0) shift += 4;
  for (; shift >= 0; shift -= 4) text += digits[value >> shift & 0xF];
  return text;
}

}  // namespace hurray
