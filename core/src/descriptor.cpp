#include "hurray/descriptor.hpp"

#include <bit>
#include <limits>
#include <utility>

#include "quantization_fields.hpp"

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

/// Makes `layout` the default of the alternative that holds `tag`.
template <std::size_t I = 0>
void select_layout(Layout& layout, LayoutTag tag) noexcept {
  if constexpr (I < std::variant_size_v<Layout>) {
    if (detail::alternative_tags[I] != tag) return select_layout<I + 1>(layout, tag);
    layout.emplace<I>();
  } else if (is_private(static_cast<std::uint8_t>(tag))) {
    layout.emplace<PrivateLayout>().tag = tag;
  } else {
    layout.emplace<UnknownLayout>().tag = tag;
  }
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

/// A dynamic size hides how many parameters there are.
bool waits_for_size(const Descriptor& d, const SchemeParameters& of) noexcept {
  return of.block_size != 0 && !std::holds_alternative<BlockPaged>(d.layout) &&
         d.shape.is_dynamic();
}

}  // namespace

/// The format's own list of a descriptor's fields, in wire order, with every rule of
/// 01-descriptor.md section 6 beside the field it judges. Decoding, checking, sizing, encoding and
/// printing all run it.
struct DescriptorFields {
  const DecodeOptions& options;
  bool scheme_fits = true;  ///< Judges whether the quantization fits the tensor.
  std::uint64_t at_layout = 0;
  std::uint64_t at_buffers = 0;

  template <class D, class Io>
  void run(D& d, std::uint32_t& length, Io& io) {
    std::uint32_t bits = d.sections_;
    if (!has_parts(d, io)) bits = std::get_if<UnknownLayout>(&d.layout)->flags;
    io.literal("magic", magic, Errc::invalid_magic, "HRRY (0x48525259)");
    version(d, io);
    io("descriptor_length", length);
    io.bits("flags", bits, flags);
    io.check((bits & ~known_flags) == 0, [&] {
      return Error{.code = Errc::reserved_bits,
                   .expect = Expect::exactly,
                   .field = "flags",
                   .what = "in bits 5 to 31",
                   .expected = 0,
                   .found = bits & ~known_flags};
    });
    type(d, bits, io);
    layout_and_shape(d, bits, io);
    if (!io.ok()) return;
    if constexpr (Io::reads) d.sections_ = bits;
    const bool parted = has_parts(d, io);
    if (parted) {
      buffers(d, io);
      if (!io.ok()) return;
      sections(d, bits, io);
    }
    if constexpr (Io::reads) {
      if (d.version.minor == Version{}.minor)
        io.check(io.left() == 0, [&] {
          return Error{.code = Errc::length_mismatch,
                       .expect = Expect::exactly,
                       .field = "descriptor_length",
                       .what = "bytes",
                       .offset = 6,
                       .expected = io.position(),
                       .found = io.position() + io.left()};
        });
    }
    if constexpr (Io::checks)
      if (io.ok() && parted) whole(d, io);
  }

  /// Buffer table and sections are apart. Of an unknown layout they are in the tail, but for a
  /// tensor that is built around one: then they are judged like any other's, and never written.
  template <class D, class Io>
  static bool has_parts(const D& d, const Io&) noexcept {
    return !is_unknown(d.layout) || (!Io::reads && !d.buffers.empty());
  }

  static bool is_unknown(const Layout& layout) noexcept {
    return std::holds_alternative<UnknownLayout>(layout);
  }

  template <class D, class Io>
  void sections(D& d, std::uint32_t bits, Io& io) {
    if (has(bits, Flag::quantization)) {
      (scheme_fits ? QuantizationFields(d, options) : QuantizationFields::unfit(d, options))
          .run(d.quantization_, io);
      if (!io.ok()) return;
    }
    if (has(bits, Flag::shard)) d.shard_.fields(d.shard_, io, d.shape);
    if (has(bits, Flag::statistics))
      d.statistics_.fields(d.statistics_, io, nnz_of(d.layout), options.permissive);
    if (has(bits, Flag::extension_type)) d.extension_type_.fields(d.extension_type_, io);
    if (has(bits, Flag::composite_member)) {
      io("composite_member.member_role", d.member_role_);
      io.check(find_row(member_roles, d.member_role_) != nullptr, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::at_most,
                     .field = "composite_member.member_role",
                     .expected = 1,
                     .found = static_cast<std::uint64_t>(d.member_role_)};
      });
      io.reserved("composite_member.reserved", 15);
    }
  }

  template <class D, class Io>
  static void version(D& d, Io& io) {
    io("version_major", d.version.major);
    io.check(d.version.major == Version{}.major, [&] {
      return Error{.code = Errc::unsupported_version,
                   .expect = Expect::exactly,
                   .field = "version_major",
                   .expected = Version{}.major,
                   .found = d.version.major};
    });
    io("version_minor", d.version.minor);
  }

  template <class D, class Io>
  void type(D& d, std::uint32_t bits, Io& io) const {
    io("type_tag", d.dtype);
    const auto tag = static_cast<std::uint8_t>(d.dtype);
    const bool agreed = is_private(tag);
    io.check(info(d.dtype) != nullptr || agreed || let_through(tag),
             [&] { return unassigned("type_tag", tag); });
    io.check(has(bits, Flag::extension_type) == agreed, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "flags",
                   .what = "HAS_EXTENSION_TYPE with private type tags, and only with them",
                   .offset = at_flags,
                   .found = bits};
    });
  }

  /// A tag that nobody knows, and that is not one of those that are never valid.
  bool let_through(std::uint8_t tag) const noexcept {
    return options.permissive && tag != 0x00 && tag != 0xFF;
  }

  template <class Io>
  static void rank_fits(const LayoutInfo& row, std::uint64_t rank, Io& io) {
    io.check(rank >= row.min_rank, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_least,
                   .field = "rank",
                   .what = "for this layout",
                   .expected = row.min_rank,
                   .found = rank};
    });
    io.check(rank <= row.max_rank, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_most,
                   .field = "rank",
                   .what = "for this layout",
                   .expected = row.max_rank,
                   .found = rank};
    });
  }

  /// What a layout says of the shape alone.
  template <class Io>
  void layout_fits(const Layout& layout, const Shape& shape, Io& io) const {
    rank_fits(info(layout), shape.rank(), io);
    if (!io.ok()) return;
    std::visit(
        [&]<class T>(const T& alternative) {
          if constexpr (!std::is_same_v<T, UnknownLayout>)
            alternative.fields(alternative, io, FieldContext{shape, options});
        },
        layout);
    if (!io.ok()) return;
    tile_sizes(layout, shape, io);
    const bool own_strides =
        std::holds_alternative<Strided>(layout) || std::holds_alternative<Tiled>(layout);
    if (io.ok() && own_strides && !shape.is_dynamic() && !shape.is_empty())
      reach(layout, shape, io);
  }

  template <class D, class Io>
  void layout_and_shape(D& d, std::uint32_t& bits, Io& io) {
    LayoutTag layout_tag = tag(d.layout);
    io("layout_tag", layout_tag);
    const auto raw = static_cast<std::uint8_t>(layout_tag);
    const LayoutInfo* row = info(layout_tag);
    const bool named = row != nullptr || is_private(raw);
    io.check(named || let_through(raw), [&] { return unassigned("layout_tag", raw); });
    if (!io.ok()) return;
    if constexpr (Io::reads) {
      select_layout(d.layout, layout_tag);
    } else {
      // Whoever fills in a layout by hand may have given it a tag that another alternative owns.
      const bool owned = std::holds_alternative<UnknownLayout>(d.layout)   ? !named
                         : std::holds_alternative<PrivateLayout>(d.layout) ? is_private(raw)
                                                                           : true;
      io.check(owned, [&] {
        return Error{.code = Errc::invalid_tag,
                     .expect = Expect::as_said,
                     .field = "layout_tag",
                     .what = "a tag that belongs to this layout",
                     .found = raw};
      });
    }
    if (row == nullptr) row = &opaque_layout;
    auto rank = static_cast<std::uint32_t>(d.shape.rank());
    io("rank", rank);
    io.check(rank <= max_rank, [&] {
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_most,
                   .field = "rank",
                   .expected = max_rank,
                   .found = rank};
    });
    rank_fits(*row, rank, io);
    const bool head = layout_tag == LayoutTag::composite;
    const std::uint32_t unheaded = bit(Flag::quantization) | bit(Flag::composite_member);
    io.check(!head || (bits & unheaded) == 0, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "flags",
                   .what = "neither HAS_QUANTIZATION nor HAS_COMPOSITE_MEMBER on a composite head",
                   .offset = at_flags,
                   .found = bits};
    });
    const bool unsharded = layout_tag == LayoutTag::csf || layout_tag == LayoutTag::block_paged;
    io.check(!unsharded || !has(bits, Flag::shard), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "flags",
                   .what = "no HAS_SHARD with this layout",
                   .offset = at_flags,
                   .found = bits};
    });
    if (!io.ok()) return;
    io.list("shape[]", d.shape, rank, 8, [&](auto& n, std::size_t k) { io({"shape[]", k}, n); });
    io("byte_offset", d.byte_offset);
    if (!io.ok()) return;
    at_layout = io.position();
    const FieldContext context{d.shape, options};
    std::visit(
        [&]<class T>(T& layout) {
          if constexpr (!std::is_same_v<std::remove_const_t<T>, UnknownLayout>) {
            layout.fields(layout, io, context);
          } else if constexpr (Io::reads) {
            layout.flags = bits;
            bits = 0;
            io.opaque("(unknown)", layout.tail, io.left());
          } else {
            io.opaque("(unknown)", layout.tail, layout.tail.size());
          }
        },
        d.layout);
  }

  template <class D, class Io>
  void buffers(D& d, Io& io) {
    auto count = static_cast<std::uint8_t>(d.buffers.size());
    io("buffer_count", count);
    const bool head = std::holds_alternative<CompositeHead>(d.layout);
    io.check(head || count != 0, [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_least,
                   .field = "buffer_count",
                   .expected = 1,
                   .found = 0};
    });
    io.check(!head || count == 0, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "buffer_count",
                   .what = "for a composite head",
                   .expected = 0,
                   .found = count};
    });
    at_buffers = io.position();
    std::uint64_t sum = 0;
    io.list("buffers[]", d.buffers, count, handle_bytes, [&](auto& handle, std::size_t i) {
      io({"buffers[].byte_size", i}, handle.byte_size);
      const auto total = checked_add(sum, handle.byte_size);
      io.check(total && *total <= max_bytes, [&] {
        return Error{.code = Errc::overflow,
                     .expect = Expect::at_most,
                     .index = i,
                     .field = "buffers[].byte_size",
                     .what = "bytes beside the buffers before it",
                     .expected = max_bytes - sum,
                     .found = handle.byte_size};
      });
      sum = total.value_or(0);
      io({"buffers[].alignment", i}, handle.alignment);
      io.check(std::has_single_bit(handle.alignment), [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::as_said,
                     .index = i,
                     .field = "buffers[].alignment",
                     .what = "a power of two",
                     .found = handle.alignment};
      });
      io.check(handle.alignment >= min_buffer_alignment || handle.byte_size == 0, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::at_least,
                     .index = i,
                     .field = "buffers[].alignment",
                     .expected = min_buffer_alignment,
                     .found = handle.alignment};
      });
      placement(handle, i == 0 ? handle : d.buffers[0], i, io);
      io({"buffers[].reserved", i}, handle.reserved);
      io.check(handle.reserved == 0, [&] {
        return Error{.code = Errc::reserved_bits,
                     .expect = Expect::exactly,
                     .index = i,
                     .field = "buffers[].reserved",
                     .expected = 0,
                     .found = handle.reserved};
      });
    });
  }

  template <class Handle, class Io>
  void placement(Handle& handle, const BufferHandle& first, std::size_t i, Io& io) const {
    const std::uint64_t index = i;
    io({"buffers[].device_tag", i}, handle.device);
    const auto device = static_cast<std::uint8_t>(handle.device);
    io.check(info(handle.device) != nullptr || is_private(device),
             [&] { return unassigned({"buffers[].device_tag", i}, device); });
    io.check(handle.device == first.device, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .index = index,
                   .field = "buffers[].device_tag",
                   .what = "as in buffer 0",
                   .expected = static_cast<std::uint8_t>(first.device),
                   .found = device};
    });
    io({"buffers[].sync_mode", i}, handle.sync_mode);
    const auto mode = static_cast<std::uint8_t>(handle.sync_mode);
    io.check(!name(handle.sync_mode).empty(),
             [&] { return unassigned({"buffers[].sync_mode", i}, mode, false); });
    io.check(mode == 0 || (handle.device != Device::cpu && !options.cross_machine), [&] {
      return Error{
          .code = Errc::inconsistent,
          .expect = Expect::exactly,
          .index = index,
          .field = "buffers[].sync_mode",
          .what = handle.device == Device::cpu ? "for a CPU buffer"sv : "between machines"sv,
          .expected = 0,
          .found = mode};
    });
    io({"buffers[].memory_class", i}, handle.memory_class);
    const auto memory_class = static_cast<std::uint8_t>(handle.memory_class);
    io.check(row_of<memory_classes>(handle.memory_class) != nullptr ||
                 (is_private(memory_class) &&
                  options.agreed.has(options.agreed.memory_classes, memory_class)),
             [&] { return unassigned({"buffers[].memory_class", i}, memory_class); });
    io.check(can_have(handle.device, handle.memory_class), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .index = index,
                   .field = "buffers[].memory_class",
                   .what = "a class of memory that the device has",
                   .found = memory_class};
    });
    io.check(handle.memory_class == first.memory_class, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .index = index,
                   .field = "buffers[].memory_class",
                   .what = "as in buffer 0",
                   .expected = static_cast<std::uint8_t>(first.memory_class),
                   .found = memory_class};
    });
  }

  /// Layout and scheme say how many buffers there are.
  static bool is_countable(const LayoutInfo& layout, const Quantization* quantization) noexcept {
    return layout.layout_class != LayoutClass::opaque &&
           (quantization == nullptr || !std::holds_alternative<OpaqueScheme>(quantization->scheme));
  }

  /// Phase 2: what needs the whole descriptor.
  template <class D, class Io>
  void whole(const D& d, Io& io) const {
    const LayoutInfo& layout = info(d.layout);
    const Quantization* quantization = d.quantization();
    const bool countable = is_countable(layout, quantization);
    const std::size_t own = own_buffers(layout, d.shape.rank());
    const std::size_t expected =
        own + (quantization != nullptr ? parameters(quantization->scheme).buffers() : 0);
    io.check(countable ? d.buffers.size() == expected : d.buffers.size() >= own, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = countable ? Expect::exactly : Expect::at_least,
                   .field = "buffer_count",
                   .offset = at_buffers - 1,
                   .expected = expected,
                   .found = d.buffers.size()};
    });
    if (!io.ok()) return;
    const std::uint64_t at_byte_offset = at_shape + 8 * d.shape.rank();
    if (layout.layout_class == LayoutClass::dense || layout.layout_class == LayoutClass::opaque) {
      io.check(d.byte_offset <= d.buffers[0].byte_size, [&] {
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .field = "byte_offset",
                     .what = "(the size of buffer 0)",
                     .offset = at_byte_offset,
                     .expected = d.buffers[0].byte_size,
                     .found = d.byte_offset};
      });
    } else {
      io.check(d.byte_offset == 0, [&] {
        return Error{.code = Errc::invalid_value,
                     .expect = Expect::exactly,
                     .field = "byte_offset",
                     .what = "for this layout",
                     .offset = at_byte_offset,
                     .expected = 0,
                     .found = d.byte_offset};
      });
    }
    if (layout.layout_class == LayoutClass::dense)
      dense_extent(d, io, at_byte_offset);
    else
      for (std::size_t i = 0; i < own && i < d.buffers.size(); ++i) long_enough(d, i, io);
    if (quantization != nullptr && countable && scheme_fits) parameter_sizes(d, *quantization, io);
  }

  template <class D, class Io>
  void long_enough(const D& d, std::size_t i, Io& io) const {
    const auto need = required_bytes(d, i);
    io.check(need.has_value(), [&] {
      Error error = need.error();
      error.offset = at_buffers + handle_bytes * i;
      return error;
    });
    if (!io.ok()) return;
    io.check(*need <= d.buffers[i].byte_size, [&] {
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_least,
                   .index = i,
                   .field = "buffers[].byte_size",
                   .what = "bytes",
                   .offset = at_buffers + handle_bytes * i,
                   .expected = *need,
                   .found = d.buffers[i].byte_size};
    });
  }

  /// Row 75: the parameter arrays have exactly the sizes of 03-quantization.md section 4.
  template <class D, class Io>
  void parameter_sizes(const D& d, const Quantization& quantization, Io& io) const {
    const SchemeParameters of = parameters(quantization.scheme);
    for (const std::uint32_t i : {of.scale_buffer, of.zero_point_buffer}) {
      if (i == no_buffer || !io.ok()) continue;
      const bool shared = of.scale_buffer == of.zero_point_buffer;
      const auto need = required_bytes(d, i);
      const std::uint64_t at = at_buffers + handle_bytes * i;
      io.check(need.has_value(), [&] {
        Error error = need.error();
        error.offset = at;
        return error;
      });
      if (!io.ok()) return;
      if (*need == 0 && waits_for_size(d, of)) return;
      const std::uint64_t size = d.buffers[i].byte_size;
      io.check(shared ? size >= *need : size == *need, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = shared ? Expect::at_least : Expect::exactly,
                     .index = i,
                     .field = "buffers[].byte_size",
                     .what = shared                 ? "bytes of scales and zero points"sv
                             : i == of.scale_buffer ? "bytes of scales"sv
                                                    : "bytes of zero points"sv,
                     .offset = at,
                     .expected = *need,
                     .found = size};
      });
    }
  }

  template <class D, class Io>
  void dense_extent(const D& d, Io& io, std::uint64_t at_byte_offset) const {
    if (d.shape.is_dynamic() || d.shape.is_empty()) return tile_sizes(d.layout, d.shape, io);
    const std::uint64_t count = d.shape.count();
    io.check(count <= max_bytes, [&] {
      return Error{.code = Errc::overflow,
                   .expect = Expect::at_most,
                   .field = "shape",
                   .what = "elements",
                   .offset = at_shape,
                   .expected = max_bytes,
                   .found = count};
    });
    if (!io.ok()) return;
    tile_sizes(d.layout, d.shape, io);
    if (!io.ok()) return;
    const auto range = reach(d.layout, d.shape, io);
    if (!io.ok()) return;
    const unsigned width = element_bits(d);
    if (width == 0) return;  // an unknown type hides what a width is needed for
    const auto bytes = extent(width, *range);
    const auto whole_extent = bytes ? checked_add(bytes->first, bytes->second) : std::nullopt;
    const auto end = bytes ? checked_add(bytes->second, d.byte_offset) : std::nullopt;
    io.check(whole_extent && *whole_extent <= max_bytes && end && *end <= max_bytes, [&] {
      return Error{.code = Errc::overflow,
                   .field = "byte_offset",
                   .what = "the elements end beyond 2^63 - 1 bytes",
                   .offset = at_byte_offset};
    });
    if (!io.ok()) return;
    io.check(bytes->first <= d.byte_offset, [&] {
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_least,
                   .field = "byte_offset",
                   .what = "bytes, since strides reach that far back",
                   .offset = at_byte_offset,
                   .expected = bytes->first,
                   .found = d.byte_offset};
    });
    io.check(*end <= d.buffers[0].byte_size, [&] {
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_most,
                   .field = "byte_offset",
                   .what = "(the size of buffer 0) as the end of the elements",
                   .offset = at_byte_offset,
                   .expected = d.buffers[0].byte_size,
                   .found = *end};
    });
  }

  /// Row 71: the offsets that the layout reserves. Precondition: nothing dynamic, nothing empty.
  template <class Io>
  std::optional<ElementRange> reach(const Layout& layout, const Shape& shape, Io& io) const {
    const auto range = range_of(layout, shape);
    io.check(range.has_value(), [&] {
      return Error{.code = Errc::overflow,
                   .field = "layout.strides",
                   .what = "an element offset leaves 64 bits",
                   .offset = at_layout};
    });
    return range;
  }

  /// Row 70, dynamic and empty shapes included.
  template <class Io>
  void tile_sizes(const Layout& layout, const Shape& shape, Io& io) const {
    const auto* tiled = std::get_if<Tiled>(&layout);
    if (tiled == nullptr) return;
    const auto error = tiled->oversized(shape);
    io.check(!error, [&] {
      Error placed = *error;
      placed.offset = at_layout;
      return placed;
    });
  }

  static std::optional<ElementRange> range_of(const Layout& layout, const Shape& shape) {
    return std::visit(
        [&]<class T>(const T& alternative) -> std::optional<ElementRange> {
          if constexpr (DenseLayout<T>) return alternative.range(shape);
          return std::nullopt;
        },
        layout);
  }
};

namespace {

template <class D, class Io>
void run_fields(D& d, std::uint32_t& length, Io& io, const DecodeOptions& options,
                bool scheme_fits = true) {
  DescriptorFields{options, scheme_fits}.run(d, length, io);
}

Result<std::uint32_t> checked_size(const Descriptor& descriptor, const EncodeOptions& options,
                                   bool scheme_fits = true) {
  Sizer io;
  std::uint32_t length = 0;
  run_fields(descriptor, length, io, rules_of(options), scheme_fits);
  if (!io.ok()) return io.error();
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (io.position() > most)
    return Error{.code = Errc::overflow,
                 .expect = Expect::at_most,
                 .field = "descriptor_length",
                 .what = "bytes",
                 .offset = 6,
                 .expected = most,
                 .found = io.position()};
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
    io.check(version.major == Version{}.major, [&] {
      return Error{.code = Errc::unsupported_version,
                   .expect = Expect::exactly,
                   .field = "version_major",
                   .expected = Version{}.major,
                   .found = version.major};
    });
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
  io.check(length >= header_bytes, [&] {
    return Error{.code = Errc::length_mismatch,
                 .expect = Expect::at_least,
                 .field = "descriptor_length",
                 .what = "bytes",
                 .expected = header_bytes,
                 .found = length};
  });
  io.check(length <= options.max_descriptor_bytes, [&] {
    return Error{.code = Errc::out_of_bounds,
                 .expect = Expect::at_most,
                 .field = "descriptor_length",
                 .what = "bytes (max_descriptor_bytes)",
                 .expected = options.max_descriptor_bytes,
                 .found = length};
  });
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

Result<void> validate(const Descriptor& descriptor, const EncodeOptions& options) {
  if (auto size = checked_size(descriptor, options); !size) return size.error();
  return {};
}

Result<void> validate(const Layout& layout, const Shape& shape) {
  Sizer io;
  const DecodeOptions options = rules_of({});
  DescriptorFields{options}.layout_fits(layout, shape, io);
  if (io.ok()) return {};
  Error error = io.error();
  error.offset = Error::no_offset;
  return error;
}

Result<void> validate_apart_from_scheme(const Descriptor& descriptor,
                                        const EncodeOptions& options) {
  if (auto size = checked_size(descriptor, options, false); !size) return size.error();
  return {};
}

Result<void> validate_scheme(const Descriptor& descriptor) {
  const Quantization* quantization = descriptor.quantization();
  if (quantization == nullptr ||
      !DescriptorFields::is_countable(info(descriptor.layout), quantization))
    return {};
  const DecodeOptions options = rules_of({.permissive = true});
  Sizer io;
  QuantizationFields(descriptor, options).run(*quantization, io);
  if (io.ok()) DescriptorFields{options}.parameter_sizes(descriptor, *quantization, io);
  if (io.ok()) return {};
  Error error = io.error();
  error.offset = Error::no_offset;
  return error;
}

Result<std::uint32_t> encoded_size(const Descriptor& descriptor, const EncodeOptions& options) {
  if (descriptor.version.minor != Version{}.minor)
    return Error{.code = Errc::unsupported,
                 .expect = Expect::exactly,
                 .field = "version_minor",
                 .what = "(a newer minor version is read and not written back)",
                 .offset = at_minor,
                 .expected = Version{}.minor,
                 .found = descriptor.version.minor};
  auto size = checked_size(descriptor, options);
  if (size && std::holds_alternative<UnknownLayout>(descriptor.layout) &&
      (!descriptor.buffers.empty() || descriptor.sections() != 0))
    return Error{.code = Errc::unsupported,
                 .field = "layout_tag",
                 .what = "only its owner knows where an unknown layout has its buffer table",
                 .found = static_cast<std::uint8_t>(tag(descriptor.layout))};
  return size;
}

Result<std::uint32_t> encode_into(const Descriptor& descriptor, std::span<std::byte> out,
                                  const EncodeOptions& options) {
  auto size = encoded_size(descriptor, options);
  if (!size) return size;
  if (out.size() < *size)
    return Error{.code = Errc::out_of_bounds,
                 .expect = Expect::at_least,
                 .field = "descriptor_length",
                 .what = "bytes of room",
                 .expected = *size,
                 .found = out.size()};
  Writer io(out.first(*size));
  run_fields(descriptor, *size, io, rules_of(options));
  return size;
}

Result<std::vector<std::byte>> encode(const Descriptor& descriptor, const EncodeOptions& options) {
  return contain(Origin::descriptor, [&]() -> Result<std::vector<std::byte>> {
    auto size = encoded_size(descriptor, options);
    if (!size) return size.error();
    std::vector<std::byte> bytes(*size);
    Writer io(bytes);
    run_fields(descriptor, *size, io, rules_of(options));
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

unsigned element_bits(const Descriptor& descriptor) noexcept {
  const ExtensionType* own = descriptor.extension_type();
  return own != nullptr ? own->bit_width : bits(descriptor.dtype);
}

std::optional<Error> opaque(const Descriptor& descriptor) noexcept {
  const auto unsupported = [](std::string_view field, std::string_view what, std::uint8_t tag) {
    return Error{.code = Errc::unsupported, .field = field, .what = what, .found = tag};
  };
  if (element_bits(descriptor) == 0)
    return unsupported("type_tag", "an unknown element type",
                       static_cast<std::uint8_t>(descriptor.dtype));
  const auto layout_tag = static_cast<std::uint8_t>(tag(descriptor.layout));
  if (std::holds_alternative<UnknownLayout>(descriptor.layout))
    return unsupported("layout_tag", "an unknown layout", layout_tag);
  if (std::holds_alternative<PrivateLayout>(descriptor.layout))
    return unsupported("layout_tag", "a private layout", layout_tag);
  const auto* csf = std::get_if<Csf>(&descriptor.layout);
  if (csf != nullptr && !csf->is_permutation(descriptor.shape.rank()))
    return unsupported("layout.mode_order", "mode_order does not name every dimension once",
                       layout_tag);
  const auto* head = std::get_if<CompositeHead>(&descriptor.layout);
  if (head != nullptr && find_row(composition_rules, head->rule) == nullptr)
    return unsupported("layout.composition_rule", "a private composition rule",
                       static_cast<std::uint8_t>(head->rule));
  const Quantization* quantization = descriptor.quantization();
  if (quantization != nullptr && std::holds_alternative<OpaqueScheme>(quantization->scheme))
    return unsupported("quantization.scheme_tag", "an unknown quantization scheme",
                       static_cast<std::uint8_t>(tag(quantization->scheme)));
  if (auto fits = validate_scheme(descriptor); !fits) return fits.error();
  return std::nullopt;
}

namespace {

std::optional<std::uint64_t> parameter_bytes(const Descriptor& d, std::size_t i) noexcept {
  const Quantization* quantization = d.quantization();
  const SchemeParameters of =
      quantization != nullptr ? parameters(quantization->scheme) : SchemeParameters{};
  if (i != of.scale_buffer && i != of.zero_point_buffer) return 0;
  if (waits_for_size(d, of)) return 0;
  const auto entries = parameter_entries(quantization->scheme, d.shape, d.layout);
  if (!entries) return std::nullopt;
  std::optional<std::uint64_t> bytes = 0;
  if (i == of.scale_buffer) bytes = packed_bytes(bits(of.scale_type), *entries);
  if (i == of.zero_point_buffer && bytes) {
    const auto zero_points = checked_mul<std::uint64_t>(*entries, 4);
    bytes = zero_points ? checked_add(*bytes, *zero_points) : std::nullopt;
  }
  return bytes;
}

}  // namespace

Result<std::uint64_t> required_bytes(const Descriptor& descriptor, std::size_t i) {
  const LayoutInfo& row = info(descriptor.layout);
  const std::size_t rank = descriptor.shape.rank();
  if (rank < row.min_rank || rank > row.max_rank)
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::as_said,
                 .field = "rank",
                 .what = "one that fits the layout",
                 .found = rank};
  const unsigned width = element_bits(descriptor);
  const auto need = std::visit(
      [&]<class T>(const T& layout) -> std::optional<std::uint64_t> {
        if (i >= own_buffers(row, rank)) return parameter_bytes(descriptor, i);
        if constexpr (DenseLayout<T>) {
          if (width == 0 || descriptor.shape.is_dynamic() || descriptor.shape.is_empty()) return 0;
          const auto range = layout.range(descriptor.shape);
          const auto bytes = range ? extent(width, *range) : std::nullopt;
          return bytes ? checked_add(bytes->second, descriptor.byte_offset) : std::nullopt;
        } else {
          return layout.required_bytes(i, width, descriptor.shape);
        }
      },
      descriptor.layout);
  if (!need || *need > max_bytes)
    return Error{.code = Errc::overflow,
                 .index = i,
                 .field = "buffers[].byte_size",
                 .what = "the buffer would be larger than 2^63 - 1 bytes"};
  return *need;
}

std::string_view role(const Layout& layout, std::size_t i) noexcept {
  return std::visit([i](const auto& alternative) { return alternative.role(i); }, layout);
}

}  // namespace hurray
