#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hurray/io/key_values.hpp"

namespace hurray::io {

/// An entry that is ours (04-file.md section 16): its key is `checksums_key`, or its value is bytes
/// that begin with `checksums_magic`. A view of the section.
struct ChecksumEntry {
  std::string_view key;
  std::span<const std::byte> payload;  ///< Empty where the value is no bytes.
  std::uint64_t offset = 0;            ///< Of the first payload byte in the file.
  bool last = false;                   ///< Of the section.
};

/// Where in the file the entry that is ours lies; the first where there are several.
struct ChecksumPlace {
  std::size_t entries = 0;   ///< How many are ours.
  bool has_key = false;      ///< Its key is `checksums_key`.
  bool last = false;         ///< Nothing of the section follows it.
  std::uint64_t offset = 0;  ///< Of the first payload byte.
  std::uint64_t size = 0;    ///< Of the payload, in bytes.
};

/// A KV section taken apart into what callers see and what is ours.
struct KvSection {
  KeyValues entries;
  std::vector<ChecksumEntry> checksums;
};

/// `decode_kv`, keeping views of what is ours. `section` outlives the result.
Result<KvSection> split_kv(std::span<const std::byte> section, std::uint64_t base,
                           bool newer_minor = false);

/// Appends our entry to what `encode_kv` made and counts it; `payload` is the section's end then.
Result<void> append_checksums(Bytes& section, std::span<const std::byte> payload);

}  // namespace hurray::io
