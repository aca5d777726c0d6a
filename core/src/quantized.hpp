#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "hurray/elements.hpp"
#include "hurray/quantization.hpp"
#include "hurray/tensor.hpp"
#include "hurray/values.hpp"

namespace hurray {

/// The table of 03-quantization.md section 6.4.
inline constexpr std::array<float, 16> nf4_values{
    std::bit_cast<float>(0xBF800000u), std::bit_cast<float>(0xBF3239B1u),
    std::bit_cast<float>(0xBF066B30u), std::bit_cast<float>(0xBECA32A0u),
    std::bit_cast<float>(0xBE91A24Du), std::bit_cast<float>(0xBE3D353Fu),
    std::bit_cast<float>(0xBDBA7871u), std::bit_cast<float>(0x00000000u),
    std::bit_cast<float>(0x3DA2FAFFu), std::bit_cast<float>(0x3E24CAE3u),
    std::bit_cast<float>(0x3E7C04DDu), std::bit_cast<float>(0x3EAD033Au),
    std::bit_cast<float>(0x3EE1A4B8u), std::bit_cast<float>(0x3F1007ABu),
    std::bit_cast<float>(0x3F3913B3u), std::bit_cast<float>(0x3F800000u),
};

/// The product of an MXFP scale and an element, exact in float64 and rounded to float32 once, in
/// integers: whatever the processor does with subnormal numbers.
inline float mxfp_product(double scale, double value) noexcept {
  const auto code = from_double(DType::float32, scale * value);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code->low));
}

/// How the codes of one tensor become values: its scheme with the parameter arrays where they lie.
/// A view: the tensor outlives it. Precondition of all that reads: a quantized tensor that `bind`
/// took, not opaque, with host memory and no dynamic size among those that its parameters need.
class Quantized {
 public:
  explicit Quantized(const Tensor& tensor) noexcept;

  SchemeTag scheme() const noexcept { return scheme_; }
  const SchemeParameters& parameters() const noexcept { return parameters_; }
  DType storage() const noexcept { return descriptor_.dtype; }

  /// Entries of each parameter array; 1, which is inline, of a per-tensor scheme.
  std::uint64_t entries() const noexcept { return entries_; }

  /// The entry of an element: from its index (of a block-paged tensor as in `Elements`), or for
  /// page slots from its slot (section 9.3).
  std::uint64_t entry(std::span<const std::uint64_t> index, std::int64_t slot) const noexcept;

  /// All scales and zero points (if there are any), in order. Precondition: room for `entries()`.
  void load_all(float* scales, std::int32_t* zero_points) const noexcept;

  /// Exact also for MXFP, whose smallest scale is subnormal in float32.
  float scale(std::uint64_t entry) const noexcept;
  std::int32_t zero_point(std::uint64_t entry) const noexcept;
  bool has_zero_points() const noexcept { return zero_points_ != nullptr || inline_zero_ != 0; }

  /// What is wrong with entries `[first, last)` (B7, B8).
  std::optional<Error> check(std::uint64_t first, std::uint64_t last) const noexcept;

  /// The value of a code, by the arithmetic of section 7.
  float value(Code code, std::uint64_t entry) const noexcept;

  /// The value in the slot of one element, once its parameters are judged, they alone. `elements`:
  /// of the same tensor.
  Result<float> value_at(const Elements& elements, std::span<const std::uint64_t> index,
                         std::int64_t slot) const;

 private:
  const Descriptor& descriptor_;
  SchemeTag scheme_;
  SchemeParameters parameters_;
  std::uint64_t entries_ = 1;
  const std::byte* scales_ = nullptr;
  const std::byte* zero_points_ = nullptr;
  std::uint64_t zero_points_at_ = 0;  // bytes from the start of their buffer
  float inline_scale_ = 1;
  std::int32_t inline_zero_ = 0;
};

}  // namespace hurray
