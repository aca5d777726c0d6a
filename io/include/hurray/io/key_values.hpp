#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hurray/io/error.hpp"

namespace hurray::io {

/// Opaque bytes, told apart from text.
using Bytes = std::vector<std::byte>;

/// Wire tags of KV values (04-file.md section 4). Every alternative of `KvValue` has its row in
/// `kv_types` (key_values.cpp).
enum class KvTag : std::uint8_t {
  string = 0x01,
  int64 = 0x02,
  uint64 = 0x03,
  float64 = 0x04,
  boolean = 0x05,
  bytes = 0x06,
  array = 0x07,
};

using KvValue =
    std::variant<std::string, std::int64_t, std::uint64_t, double, bool, Bytes,
                 std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::uint64_t>,
                 std::vector<double>, std::vector<bool>, std::vector<Bytes>>;

/// Typed metadata in file order; keys are valid UTF-8, 1 to 65535 bytes, unique.
using KeyValues = std::vector<std::pair<std::string, KvValue>>;

/// The published name of the value's type, of an array that of its elements: "string", "int64" …
HURRAY_EXPORT std::string_view type_name(const KvValue& value) noexcept;

/// Null where there is no such key.
HURRAY_EXPORT const KvValue* find(const KeyValues& kv, std::string_view key) noexcept;

/// The key that is ours (04-file.md section 16), and the first bytes of its value. Writers refuse
/// both.
inline constexpr std::string_view checksums_key = "hurray.crc32c";
inline constexpr std::string_view checksums_magic = "HRRYSUM1";

/// The bytes of a KV section, `kv_count` first, without padding. Fails on rules of 04-file.md
/// section 4 and on the keys and values that are ours.
HURRAY_EXPORT Result<Bytes> encode_kv(const KeyValues& kv);
/// The reverse; `base` is the section's offset in the file. Checks 20-22 of 04-file.md section 12.
/// At a newer container minor bytes after the last entry are ignored.
HURRAY_EXPORT Result<KeyValues> decode_kv(std::span<const std::byte> section, std::uint64_t base,
                                          bool newer_minor = false);

/// Valid UTF-8: no overlong forms, no surrogates, at most U+10FFFF.
HURRAY_EXPORT bool is_utf8(std::string_view text) noexcept;

}  // namespace hurray::io
