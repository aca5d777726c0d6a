#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "hurray/descriptor.hpp"

namespace hurray::testing {

using Bytes = std::vector<std::byte>;

/// A vector of conformance/: bytes in hexadecimal with comments, and the sentence it must fail
/// with.
struct Vector {
  std::filesystem::path path;
  Bytes bytes;
  std::string error;
};

inline Bytes hex(const std::string& text) {
  Bytes bytes;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    for (std::size_t i = 0; i + 1 < word.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(std::stoul(word.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline Vector read_vector(const std::filesystem::path& path) {
  Vector vector{path, {}, {}};
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("error:")) {
      vector.error = line;
      continue;
    }
    for (const std::byte b : hex(line.substr(0, line.find('#')))) vector.bytes.push_back(b);
  }
  return vector;
}

/// The vectors of one folder of conformance/, by name.
inline std::vector<Vector> read_vectors(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(HURRAY_CONFORMANCE_DIR) / folder))
    paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Vector> vectors;
  for (const auto& path : paths) vectors.push_back(read_vector(path));
  return vectors;
}

/// Every prefix that is shorter than the whole, in heap memory of exactly that size, so that a
/// sanitizer sees each edge.
template <class Check>
void for_each_prefix(const Bytes& whole, Check check) {
  for (std::size_t n = 0; n < whole.size(); ++n)
    check(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)));
}

template <class Check>
void for_each_bit_flip(const Bytes& whole, Check check) {
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    check(flipped);
  }
}

inline BufferHandle handle(std::uint64_t size, std::uint32_t alignment = 64) {
  return {.byte_size = size, .alignment = size == 0 ? 1 : alignment};
}

/// A row-major descriptor whose one buffer fits exactly.
inline Descriptor dense(DType dtype, Shape shape) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.buffers = BufferTable{handle(*packed_bytes(bits(dtype), d.shape.count()))};
  return d;
}

}  // namespace hurray::testing
