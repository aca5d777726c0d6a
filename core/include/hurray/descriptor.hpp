#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/buffer_handle.hpp"
#include "hurray/composite_member.hpp"
#include "hurray/dtype.hpp"
#include "hurray/export.hpp"
#include "hurray/extension_type.hpp"
#include "hurray/layout.hpp"
#include "hurray/options.hpp"
#include "hurray/printer.hpp"
#include "hurray/quantization.hpp"
#include "hurray/result.hpp"
#include "hurray/shape.hpp"
#include "hurray/shard.hpp"
#include "hurray/statistics.hpp"

namespace hurray {

inline constexpr auto magic =
    std::to_array<std::byte>({std::byte{0x48}, std::byte{0x52}, std::byte{0x52}, std::byte{0x59}});

/// Bits of a descriptor's `flags` (01-descriptor.md section 3.2).
enum class Flag : std::uint32_t {
  quantization = 1u << 0,
  shard = 1u << 1,
  extension_type = 1u << 2,
  statistics = 1u << 3,
  composite_member = 1u << 4,
};

struct FlagInfo {
  Flag tag;
  std::string_view name;
};

inline constexpr auto flags = std::to_array<FlagInfo>({
    {Flag::quantization, "HAS_QUANTIZATION"},
    {Flag::shard, "HAS_SHARD"},
    {Flag::extension_type, "HAS_EXTENSION_TYPE"},
    {Flag::statistics, "HAS_STATISTICS"},
    {Flag::composite_member, "HAS_COMPOSITE_MEMBER"},
});
static_assert(strictly_sorted(flags));

struct Version {
  std::uint8_t major = 1;
  std::uint8_t minor = 0;
  friend bool operator==(const Version&, const Version&) = default;
};

/// What a tensor is: element type, shape, layout, sections and buffer table (01-descriptor.md).
///
/// A plain value: freely copied and shared between threads. Nothing here has been checked until
/// `validate`, `encode` or `decode` says so. Up to rank 8 and 4 buffers it allocates nothing;
/// beyond that each oversized part has one block, and copying it may throw `std::bad_alloc`.
class Descriptor {
 public:
  Shape shape;
  Layout layout;
  BufferTable buffers;
  std::uint64_t byte_offset = 0;  ///< Bytes from the start of buffer 0 to element [0,…,0].
  DType dtype = DType::float32;
  Version version;

  /// Null where the descriptor has no such section.
  const Quantization* quantization() const noexcept {
    return section(Flag::quantization, quantization_);
  }
  const Shard* shard() const noexcept { return section(Flag::shard, shard_); }
  const Statistics* statistics() const noexcept { return section(Flag::statistics, statistics_); }
  /// There exactly when the element type is private.
  const ExtensionType* extension_type() const noexcept {
    return section(Flag::extension_type, extension_type_);
  }
  const MemberRole* member_role() const noexcept {
    return section(Flag::composite_member, member_role_);
  }

  void set_quantization(std::optional<Quantization> value) {
    set(Flag::quantization, quantization_, std::move(value));
  }
  void set_shard(std::optional<Shard> value) { set(Flag::shard, shard_, std::move(value)); }
  void set_statistics(const std::optional<Statistics>& value) noexcept {
    set(Flag::statistics, statistics_, value);
  }
  void set_extension_type(const std::optional<ExtensionType>& value) noexcept {
    set(Flag::extension_type, extension_type_, value);
  }
  void set_member_role(const std::optional<MemberRole>& value) noexcept {
    set(Flag::composite_member, member_role_, value);
  }

  /// Bits of `flags`: the sections that are there.
  std::uint32_t sections() const noexcept { return sections_; }

  friend bool operator==(const Descriptor&, const Descriptor&) = default;

 private:
  friend struct DescriptorFields;

  template <class T>
  const T* section(Flag flag, const T& value) const noexcept {
    return (sections_ & static_cast<std::uint32_t>(flag)) != 0 ? &value : nullptr;
  }
  template <class T, class Value>
  void set(Flag flag, T& member, Value&& value) {
    const auto bit = static_cast<std::uint32_t>(flag);
    sections_ = value ? sections_ | bit : sections_ & ~bit;
    member = value ? *std::forward<Value>(value) : T{};
  }

  MemberRole member_role_ = MemberRole::correction;
  std::uint32_t sections_ = 0;
  ExtensionType extension_type_;
  Quantization quantization_;
  Statistics statistics_;
  Shard shard_;
};
static_assert(sizeof(Descriptor) <= 512);

/// Stored bits of one element, also of private types; 0 for a type that is not known (permissive
/// mode).
HURRAY_EXPORT unsigned element_bits(const Descriptor& descriptor) noexcept;

/// Why this library can carry the tensor but neither address nor convert its elements: an unknown
/// or private type, layout or scheme, or a `mode_order` that names no order (01-descriptor.md
/// section 5), or a scheme that does not fit the tensor (`validate_scheme`, whose error it is).
/// None for a tensor that is understood; private types are, as far as their width goes.
HURRAY_EXPORT std::optional<Error> opaque(const Descriptor& descriptor) noexcept;

/// Bytes at the start of a descriptor that tell how long it is.
inline constexpr std::size_t descriptor_prefix_bytes = 10;

/// `descriptor_length` from the first 10 bytes, after magic and version (rows 1-5). With fewer
/// bytes magic and version are still judged as far as they reach.
HURRAY_EXPORT Result<std::uint32_t> descriptor_length(std::span<const std::byte> bytes,
                                                      const DecodeOptions& options = {});

/// Strict decoding; bytes after `descriptor_length` are not looked at.
HURRAY_EXPORT Result<Descriptor> decode(std::span<const std::byte> bytes,
                                        const DecodeOptions& options = {});

/// Whether every rule of 01-descriptor.md section 6 holds, for any 1.x version. Offsets in the
/// error are those that the encoding would have.
HURRAY_EXPORT Result<void> validate(const Descriptor& descriptor, const EncodeOptions& = {});

/// Whether the layout can describe a tensor of this shape: the rank, and every rule of its fields
/// that buffers have no part in (02-layouts.md). Rules wait for the dynamic sizes that they use.
/// Unknown layouts fit every shape.
HURRAY_EXPORT Result<void> validate(const Layout& layout, const Shape& shape);

/// The two halves of `validate` for a quantized tensor. What a scheme asks of the tensor around it:
/// storage type, axis, block size, zero point, bytes of the parameter buffers (03-quantization.md
/// sections 3 and 4). And everything else, with which such a tensor can be held and looked at.
/// Nothing is asked where the layout or the scheme is nobody's here.
HURRAY_EXPORT Result<void> validate_scheme(const Descriptor& descriptor);
HURRAY_EXPORT Result<void> validate_apart_from_scheme(const Descriptor& descriptor,
                                                      const EncodeOptions& = {});

/// Bytes of the encoding; fails as `encode` does.
HURRAY_EXPORT Result<std::uint32_t> encoded_size(const Descriptor& descriptor,
                                                 const EncodeOptions& = {});

/// The descriptor's bytes, or the first rule that it breaks. A newer minor version is not written,
/// nor a tensor that was built around an unknown layout: where that has its buffer table, only its
/// owner knows.
HURRAY_EXPORT Result<std::vector<std::byte>> encode(const Descriptor& descriptor,
                                                    const EncodeOptions& = {});
/// The same into `out`, of at least `encoded_size` bytes; returns the bytes written.
HURRAY_EXPORT Result<std::uint32_t> encode_into(const Descriptor& descriptor,
                                                std::span<std::byte> out,
                                                const EncodeOptions& = {});

/// The form that files and streams get (D20): alignment 64, 1 for empty buffers. A descriptor with
/// a buffer that is not producer-synced is relayed as it is.
HURRAY_EXPORT Descriptor canonical(Descriptor descriptor);

/// Decodes `bytes` and hands every field of them to `row`, in wire order.
HURRAY_EXPORT Result<void> describe(std::span<const std::byte> bytes,
                                    const std::function<void(const FieldRow&)>& row,
                                    const DecodeOptions& options = {});

/// Bytes of `buffers[i]` that the layout needs at least (extents for dense layouts, 02-layouts.md
/// section 3), or the bytes that a parameter array has (03-quantization.md section 4); 0 where a
/// dynamic size or an unknown tag hides it; an error where it overflows.
HURRAY_EXPORT Result<std::uint64_t> required_bytes(const Descriptor& descriptor, std::size_t i);

/// What messages call `buffers[i]`: "data", "values", "row_ptr" …; "" beyond the layout's own.
HURRAY_EXPORT std::string_view role(const Layout& layout, std::size_t i) noexcept;

}  // namespace hurray
