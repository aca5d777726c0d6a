#include "hurray/gather.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "packed_bits.hpp"

namespace hurray {
namespace {

/// The dimensions that matter: without those of size 1, and with those that one stride walks
/// through taken together. Innermost first.
struct Walk {
  std::size_t rank = 0;
  std::array<std::uint64_t, max_rank> size{};
  std::array<std::int64_t, max_rank> stride{};

  explicit Walk(const ArraySource& source) {
    for (std::size_t k = source.shape.rank(); k-- > 0;) {
      const std::uint64_t n = source.shape[k];
      if (n == 1) continue;
      const std::int64_t s = source.strides[k];
      if (rank > 0 &&
          checked_mul(stride[rank - 1], static_cast<std::int64_t>(size[rank - 1])) == s) {
        size[rank - 1] *= n;
        continue;
      }
      size[rank] = n;
      stride[rank] = s;
      ++rank;
    }
    if (rank == 0) {
      size[0] = 1;
      stride[0] = 0;
      rank = 1;
    }
  }

  /// Runs `run(address, stride, n)` along the innermost dimension for `count` elements from `first`
  /// on.
  template <class Run>
  void for_each_run(const std::byte* origin, std::uint64_t first, std::uint64_t count,
                    Run run) const {
    std::array<std::uint64_t, max_rank> index{};
    std::int64_t at = 0;
    for (std::size_t k = 0; k < rank; ++k) {
      index[k] = first % size[k];
      first /= size[k];
      at += static_cast<std::int64_t>(index[k]) * stride[k];
    }
    while (count > 0) {
      const std::uint64_t n = std::min(count, size[0] - index[0]);
      run(origin + at, stride[0], static_cast<std::size_t>(n));
      count -= n;
      at += static_cast<std::int64_t>(n) * stride[0];
      index[0] += n;
      for (std::size_t k = 0; k + 1 < rank && index[k] == size[k]; ++k) {
        at += stride[k + 1] - static_cast<std::int64_t>(size[k]) * stride[k];
        index[k] = 0;
        ++index[k + 1];
      }
    }
  }
};

template <std::size_t Bytes>
std::byte* copy_run(std::byte* to, const std::byte* from, std::int64_t stride, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i, to += Bytes, from += stride) std::memcpy(to, from, Bytes);
  return to;
}

std::byte* copy_items(std::byte* to, const std::byte* from, std::int64_t stride, std::size_t n,
                      std::size_t item) {
  if (stride == static_cast<std::int64_t>(item)) {
    std::memcpy(to, from, n * item);
    return to + n * item;
  }
  switch (item) {
    case 1:
      return copy_run<1>(to, from, stride, n);
    case 2:
      return copy_run<2>(to, from, stride, n);
    case 4:
      return copy_run<4>(to, from, stride, n);
    case 8:
      return copy_run<8>(to, from, stride, n);
    default:
      break;
  }
  for (std::size_t i = 0; i < n; ++i, to += item, from += stride) std::memcpy(to, from, item);
  return to;
}

std::byte* swap_items(std::byte* to, const std::byte* from, std::int64_t stride, std::size_t n,
                      std::size_t item, std::size_t unit) {
  for (std::size_t i = 0; i < n; ++i, from += stride)
    for (std::size_t u = 0; u < item; u += unit)
      for (std::size_t b = unit; b-- > 0;) *to++ = from[u + b];
  return to;
}

void one_by_one(const std::byte* packed, unsigned width, std::uint64_t first,
                std::span<std::byte> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t e = first + i;
    const std::uint64_t at = e / 8 * width + e % 8 * width / 8;
    const auto shift = static_cast<unsigned>(e % 8 * width % 8);
    out[i] = static_cast<std::byte>(take_bits(packed + at, shift, width));
  }
}

// Groups of eight elements.

/// The elements of each byte, one per byte.
template <unsigned Width>
constexpr auto elements_of_byte = [] {
  std::array<std::array<std::uint8_t, 8 / Width>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte)
    for (unsigned k = 0; k < 8 / Width; ++k)
      table[byte][k] = static_cast<std::uint8_t>(byte >> (k * Width) & ((1u << Width) - 1));
  return table;
}();

template <unsigned Width>
void unpack_by_table(const std::byte* __restrict from, std::size_t groups,
                     std::byte* __restrict to) noexcept {
  for (std::size_t i = 0; i < groups * Width; ++i, to += 8 / Width)
    std::memcpy(to, elements_of_byte<Width>[static_cast<std::uint8_t>(from[i])].data(), 8 / Width);
}

/// A loop that compilers turn into vector instructions.
void unpack_nibbles(const std::byte* __restrict from, std::size_t groups,
                    std::byte* __restrict to) noexcept {
  for (std::size_t i = 0; i < groups * 4; ++i) {
    to[2 * i] = from[i] & std::byte{15};
    to[2 * i + 1] = from[i] >> 4;
  }
}

/// Elements of 6 bits: 48 bits are drawn apart into 8 bytes, each half in turn.
void unpack_six(const std::byte* __restrict from, std::size_t groups,
                std::byte* __restrict to) noexcept {
  for (std::size_t g = 0; g < groups; ++g, from += 6, to += 8) {
    std::uint64_t x = detail::load<std::uint32_t>(from) |
                      std::uint64_t{detail::load<std::uint16_t>(from + 4)} << 32;
    x = (x & 0x0000000000FFFFFF) | (x << 8 & 0x00FFFFFF00000000);
    x = (x & 0x00000FFF00000FFF) | (x << 4 & 0x0FFF00000FFF0000);
    x = (x & 0x003F003F003F003F) | (x << 2 & 0x3F003F003F003F00);
    detail::store(to, x);
  }
}

}  // namespace

std::uint64_t ArraySource::packed_size() const noexcept {
  const bool packs = transcode == Transcode::pack_bool || transcode == Transcode::pack_low;
  const unsigned width = packs ? bits(dtype) : static_cast<unsigned>(item_bytes * 8);
  return packed_bytes(width, shape.count()).value_or(std::numeric_limits<std::uint64_t>::max());
}

void gather(const ArraySource& source, std::uint64_t offset, std::span<std::byte> out) noexcept {
  if (out.empty()) return;
  const Walk walk(source);
  const std::uint64_t total = source.shape.count();
  std::byte* to = out.data();

  if (source.transcode == Transcode::copy || source.transcode == Transcode::swap) {
    const std::size_t item = source.item_bytes;
    walk.for_each_run(source.origin, offset / item, out.size() / item,
                      [&](const std::byte* from, std::int64_t stride, std::size_t n) {
                        to = source.transcode == Transcode::copy
                                 ? copy_items(to, from, stride, n, item)
                                 : swap_items(to, from, stride, n, item, source.unit_bytes);
                      });
    return;
  }

  // `offset` is a whole number of elements that ends on a byte, so packing starts with an empty
  // word.
  const unsigned width = bits(source.dtype);
  const std::uint64_t first = offset / gather_granularity * (gather_granularity * 8 / width) +
                              offset % gather_granularity * 8 / width;
  const std::uint64_t count =
      std::min<std::uint64_t>(total - first, std::uint64_t{out.size()} * 8 / width);
  const unsigned mask = (1u << width) - 1;
  const bool truth = source.transcode == Transcode::pack_bool;
  std::byte* const end = to + out.size();
  std::uint32_t word = 0;
  unsigned filled = 0;
  walk.for_each_run(source.origin, first, count,
                    [&](const std::byte* from, std::int64_t stride, std::size_t n) {
                      for (std::size_t i = 0; i < n; ++i, from += stride) {
                        const auto raw = static_cast<unsigned>(*from);
                        word |= (truth ? unsigned{raw != 0} : raw & mask) << filled;
                        filled += width;
                        if (filled >= 8) {
                          *to++ = static_cast<std::byte>(word);
                          word >>= 8;
                          filled -= 8;
                        }
                      }
                    });
  if (filled > 0 && to != end) *to++ = static_cast<std::byte>(word);
  std::fill(to, end, std::byte{0});
}

void unpack(const std::byte* packed, unsigned width, std::uint64_t first,
            std::span<std::byte> out) noexcept {
  // Eight elements fill `width` bytes: single ones up to the first that starts such a group, and
  // after the last.
  const std::size_t before = std::min<std::size_t>((8 - first % 8) % 8, out.size());
  one_by_one(packed, width, first, out.first(before));
  first += before;
  out = out.subspan(before);
  const std::size_t groups = out.size() / 8;
  const std::byte* from = packed + static_cast<std::size_t>(first / 8) * width;
  switch (width) {
    case 1:
      unpack_by_table<1>(from, groups, out.data());
      break;
    case 2:
      unpack_by_table<2>(from, groups, out.data());
      break;
    case 4:
      unpack_nibbles(from, groups, out.data());
      break;
    default:
      unpack_six(from, groups, out.data());
  }
  one_by_one(packed, width, first + groups * 8, out.subspan(groups * 8));
}

}  // namespace hurray
