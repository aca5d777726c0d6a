#include "hurray/builder.hpp"

#include <algorithm>
#include <limits>

#include "hurray/checked.hpp"

namespace hurray {
namespace {

std::optional<ElementRange> range_of(const Descriptor& d) noexcept {
  return std::visit(
      [&]<class T>(const T& layout) -> std::optional<ElementRange> {
        if constexpr (DenseLayout<T>) return layout.range(d.shape);
        return std::nullopt;
      },
      d.layout);
}

/// Elements that a short last block lacks; 0 without one.
std::uint64_t missing_from_block(const Descriptor& d) noexcept {
  if (d.quantization() == nullptr) return 0;
  const SchemeParameters of = parameters(d.quantization()->scheme);
  if (!of.axis || of.block_size == 0 || *of.axis >= d.shape.rank()) return 0;
  const std::uint64_t rest = d.shape[*of.axis] % of.block_size;
  return rest == 0 ? 0 : of.block_size - rest;
}

/// Bytes before `byte_offset` that the layout reaches back to.
std::uint64_t reach_back(const Descriptor& d) noexcept {
  if (d.shape.is_dynamic() || d.shape.is_empty()) return 0;
  const auto range = range_of(d);
  if (!range || range->lo == 0) return 0;
  return packed_bytes(element_bits(d), ~static_cast<std::uint64_t>(range->lo) + 1).value_or(0);
}

}  // namespace

Result<std::uint64_t> written_bytes(const Descriptor& d) {
  auto need = required_bytes(d, 0);
  if (!need || !is_dense(d.layout) || d.shape.is_dynamic() || d.shape.is_empty()) return need;
  const std::uint64_t missing = missing_from_block(d);
  const auto range = range_of(d);
  if (missing == 0 || !range || range->lo < 0) return need;
  const auto slots = checked_add(static_cast<std::uint64_t>(range->hi) + 1, missing);
  const auto bytes = slots ? packed_bytes(element_bits(d), *slots) : std::nullopt;
  const auto whole = bytes ? checked_add(*bytes, d.byte_offset) : std::nullopt;
  if (!whole)
    return Error{.code = Errc::overflow,
                 .index = 0,
                 .field = "buffers[].byte_size",
                 .what = "the buffer would be larger than 2^64 - 1 bytes"};
  return *whole;
}

DescriptorBuilder DescriptorBuilder::hilbert(DType dtype, std::uint32_t order, std::uint32_t rank) {
  Shape shape;
  shape.resize(std::min(rank, max_rank));
  std::ranges::fill(shape, order < 64 ? std::uint64_t{1} << order : 0);
  return {dtype, std::move(shape), Hilbert{.order = order, .rank = rank}};
}

DescriptorBuilder DescriptorBuilder::csf(DType dtype, Shape shape,
                                         std::span<const std::uint32_t> mode_order,
                                         std::span<const std::uint64_t> nodes) {
  Csf layout;
  layout.nnz = nodes.empty() ? 0 : nodes.back();
  layout.mode_order.assign(mode_order);
  const std::size_t rank = shape.rank();
  DescriptorBuilder builder(dtype, std::move(shape), std::move(layout));
  if (nodes.size() != rank)
    builder.error_ = Error{.code = Errc::inconsistent,
                           .expect = Expect::exactly,
                           .field = "nodes",
                           .what = "node counts, one per level",
                           .expected = rank,
                           .found = nodes.size()};
  std::uint64_t parents = 1;
  for (std::size_t level = 0; level < nodes.size(); ++level) {
    const auto pointers = uint64_bytes(checked_add<std::uint64_t>(parents, 1));
    const auto coordinates = uint64_bytes(nodes[level]);
    constexpr auto too_many = std::numeric_limits<std::uint64_t>::max();
    builder.buffer_bytes(2 * level + 1, pointers.value_or(too_many));
    builder.buffer_bytes(2 * level + 2, coordinates.value_or(too_many));
    parents = nodes[level];
  }
  return builder;
}

DescriptorBuilder DescriptorBuilder::block_paged(DType dtype, Shape shape, BlockPaged layout,
                                                 std::uint64_t table_entries) {
  DescriptorBuilder builder(dtype, std::move(shape), layout);
  builder.buffer_bytes(1, checked_mul(table_entries, layout.index_bytes())
                              .value_or(std::numeric_limits<std::uint64_t>::max()));
  return builder;
}

DescriptorBuilder DescriptorBuilder::head(DType dtype, Shape shape, CompositionRule rule,
                                          CombineOp op, std::uint32_t member_count) {
  return {dtype, std::move(shape),
          CompositeHead{.member_count = member_count, .rule = rule, .combine_op = op}};
}
DescriptorBuilder DescriptorBuilder::partition(DType dtype, Shape shape,
                                               std::uint32_t member_count) {
  return head(dtype, std::move(shape), CompositionRule::partition, CombineOp::none, member_count);
}
DescriptorBuilder DescriptorBuilder::overlay(DType dtype, Shape shape, CombineOp op,
                                             std::uint32_t member_count) {
  return head(dtype, std::move(shape), CompositionRule::overlay, op, member_count);
}
DescriptorBuilder DescriptorBuilder::group(DType dtype, Shape shape, std::uint32_t member_count) {
  return head(dtype, std::move(shape), CompositionRule::group, CombineOp::none, member_count);
}

DescriptorBuilder DescriptorBuilder::agreed(DType dtype, Shape shape, PrivateLayout layout,
                                            std::span<const std::uint64_t> buffer_bytes) {
  DescriptorBuilder builder(dtype, std::move(shape), std::move(layout));
  builder.agreed_buffers_ = buffer_bytes.size();
  for (std::size_t i = 0; i < buffer_bytes.size(); ++i) builder.buffer_bytes(i, buffer_bytes[i]);
  return builder;
}

DescriptorBuilder& DescriptorBuilder::buffer_bytes(std::size_t i, std::uint64_t bytes) {
  given_.emplace_back(i, bytes);
  return *this;
}

std::optional<std::uint64_t> DescriptorBuilder::given(std::size_t i) const noexcept {
  const auto last = std::ranges::find(given_.rbegin(), given_.rend(), i,
                                      &std::pair<std::size_t, std::uint64_t>::first);
  return last != given_.rend() ? std::optional(last->second) : std::nullopt;
}

DescriptorBuilder& DescriptorBuilder::quantized(Scheme scheme, ZeroPoints zero_points) {
  const std::size_t own =
      std::max(own_buffers(info(descriptor_.layout), descriptor_.shape.rank()), agreed_buffers_);
  const auto scales = static_cast<std::uint32_t>(own);
  std::visit(
      [&]<class S>(S& alternative) {
        if constexpr (requires { alternative.scale_buffer_index; })
          alternative.scale_buffer_index = scales;
        if constexpr (requires { alternative.zero_point_buffer_index; })
          if (zero_points == ZeroPoints::stored) alternative.zero_point_buffer_index = scales + 1;
      },
      scheme);
  descriptor_.set_quantization(Quantization{.scheme = std::move(scheme), .rest = {}});
  return *this;
}

DescriptorBuilder& DescriptorBuilder::agreed_scheme(const OpaqueScheme& scheme,
                                                    std::span<const std::byte> payload,
                                                    std::span<const std::uint64_t> buffer_bytes) {
  descriptor_.set_quantization(Quantization{.scheme = scheme, .rest = Blob(payload)});
  const std::size_t own =
      std::max(own_buffers(info(descriptor_.layout), descriptor_.shape.rank()), agreed_buffers_);
  for (std::size_t i = 0; i < buffer_bytes.size(); ++i)
    this->buffer_bytes(own + i, buffer_bytes[i]);
  agreed_buffers_ = own + buffer_bytes.size();
  return *this;
}

Result<Descriptor> DescriptorBuilder::build() const {
  return contain(Origin::descriptor, [&]() -> Result<Descriptor> {
    if (error_) return *error_;
    Descriptor d = descriptor_;
    const LayoutInfo& layout = info(d.layout);
    const bool fits = d.shape.rank() >= layout.min_rank && d.shape.rank() <= layout.max_rank;
    if (!fits) return validate(d).error();
    std::size_t count = std::max(own_buffers(layout, d.shape.rank()), agreed_buffers_);
    if (d.quantization() != nullptr) count += parameters(d.quantization()->scheme).buffers();
    if (count > BufferTable::max_size)
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_most,
                   .field = "buffer_count",
                   .expected = BufferTable::max_size,
                   .found = count};
    for (const auto& [i, bytes] : given_)
      if (i >= count)
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::as_said,
                     .index = i,
                     .field = "buffers[].byte_size",
                     .what = "the index of a buffer that this layout and scheme have",
                     .found = i};
    d.byte_offset = byte_offset_ ? *byte_offset_ : reach_back(d);
    d.buffers.resize(count);
    std::optional<Error> oversized;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bytes = i == 0 ? written_bytes(d) : required_bytes(d, i);
      if (!bytes && !oversized) oversized = bytes.error();
      BufferHandle& handle = d.buffers[i];
      handle = placement_;
      handle.byte_size = given(i).value_or(bytes ? *bytes : 0);
      handle.alignment = handle.is_empty() ? 1 : alignment_;
    }
    // A field that breaks a rule says more than the size that could not be formed from it.
    if (auto valid = validate(d); !valid) return valid.error();
    if (oversized) return *oversized;
    return d;
  });
}

}  // namespace hurray
