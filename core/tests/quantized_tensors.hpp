#pragma once

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "hurray/tensor.hpp"
#include "support.hpp"

namespace hurray::testing {

/// Own memory with these bytes.
inline Buffer buffer_of(const Bytes& bytes) {
  Buffer buffer = *Buffer::allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

/// The little-endian bytes of numbers.
template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes;
  for (const T value : values) {
    std::byte raw[sizeof(T)];
    if constexpr (std::is_floating_point_v<T>)
      detail::store(raw, std::bit_cast<detail::BitsOf<T>>(value));
    else
      detail::store(raw, value);
    bytes.insert(bytes.end(), raw, raw + sizeof(T));
  }
  return bytes;
}

inline Tensor tensor_of(Descriptor descriptor, const std::vector<Bytes>& buffers) {
  std::vector<Buffer> memory;
  for (const Bytes& bytes : buffers) memory.push_back(buffer_of(bytes));
  auto tensor = bind(std::move(descriptor), std::move(memory));
  if (!tensor) throw std::runtime_error(to_string(tensor.error()));
  return std::move(*tensor);
}

inline Tensor quantized(DType dtype, Shape shape, Scheme scheme, const std::vector<Bytes>& buffers,
                        Layout layout = RowMajor{}) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  d.set_quantization(Quantization{scheme, {}});
  return tensor_of(std::move(d), buffers);
}

inline std::vector<std::uint32_t> bits_of(const Tensor& float32) {
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(float32.descriptor().shape.count()));
  for (std::size_t i = 0; i < bits.size(); ++i)
    bits[i] = detail::load<std::uint32_t>(float32.buffer(0).data() + 4 * i);
  return bits;
}

/// Deterministic bytes without structure.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  Bytes bytes(std::size_t n) {
    Bytes all(n);
    for (std::byte& b : all) b = static_cast<std::byte>(next() >> 24);
    return all;
  }

 private:
  std::uint64_t state_;
};

}  // namespace hurray::testing
