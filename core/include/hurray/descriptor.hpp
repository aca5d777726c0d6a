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
#include "hurray/dtype.hpp"
#include "hurray/export.hpp"
#include "hurray/layout.hpp"
#include "hurray/printer.hpp"
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
  const Statistics* statistics() const noexcept { return has_statistics_ ? &statistics_ : nullptr; }
  const Shard* shard() const noexcept { return has_shard_ ? &shard_ : nullptr; }
  void set_statistics(const std::optional<Statistics>& statistics) noexcept {
    has_statistics_ = statistics.has_value();
    statistics_ = statistics.value_or(Statistics{});
  }
  void set_shard(std::optional<Shard> shard) {
    has_shard_ = shard.has_value();
    shard_ = shard ? std::move(*shard) : Shard{};
  }

  friend bool operator==(const Descriptor&, const Descriptor&) = default;

 private:
  friend struct DescriptorFields;

  bool has_statistics_ = false;
  bool has_shard_ = false;
  Statistics statistics_;
  Shard shard_;
};
static_assert(sizeof(Descriptor) <= 512 - 64,
              "quantization, extension type and role need 64 bytes");

/// What a decoder accepts (01-descriptor.md section 6).
struct DecodeOptions {
  std::uint32_t max_descriptor_bytes = 16u << 20;
  bool private_memory_classes = false;  ///< Private classes on private devices count as agreed.
  bool cross_machine = false;           ///< The bytes come from a network peer (row 42).
};

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
/// error are those that the encoding would have. Private memory classes on private devices count as
/// agreed: whoever writes them means them.
HURRAY_EXPORT Result<void> validate(const Descriptor& descriptor);

/// Bytes of the encoding; fails as `encode` does.
HURRAY_EXPORT Result<std::uint32_t> encoded_size(const Descriptor& descriptor);

/// The descriptor's bytes, or the first rule that it breaks. A newer minor version is not written.
HURRAY_EXPORT Result<std::vector<std::byte>> encode(const Descriptor& descriptor);
/// The same into `out`, of at least `encoded_size` bytes; returns the bytes written.
HURRAY_EXPORT Result<std::uint32_t> encode_into(const Descriptor& descriptor,
                                                std::span<std::byte> out);

/// The form that files and streams get (D20): alignment 64, 1 for empty buffers. A descriptor with
/// a buffer that is not producer-synced is relayed as it is.
HURRAY_EXPORT Descriptor canonical(Descriptor descriptor);

/// Decodes `bytes` and hands every field of them to `row`, in wire order.
HURRAY_EXPORT Result<void> describe(std::span<const std::byte> bytes,
                                    const std::function<void(const FieldRow&)>& row,
                                    const DecodeOptions& options = {});

/// Bytes of `buffers[i]` that the layout needs at least (extents for dense layouts, 02-layouts.md
/// section 3), 0 where a dynamic size hides it; an error where it overflows.
HURRAY_EXPORT Result<std::uint64_t> required_bytes(const Descriptor& descriptor, std::size_t i);

/// What messages call `buffers[i]`: "data", "values", "row_ptr" …
HURRAY_EXPORT std::string_view role(const Layout& layout, std::size_t i) noexcept;

}  // namespace hurray
