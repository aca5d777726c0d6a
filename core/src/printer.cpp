#include "hurray/printer.hpp"

namespace hurray {

std::string to_text(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return {digits, end};
}

}  // namespace hurray
