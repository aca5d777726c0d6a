#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "hurray/descriptor.hpp"

namespace hurray {

/// The quantization section with rows 45 to 53 of 01-descriptor.md section 6, and what its schemes'
/// field lists ask of the tensor around them.
class QuantizationFields {
 public:
  QuantizationFields(const Descriptor& descriptor, const DecodeOptions& options) noexcept
      : descriptor_(&descriptor),
        layout_(&descriptor.layout),
        buffers_of_(&descriptor),
        options_(options) {}
  /// A scheme of which nothing is asked but that its fields hold and that its buffers are those of
  /// the tensor, whether or not it fits type and shape.
  static QuantizationFields unfit(const Descriptor& descriptor,
                                  const DecodeOptions& options) noexcept {
    QuantizationFields fields(nullptr, options);
    fields.buffers_of_ = &descriptor;
    return fields;
  }
  /// A scheme alone: of the tensor that it will belong to at most the layout is known, and rules
  /// that ask for more are left out.
  QuantizationFields(const Layout* layout, const DecodeOptions& options) noexcept
      : layout_(layout), options_(options) {}

  template <class Q, class Io>
  void run(Q& q, Io& io) {
    std::uint32_t length = payload_bytes(q);
    io("quantization_length", length);
    at_length_ = io.last();
    payload(q, length, io);
  }

  /// Bytes from `scheme_tag` on.
  static std::uint32_t payload_bytes(const Quantization& q) noexcept {
    const SchemeInfo* row = info(hurray::tag(q.scheme));
    return (row != nullptr ? row->payload_bytes : header_bytes) +
           static_cast<std::uint32_t>(q.rest.size());
  }

  /// The section without its length.
  template <class Q, class Io>
  void payload(Q& q, std::uint32_t length, Io& io) {
    io.check(length >= header_bytes, [&] { return too_short(header_bytes, length); });
    if constexpr (Io::reads)
      io.check(length <= io.left(), [&] {
        return Error{.code = Errc::truncated,
                     .expect = Expect::exactly,
                     .field = "quantization",
                     .what = "bytes",
                     .offset = io.position(),
                     .expected = length,
                     .found = io.left()};
      });
    SchemeTag tag = hurray::tag(q.scheme);
    io("quantization.scheme_tag", tag);
    at_tag_ = io.last();
    const auto raw = static_cast<std::uint8_t>(tag);
    const bool never = raw == 0x00 || raw == 0xFF;
    row_ = info(tag);
    const bool agreed = is_private(raw) && options_.agreed.has(options_.agreed.schemes, raw);
    io.check(!never && (row_ != nullptr || agreed || options_.permissive),
             [&] { return unassigned("quantization.scheme_tag", raw); });
    if (!io.ok()) return;
    if constexpr (Io::reads) select(q.scheme, tag);
    if (row_ == nullptr)
      opaque(*std::get_if<OpaqueScheme>(&q.scheme), io);
    else
      assigned(q.scheme, length, io);
    io.opaque(row_ == nullptr ? "quantization.payload" : "quantization.padding", q.rest,
              length - (io.position() - at_tag_));
  }

  // What a scheme's own field list asks.

  void axis(auto& value, auto& io) const {
    io("quantization.axis", value);
    if (const auto rank = known_rank()) {
      io.check(value < *rank, [&] {
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::as_said,
                     .field = "quantization.axis",
                     .what = "a dimension of the tensor",
                     .found = value};
      });
    }
    if (!io.ok()) return;
    io.check(descriptor_ == nullptr || descriptor_->shape[value] != dynamic, [&] {
      return Error{.code = Errc::inconsistent,
                   .field = "quantization.axis",
                   .what = "the quantized dimension has no dynamic size"};
    });
    if (!is_paged()) return;
    const bool by_block = row_->tag == SchemeTag::per_block_affine;
    io.check(by_block ? value == 0 : value != 0, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "quantization.axis",
                   .what = by_block ? std::string_view("0 (tokens) for blocks of a paged tensor")
                                    : std::string_view("1 or 2 for channels of a paged tensor"),
                   .found = value};
    });
  }

  void block_size(auto& value, std::uint32_t axis, auto& io) const {
    io("quantization.block_size", value);
    io.check(std::has_single_bit(value) && value >= row_->min_block && value <= row_->max_block,
             [&] {
               return Error{.code = Errc::invalid_value,
                            .expect = Expect::as_said,
                            .field = "quantization.block_size",
                            .what = row_->tag == SchemeTag::mxfp
                                        ? std::string_view("a power of two from 16 to 2048")
                                    : row_->tag == SchemeTag::nf4
                                        ? std::string_view("a power of two from 8 up")
                                        : std::string_view("a power of two from 2 up"),
                            .found = value};
             });
    if (!io.ok()) return;
    if (const auto* paged = layout_ != nullptr ? std::get_if<BlockPaged>(layout_) : nullptr) {
      io.check(value == paged->page_size, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = "quantization.block_size",
                     .what = "(page_size)",
                     .expected = paged->page_size,
                     .found = value};
      });
      return;
    }
    if (descriptor_ == nullptr) return;
    const std::uint64_t size = descriptor_->shape[axis];
    if (row_->tag == SchemeTag::mxfp) {
      io.check(size != 0 && size % value == 0, [&] {
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::as_said,
                     .field = "quantization.block_size",
                     .what = "a size of the quantized dimension that is a multiple of it",
                     .found = size};
      });
      return;
    }
    io.check(size == 0 || value <= size, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_most,
                   .field = "quantization.block_size",
                   .what = "(the size of the quantized dimension)",
                   .expected = size,
                   .found = value};
    });
  }

  void buffer(Field field, auto& value, auto& io) const {
    io(field, value);
    judge_buffer(field, value, io);
  }

  void zero_point_buffer(auto& value, auto& io) const {
    constexpr Field field = "quantization.zero_point_buffer_index";
    io(field, value);
    io.check(symmetric_ == (value == no_buffer), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = field.name,
                   .what = symmetric_ ? std::string_view("4294967295 (none) beside SYMMETRIC")
                                      : std::string_view("a buffer, without SYMMETRIC"),
                   .found = value};
    });
    if (value != no_buffer) judge_buffer(field, value, io);
  }

  template <DType... Allowed>
  void scale_type(auto& value, auto& io) const {
    io("quantization.scale_type_tag", value);
    io.check(((value == Allowed) || ...), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::as_said,
                   .field = "quantization.scale_type_tag",
                   .what = sizeof...(Allowed) == 1
                               ? std::string_view("3 (float32)")
                               : std::string_view("1 (float16), 2 (bfloat16) or 3 (float32)"),
                   .found = static_cast<std::uint64_t>(value)};
    });
  }

  void zero_point(std::int32_t value, auto& io) const {
    if (descriptor_ == nullptr) return;
    const auto range = zero_point_range(descriptor_->dtype);
    io.check(!range || (value >= range->least && value <= range->most), [&] {
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::signed_as_said,
                   .field = "quantization.zero_point",
                   .what = "a value of the storage type",
                   .found = static_cast<std::uint64_t>(std::int64_t{value})};
    });
  }

 private:
  static constexpr std::uint32_t header_bytes = 4;
  static constexpr std::uint8_t known_version = 1;

  void judge_buffer(Field field, std::uint32_t value, auto& io) const {
    const std::size_t count = buffers_of_ != nullptr ? buffers_of_->buffers.size() : no_buffer;
    io.check(value < count, [&] {
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::as_said,
                   .field = field.name,
                   .what = "the index of one of the buffers",
                   .found = value};
    });
    if (buffers_of_ == nullptr) return;
    const std::size_t own = own_buffers(info(buffers_of_->layout), buffers_of_->shape.rank());
    io.check(value >= own, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_least,
                   .field = field.name,
                   .what = "since the buffers before are the layout's own",
                   .expected = own,
                   .found = value};
    });
  }

  bool is_paged() const noexcept {
    return layout_ != nullptr && std::holds_alternative<BlockPaged>(*layout_);
  }

  std::optional<std::size_t> known_rank() const noexcept {
    if (descriptor_ != nullptr) return descriptor_->shape.rank();
    if (is_paged()) return info(LayoutTag::block_paged)->max_rank;
    return std::nullopt;
  }

  template <std::size_t I = 0>
  static void select(Scheme& scheme, SchemeTag tag) noexcept {
    if constexpr (I + 1 < std::variant_size_v<Scheme>) {
      if (std::variant_alternative_t<I, Scheme>::tag != tag) return select<I + 1>(scheme, tag);
      scheme.emplace<I>();
    } else {
      scheme.emplace<OpaqueScheme>().tag = tag;
    }
  }

  Error too_short(std::uint64_t least, std::uint64_t found) const noexcept {
    return {.code = Errc::length_mismatch,
            .expect = Expect::at_least,
            .field = "quantization_length",
            .what = least == header_bytes ? std::string_view("bytes")
                                          : std::string_view("bytes for this scheme"),
            .offset = at_length_,
            .expected = least,
            .found = found};
  }

  /// An unknown element type hides whether the scheme goes with it.
  bool stores() const noexcept {
    if (descriptor_ == nullptr) return true;
    const DType dtype = descriptor_->dtype;
    const bool known = info(dtype) != nullptr || is_private(static_cast<std::uint8_t>(dtype));
    return !known || row_->stores(dtype);
  }

  template <class Io>
  void opaque(auto& scheme, Io& io) const {
    io("quantization.scheme_version", scheme.version);
    io("quantization.flags", scheme.flags);
  }

  template <class Io>
  void assigned(auto& scheme, std::uint32_t length, Io& io) {
    io.check(length >= row_->payload_bytes, [&] { return too_short(row_->payload_bytes, length); });
    std::uint8_t version = known_version;
    io("quantization.scheme_version", version);
    io.check(version == known_version, [&] {
      return Error{.code = Errc::unsupported_version,
                   .expect = Expect::exactly,
                   .field = "quantization.scheme_version",
                   .expected = known_version,
                   .found = version};
    });
    std::uint16_t bits = 0;
    if constexpr (!Io::reads)
      if (parameters(scheme).zero_point_buffer == no_buffer) bits = row_->flags;
    io.bits("quantization.flags", bits, scheme_flags);
    io.check((bits & ~row_->flags) == 0, [&] {
      return Error{.code = Errc::reserved_bits,
                   .expect = Expect::exactly,
                   .field = "quantization.flags",
                   .what = "in the bits that this scheme does not define",
                   .expected = 0,
                   .found = static_cast<std::uint64_t>(bits & ~row_->flags)};
    });
    symmetric_ = bits != 0;
    io.check(stores(), [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "quantization.scheme_tag",
                   .what = "a scheme for this element type",
                   .offset = at_tag_,
                   .found = static_cast<std::uint64_t>(row_->tag)};
    });
    io.check(!is_paged() || row_->tag <= SchemeTag::per_block_affine, [&] {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .field = "quantization.scheme_tag",
                   .what = "an affine scheme for a paged tensor",
                   .offset = at_tag_,
                   .found = static_cast<std::uint64_t>(row_->tag)};
    });
    if (!io.ok()) return;
    std::visit(
        [&]<class S>(S& alternative) {
          if constexpr (!std::is_same_v<std::remove_const_t<S>, OpaqueScheme>)
            alternative.fields(alternative, io, *this);
        },
        scheme);
  }

  const Descriptor* descriptor_ = nullptr;
  const Layout* layout_ = nullptr;
  const Descriptor* buffers_of_ = nullptr;
  const DecodeOptions& options_;
  const SchemeInfo* row_ = nullptr;
  std::uint64_t at_length_ = 0;
  std::uint64_t at_tag_ = 0;
  bool symmetric_ = false;
};

}  // namespace hurray
