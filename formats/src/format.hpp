#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hurray/io/translation.hpp"

namespace hurray::formats {

/// Of a file's first bytes, enough to tell its format.
inline constexpr std::size_t head_bytes = 512;

io::Result<io::Translation> see_safetensors(const io::ForeignSource& source);
io::Result<io::Translation> see_npy(const io::ForeignSource& source);

bool is_safetensors(std::span<const std::byte> head, std::uint64_t size) noexcept;
bool is_npy(std::span<const std::byte> head, std::uint64_t size) noexcept;

/// One byte for each truth value, 0 for false, to bits, the first one lowest.
extern const io::Conversion pack_bools;
/// Numbers of 2, 4 or 8 bytes with their bytes turned round; null for others.
const io::Conversion* swap_bytes(std::size_t width) noexcept;

/// `text` as it may be shown, in quotes, cut after 200 bytes.
inline std::string quote(std::string_view text) {
  const std::string shown = io::printable(text.substr(0, 200));
  return '"' + shown + (text.size() > 200 ? "\"…" : "\"");
}

}  // namespace hurray::formats
