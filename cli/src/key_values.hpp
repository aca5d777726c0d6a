#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hurray/io/key_values.hpp"
#include "output.hpp"

/// Key-values in words and as members of JSON objects.
namespace hurray::cli {

/// "int64", of an array "int64[]".
std::string type_text(const io::KvValue& value);

/// One line, texts in quotes; what is long is cut.
std::string value_text(const io::KvValue& value);

/// The whole value, an array as a line for each element; printable.
std::vector<std::string> value_lines(const io::KvValue& value);

/// Keys, types and values, in lines of at most `width` columns.
std::string key_values_table(const io::KeyValues& kv, std::optional<std::size_t> width = {});

/// The members `type`, `array` and `value`.
void value_members(Json& json, const io::KvValue& value);

/// The member `kv`.
void key_value_members(Json& json, const io::KeyValues& kv);

}  // namespace hurray::cli
