#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "hurray/blob.hpp"
#include "hurray/cursor.hpp"
#include "hurray/dtype.hpp"
#include "hurray/layout.hpp"
#include "hurray/options.hpp"
#include "hurray/result.hpp"
#include "hurray/table.hpp"

namespace hurray {

/// Quantization schemes (03-quantization.md section 2). The value is the wire byte `scheme_tag`.
enum class SchemeTag : std::uint8_t {
  per_tensor_affine = 0x01,
  per_channel_affine = 0x02,
  per_block_affine = 0x03,
  nf4 = 0x04,
  mxfp = 0x05,
};

/// Bits of a quantization section's `flags`.
enum class SchemeFlag : std::uint32_t { symmetric = 1u << 0 };

struct SchemeFlagInfo {
  SchemeFlag tag;
  std::string_view name;
};

inline constexpr auto scheme_flags = std::to_array<SchemeFlagInfo>({
    {SchemeFlag::symmetric, "SYMMETRIC"},
});

namespace detail {
/// A set of element types, one bit per row of `dtypes`.
template <class... Types>
constexpr std::uint32_t dtype_set(Types... types) noexcept {
  static_assert(dtypes.size() <= 32);
  std::uint32_t set = 0;
  for (const DType type : {types...})
    set |= 1u << static_cast<unsigned>(find_row(dtypes, type) - dtypes.data());
  return set;
}
}  // namespace detail

/// One scheme (03-quantization.md section 3): smallest payload in bytes from `scheme_tag` on,
/// allowed flags, block sizes (powers of two; 0 without blocks), and storage types.
struct SchemeInfo {
  SchemeTag tag;
  std::string_view name;
  std::uint8_t payload_bytes;
  std::uint16_t flags;
  std::uint32_t min_block;
  std::uint32_t max_block;
  std::uint32_t storage;

  bool stores(DType dtype) const noexcept {
    const DTypeInfo* row = info(dtype);
    return row != nullptr && (storage >> (row - dtypes.data()) & 1u) != 0;
  }
};

inline constexpr auto schemes = std::to_array<SchemeInfo>({
    {SchemeTag::per_tensor_affine, "per_tensor_affine", 16, 0, 0, 0,
     detail::dtype_set(DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32,
                       DType::uint32, DType::int4, DType::uint4, DType::int2, DType::uint2)},
    {SchemeTag::per_channel_affine, "per_channel_affine", 20, 1, 0, 0,
     detail::dtype_set(DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32,
                       DType::uint32, DType::int4, DType::uint4, DType::int2, DType::uint2)},
    {SchemeTag::per_block_affine, "per_block_affine", 24, 1, 2, 1u << 31,
     detail::dtype_set(DType::int8, DType::uint8, DType::int4, DType::uint4, DType::int2,
                       DType::uint2)},
    {SchemeTag::nf4, "nf4", 16, 0, 8, 1u << 31, detail::dtype_set(DType::uint4)},
    {SchemeTag::mxfp, "mxfp", 16, 0, 16, 2048,
     detail::dtype_set(DType::int8, DType::int4, DType::float8_e4m3, DType::float8_e5m2,
                       DType::float4_e2m1, DType::float6_e2m3, DType::float6_e3m2)},
});
static_assert(strictly_sorted(schemes));

constexpr const SchemeInfo* info(SchemeTag tag) noexcept { return row_of<schemes>(tag); }

/// "nf4"; "extension" for a private tag and for one that is not assigned.
constexpr std::string_view name(SchemeTag tag) noexcept {
  const SchemeInfo* row = info(tag);
  return row != nullptr ? row->name : "extension";
}

/// In place of a buffer index: there are no zero points.
inline constexpr std::uint32_t no_buffer = std::numeric_limits<std::uint32_t>::max();

/// `x = scale * (q - zero_point)` (03-quantization.md section 6.1).
struct PerTensorAffine {
  static constexpr SchemeTag tag = SchemeTag::per_tensor_affine;

  float scale = 1;
  std::int32_t zero_point = 0;

  static void fields(auto& self, auto& io, const auto& in) {
    io("quantization.scale", self.scale);
    const auto bits = std::bit_cast<std::uint32_t>(float{self.scale});
    io.check((bits & 0x7FFFFFFFu) != 0 && (bits >> 23 & 0xFFu) != 0xFFu, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::float_as_said,
                   .field = "quantization.scale",
                   .what = "a finite number other than 0",
                   .found = std::bit_cast<std::uint64_t>(double{self.scale})};
    });
    io("quantization.zero_point", self.zero_point);
    in.zero_point(self.zero_point, io);
    io.reserved("quantization.reserved", 4);
  }
  friend bool operator==(const PerTensorAffine& a, const PerTensorAffine& b) noexcept {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  }
};

/// `x = scale[c] * (q - zero_point[c])`, `c` the index along `axis` (section 6.2). Without zero
/// points the scheme is symmetric.
struct PerChannelAffine {
  static constexpr SchemeTag tag = SchemeTag::per_channel_affine;

  std::uint32_t axis = 0;
  std::uint32_t scale_buffer_index = 1;
  std::uint32_t zero_point_buffer_index = no_buffer;
  DType scale_type = DType::float32;

  static void fields(auto& self, auto& io, const auto& in) {
    in.axis(self.axis, io);
    in.buffer("quantization.scale_buffer_index", self.scale_buffer_index, io);
    in.zero_point_buffer(self.zero_point_buffer_index, io);
    in.template scale_type<DType::float32>(self.scale_type, io);
    io.reserved("quantization.reserved", 3);
  }
  friend bool operator==(const PerChannelAffine&, const PerChannelAffine&) = default;
};

/// `x = scale[b] * (q - zero_point[b])`, `b` the block of `block_size` elements along `axis`
/// (section 6.3). Without zero points the scheme is symmetric.
struct PerBlockAffine {
  static constexpr SchemeTag tag = SchemeTag::per_block_affine;

  std::uint32_t axis = 0;
  std::uint32_t block_size = 32;
  std::uint32_t scale_buffer_index = 1;
  std::uint32_t zero_point_buffer_index = no_buffer;
  DType scale_type = DType::float32;

  static void fields(auto& self, auto& io, const auto& in) {
    in.axis(self.axis, io);
    in.block_size(self.block_size, self.axis, io);
    in.buffer("quantization.scale_buffer_index", self.scale_buffer_index, io);
    in.zero_point_buffer(self.zero_point_buffer_index, io);
    in.template scale_type<DType::float16, DType::bfloat16, DType::float32>(self.scale_type, io);
    io.reserved("quantization.reserved", 3);
  }
  friend bool operator==(const PerBlockAffine&, const PerBlockAffine&) = default;
};

/// `x = scale[b] * nf4[q]` (section 6.4).
struct Nf4 {
  static constexpr SchemeTag tag = SchemeTag::nf4;
  static constexpr DType scale_type = DType::float32;

  std::uint32_t axis = 0;
  std::uint32_t block_size = 64;
  std::uint32_t scale_buffer_index = 1;

  static void fields(auto& self, auto& io, const auto& in) {
    in.axis(self.axis, io);
    in.block_size(self.block_size, self.axis, io);
    in.buffer("quantization.scale_buffer_index", self.scale_buffer_index, io);
  }
  friend bool operator==(const Nf4&, const Nf4&) = default;
};

/// `x = 2^(scale[b] - 127) * value(q)` (section 6.5).
struct Mxfp {
  static constexpr SchemeTag tag = SchemeTag::mxfp;
  static constexpr DType scale_type = DType::float8_e8m0;

  std::uint32_t axis = 0;
  std::uint32_t block_size = 32;
  std::uint32_t scale_buffer_index = 1;

  static void fields(auto& self, auto& io, const auto& in) {
    in.axis(self.axis, io);
    in.block_size(self.block_size, self.axis, io);
    in.buffer("quantization.scale_buffer_index", self.scale_buffer_index, io);
  }
  friend bool operator==(const Mxfp&, const Mxfp&) = default;
};

/// A private scheme, or in permissive mode an unknown one: carried along (section 10).
struct OpaqueScheme {
  SchemeTag tag{0xF0};
  std::uint8_t version = 1;
  std::uint16_t flags = 0;
  friend bool operator==(const OpaqueScheme&, const OpaqueScheme&) = default;
};

using Scheme =
    std::variant<PerTensorAffine, PerChannelAffine, PerBlockAffine, Nf4, Mxfp, OpaqueScheme>;

/// How stored codes become real numbers. A value, freely shared between threads.
struct Quantization {
  Scheme scheme;
  /// Payload bytes after the scheme's own fields: padding that is kept (Q2), or, of an opaque
  /// scheme, everything after the four bytes of its header.
  Blob rest;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

inline SchemeTag tag(const Scheme& scheme) noexcept {
  return std::visit([](const auto& alternative) { return alternative.tag; }, scheme);
}
inline std::string_view name(const Scheme& scheme) noexcept { return name(tag(scheme)); }

/// Whether a scheme's fields hold on their own (03-quantization.md section 3), whatever tensor it
/// will belong to; with a block-paged `layout` also on that one (section 9.3).
HURRAY_EXPORT Result<void> validate(const Quantization& quantization,
                                    const Layout* layout = nullptr, const EncodeOptions& = {});

/// The payload of a quantization section, from `scheme_tag` on; fails as `validate` does.
HURRAY_EXPORT Result<std::vector<std::byte>> encode(const Quantization& quantization,
                                                    const EncodeOptions& = {});

/// The scheme of a payload on its own; bytes beyond its fields are `rest`.
HURRAY_EXPORT Result<Quantization> decode_quantization(std::span<const std::byte> payload,
                                                       const DecodeOptions& options = {});

/// What a scheme with parameter buffers has in common; null fields where it has none.
struct SchemeParameters {
  std::optional<std::uint32_t> axis;
  std::uint32_t block_size = 0;  ///< 0: one entry per channel.
  std::uint32_t scale_buffer = no_buffer;
  std::uint32_t zero_point_buffer = no_buffer;
  DType scale_type = DType::float32;

  /// Distinct parameter buffers.
  std::size_t buffers() const noexcept {
    if (scale_buffer == no_buffer) return 0;
    return zero_point_buffer == no_buffer || zero_point_buffer == scale_buffer ? 1 : 2;
  }
};
HURRAY_EXPORT SchemeParameters parameters(const Scheme& scheme) noexcept;

/// Entries of the scale (and zero point) array that the logical shape gives (section 5): channels,
/// or blocks; per page slot for block-paged (section 9.3). None when the number overflows or there
/// is no such axis. Precondition: no size that it uses is dynamic.
HURRAY_EXPORT std::optional<std::uint64_t> parameter_entries(const Scheme& scheme,
                                                             const Shape& shape,
                                                             const Layout& layout) noexcept;

/// Zero points that a storage type allows (section 6.1); none for types without.
struct ZeroPointRange {
  std::int32_t least = 0;
  std::int32_t most = 0;
};
HURRAY_EXPORT std::optional<ZeroPointRange> zero_point_range(DType storage) noexcept;

}  // namespace hurray
