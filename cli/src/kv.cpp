#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "command.hpp"
#include "hurray/io/rewrite_kv.hpp"
#include "key_values.hpp"
#include "opened.hpp"
#include "system.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

constexpr auto type_words = std::to_array<std::pair<std::string_view, io::KvTag>>({
    {"str", io::KvTag::string},
    {"int", io::KvTag::int64},
    {"uint", io::KvTag::uint64},
    {"float", io::KvTag::float64},
    {"bool", io::KvTag::boolean},
    {"bytes", io::KvTag::bytes},
});
constexpr std::string_view list_suffix = "-list";

/// What a value is to be made of.
struct Type {
  io::KvTag tag = io::KvTag::string;
  bool list = false;
};

std::optional<Type> type_named(std::string_view word) {
  const bool list = word.ends_with(list_suffix);
  if (list) word.remove_suffix(list_suffix.size());
  for (const auto& [name, tag] : type_words)
    if (name == word) return Type{tag, list};
  return std::nullopt;
}

/// That of a value which is there.
Type type_of(const io::KvValue& value) {
  return {type_words[value.index() % type_words.size()].second, value.index() >= type_words.size()};
}

io::Error not_one(std::string_view what, std::string detail) {
  return io::Error({.code = Errc::invalid_value,
                    .origin = Origin::file,
                    .expect = Expect::as_said,
                    .field = "VALUE",
                    .what = what},
                   {}, {}, std::move(detail));
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> truth(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

/// "00 ff" or "00ff"
std::optional<io::Bytes> bytes_of(std::string_view text) {
  io::Bytes bytes;
  std::string digits(text);
  std::erase(digits, ' ');
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    std::uint8_t value = 0;
    const char* end = digits.data() + i + 2;
    if (std::from_chars(digits.data() + i, end, value, 16).ptr != end) return std::nullopt;
    bytes.push_back(std::byte{value});
  }
  return bytes;
}

/// One value of `T`, as the command line has it.
template <class T>
std::optional<T> single(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>)
    return text;
  else if constexpr (std::is_same_v<T, io::Bytes>)
    return bytes_of(text);
  else if constexpr (std::is_same_v<T, bool>)
    return truth(text);
  else
    return number<T>(text);
}

/// The same of an element of a JSON array, where NaN, infinities and bytes are strings.
template <class T>
std::optional<T> element(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return number<double>(value.get_ref<const std::string&>());
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, io::Bytes>) {
    if (value.is_string()) return single<T>(value.get_ref<const std::string&>());
  } else if (value.is_number_unsigned()) {
    const auto held = value.get<std::uint64_t>();
    if (std::in_range<T>(held)) return static_cast<T>(held);
  } else if (value.is_number_integer()) {
    const auto held = value.get<std::int64_t>();
    if (std::in_range<T>(held)) return static_cast<T>(held);
  }
  return std::nullopt;
}

template <class T>
std::optional<io::KvValue> made(const std::string& text, const nlohmann::json& array, bool list) {
  if (!list) {
    auto value = single<T>(text);
    return value ? std::optional<io::KvValue>(*std::move(value)) : std::nullopt;
  }
  std::vector<T> values;
  for (const nlohmann::json& item : array) {
    auto value = element<T>(item);
    if (!value) return std::nullopt;
    values.push_back(*std::move(value));
  }
  return io::KvValue(std::move(values));
}

/// `text` as a value; integers as int64 where they fit, else as uint64 (04-file.md section 4, F6).
io::Result<io::KvValue> value_of(const std::string& text, const Type& type) {
  nlohmann::json array;
  if (type.list) {
    array = nlohmann::json::parse(text, nullptr, false);
    if (!array.is_array()) return not_one("a JSON array", "such as '[1, 2]'");
  }
  std::optional<io::KvValue> value;
  std::string_view what;
  switch (type.tag) {
    case io::KvTag::string:
      value = made<std::string>(text, array, type.list);
      what = "text";
      break;
    case io::KvTag::int64:
      value = made<std::int64_t>(text, array, type.list);
      if (!value) value = made<std::uint64_t>(text, array, type.list);
      what = "an integer from -2^63 to 2^64 - 1";
      break;
    case io::KvTag::uint64:
      value = made<std::uint64_t>(text, array, type.list);
      what = "an integer from 0 to 2^64 - 1";
      break;
    case io::KvTag::float64:
      value = made<double>(text, array, type.list);
      what = "a number";
      break;
    case io::KvTag::boolean:
      value = made<bool>(text, array, type.list);
      what = "true or false";
      break;
    default:
      value = made<io::Bytes>(text, array, type.list);
      what = "two hexadecimal digits for each byte";
  }
  if (value) return *std::move(value);
  return not_one(what, type.list ? "of every element; --type names another type"
                                 : "--type names another type");
}

void show(const io::KeyValues& kv, std::string_view path, std::string_view target,
          Session& session) {
  Json json(session.output);
  json.begin_document("kv");
  json.member("path", path);
  if (!target.empty()) json.member("target", target);
  key_value_members(json, kv);
  json.end_document();
}

io::Error no_such_key(const std::string& path, const std::string& key) {
  return io::Error(
      {.code = Errc::not_found, .origin = Origin::file, .what = "there is no such key"}, path, {},
      fmt::format("no key is {}; `hurray kv get {}` shows all", quote(key), io::printable(path)));
}

/// Reads the key-values of one file, has `change` change them, and makes the new file.
int rewrite(const std::string& path, const std::string& output, Session& session,
            const std::function<io::Result<std::string>(io::KeyValues&)>& change) {
  remember_signals();
  const auto set = open_any(path);
  if (!set) return session.fail(set.error());
  if (set->files().size() != 1)
    return session.fail(io::Error(
        {.code = Errc::unsupported, .origin = Origin::file, .what = "these are several files"},
        path, {}, "change one of them"));
  io::KeyValues kv = set->files().front().kv();
  const auto said = change(kv);
  if (!said) {
    io::Error error = said.error();
    error.path = path;
    return session.fail(error);
  }
  const std::string& source = set->files().front().path();
  const std::string& target = output.empty() ? source : output;
  const bool target_is_output = is_standard_output(target);
  const auto done = io::rewrite_key_values(source, target, kv, {.interrupted = signalled});
  if (!done) {
    if (signalled()) end_by_signal();
    return session.fail(done.error());
  }
  if (target_is_output) return 0;
  if (session.json)
    show(kv, path, target, session);
  else
    session.output.write(fmt::format("{}: {}\n", io::printable(target), *said));
  return 0;
}

}  // namespace

bool is_kv_type(const std::string& word) { return type_named(word).has_value(); }

int kv_get(const KvGetRequest& request, Session& session) {
  const auto set = open_any(request.path);
  if (!set) return session.fail(set.error());
  auto kv = set->kv();
  if (!kv) return session.fail(kv.error());
  if (!request.key.empty()) {
    const auto found = std::ranges::find(*kv, request.key, &io::KeyValues::value_type::first);
    if (found == kv->end()) return session.fail(no_such_key(set->path(), request.key));
    *kv = {*found};
  }
  if (session.json) {
    show(*kv, set->path(), {}, session);
  } else if (request.key.empty()) {
    session.output.write(key_values_table(*kv, session.columns));
  } else {
    for (const std::string& line : value_lines(kv->front().second))
      session.output.write(line + '\n');
  }
  return 0;
}

int kv_set(const KvSetRequest& request, Session& session) {
  return rewrite(
      request.path, request.output, session, [&](io::KeyValues& kv) -> io::Result<std::string> {
        const auto old = std::ranges::find(kv, request.key, &io::KeyValues::value_type::first);
        Type type;
        if (!request.type.empty())
          type = *type_named(request.type);
        else if (old != kv.end())
          type = type_of(old->second);
        auto value = value_of(request.value, type);
        if (!value) return std::move(value).error();
        std::string said = fmt::format("{} is {} ({})", io::printable(request.key),
                                       value_text(*value), type_text(*value));
        if (old != kv.end())
          old->second = *std::move(value);
        else
          kv.emplace_back(request.key, *std::move(value));
        return said;
      });
}

int kv_rm(const KvRmRequest& request, Session& session) {
  return rewrite(
      request.path, request.output, session, [&](io::KeyValues& kv) -> io::Result<std::string> {
        std::size_t removed = 0;
        for (const std::string& key : request.keys) {
          const auto found = std::ranges::find(kv, key, &io::KeyValues::value_type::first);
          if (found == kv.end()) return no_such_key(request.path, key);
          kv.erase(found);
          ++removed;
        }
        return fmt::format("removed {}", plural(removed, "key"));
      });
}

}  // namespace hurray::cli
