#include "hurray/quantization.hpp"

#include <algorithm>

#include "hurray/checked.hpp"
#include "quantization_fields.hpp"

namespace hurray {
namespace {

/// There is no descriptor whose bytes an offset could count.
Error alone(Error error) noexcept {
  error.offset = Error::no_offset;
  return error;
}

}  // namespace

Result<void> validate(const Quantization& quantization, const Layout* layout,
                      const EncodeOptions& options) {
  Sizer io;
  const DecodeOptions rules = rules_of(options);
  QuantizationFields(layout, rules)
      .payload(quantization, QuantizationFields::payload_bytes(quantization), io);
  if (!io.ok()) return alone(io.error());
  return {};
}

Result<std::vector<std::byte>> encode(const Quantization& quantization,
                                      const EncodeOptions& options) {
  return contain(Origin::descriptor, [&]() -> Result<std::vector<std::byte>> {
    if (auto valid = validate(quantization, nullptr, options); !valid) return valid.error();
    const std::uint32_t length = QuantizationFields::payload_bytes(quantization);
    std::vector<std::byte> bytes(length);
    Writer io(bytes);
    const DecodeOptions rules = rules_of(options);
    QuantizationFields(nullptr, rules).payload(quantization, length, io);
    return bytes;
  });
}

Result<Quantization> decode_quantization(std::span<const std::byte> payload,
                                         const DecodeOptions& options) {
  return contain(Origin::descriptor, [&]() -> Result<Quantization> {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    const std::size_t length = std::min(payload.size(), most);
    Quantization quantization;
    Reader io(payload.first(length));
    QuantizationFields(nullptr, options)
        .payload(quantization, static_cast<std::uint32_t>(length), io);
    if (!io.ok()) return alone(io.error());
    return quantization;
  });
}

SchemeParameters parameters(const Scheme& scheme) noexcept {
  return std::visit(
      []<class S>(const S& s) -> SchemeParameters {
        SchemeParameters all;
        if constexpr (requires { s.axis; }) {
          all.axis = s.axis;
          all.scale_buffer = s.scale_buffer_index;
          all.scale_type = s.scale_type;
        }
        if constexpr (requires { s.block_size; }) all.block_size = s.block_size;
        if constexpr (requires { s.zero_point_buffer_index; })
          all.zero_point_buffer = s.zero_point_buffer_index;
        return all;
      },
      scheme);
}

std::optional<std::uint64_t> parameter_entries(const Scheme& scheme, const Shape& shape,
                                               const Layout& layout) noexcept {
  const SchemeParameters of = parameters(scheme);
  if (!of.axis) return 0;
  if (*of.axis >= shape.rank()) return std::nullopt;
  if (of.block_size == 0) return shape[*of.axis];
  if (const auto* paged = std::get_if<BlockPaged>(&layout))
    return checked_mul<std::uint64_t>(paged->num_pages, paged->page_size);
  const std::uint64_t size = shape[*of.axis];
  std::optional<std::uint64_t> entries = size / of.block_size + (size % of.block_size != 0);
  for (std::size_t k = 0; k < shape.rank(); ++k)
    if (shape[k] == 0) return 0;
  for (std::size_t k = 0; k < shape.rank() && entries; ++k)
    if (k != *of.axis) entries = checked_mul(*entries, shape[k]);
  return entries;
}

std::optional<ZeroPointRange> zero_point_range(DType storage) noexcept {
  const DTypeInfo* row = info(storage);
  if (row == nullptr || row->bits > 32) return std::nullopt;
  const auto values = std::int64_t{1} << row->bits;
  if (row->kind == Kind::integer)
    return ZeroPointRange{static_cast<std::int32_t>(-values / 2),
                          static_cast<std::int32_t>(values / 2 - 1)};
  if (row->kind != Kind::unsigned_integer) return std::nullopt;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return ZeroPointRange{0, static_cast<std::int32_t>(std::min(values - 1, most))};
}

}  // namespace hurray
