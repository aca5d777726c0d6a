#pragma once

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/cursor.hpp"
#include "hurray/tensor.hpp"

namespace hurray::testing {

/// Memory that ends where the bytes end, so that a sanitizer sees every read and write beyond them.
inline Buffer exact(std::span<const std::byte> bytes, bool readonly = false) {
  if (bytes.empty()) return {};
  void* block = nullptr;
  if (posix_memalign(&block, 64, bytes.size()) != 0) throw std::bad_alloc();
  std::memcpy(block, bytes.data(), bytes.size());
  return *Buffer::borrow(
      static_cast<std::byte*>(block), bytes.size(), [block] { std::free(block); }, readonly);
}

/// Little-endian numbers of `T`, one after the other.
template <class T>
Buffer numbers(std::span<const T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i)
    detail::store(bytes.data() + sizeof(T) * i, values[i]);
  return exact(bytes);
}
inline Buffer u64(const std::vector<std::uint64_t>& values) {
  return numbers<std::uint64_t>(values);
}
inline Buffer u32(const std::vector<std::uint32_t>& values) {
  return numbers<std::uint32_t>(values);
}
inline Buffer i16(const std::vector<std::int16_t>& values) { return numbers<std::int16_t>(values); }

inline Buffer random_bytes(std::uint64_t size, std::mt19937& random) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return exact(bytes);
}

/// 0 … below - 1.
inline std::uint64_t pick(std::mt19937& random, std::uint64_t below) { return random() % below; }

inline Descriptor described(DType dtype, Shape shape, Layout layout) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  return d;
}

/// A private type of `width` bits.
inline ExtensionType private_type(std::uint32_t width) {
  return {.bit_width = width, .packing_factor = ExtensionType::packing_factor_of(width)};
}

/// Row-major indices of a shape without dynamic sizes, the last dimension fastest.
template <class Each>
void for_each_index(const Shape& shape, Each each) {
  if (shape.is_empty()) return;
  std::vector<std::uint64_t> index(shape.rank());
  for (;;) {
    each(std::span<const std::uint64_t>(index));
    std::size_t k = shape.rank();
    while (k > 0 && ++index[k - 1] == shape[k - 1]) index[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace hurray::testing
