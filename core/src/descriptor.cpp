#include "hurray/descriptor.hpp"

#include <bit>
#include <limits>
#include <utility>

using namespace std::string_view_literals;

namespace hurray {
namespace {

constexpr std::uint32_t header_bytes = 20;
constexpr std::uint64_t handle_bytes = 16;
constexpr auto max_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

constexpr std::uint64_t at_minor = 5;
constexpr std::uint64_t at_flags = 10;
constexpr std::uint64_t at_shape = shape_offset;

constexpr std::uint32_t bit(Flag flag) { return static_cast<std::uint32_t>(flag); }
constexpr bool has(std::uint32_t bits, Flag flag) { return (bits & bit(flag)) != 0; }

constexpr std::uint32_t known_flags = [] {
  std::uint32_t all = 0;
  for (const FlagInfo& row : flags) all |= bit(row.tag);
  return all;
}();

/// Smallest payload per quantization scheme tag 1-5 (01-descriptor.md section 3.6).
constexpr auto scheme_payload_bytes = std::to_array<std::uint32_t>({16, 20, 24, 16, 16});

/// Makes `layout` the default of the alternative that `tag` names.
template <std::size_t I = 0>
bool select_layout(Layout& layout, LayoutTag tag) noexcept {
  if constexpr (I < std::variant_size_v<Layout>) {
    if (std::variant_alternative_t<I, Layout>::tag != tag) return select_layout<I + 1>(layout, tag);
    layout.emplace<I>();
    return true;
  } else {
    return false;
  }
}

std::optional<std::uint64_t> nnz_of(const Layout& layout) noexcept {
  return std::visit(
      []<class T>(const T& alternative) -> std::optional<std::uint64_t> {
        if constexpr (SparseLayout<T>) return alternative.nnz;
        return std::nullopt;
      },
      layout);
}

/// Bytes before `byte_offset` and from it on that the extent covers (02-layouts.md section 3).
std::optional<std::pair<std::uint64_t, std::uint64_t>> extent(unsigned width,
                                                              ElementRange range) noexcept {
  const std::uint64_t below = ~static_cast<std::uint64_t>(range.lo) + 1;  // -lo, exactly
  const std::uint64_t above = static_cast<std::uint64_t>(range.hi) + 1;
  // -floor(lo * B / 8) is ceil(-lo * B / 8): what `below` packed elements occupy, by groups for 6
  // bits.
  const auto before = packed_bytes(width, below);
  const auto from = packed_bytes(width, above);
  if (!before || !from) return std::nullopt;
  return std::pair(*before, *from);
}

}  // namespace

/// The format's own list of a descriptor's fields, in wire order, with every rule of
/// 01-descriptor.md section 6 beside the field it judges. Decoding, checking, sizing, encoding and
/// printing all run it.
struct DescriptorFields {
  const DecodeOptions& options;
  std::uint64_t at_layout = 0;
  std::uint64_t at_buffers = 0;

  template <class D, class Io>
  void run(D& d, std::uint32_t& length, Io& io) {
    std::uint32_t bits =
        (d.has_shard_ ? bit(Flag::shard) : 0) | (d.has_statistics_ ? bit(Flag::statistics) : 0);
    io.literal("magic", magic, Errc::invalid_magic, "HRRY (0x48525259)");
    version(d, io);
    io("descriptor_length", length);
    io.bits("flags", bits, flags);
    io.check((bits & ~known_flags) == 0, {.code = Errc::reserved_bits,
                                          .expect = Expect::exactly,
                                          .field = "flags",
                                          .what = "in bits 5 to 31",
                                          .expected = 0,
                                          .found = bits & ~known_flags});
    type(d, bits, io);
    layout_and_shape(d, io);
    buffers(d, io);
    if (!io.ok()) return;
    if (has(bits, Flag::quantization)) quantization(io);
    if (has(bits, Flag::shard)) d.shard_.fields(d.shard_, io, d.shape);
    if (has(bits, Flag::statistics)) d.statistics_.fields(d.statistics_, io, nnz_of(d.layout));
    if (has(bits, Flag::composite_member)) composite_member(io);
    if constexpr (Io::reads) {
      d.has_shard_ = has(bits, Flag::shard);
      d.has_statistics_ = has(bits, Flag::statistics);
      if (d.version.minor == Version{}.minor)
        io.check(io.left() == 0, {.code = Errc::length_mismatch,
                                  .expect = Expect::exactly,
                                  .field = "descriptor_length",
                                  .what = "bytes",
                                  .offset = 6,
                                  .expected = io.position(),
                                  .found = io.position() + io.left()});
    }
    if constexpr (Io::checks)
      if (io.ok()) whole(d, io);
  }

  template <class D, class Io>
  static void version(D& d, Io& io) {
    io("version_major", d.version.major);
    io.check(d.version.major == Version{}.major, {.code = Errc::unsupported_version,
                                                  .expect = Expect::exactly,
                                                  .field = "version_major",
                                                  .expected = Version{}.major,
                                                  .found = d.version.major});
    io("version_minor", d.version.minor);
  }

  template <class D, class Io>
  static void type(D& d, std::uint32_t bits, Io& io) {
    io("type_tag", d.dtype);
    const auto tag = static_cast<std::uint8_t>(d.dtype);
    const bool agreed = is_private(tag);
    io.check(info(d.dtype) != nullptr || agreed, unassigned("type_tag", tag));
    if constexpr (Io::reads)
      io.check(has(bits, Flag::extension_type) == agreed,
               {.code = Errc::inconsistent,
                .expect = Expect::as_said,
                .field = "flags",
                .what = "HAS_EXTENSION_TYPE with private type tags, and only with them",
                .offset = at_flags,
                .found = bits});
    io.check(!agreed, {.code = Errc::unsupported,
                       .field = "type_tag",
                       .what = "private element types",
                       .found = tag});
  }

  template <class D, class Io>
  void layout_and_shape(D& d, Io& io) {
    LayoutTag layout_tag = tag(d.layout);
    io("layout_tag", layout_tag);
    const auto raw = static_cast<std::uint8_t>(layout_tag);
    const LayoutInfo* row = info(layout_tag);
    const bool agreed = is_private(raw);
    io.check(row != nullptr || agreed, unassigned("layout_tag", raw));
    if constexpr (Io::reads)
      if (io.ok())
        io.check(select_layout(d.layout, layout_tag),
                 {.code = Errc::unsupported,
                  .field = "layout_tag",
                  .what = row != nullptr ? row->name : std::string_view("private layouts"),
                  .found = raw});
    auto rank = static_cast<std::uint32_t>(d.shape.rank());
    io("rank", rank);
    io.check(rank <= max_rank, {.code = Errc::out_of_bounds,
                                .expect = Expect::at_most,
                                .field = "rank",
                                .expected = max_rank,
                                .found = rank});
    if (!io.ok()) return;
    io.check(rank >= row->min_rank, {.code = Errc::inconsistent,
                                     .expect = Expect::at_least,
                                     .field = "rank",
                                     .what = "for this layout",
                                     .expected = row->min_rank,
                                     .found = rank});
    io.check(rank <= row->max_rank, {.code = Errc::inconsistent,
                                     .expect = Expect::at_most,
                                     .field = "rank",
                                     .what = "for this layout",
                                     .expected = row->max_rank,
                                     .found = rank});
    io.list("shape[]", d.shape, rank, 8, [&](auto& n, std::size_t k) { io({"shape[]", k}, n); });
    io("byte_offset", d.byte_offset);
    if (!io.ok()) return;
    at_layout = io.position();
    std::visit([&](auto& layout) { layout.fields(layout, io, d.shape); }, d.layout);
  }

  template <class D, class Io>
  void buffers(D& d, Io& io) {
    auto count = static_cast<std::uint8_t>(d.buffers.size());
    io("buffer_count", count);
    io.check(count != 0, {.code = Errc::invalid_value,
                          .expect = Expect::at_least,
                          .field = "buffer_count",
                          .expected = 1,
                          .found = 0});
    at_buffers = io.position();
    std::uint64_t sum = 0;
    io.list("buffers[]", d.buffers, count, handle_bytes, [&](auto& handle, std::size_t i) {
      io({"buffers[].byte_size", i}, handle.byte_size);
      const auto total = checked_add(sum, handle.byte_size);
      io.check(total && *total <= max_bytes, {.code = Errc::overflow,
                                              .expect = Expect::at_most,
                                              .index = static_cast<std::uint32_t>(i),
                                              .field = "buffers[].byte_size",
                                              .what = "bytes beside the buffers before it",
                                              .expected = max_bytes - sum,
                                              .found = handle.byte_size});
      sum = total.value_or(0);
      io({"buffers[].alignment", i}, handle.alignment);
      io.check(std::has_single_bit(handle.alignment), {.code = Errc::invalid_value,
                                                       .expect = Expect::as_said,
                                                       .index = static_cast<std::uint32_t>(i),
                                                       .field = "buffers[].alignment",
                                                       .what = "a power of two",
                                                       .found = handle.alignment});
      io.check(handle.alignment >= min_buffer_alignment || handle.byte_size == 0,
               {.code = Errc::invalid_value,
                .expect = Expect::at_least,
                .index = static_cast<std::uint32_t>(i),
                .field = "buffers[].alignment",
                .expected = min_buffer_alignment,
                .found = handle.alignment});
      placement(handle, i == 0 ? handle : d.buffers[0], i, io);
      io({"buffers[].reserved", i}, handle.reserved);
      io.check(handle.reserved == 0, {.code = Errc::reserved_bits,
                                      .expect = Expect::exactly,
                                      .index = static_cast<std::uint32_t>(i),
                                      .field = "buffers[].reserved",
                                      .expected = 0,
                                      .found = handle.reserved});
    });
  }

  template <class Handle, class Io>
  void placement(Handle& handle, const BufferHandle& first, std::size_t i, Io& io) const {
    const auto index = static_cast<std::uint32_t>(i);
    io({"buffers[].device_tag", i}, handle.device);
    const auto device = static_cast<std::uint8_t>(handle.device);
    io.check(info(handle.device) != nullptr || is_private(device),
             unassigned({"buffers[].device_tag", i}, device));
    io.check(handle.device == first.device, {.code = Errc::inconsistent,
                                             .expect = Expect::exactly,
                                             .index = index,
                                             .field = "buffers[].device_tag",
                                             .what = "as in buffer 0",
                                             .expected = static_cast<std::uint8_t>(first.device),
                                             .found = device});
    io({"buffers[].sync_mode", i}, handle.sync_mode);
    const auto mode = static_cast<std::uint8_t>(handle.sync_mode);
    io.check(!name(handle.sync_mode).empty(), unassigned({"buffers[].sync_mode", i}, mode, false));
    io.check(mode == 0 || (handle.device != Device::cpu && !options.cross_machine),
             {.code = Errc::inconsistent,
              .expect = Expect::exactly,
              .index = index,
              .field = "buffers[].sync_mode",
              .what = handle.device == Device::cpu ? "for a CPU buffer"sv : "between machines"sv,
              .expected = 0,
              .found = mode});
    io({"buffers[].memory_class", i}, handle.memory_class);
    const auto memory_class = static_cast<std::uint8_t>(handle.memory_class);
    io.check(row_of<memory_classes>(handle.memory_class) != nullptr ||
                 (is_private(memory_class) && options.private_memory_classes),
             unassigned({"buffers[].memory_class", i}, memory_class));
    io.check(can_have(handle.device, handle.memory_class),
             {.code = Errc::inconsistent,
              .expect = Expect::as_said,
              .index = index,
              .field = "buffers[].memory_class",
              .what = "a class of memory that the device has",
              .found = memory_class});
    io.check(handle.memory_class == first.memory_class,
             {.code = Errc::inconsistent,
              .expect = Expect::exactly,
              .index = index,
              .field = "buffers[].memory_class",
              .what = "as in buffer 0",
              .expected = static_cast<std::uint8_t>(first.memory_class),
              .found = memory_class});
  }

  /// Known, and not built yet: judged as far as its own bytes tell whether it is valid at all.
  template <class Io>
  static void quantization(Io& io) {
    if constexpr (Io::reads) {
      std::uint32_t length = 0;
      io("quantization_length", length);
      io.check(length >= 4, {.code = Errc::length_mismatch,
                             .expect = Expect::at_least,
                             .field = "quantization_length",
                             .what = "bytes",
                             .expected = 4,
                             .found = length});
      const std::uint64_t at_length = io.last();
      io.check(length <= io.left(), {.code = Errc::truncated,
                                     .expect = Expect::exactly,
                                     .field = "quantization",
                                     .what = "bytes",
                                     .offset = io.position(),
                                     .expected = length,
                                     .found = io.left()});
      std::uint8_t scheme = 0;
      io("quantization.scheme_tag", scheme);
      const bool assigned = scheme >= 1 && scheme <= scheme_payload_bytes.size();
      io.check(assigned, unassigned("quantization.scheme_tag", scheme));
      if (!io.ok()) return;
      const std::uint32_t payload = scheme_payload_bytes[scheme - 1u];
      io.check(length >= payload, {.code = Errc::length_mismatch,
                                   .expect = Expect::at_least,
                                   .field = "quantization_length",
                                   .what = "bytes for this scheme",
                                   .offset = at_length,
                                   .expected = payload,
                                   .found = length});
      io.fail({.code = Errc::unsupported,
               .field = "quantization.scheme_tag",
               .what = "quantized tensors",
               .found = scheme});
    }
  }

  template <class Io>
  static void composite_member(Io& io) {
    if constexpr (Io::reads) {
      std::uint8_t role = 0;
      io("composite_member.member_role", role);
      io.check(role <= 1, {.code = Errc::invalid_value,
                           .expect = Expect::at_most,
                           .field = "composite_member.member_role",
                           .expected = 1,
                           .found = role});
      const std::uint64_t at = io.last();
      io.reserved("composite_member.reserved", 15);
      io.fail({.code = Errc::unsupported,
               .field = "composite_member.member_role",
               .what = "members of a composite",
               .offset = at,
               .found = role});
    }
  }

  /// Phase 2: what needs the whole descriptor.
  template <class D, class Io>
  void whole(const D& d, Io& io) const {
    const std::size_t own = own_buffers(info(d.layout), d.shape.rank());
    io.check(d.buffers.size() == own, {.code = Errc::inconsistent,
                                       .expect = Expect::exactly,
                                       .field = "buffer_count",
                                       .offset = at_buffers - 1,
                                       .expected = own,
                                       .found = d.buffers.size()});
    if (!io.ok()) return;
    const std::uint64_t at_byte_offset = at_shape + 8 * d.shape.rank();
    if (is_dense(d.layout)) {
      io.check(d.byte_offset <= d.buffers[0].byte_size, {.code = Errc::out_of_bounds,
                                                         .expect = Expect::at_most,
                                                         .field = "byte_offset",
                                                         .what = "(the size of buffer 0)",
                                                         .offset = at_byte_offset,
                                                         .expected = d.buffers[0].byte_size,
                                                         .found = d.byte_offset});
      dense_extent(d, io, at_byte_offset);
      return;
    }
    io.check(d.byte_offset == 0, {.code = Errc::invalid_value,
                                  .expect = Expect::exactly,
                                  .field = "byte_offset",
                                  .what = "for this layout",
                                  .offset = at_byte_offset,
                                  .expected = 0,
                                  .found = d.byte_offset});
    for (std::size_t i = 0; i < d.buffers.size(); ++i) {
      const auto need = required_bytes(d, i);
      const std::uint64_t at = at_buffers + handle_bytes * i;
      if (!need) {
        Error error = need.error();
        error.offset = at;
        io.fail(error);
      } else {
        io.check(*need <= d.buffers[i].byte_size, {.code = Errc::out_of_bounds,
                                                   .expect = Expect::at_least,
                                                   .index = static_cast<std::uint32_t>(i),
                                                   .field = "buffers[].byte_size",
                                                   .what = "bytes",
                                                   .offset = at,
                                                   .expected = *need,
                                                   .found = d.buffers[i].byte_size});
      }
    }
  }

  template <class D, class Io>
  void dense_extent(const D& d, Io& io, std::uint64_t at_byte_offset) const {
    if (d.shape.is_dynamic() || d.shape.is_empty()) return;
    const std::uint64_t count = d.shape.count();
    io.check(count <= max_bytes, {.code = Errc::overflow,
                                  .expect = Expect::at_most,
                                  .field = "shape",
                                  .what = "elements",
                                  .offset = at_shape,
                                  .expected = max_bytes,
                                  .found = count});
    if (!io.ok()) return;
    const auto range = range_of(d.layout, d.shape);
    io.check(range.has_value(), {.code = Errc::overflow,
                                 .field = "layout.strides",
                                 .what = "an element offset leaves 64 bits",
                                 .offset = at_layout});
    if (!io.ok()) return;
    const auto bytes = extent(bits(d.dtype), *range);
    const auto whole_extent = bytes ? checked_add(bytes->first, bytes->second) : std::nullopt;
    const auto end = bytes ? checked_add(bytes->second, d.byte_offset) : std::nullopt;
    io.check(whole_extent && *whole_extent <= max_bytes && end && *end <= max_bytes,
             {.code = Errc::overflow,
              .field = "byte_offset",
              .what = "the elements end beyond 2^63 - 1 bytes",
              .offset = at_byte_offset});
    if (!io.ok()) return;
    io.check(bytes->first <= d.byte_offset, {.code = Errc::out_of_bounds,
                                             .expect = Expect::at_least,
                                             .field = "byte_offset",
                                             .what = "bytes, since strides reach that far back",
                                             .offset = at_byte_offset,
                                             .expected = bytes->first,
                                             .found = d.byte_offset});
    io.check(*end <= d.buffers[0].byte_size,
             {.code = Errc::out_of_bounds,
              .expect = Expect::at_most,
              .field = "byte_offset",
              .what = "(the size of buffer 0) as the end of the elements",
              .offset = at_byte_offset,
              .expected = d.buffers[0].byte_size,
              .found = *end});
  }

  static std::optional<ElementRange> range_of(const Layout& layout, const Shape& shape) {
    return std::visit(
        [&]<class T>(const T& alternative) -> std::optional<ElementRange> {
          if constexpr (DenseLayout<T>) return alternative.range(shape);
          return std::nullopt;
        },
        layout);
  }

  static constexpr Error unassigned(Field field, std::uint8_t tag, bool has_private = true) {
    return {.code = Errc::invalid_tag,
            .expect = Expect::as_said,
            .index = field.index,
            .field = field.name,
            .what = tag == 0x00 || tag == 0xFF       ? "a valid tag"sv
                    : has_private && is_private(tag) ? "a tag that was agreed on"sv
                                                     : "an assigned tag"sv,
            .found = tag};
  }
};

namespace {

template <class D, class Io>
void run_fields(D& d, std::uint32_t& length, Io& io, const DecodeOptions& options) {
  DescriptorFields{options}.run(d, length, io);
}

/// What a writer may write; the decoder's options have no say.
constexpr DecodeOptions writing{.private_memory_classes = true};

Result<std::uint32_t> checked_size(const Descriptor& descriptor) {
  Sizer io;
  std::uint32_t length = 0;
  run_fields(descriptor, length, io, writing);
  if (!io.ok()) return io.error();
  return static_cast<std::uint32_t>(io.position());
}

}  // namespace

Result<std::uint32_t> descriptor_length(std::span<const std::byte> bytes,
                                        const DecodeOptions& options) {
  Reader io(bytes);
  std::uint32_t length = 0;
  if (bytes.size() >= magic.size())
    io.literal("magic", magic, Errc::invalid_magic, "HRRY (0x48525259)");
  Version version;
  if (bytes.size() > magic.size()) {
    io("version_major", version.major);
    io.check(version.major == Version{}.major, {.code = Errc::unsupported_version,
                                                .expect = Expect::exactly,
                                                .field = "version_major",
                                                .expected = Version{}.major,
                                                .found = version.major});
  }
  if (bytes.size() < descriptor_prefix_bytes) {
    io.fail({.code = Errc::truncated,
             .expect = Expect::at_least,
             .field = "descriptor_length",
             .what = "bytes",
             .offset = bytes.size(),
             .expected = descriptor_prefix_bytes,
             .found = bytes.size()});
    return io.error();
  }
  io("version_minor", version.minor);
  io("descriptor_length", length);
  io.check(length >= header_bytes, {.code = Errc::length_mismatch,
                                    .expect = Expect::at_least,
                                    .field = "descriptor_length",
                                    .what = "bytes",
                                    .expected = header_bytes,
                                    .found = length});
  io.check(length <= options.max_descriptor_bytes, {.code = Errc::out_of_bounds,
                                                    .expect = Expect::at_most,
                                                    .field = "descriptor_length",
                                                    .what = "bytes (max_descriptor_bytes)",
                                                    .expected = options.max_descriptor_bytes,
                                                    .found = length});
  if (!io.ok()) return io.error();
  return length;
}

namespace {

Result<void> decode_into(Descriptor& descriptor, std::span<const std::byte> bytes,
                         const DecodeOptions& options) {
  auto length = descriptor_length(bytes, options);
  if (!length) return length.error();
  if (bytes.size() < *length)
    return Error{.code = Errc::truncated,
                 .expect = Expect::exactly,
                 .field = "descriptor_length",
                 .what = "bytes",
                 .offset = bytes.size(),
                 .expected = *length,
                 .found = bytes.size()};
  Reader io(bytes.first(*length));
  run_fields(descriptor, *length, io, options);
  if (!io.ok()) return io.error();
  return {};
}

}  // namespace

Result<Descriptor> decode(std::span<const std::byte> bytes, const DecodeOptions& options) {
  Result<Descriptor> result(std::in_place);
  auto done = contain(Origin::descriptor, [&] { return decode_into(*result, bytes, options); });
  if (!done) result = done.error();
  return result;
}

Result<void> validate(const Descriptor& descriptor) {
  if (auto size = checked_size(descriptor); !size) return size.error();
  return {};
}

Result<std::uint32_t> encoded_size(const Descriptor& descriptor) {
  if (descriptor.version.minor != Version{}.minor)
    return Error{.code = Errc::unsupported,
                 .expect = Expect::exactly,
                 .field = "version_minor",
                 .what = "(a newer minor version is read and not written back)",
                 .offset = at_minor,
                 .expected = Version{}.minor,
                 .found = descriptor.version.minor};
  return checked_size(descriptor);
}

Result<std::uint32_t> encode_into(const Descriptor& descriptor, std::span<std::byte> out) {
  auto size = encoded_size(descriptor);
  if (!size) return size;
  if (out.size() < *size)
    return Error{.code = Errc::out_of_bounds,
                 .expect = Expect::at_least,
                 .field = "descriptor_length",
                 .what = "bytes of room",
                 .expected = *size,
                 .found = out.size()};
  Writer io(out.first(*size));
  run_fields(descriptor, *size, io, writing);
  return size;
}

Result<std::vector<std::byte>> encode(const Descriptor& descriptor) {
  return contain(Origin::descriptor, [&]() -> Result<std::vector<std::byte>> {
    auto size = encoded_size(descriptor);
    if (!size) return size.error();
    std::vector<std::byte> bytes(*size);
    Writer io(bytes);
    run_fields(descriptor, *size, io, writing);
    return bytes;
  });
}

Descriptor canonical(Descriptor descriptor) {
  for (const BufferHandle& handle : descriptor.buffers)
    if (handle.sync_mode != SyncMode::producer_synced) return descriptor;
  for (BufferHandle& handle : descriptor.buffers)
    handle.alignment = handle.is_empty() ? 1 : min_buffer_alignment;
  return descriptor;
}

Result<void> describe(std::span<const std::byte> bytes,
                      const std::function<void(const FieldRow&)>& row,
                      const DecodeOptions& options) {
  return contain(Origin::descriptor, [&]() -> Result<void> {
    const auto descriptor = decode(bytes, options);
    if (!descriptor) return descriptor.error();
    auto length = descriptor_length(bytes, options);
    Printer io(row);
    run_fields(*descriptor, *length, io, options);
    if (io.position() < *length)
      io.emit("(fields of a newer minor version)", *length - io.position(), "skipped");
    return {};
  });
}

Result<std::uint64_t> required_bytes(const Descriptor& descriptor, std::size_t i) {
  const Error overflow{.code = Errc::overflow,
                       .index = static_cast<std::uint32_t>(i),
                       .field = "buffers[].byte_size",
                       .what = "the buffer would be larger than 2^63 - 1 bytes"};
  const LayoutInfo& row = info(descriptor.layout);
  const std::size_t rank = descriptor.shape.rank();
  const auto* strided = std::get_if<Strided>(&descriptor.layout);
  if (rank < row.min_rank || rank > row.max_rank ||
      (strided != nullptr && strided->strides.size() != rank))
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::as_said,
                 .field = "rank",
                 .what = "one that fits the layout",
                 .found = rank};
  if (i >= own_buffers(row, rank)) return 0;
  const auto need = std::visit(
      [&]<class T>(const T& layout) -> std::optional<std::uint64_t> {
        if constexpr (DenseLayout<T>) {
          if (descriptor.shape.is_dynamic() || descriptor.shape.is_empty()) return 0;
          const auto range = layout.range(descriptor.shape);
          const auto bytes = range ? extent(bits(descriptor.dtype), *range) : std::nullopt;
          return bytes ? checked_add(bytes->second, descriptor.byte_offset) : std::nullopt;
        } else {
          return layout.required_bytes(i, descriptor.dtype, descriptor.shape);
        }
      },
      descriptor.layout);
  if (!need || *need > max_bytes) return overflow;
  return *need;
}

std::string_view role(const Layout& layout, std::size_t i) noexcept {
  return std::visit(
      [i]<class T>(const T&) -> std::string_view {
        if constexpr (DenseLayout<T>)
          return i == 0 ? "data" : "";
        else
          return i < T::roles.size() ? T::roles[i] : std::string_view();
      },
      layout);
}

}  // namespace hurray
