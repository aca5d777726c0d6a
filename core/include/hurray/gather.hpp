#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hurray/dtype.hpp"
#include "hurray/export.hpp"
#include "hurray/layout/dense.hpp"
#include "hurray/result.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// How the elements of a strided host array become the packed, row-major, little-endian elements of
/// a buffer.
enum class Transcode : std::uint8_t {
  copy,       ///< as they are, `item_bytes` each
  swap,       ///< byte order reversed in units of `unit_bytes` (halves of complex elements)
  pack_bool,  ///< one byte each, any value but 0 is true, to 1 bit
  pack_low,   ///< one byte each, the low bits are the element, to the width of `dtype` (1, 2, 4 or
              ///< 6)
};

/// A strided host array that is read element by element in row-major order. `origin` is the address
/// of element [0,…,0]; strides count bytes, may be 0 or negative and need not be multiples of the
/// item size. A view: whoever uses it keeps the array alive and unchanged. Freely shared between
/// threads.
struct ArraySource {
  const std::byte* origin = nullptr;
  Shape shape;      ///< Not dynamic; the product fits in 63 bits.
  Strides strides;  ///< Bytes.
  std::size_t item_bytes = 1;
  std::size_t unit_bytes = 1;
  DType dtype = DType::uint8;
  Transcode transcode = Transcode::copy;

  /// Bytes of all elements once packed.
  HURRAY_EXPORT std::uint64_t packed_size() const noexcept;
};

/// Writes the bytes `[offset, offset + out.size())` of the packed form of `source` to `out`, so
/// that a large array can pass through a small scratch. `offset` is a multiple of
/// `gather_granularity` bytes, and so is `out.size()` unless it ends the array.
HURRAY_EXPORT void gather(const ArraySource& source, std::uint64_t offset,
                          std::span<std::byte> out) noexcept;

/// Every element type fills a whole number of elements in this many bytes.
inline constexpr std::size_t gather_granularity = 48;

/// The reverse for packed types: element `first + k` of the packed elements of `width` bits (1, 2,
/// 4, 6) that start at `packed` goes to `out[k]`, one byte each, low bits.
HURRAY_EXPORT void unpack(const std::byte* packed, unsigned width, std::uint64_t first,
                          std::span<std::byte> out) noexcept;

}  // namespace hurray
