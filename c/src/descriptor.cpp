#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "handles.hpp"
#include "hurray/cursor.hpp"
#include "hurray/descriptor.hpp"

using namespace hurray;
using namespace hurray::c;

namespace {

/// Calls `read(descriptor state)` after the checks of `handle`; `read` returns a status.
template <class Read>
HurrayStatus with(const HurrayDescriptor* handle, Read&& read, Codes codes) noexcept {
  const HurrayStatus status = own(handle, "handle");
  if (status != HURRAY_OK) return status;
  return contained(codes, [&] { return static_cast<HurrayStatus>(read(state(*handle))); });
}

/// One output value: `read` returns it, and nothing can fail.
template <class Out, class Read>
HurrayStatus get(const HurrayDescriptor* handle, Out* out, Read&& read) noexcept {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) {
        *out = static_cast<Out>(read(s.value));
        return HURRAY_OK;
      },
      Codes::published);
}

HurrayStatus absent(std::string_view what) noexcept { return fail(HURRAY_ERR_NOT_FOUND, what); }

HurrayStatus dynamic_shape() noexcept {
  return fail(HURRAY_ERR_UNSUPPORTED, "the shape has dynamic dimensions: it cannot be counted");
}

/// Where a part lies in the encoding.
struct Part {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
/// The layout's fields.
hurray::Result<Part> layout_fields(const Shape& shape, std::span<const std::byte> bytes) {
  constexpr std::uint64_t before_shape = 20, byte_offset = 8;
  Part part{.offset = before_shape + 8 * std::uint64_t{shape.rank()} + byte_offset};
  const auto described =
      describe(bytes,
               [&](const FieldRow& row) {
                 if (row.name == "buffer_count") part.size = row.offset - part.offset;
               },
               {.max_descriptor_bytes = std::numeric_limits<std::uint32_t>::max(),
                .permissive = true,
                .agreed = {.all = true}});
  if (!described) return described.error();
  return part;
}
hurray::Result<Part> layout_fields(const DescriptorState& s) {
  return layout_fields(s.value.shape, std::as_bytes(std::span(s.bytes)));
}

/// Wire bytes of a descriptor, put together from its parts.
class Assembly {
 public:
  bool add(const void* bytes, std::uint64_t size) {
    if (size == 0) return true;
    if (size > most - bytes_.size()) return false;
    const auto* begin = static_cast<const std::byte*>(bytes);
    bytes_.insert(bytes_.end(), begin, begin + size);
    return true;
  }
  template <class T>
  void number(T value) {
    std::array<std::byte, sizeof value> raw;
    detail::store(raw.data(), value);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  static constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::byte> bytes_;
};

/// Bytes of the fields of a layout whose rank settles them (01-descriptor.md section 3.4).
constexpr std::uint64_t not_fixed = std::numeric_limits<std::uint64_t>::max();
std::uint64_t fixed_layout_bytes(const HurrayDescriptorInit& init) noexcept {
  const std::uint64_t rank = init.rank;
  switch (init.layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
    case HURRAY_LAYOUT_COL_MAJOR:
      return 0;
    case HURRAY_LAYOUT_STRIDED:
      return 8 * rank;
    case HURRAY_LAYOUT_MORTON:
      return 4 * rank;
    case HURRAY_LAYOUT_COO:
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
      return 16;
    case HURRAY_LAYOUT_CSF:
      return 16 + 4 * rank;
    case HURRAY_LAYOUT_BLOCK_PAGED:
      return 32;
    case HURRAY_LAYOUT_COMPOSITE:
    case HURRAY_LAYOUT_HILBERT:
      return 8;
    default:
      return not_fixed;
  }
}

/// An optional section of `HurrayDescriptorInit`.
struct Section {
  Flag flag;
  const std::uint8_t* bytes;
  std::uint64_t size;
  std::string_view name;
  std::uint64_t expected;  ///< Its size, where the format fixes it.
};

HurrayStatus assemble(const HurrayDescriptorInit& init, std::vector<std::byte>& out) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  const std::array sections{
      Section{Flag::quantization, init.quantization, init.quantization_length, "quantization", any},
      Section{Flag::shard, init.shard, init.shard_length, "shard", 16 * std::uint64_t{init.rank}},
      Section{Flag::statistics, init.statistics, init.statistics_length, "statistics", 72},
      Section{Flag::extension_type, init.extension_type, init.extension_type_length,
              "extension_type", 20},
      Section{Flag::composite_member, init.composite_member, init.composite_member_length,
              "composite_member", 16},
  };
  if (init.shape == nullptr && init.rank != 0) return null_pointer("init->shape");
  if (init.buffers == nullptr && init.buffer_count != 0) return null_pointer("init->buffers");
  if (init.layout_fields == nullptr && init.layout_fields_length != 0)
    return null_pointer("init->layout_fields");
  const auto invalid = [](const std::string& message) {
    return fail(HURRAY_ERR_INVALID_LAYOUT, message);
  };
  if (init.reserved[0] != 0 || init.reserved[1] != 0)
    return fail(HURRAY_ERR_INVALID_ARGUMENT, "reserved: expected 0");
  if (init.rank > max_rank)
    return invalid("rank: expected at most 64, found " + std::to_string(init.rank));
  if (init.buffer_count > 255)
    return invalid("buffer_count: expected at most 255, found " +
                   std::to_string(init.buffer_count));
  std::uint32_t flags = 0;
  for (const Section& section : sections) {
    if (section.bytes == nullptr) {
      if (section.size != 0) return null_pointer("init->" + std::string(section.name));
      continue;
    }
    if (section.expected != any && section.size != section.expected)
      return invalid(std::string(section.name) + "_length: expected " +
                     std::to_string(section.expected) + " bytes, found " +
                     std::to_string(section.size));
    flags |= static_cast<std::uint32_t>(section.flag);
  }

  Assembly wire;
  wire.add(magic.data(), magic.size());
  wire.number(Version{}.major);
  wire.number(Version{}.minor);
  const std::size_t at_length = wire.bytes().size();
  wire.number(std::uint32_t{0});
  wire.number(flags);
  wire.number(init.element_type_tag);
  wire.number(init.layout_tag);
  wire.number(init.rank);
  for (std::uint32_t k = 0; k < init.rank; ++k) wire.number(init.shape[k]);
  wire.number(init.byte_offset);
  bool fits = wire.add(init.layout_fields, init.layout_fields_length);
  wire.number(static_cast<std::uint8_t>(init.buffer_count));
  for (std::uint32_t i = 0; i < init.buffer_count; ++i) {
    const HurrayBufferInfo& handle = init.buffers[i];
    wire.number(handle.byte_size);
    wire.number(handle.alignment);
    wire.number(handle.device_tag);
    wire.number(handle.sync_mode);
    wire.number(handle.memory_class);
    wire.number(handle.reserved);
  }
  for (const Section& section : sections) {
    if (section.bytes == nullptr) continue;
    if (section.flag == Flag::quantization) {
      if (section.size > std::numeric_limits<std::uint32_t>::max()) fits = false;
      wire.number(static_cast<std::uint32_t>(section.size));
    }
    fits = fits && wire.add(section.bytes, section.size);
  }
  if (!fits || wire.bytes().size() > DecodeOptions{}.max_descriptor_bytes)
    return fail(HURRAY_ERR_LIMIT_EXCEEDED,
                "the descriptor would have more than " +
                    std::to_string(DecodeOptions{}.max_descriptor_bytes) + " bytes");
  detail::store(wire.bytes().data() + at_length, static_cast<std::uint32_t>(wire.bytes().size()));
  out = std::move(wire.bytes());
  return HURRAY_OK;
}

HurrayStatus decode_handle(Codes codes, const std::uint8_t* bytes, std::size_t len,
                           const DecodeOptions& options, HurrayDescriptor** out) noexcept {
  return contained(codes, [&] {
    const std::span given(reinterpret_cast<const std::byte*>(bytes), len);
    auto value = decode(given, options);
    if (!value) return fail(codes, value.error());
    const auto length = descriptor_length(given, options);
    if (!length) return fail(codes, length.error());
    *out = to_handle(*std::move(value), given.first(*length)).release();
    return HurrayStatus{HURRAY_OK};
  });
}

}  // namespace

namespace hurray::c {

Owned<HurrayDescriptor> to_handle(Descriptor value, std::span<const std::byte> bytes) {
  Owned<HurrayDescriptor> handle(make<HurrayDescriptor>());
  DescriptorState& s = state(*handle);
  s.value = std::move(value);
  s.bytes.assign({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return handle;
}

}  // namespace hurray::c

HurrayStatus hurray_descriptor_decode(const uint8_t* bytes, uintptr_t len,
                                      HurrayDescriptor** out_handle) {
  if (bytes == nullptr) return null_pointer("bytes");
  if (out_handle == nullptr) return null_pointer("out_handle");
  return decode_handle(Codes::published, bytes, len, {}, out_handle);
}

HurrayStatus hurray_descriptor_decode_with(const uint8_t* bytes, uint64_t len,
                                           const HurrayDecodeOptions* options,
                                           HurrayDescriptor** out_handle) {
  if (bytes == nullptr) return null_pointer("bytes");
  if (out_handle == nullptr) return null_pointer("out_handle");
  HurrayDecodeOptions o;
  const HurrayStatus status = read_options(options, o);
  if (status != HURRAY_OK) return status;
  const auto size = to_size(len);
  if (!size) return fail(HURRAY_ERR_INVALID_ARGUMENT, "len: more than this machine can address");
  DecodeOptions decoding;
  if (o.max_descriptor_bytes != 0) decoding.max_descriptor_bytes = o.max_descriptor_bytes;
  decoding.permissive = o.permissive != 0;
  decoding.agreed.all = o.private_values != 0;
  decoding.cross_machine = o.cross_machine != 0;
  return decode_handle(Codes::added, bytes, *size, decoding, out_handle);
}

HurrayStatus hurray_descriptor_new(const HurrayDescriptorInit* init,
                                   HurrayDescriptor** out_handle) {
  if (init == nullptr) return null_pointer("init");
  if (out_handle == nullptr) return null_pointer("out_handle");
  return contained(Codes::added, [&] {
    HurrayDescriptorInit known;
    HurrayStatus status = read_options(init, known);
    if (status != HURRAY_OK) return status;
    std::vector<std::byte> bytes;
    status = assemble(known, bytes);
    if (status != HURRAY_OK) return status;
    if (const std::uint64_t expected = fixed_layout_bytes(known);
        expected != known.layout_fields_length && expected != not_fixed)
      return fail(HURRAY_ERR_INVALID_LAYOUT, "layout_fields_length: expected " +
                                                 std::to_string(expected) + ", found " +
                                                 std::to_string(known.layout_fields_length));
    auto value = decode(bytes, {.agreed = {.all = true}});
    if (!value) return fail(Codes::added, value.error());
    const auto part = layout_fields(value->shape, bytes);
    if (!part) return fail(Codes::added, part.error());
    if (part->size != known.layout_fields_length || value->buffers.size() != known.buffer_count)
      return fail(HURRAY_ERR_INVALID_LAYOUT,
                  "layout_fields_length: the fields in these bytes take " +
                      std::to_string(part->size) + ", not " +
                      std::to_string(known.layout_fields_length));
    *out_handle = to_handle(*std::move(value), bytes).release();
    return HurrayStatus{HURRAY_OK};
  });
}

HurrayStatus hurray_descriptor_destroy(HurrayDescriptor* handle) {
  const HurrayStatus status = own(handle, "handle");
  if (status != HURRAY_OK) return status;
  end(handle);
  return HURRAY_OK;
}

HurrayStatus hurray_descriptor_rank(const HurrayDescriptor* handle, uint32_t* out) {
  return get(handle, out, [](const Descriptor& d) { return d.shape.rank(); });
}

HurrayStatus hurray_descriptor_element_type_tag(const HurrayDescriptor* handle, uint8_t* out) {
  return get(handle, out, [](const Descriptor& d) { return d.dtype; });
}

HurrayStatus hurray_descriptor_layout_tag(const HurrayDescriptor* handle, uint8_t* out) {
  return get(handle, out, [](const Descriptor& d) { return tag(d.layout); });
}

HurrayStatus hurray_descriptor_byte_offset(const HurrayDescriptor* handle, uint64_t* out) {
  return get(handle, out, [](const Descriptor& d) { return d.byte_offset; });
}

HurrayStatus hurray_descriptor_buffer_count(const HurrayDescriptor* handle, uint32_t* out) {
  return get(handle, out, [](const Descriptor& d) { return d.buffers.size(); });
}

HurrayStatus hurray_descriptor_shape(const HurrayDescriptor* handle, uint64_t* out_dims,
                                     uintptr_t* out_rank) {
  if (handle == nullptr) return null_pointer("handle");
  if (out_rank == nullptr) return null_pointer("out_rank");
  return with(
      handle,
      [&](const DescriptorState& s) {
        const Shape& shape = s.value.shape;
        const HurrayStatus status = fits(out_dims, out_rank, shape.rank());
        if (status == HURRAY_OK) std::ranges::copy(shape, out_dims);
        return status;
      },
      Codes::published);
}

HurrayStatus hurray_descriptor_encode(const HurrayDescriptor* handle, uint8_t* out, uint64_t* len) {
  if (handle == nullptr) return null_pointer("handle");
  if (len == nullptr) return null_pointer("len");
  return with(
      handle,
      [&](const DescriptorState& s) {
        const HurrayStatus status = fits(out, len, s.bytes.size());
        if (status == HURRAY_OK) std::ranges::copy(s.bytes, out);
        return status;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_version(const HurrayDescriptor* handle, uint8_t* major,
                                       uint8_t* minor) {
  if (handle == nullptr) return null_pointer("handle");
  if (major == nullptr) return null_pointer("major");
  if (minor == nullptr) return null_pointer("minor");
  return with(
      handle,
      [&](const DescriptorState& s) {
        *major = s.value.version.major;
        *minor = s.value.version.minor;
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_flags(const HurrayDescriptor* handle, uint32_t* out) {
  return get(handle, out, [](const Descriptor& d) { return d.sections(); });
}

HurrayStatus hurray_descriptor_buffer(const HurrayDescriptor* handle, uint32_t i,
                                      HurrayBufferInfo* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        if (i >= s.value.buffers.size())
          return fail(HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "i: the descriptor has " +
                                                          std::to_string(s.value.buffers.size()) +
                                                          " buffers, found " + std::to_string(i));
        const BufferHandle& row = s.value.buffers[i];
        *out = {.byte_size = row.byte_size,
                .alignment = row.alignment,
                .device_tag = static_cast<std::uint8_t>(row.device),
                .sync_mode = static_cast<std::uint8_t>(row.sync_mode),
                .memory_class = static_cast<std::uint8_t>(row.memory_class),
                .reserved = 0};
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_layout_bytes(const HurrayDescriptor* handle, const uint8_t** out,
                                            uint64_t* len) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  if (len == nullptr) return null_pointer("len");
  return with(
      handle,
      [&](const DescriptorState& s) {
        const auto part = layout_fields(s);
        if (!part) return fail(Codes::added, part.error());
        *out = part->size != 0 ? s.bytes.data() + part->offset : nullptr;
        *len = part->size;
        return HurrayStatus{HURRAY_OK};
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_quantization_bytes(const HurrayDescriptor* handle,
                                                  const uint8_t** out, uint64_t* len) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  if (len == nullptr) return null_pointer("len");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        if (s.value.quantization() == nullptr) return absent("the tensor is not quantized");
        constexpr std::uint64_t handle_bytes = 16;
        const auto layout = layout_fields(s);
        if (!layout) return fail(Codes::added, layout.error());
        const std::uint64_t at_length =
            layout->offset + layout->size + 1 + handle_bytes * s.value.buffers.size();
        const std::uint8_t* length = s.bytes.data() + at_length;
        *out = length + sizeof(std::uint32_t);
        *len = detail::load<std::uint32_t>(reinterpret_cast<const std::byte*>(length));
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_strides(const HurrayDescriptor* handle, int64_t* out,
                                       uintptr_t* rank) {
  if (handle == nullptr) return null_pointer("handle");
  if (rank == nullptr) return null_pointer("rank");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        return std::visit(
            [&]<class T>(const T& layout) -> HurrayStatus {
              if constexpr (requires { layout.strides_for(s.value.shape); }) {
                if constexpr (!std::is_same_v<T, Strided>)
                  if (s.value.shape.is_dynamic()) return dynamic_shape();
                const auto strides = layout.strides_for(s.value.shape);
                const HurrayStatus status = fits(out, rank, strides.size());
                if (status == HURRAY_OK) std::ranges::copy(strides, out);
                return status;
              } else {
                return absent("only row-major, column-major and strided tensors have strides");
              }
            },
            s.value.layout);
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_nnz(const HurrayDescriptor* handle, uint64_t* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        return std::visit(
            [&]<class T>(const T& layout) -> HurrayStatus {
              if constexpr (SparseLayout<T>) {
                *out = layout.nnz;
                return HURRAY_OK;
              } else {
                return absent("only sparse layouts have nnz");
              }
            },
            s.value.layout);
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_composite(const HurrayDescriptor* handle, uint8_t* rule, uint8_t* op,
                                         uint32_t* members) {
  if (handle == nullptr) return null_pointer("handle");
  if (rule == nullptr) return null_pointer("rule");
  if (op == nullptr) return null_pointer("op");
  if (members == nullptr) return null_pointer("members");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        const auto* head = std::get_if<CompositeHead>(&s.value.layout);
        if (head == nullptr) return absent("the tensor is not a composite head");
        *rule = static_cast<std::uint8_t>(head->rule);
        *op = static_cast<std::uint8_t>(head->combine_op);
        *members = head->member_count;
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_member_role(const HurrayDescriptor* handle, uint8_t* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        if (s.value.member_role() == nullptr) return absent("the tensor has no member role");
        *out = static_cast<std::uint8_t>(*s.value.member_role());
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_shard(const HurrayDescriptor* handle, uint64_t* parent_shape,
                                     uint64_t* shard_offset, uintptr_t* rank) {
  if (handle == nullptr) return null_pointer("handle");
  if (rank == nullptr) return null_pointer("rank");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        const Shard* shard = s.value.shard();
        if (shard == nullptr) return absent("the tensor has no shard section");
        const void* both = parent_shape != nullptr ? shard_offset : nullptr;
        const HurrayStatus status = fits(both, rank, s.value.shape.rank());
        if (status != HURRAY_OK) return status;
        std::ranges::copy(shard->parent_shape(), parent_shape);
        std::ranges::copy(shard->shard_offset(), shard_offset);
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_statistics(const HurrayDescriptor* handle, HurrayStatistics* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        const Statistics* known = s.value.statistics();
        if (known == nullptr) return absent("the tensor has no statistics");
        *out = {.computed_mask = known->computed_mask,
                .reserved = 0,
                .nnz = known->nnz,
                .sparsity_ratio = known->sparsity_ratio,
                .value_min = known->value_min,
                .value_max = known->value_max,
                .value_abs_max = known->value_abs_max,
                .value_mean = known->value_mean,
                .value_stddev = known->value_stddev,
                .nm_n = known->nm_n,
                .nm_m = known->nm_m,
                .has_nan = known->has_nan,
                .has_inf = known->has_inf,
                .reserved_end = {}};
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_extension_type(const HurrayDescriptor* handle,
                                              HurrayExtensionType* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        const ExtensionType* type = s.value.extension_type();
        if (type == nullptr) return absent("the element type is not private");
        *out = {.bit_width = type->bit_width,
                .packing_factor = type->packing_factor,
                .is_float = type->is_float,
                .is_signed = type->is_signed,
                .sign_bits = type->sign_bits,
                .exponent_bits = type->exponent_bits,
                .mantissa_bits = type->mantissa_bits,
                .reserved = {},
                .exponent_bias = type->exponent_bias,
                .has_nan = type->has_nan,
                .has_inf = type->has_inf,
                .reserved_end = {}};
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_element_count(const HurrayDescriptor* handle, uint64_t* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        if (s.value.shape.is_dynamic()) return dynamic_shape();
        *out = s.value.shape.count();
        return HURRAY_OK;
      },
      Codes::added);
}

HurrayStatus hurray_descriptor_required_bytes(const HurrayDescriptor* handle, uint32_t buffer,
                                              uint64_t* out) {
  if (handle == nullptr) return null_pointer("handle");
  if (out == nullptr) return null_pointer("out");
  return with(
      handle,
      [&](const DescriptorState& s) -> HurrayStatus {
        if (buffer >= s.value.buffers.size())
          return fail(HURRAY_ERR_INDEX_OUT_OF_BOUNDS,
                      "buffer: the descriptor has " + std::to_string(s.value.buffers.size()) +
                          " buffers, found " + std::to_string(buffer));
        if (s.value.shape.is_dynamic()) return dynamic_shape();
        const auto bytes = required_bytes(s.value, buffer);
        if (!bytes) return fail(Codes::added, bytes.error());
        *out = *bytes;
        return HURRAY_OK;
      },
      Codes::added);
}
