#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hurray/descriptor.hpp"

namespace hurray {

/// Whether an affine scheme has zero points of its own, or is symmetric.
enum class ZeroPoints : std::uint8_t { none, stored };

/// Makes descriptors that hold together. What a layout cannot do without is an argument of the
/// function that starts with it; flags, buffer count, buffer sizes and the buffers that
/// quantization names follow from the rest: the layout's own buffers, then scales, then zero
/// points. Shapes count logical elements, sizes bytes.
///
///     auto weights = DescriptorBuilder::row_major(DType::int4, {4096, 4096})
///                        .per_block_affine(1, 32, DType::float16)
///                        .build();
///
/// A value; copying one may throw `std::bad_alloc`. Nothing is judged before `build`.
class DescriptorBuilder {
 public:
  static DescriptorBuilder row_major(DType dtype, Shape shape) {
    return {dtype, std::move(shape), RowMajor{}};
  }
  static DescriptorBuilder col_major(DType dtype, Shape shape) {
    return {dtype, std::move(shape), ColumnMajor{}};
  }
  /// `strides` count elements; 0 and negative are legal.
  static DescriptorBuilder strided(DType dtype, Shape shape, Strides strides) {
    return {dtype, std::move(shape), Strided{std::move(strides)}};
  }
  static DescriptorBuilder tiled(DType dtype, Shape shape, Tiled tiles) {
    return {dtype, std::move(shape), std::move(tiles)};
  }
  /// With as few bits as the sizes need.
  static DescriptorBuilder morton(DType dtype, Shape shape) {
    Morton layout = Morton::fitting(shape);
    return {dtype, std::move(shape), std::move(layout)};
  }
  static DescriptorBuilder morton(DType dtype, Shape shape, Morton layout) {
    return {dtype, std::move(shape), std::move(layout)};
  }
  /// A cube of `rank` dimensions of size `2^order`.
  HURRAY_EXPORT static DescriptorBuilder hilbert(DType dtype, std::uint32_t order,
                                                 std::uint32_t rank);
  static DescriptorBuilder coo(DType dtype, Shape shape, std::uint64_t nnz, bool is_sorted) {
    return {dtype, std::move(shape),
            Coo{.nnz = nnz, .is_sorted = static_cast<std::uint8_t>(is_sorted)}};
  }
  static DescriptorBuilder csr(DType dtype, Shape shape, std::uint64_t nnz) {
    return {dtype, std::move(shape), Csr{.nnz = nnz}};
  }
  static DescriptorBuilder csc(DType dtype, Shape shape, std::uint64_t nnz) {
    return {dtype, std::move(shape), Csc{.nnz = nnz}};
  }
  /// `nodes[L]` is the number of nodes of level L, the last one `nnz`: it gives the buffers their
  /// sizes.
  HURRAY_EXPORT static DescriptorBuilder csf(DType dtype, Shape shape,
                                             std::span<const std::uint32_t> mode_order,
                                             std::span<const std::uint64_t> nodes);
  static DescriptorBuilder csf(DType dtype, Shape shape,
                               std::initializer_list<std::uint32_t> mode_order,
                               std::initializer_list<std::uint64_t> nodes) {
    return csf(dtype, std::move(shape), std::span(mode_order.begin(), mode_order.size()),
               std::span(nodes.begin(), nodes.size()));
  }
  /// Shape `[total_tokens, heads, head_size]`; `table_entries` is the length of the block table,
  /// the last entry of `seq_ptr`.
  HURRAY_EXPORT static DescriptorBuilder block_paged(DType dtype, Shape shape, BlockPaged layout,
                                                     std::uint64_t table_entries);
  /// The head of `member_count` tensors whose boxes tile `shape`.
  HURRAY_EXPORT static DescriptorBuilder partition(DType dtype, Shape shape,
                                                   std::uint32_t member_count);
  /// The head of a base and its corrections.
  HURRAY_EXPORT static DescriptorBuilder overlay(DType dtype, Shape shape, CombineOp op,
                                                 std::uint32_t member_count);
  /// The head of tensors that only belong together; type and shape are advice.
  HURRAY_EXPORT static DescriptorBuilder group(DType dtype, Shape shape,
                                               std::uint32_t member_count);
  /// A layout that two parties agreed on, with the sizes of its buffers.
  HURRAY_EXPORT static DescriptorBuilder agreed(DType dtype, Shape shape, PrivateLayout layout,
                                                std::span<const std::uint64_t> buffer_bytes);

  /// What a private `dtype` is made of.
  DescriptorBuilder& extension_type(const ExtensionType& type) {
    descriptor_.set_extension_type(type);
    return *this;
  }

  /// Bytes from the start of buffer 0 to element [0,…,0]. Without it: as many as negative strides
  /// reach back.
  DescriptorBuilder& byte_offset(std::uint64_t bytes) {
    byte_offset_ = bytes;
    return *this;
  }
  /// A buffer that is larger than it has to be, or one of a shape with dynamic sizes.
  HURRAY_EXPORT DescriptorBuilder& buffer_bytes(std::size_t i, std::uint64_t bytes);
  /// What the base addresses of all non-empty buffers really satisfy. Without it: 64.
  DescriptorBuilder& alignment(std::uint32_t bytes) {
    alignment_ = bytes;
    return *this;
  }
  DescriptorBuilder& on(Device device, MemoryClass memory_class = MemoryClass::standard,
                        SyncMode sync_mode = SyncMode::producer_synced) {
    placement_ = {.device = device, .sync_mode = sync_mode, .memory_class = memory_class};
    return *this;
  }

  /// `x = scale * (q - zero_point)`.
  DescriptorBuilder& per_tensor_affine(float scale, std::int32_t zero_point) {
    return quantized(PerTensorAffine{.scale = scale, .zero_point = zero_point});
  }
  /// One float32 scale, and int32 zero point, per index along `axis`.
  DescriptorBuilder& per_channel_affine(std::uint32_t axis,
                                        ZeroPoints zero_points = ZeroPoints::none) {
    return quantized(PerChannelAffine{.axis = axis}, zero_points);
  }
  /// One scale, and int32 zero point, per `block_size` elements along `axis`.
  DescriptorBuilder& per_block_affine(std::uint32_t axis, std::uint32_t block_size,
                                      DType scale_type, ZeroPoints zero_points = ZeroPoints::none) {
    return quantized(
        PerBlockAffine{.axis = axis, .block_size = block_size, .scale_type = scale_type},
        zero_points);
  }
  DescriptorBuilder& nf4(std::uint32_t axis, std::uint32_t block_size) {
    return quantized(Nf4{.axis = axis, .block_size = block_size});
  }
  DescriptorBuilder& mxfp(std::uint32_t axis, std::uint32_t block_size = 32) {
    return quantized(Mxfp{.axis = axis, .block_size = block_size});
  }
  /// A scheme that two parties agreed on: its payload after the four header bytes, and the sizes of
  /// its parameter buffers.
  HURRAY_EXPORT DescriptorBuilder& agreed_scheme(const OpaqueScheme& scheme,
                                                 std::span<const std::byte> payload,
                                                 std::span<const std::uint64_t> buffer_bytes);

  /// This tensor is a box of a larger one.
  DescriptorBuilder& shard_of(std::span<const std::uint64_t> parent_shape,
                              std::span<const std::uint64_t> shard_offset) {
    descriptor_.set_shard(Shard(parent_shape, shard_offset));
    return *this;
  }
  DescriptorBuilder& shard_of(std::initializer_list<std::uint64_t> parent_shape,
                              std::initializer_list<std::uint64_t> shard_offset) {
    return shard_of(std::span(parent_shape.begin(), parent_shape.size()),
                    std::span(shard_offset.begin(), shard_offset.size()));
  }
  DescriptorBuilder& statistics(const Statistics& statistics) {
    descriptor_.set_statistics(statistics);
    return *this;
  }
  /// This tensor is a member of an overlay.
  DescriptorBuilder& member(MemberRole role) {
    descriptor_.set_member_role(role);
    return *this;
  }

  /// The descriptor, or the first rule of 01-descriptor.md section 6 that it would break.
  HURRAY_EXPORT Result<Descriptor> build() const;

 private:
  DescriptorBuilder(DType dtype, Shape shape, Layout layout) {
    descriptor_.dtype = dtype;
    descriptor_.shape = std::move(shape);
    descriptor_.layout = std::move(layout);
  }

  HURRAY_EXPORT DescriptorBuilder& quantized(Scheme scheme,
                                             ZeroPoints zero_points = ZeroPoints::none);
  static DescriptorBuilder head(DType dtype, Shape shape, CompositionRule rule, CombineOp op,
                                std::uint32_t member_count);
  std::optional<std::uint64_t> given(std::size_t i) const noexcept;

  Descriptor descriptor_;
  BufferHandle placement_;
  std::uint32_t alignment_ = min_buffer_alignment;
  std::optional<std::uint64_t> byte_offset_;
  std::optional<Error> error_;
  std::vector<std::pair<std::size_t, std::uint64_t>> given_;
  std::size_t agreed_buffers_ = 0;
};

/// Bytes of buffer 0 as writers make it: what the layout needs, and after the last slot the zeros
/// that fill up a short last quantization block (D4, 03-quantization.md section 8). 0 where a
/// dynamic size or an unknown tag hides it; an error where it overflows.
HURRAY_EXPORT Result<std::uint64_t> written_bytes(const Descriptor& descriptor);

}  // namespace hurray
