#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

/// The bytes of a safetensors file, made by hand: any header, any data.
namespace hurray::formats {

/// The prefix with a chosen length, the header and the data.
inline std::string safetensors_with_length(std::uint64_t length, std::string_view header,
                                           std::string_view data = {}) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 0xFF);
  file += header;
  file += data;
  return file;
}

inline std::string safetensors(std::string_view header, std::string_view data = {}) {
  return safetensors_with_length(header.size(), header, data);
}

/// One tensor "a".
inline std::string tensor_a(std::string_view dtype, std::string_view shape, std::uint64_t bytes) {
  std::string text = "{\"a\":{\"dtype\":\"";
  text.append(dtype).append("\",\"shape\":").append(shape).append(",\"data_offsets\":[0,");
  return text + std::to_string(bytes) + "]}}";
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace hurray::formats
