#include "key_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "hurray/printer.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

template <class T>
constexpr bool is_single =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, io::Bytes>;

std::string text_of(const std::string& text) { return quote(text); }
std::string text_of(const io::Bytes& bytes) {
  return fmt::format("<{}> {}", plural(bytes.size(), "byte"), hex(bytes, 16));
}
std::string text_of(double number) { return to_text(number); }
std::string text_of(std::integral auto number) { return fmt::format("{}", number); }

void json_of(Json& json, const io::Bytes& bytes) { json.value(hex(bytes, bytes.size())); }
void json_of(Json& json, const auto& value) { json.value(value); }

bool is_array(const io::KvValue& value) {
  return std::visit([]<class T>(const T&) { return !is_single<T>; }, value);
}

}  // namespace

std::string value_text(const io::KvValue& value) {
  static constexpr std::size_t most = 8;
  return std::visit(
      []<class T>(const T& held) {
        if constexpr (is_single<T>) {
          return text_of(held);
        } else {
          std::string text = "[";
          for (std::size_t i = 0; i < std::min<std::size_t>(held.size(), most); ++i) {
            if (i != 0) text += ", ";
            text += text_of(static_cast<const typename T::value_type&>(held[i]));
          }
          if (held.size() > most) text += fmt::format(", … ({} in all)", held.size());
          return text + ']';
        }
      },
      value);
}

std::string type_text(const io::KvValue& value) {
  return fmt::format("{}{}", io::type_name(value), is_array(value) ? "[]" : "");
}

std::vector<std::string> value_lines(const io::KvValue& value) {
  const auto line = []<class T>(const T& one) {
    if constexpr (std::is_same_v<T, std::string>)
      return io::printable(one);
    else if constexpr (std::is_same_v<T, io::Bytes>)
      return hex(one, one.size());
    else
      return text_of(one);
  };
  return std::visit(
      [&]<class T>(const T& held) {
        std::vector<std::string> lines;
        if constexpr (is_single<T>) {
          lines.push_back(line(held));
        } else {
          for (std::size_t i = 0; i < held.size(); ++i)
            lines.push_back(line(static_cast<const typename T::value_type&>(held[i])));
        }
        return lines;
      },
      value);
}

std::string key_values_table(const io::KeyValues& kv, std::optional<std::size_t> width) {
  Table table({{"KEY"}, {"TYPE"}, {"VALUE"}});
  for (const auto& [key, value] : kv)
    table.add({io::printable(key), type_text(value), value_text(value)});
  return table.text({.width = width});
}

void value_members(Json& json, const io::KvValue& value) {
  json.member("type", io::type_name(value));
  json.member("array", is_array(value));
  json.key("value");
  std::visit(
      [&]<class T>(const T& held) {
        if constexpr (is_single<T>) {
          json_of(json, held);
        } else {
          json.begin_array();
          for (std::size_t i = 0; i < held.size(); ++i)
            json_of(json, static_cast<const typename T::value_type&>(held[i]));
          json.end_array();
        }
      },
      value);
}

void key_value_members(Json& json, const io::KeyValues& kv) {
  json.key("kv");
  json.begin_array();
  for (const auto& [key, value] : kv) {
    json.begin_object();
    json.member("key", key);
    value_members(json, value);
    json.end_object();
  }
  json.end_array();
}

}  // namespace hurray::cli
