#include "gguf_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "hurray/cursor.hpp"

namespace hurray::formats {
namespace {

using detail::load;
using detail::store;

constexpr std::string_view not_finite = "a block whose scale is not a finite number";
constexpr std::uint16_t one = 0x3C00;  // as float16

bool is_finite(std::uint16_t half) { return (half & 0x7C00) != 0x7C00; }
bool is_zero(std::uint16_t half) { return (half & 0x7FFF) == 0; }

/// Precondition: finite.
float value(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const int mantissa = half & 0x3FF;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

unsigned at(const std::byte* bytes, std::size_t i) { return std::to_integer<unsigned>(bytes[i]); }
unsigned low(const std::byte* bytes, std::size_t i) { return at(bytes, i) & 0xF; }
unsigned high(const std::byte* bytes, std::size_t i) { return at(bytes, i) >> 4; }

/// Blocks of `stored` bytes whose first two are the scale; `one_block` makes `made` bytes of codes
/// of what follows.
template <std::size_t stored, std::size_t made, auto one_block>
std::string_view codes(const std::byte* in, std::byte* out, std::size_t units) {
  for (; units != 0; --units, in += stored, out += made) {
    const auto scale = load<std::uint16_t>(in);
    if (!is_finite(scale)) return not_finite;
    if (is_zero(scale))
      std::fill_n(out, made, std::byte{0});
    else
      one_block(in + 2, out);
  }
  return {};
}

template <std::size_t stored>
std::string_view scales(const std::byte* in, std::byte* out, std::size_t units) {
  for (; units != 0; --units, in += stored, out += 2) {
    const auto scale = load<std::uint16_t>(in);
    if (!is_finite(scale)) return not_finite;
    store<std::uint16_t>(out, is_zero(scale) ? one : scale);
  }
  return {};
}

template <std::size_t stored, std::size_t made, auto one_block>
constexpr BlockConversions with_half_scale() {
  return {.block_size = 32,
          .scale_type = DType::float16,
          .codes = {.stored_bytes = stored, .bytes = made, .run = codes<stored, made, one_block>},
          .scales = {.stored_bytes = stored, .bytes = 2, .run = scales<stored>}};
}

/// Byte j holds the elements j and j + 16, offset by 8; here 2j and 2j + 1, two's complement.
void q4_0(const std::byte* in, std::byte* out) {
  for (std::size_t j = 0; j < 8; ++j) {
    out[j] = static_cast<std::byte>((low(in, 2 * j) | low(in, 2 * j + 1) << 4) ^ 0x88);
    out[j + 8] = static_cast<std::byte>((high(in, 2 * j) | high(in, 2 * j + 1) << 4) ^ 0x88);
  }
}

/// The fifth bits of all elements, then as above; offset by 16.
void q5_0(const std::byte* in, std::byte* out) {
  const auto fifth = load<std::uint32_t>(in);
  const std::byte* nibbles = in + 4;
  for (std::size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<std::byte>((low(nibbles, j) | (fifth >> j & 1) << 4) - 16);
    out[j + 16] = static_cast<std::byte>((high(nibbles, j) | (fifth >> (j + 16) & 1) << 4) - 16);
  }
}

void q8_0(const std::byte* in, std::byte* out) { std::copy_n(in, 32, out); }

/// 128 bytes of low nibbles, 64 of upper pairs of bits, 16 scales of int8, and their scale.
struct Q6K {
  static constexpr std::size_t stored = 210, elements = 256, scale_count = 16;

  const std::byte* in;

  std::uint16_t scale() const { return load<std::uint16_t>(in + 208); }
  int factor(std::size_t i) const { return load<std::int8_t>(in + 192 + i); }
  bool is_zero(std::size_t i) const { return formats::is_zero(scale()) || factor(i) == 0; }

  /// Halves of 128 elements are four groups of 32: the low nibbles of 64 bytes, then the high ones.
  int code(std::size_t element) const {
    const std::size_t half = element / 128, group = element / 32 % 4, l = element % 32;
    const unsigned nibbles = at(in, half * 64 + group % 2 * 32 + l) >> (group / 2 * 4) & 0xF;
    const unsigned pair = at(in, 128 + half * 32 + l) >> (group * 2) & 3;
    return static_cast<int>(nibbles | pair << 4) - 32;
  }
};

std::string_view q6_k_codes(const std::byte* in, std::byte* out, std::size_t units) {
  for (; units != 0; --units, in += Q6K::stored, out += Q6K::elements) {
    const Q6K block{in};
    if (!is_finite(block.scale())) return not_finite;
    for (std::size_t i = 0; i < Q6K::elements; ++i)
      out[i] = static_cast<std::byte>(block.is_zero(i / 16) ? 0 : block.code(i));
  }
  return {};
}

std::string_view q6_k_scales(const std::byte* in, std::byte* out, std::size_t units) {
  for (; units != 0; --units, in += Q6K::stored) {
    const Q6K block{in};
    if (!is_finite(block.scale())) return not_finite;
    const float scale = value(block.scale());
    for (std::size_t i = 0; i < Q6K::scale_count; ++i, out += 4) {
      const float product = block.is_zero(i) ? 1 : scale * static_cast<float>(block.factor(i));
      store(out, std::bit_cast<std::uint32_t>(product));
    }
  }
  return {};
}

}  // namespace

constinit const BlockConversions gguf_q4_0 = with_half_scale<18, 16, q4_0>();
constinit const BlockConversions gguf_q5_0 = with_half_scale<22, 32, q5_0>();
constinit const BlockConversions gguf_q8_0 = with_half_scale<34, 32, q8_0>();
constinit const BlockConversions gguf_q6_k{
    .block_size = 16,
    .scale_type = DType::float32,
    .codes = {.stored_bytes = Q6K::stored, .bytes = Q6K::elements, .run = q6_k_codes},
    .scales = {.stored_bytes = Q6K::stored, .bytes = 4 * Q6K::scale_count, .run = q6_k_scales}};

}  // namespace hurray::formats
