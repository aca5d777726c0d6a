#include "quantized.hpp"

#include <algorithm>
#include <bit>

#include "dequantize_paths.hpp"
#include "hurray/cursor.hpp"

namespace hurray {
namespace {

/// What the bits of a scale may be: with `mask` below `infinity` and, where so said, neither 0 nor
/// negative.
struct ScaleRule {
  std::uint32_t sign;      // 0: no such bit
  std::uint32_t infinity;  // NaN above it
  bool nonzero;
  bool positive;

  bool holds(std::uint32_t bits) const noexcept {
    const std::uint32_t magnitude = bits & ~sign;
    if (magnitude == 0) return !nonzero;
    return magnitude < infinity && (!positive || (bits & sign) == 0);
  }
};

/// The first entry of `[first, last)` whose `Bits` break the rule. A stretch without zeros,
/// negative numbers and the like is passed at once.
template <class Bits>
std::optional<std::uint64_t> first_bad(const std::byte* scales, std::uint64_t first,
                                       std::uint64_t last, ScaleRule rule) noexcept {
  const auto at = [&](std::uint64_t i) -> std::uint32_t {
    return detail::load<Bits>(scales + static_cast<std::size_t>(i) * sizeof(Bits));
  };
  const std::uint32_t mask = rule.positive ? ~std::uint32_t{0} : ~rule.sign;
  const std::uint32_t least = rule.nonzero ? 1 : 0;
  constexpr std::uint64_t stretch = 64;
  for (std::uint64_t i = first; i < last;) {
    const std::uint64_t end = i + std::min(stretch, last - i);
    std::uint32_t suspect = 0;
    for (std::uint64_t k = i; k < end; ++k)
      suspect |= static_cast<std::uint32_t>((at(k) & mask) - least >= rule.infinity - least);
    for (; suspect != 0 && i < end; ++i)
      if (!rule.holds(at(i))) return i;
    i = end;
  }
  return std::nullopt;
}

}  // namespace

Quantized::Quantized(const Tensor& tensor) noexcept
    : descriptor_(tensor.descriptor()), scheme_(tag(descriptor_.quantization()->scheme)) {
  const Scheme& scheme = descriptor_.quantization()->scheme;
  parameters_ = hurray::parameters(scheme);
  if (const auto* inlined = std::get_if<PerTensorAffine>(&scheme)) {
    inline_scale_ = inlined->scale;
    inline_zero_ = inlined->zero_point;
    return;
  }
  entries_ = parameter_entries(scheme, descriptor_.shape, descriptor_.layout).value_or(0);
  scales_ = tensor.buffer(parameters_.scale_buffer).data();
  if (parameters_.zero_point_buffer == no_buffer) return;
  // In a shared buffer they follow the scales at once (Q5).
  if (parameters_.zero_point_buffer == parameters_.scale_buffer)
    zero_points_at_ = entries_ * (bits(parameters_.scale_type) / 8);
  zero_points_ = tensor.buffer(parameters_.zero_point_buffer).data();
  if (zero_points_ != nullptr) zero_points_ += static_cast<std::size_t>(zero_points_at_);
}

std::uint64_t Quantized::entry(std::span<const std::uint64_t> index,
                               std::int64_t slot) const noexcept {
  if (!parameters_.axis) return 0;
  const std::uint32_t axis = *parameters_.axis;
  const Shape& shape = descriptor_.shape;
  if (std::holds_alternative<BlockPaged>(descriptor_.layout))
    return parameters_.block_size == 0 ? index[axis + 1]
                                       : static_cast<std::uint64_t>(slot) / (shape[1] * shape[2]);
  if (parameters_.block_size == 0) return index[axis];
  std::uint64_t line = 0;
  for (std::size_t k = 0; k < shape.rank(); ++k)
    if (k != axis) line = line * shape[k] + index[k];
  const std::uint64_t blocks =
      shape[axis] / parameters_.block_size + (shape[axis] % parameters_.block_size != 0);
  return line * blocks + index[axis] / parameters_.block_size;
}

void Quantized::load_all(float* scales, std::int32_t* zero_points) const noexcept {
  const auto n = static_cast<std::size_t>(entries_);
  if (scales_ == nullptr)
    *scales = inline_scale_;
  else
    decode_floats(parameters_.scale_type, {scales_, n * (bits(parameters_.scale_type) / 8)}, 0,
                  {scales, n});
  if (has_zero_points())
    for (std::size_t i = 0; i < n; ++i) zero_points[i] = zero_point(i);
}

float Quantized::scale(std::uint64_t entry) const noexcept {
  if (scales_ == nullptr) return inline_scale_;
  const auto at = static_cast<std::size_t>(entry);
  switch (bits(parameters_.scale_type)) {
    case 8:
      return decode_float(parameters_.scale_type, detail::load<std::uint8_t>(scales_ + at));
    case 16:
      return decode_float(parameters_.scale_type, detail::load<std::uint16_t>(scales_ + 2 * at));
    default:
      return std::bit_cast<float>(detail::load<std::uint32_t>(scales_ + 4 * at));
  }
}

std::int32_t Quantized::zero_point(std::uint64_t entry) const noexcept {
  if (zero_points_ == nullptr) return inline_zero_;
  return detail::load<std::int32_t>(zero_points_ + 4 * static_cast<std::size_t>(entry));
}

std::optional<Error> Quantized::check(std::uint64_t first, std::uint64_t last) const noexcept {
  if (!parameters_.axis) return std::nullopt;  // inline ones were judged with the descriptor
  const DTypeInfo& type = *info(parameters_.scale_type);
  const bool affine =
      scheme_ == SchemeTag::per_channel_affine || scheme_ == SchemeTag::per_block_affine;
  ScaleRule rule{.sign = 0, .infinity = 0xFF, .nonzero = false, .positive = false};
  if (type.kind == Kind::floating)
    rule = {.sign = 1u << (type.bits - 1),
            .infinity = ((1u << type.format.exponent_bits) - 1) << type.format.mantissa_bits,
            .nonzero = affine,
            .positive = !affine};
  const auto bad = type.bits == 8    ? first_bad<std::uint8_t>(scales_, first, last, rule)
                   : type.bits == 16 ? first_bad<std::uint16_t>(scales_, first, last, rule)
                                     : first_bad<std::uint32_t>(scales_, first, last, rule);
  if (bad)
    return Error{.code = Errc::invalid_value,
                 .origin = Origin::buffer,
                 .expect = Expect::float_as_said,
                 .index = *bad,
                 .field = "scale[]",
                 .what = type.kind == Kind::exponent ? std::string_view("a number, not 255 (NaN)")
                         : affine ? std::string_view("a finite number other than 0")
                                  : std::string_view("a finite number of 0 or more"),
                 .offset = *bad * (type.bits / 8),
                 .found = std::bit_cast<std::uint64_t>(double{scale(*bad)})};
  const auto range = zero_point_range(storage());
  if (scheme_ != SchemeTag::per_channel_affine || zero_points_ == nullptr || !range)
    return std::nullopt;
  for (std::uint64_t i = first; i < last; ++i)
    if (const std::int64_t z = zero_point(i); z < range->least || z > range->most)
      return Error{.code = Errc::invalid_value,
                   .origin = Origin::buffer,
                   .expect = Expect::signed_as_said,
                   .index = i,
                   .field = "zero_point[]",
                   .what = "a value of the storage type",
                   .offset = zero_points_at_ + 4 * i,
                   .found = static_cast<std::uint64_t>(z)};
  return std::nullopt;
}

float Quantized::value(Code code, std::uint64_t entry) const noexcept {
  switch (scheme_) {
    case SchemeTag::nf4:
      return scale(entry) * nf4_values[code.low & 15];
    case SchemeTag::mxfp: {
      const Code e{static_cast<std::uint64_t>(scales_[static_cast<std::size_t>(entry)]), 0};
      return mxfp_product(to_double(parameters_.scale_type, e), to_double(storage(), code));
    }
    default: {
      const std::int64_t difference = to_integer(storage(), code) - zero_point(entry);
      return scale(entry) * to_float32(difference);
    }
  }
}

Result<float> Quantized::value_at(const Elements& elements, std::span<const std::uint64_t> index,
                                  std::int64_t slot) const {
  const std::uint64_t at = entry(index, slot);
  // Index buffers in shared memory may have changed after they were checked.
  if (at >= entries_) return index_buffers_changed();
  if (auto error = check(at, at + 1)) return *error;
  const auto code = elements.load(slot);
  if (!code) return code.error();
  return value(*code, at);
}

}  // namespace hurray
