#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hurray/builder.hpp"

namespace hurray::testing {

/// Descriptors from a source of numbers: every layout, type, scheme and section of the tables.
/// `Source::below(n)` gives a number in `[0, n)`. Most are valid, none is too large to be bound.
template <class Source>
class RandomDescriptor {
 public:
  explicit RandomDescriptor(Source& source) : source_(source) {}

  /// None where chance put together what breaks a rule.
  std::optional<Descriptor> operator()() {
    DescriptorBuilder builder = start();
    if (builder_dtype_is_private()) builder.extension_type(extension());
    if (!head_ && chance(3)) quantize(builder);
    if (chance(4)) shard(builder);
    if (chance(3)) builder.statistics(statistics());
    if (!head_ && chance(6)) builder.member(chance(2) ? MemberRole::base : MemberRole::correction);
    if (chance(5)) place(builder);
    if (chance(5)) builder.alignment(64u << below(8));
    auto built = builder.build();
    if (!built) return std::nullopt;
    return *std::move(built);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return source_.below(n); }
  bool chance(std::uint64_t in) { return below(in) == 0; }
  std::int64_t stride() { return static_cast<std::int64_t>(below(41)) - 20; }
  template <class Table>
  auto pick(const Table& table) {
    return table[static_cast<std::size_t>(below(table.size()))].tag;
  }

  DType type() {
    if (chance(12)) return static_cast<DType>(0xF0 + below(15));
    return pick(dtypes);
  }
  bool builder_dtype_is_private() const { return is_private(static_cast<std::uint8_t>(dtype_)); }

  ExtensionType extension() {
    constexpr std::uint32_t widths[] = {1, 2, 4, 8, 16, 24, 72};
    ExtensionType type{.bit_width = widths[below(std::size(widths))]};
    type.packing_factor = ExtensionType::packing_factor_of(type.bit_width);
    type.is_float = static_cast<std::uint8_t>(below(2));
    if (type.is_float == 0) {
      type.is_signed = static_cast<std::uint8_t>(below(2));
    } else {
      type.sign_bits = static_cast<std::uint8_t>(below(2));
      type.exponent_bits = static_cast<std::uint8_t>(below(256));
      type.mantissa_bits = static_cast<std::uint8_t>(below(256));
      type.exponent_bias = static_cast<std::uint32_t>(below(std::uint64_t{1} << 32));
      type.has_nan = static_cast<std::uint8_t>(below(2));
      type.has_inf = static_cast<std::uint8_t>(below(2));
    }
    return type;
  }

  std::uint64_t size() {
    if (chance(24)) return dynamic;
    if (chance(8)) return 16;  // a whole block of every scheme
    return chance(12) ? 0 : 1 + below(9);
  }
  Shape shape(std::size_t least, std::size_t most) {
    Shape all;
    all.resize(least + static_cast<std::size_t>(below(most - least + 1)));
    for (auto& n : all) n = all.size() > 6 ? 1 + below(2) : size();
    return all;
  }

  std::uint64_t stored(const Shape& s) {
    const std::uint64_t most = s.is_dynamic() ? 8 : s.count();
    return below(std::min<std::uint64_t>(most, 32) + 1);
  }

  Tiled tiles(std::size_t rank) {
    const std::size_t levels = 1 + static_cast<std::size_t>(below(chance(8) ? 8 : 3));
    std::vector<std::uint64_t> sizes(rank);
    for (auto& n : sizes) n = std::uint64_t{1} << below(4);
    Tiled all;
    for (std::size_t level = 0; level < levels; ++level) {
      TileOrders orders{static_cast<LayoutTag>(1 + below(3)), static_cast<LayoutTag>(1 + below(3))};
      const bool last = level + 1 == levels;
      std::vector<std::int64_t> outer;
      std::vector<std::int64_t> inner;
      if (orders.outer == LayoutTag::strided) outer.resize(rank);
      if (orders.inner == LayoutTag::strided && last) inner.resize(rank);
      for (auto& s : outer) s = stride();
      for (auto& s : inner) s = stride();
      if (!last) orders.inner = LayoutTag::row_major;  // becomes tiled
      const Tiled one(sizes, orders, outer, inner);
      if (level == 0)
        all = one;
      else
        all.inside(one);
      for (auto& n : sizes) n = std::max<std::uint64_t>(1, n >> below(2));
    }
    return all;
  }

  DescriptorBuilder start() {
    using B = DescriptorBuilder;
    dtype_ = type();
    const LayoutTag layout = chance(14) ? LayoutTag{0xF3} : pick(layouts);
    head_ = layout == LayoutTag::composite;
    const bool deep = chance(20);
    switch (layout) {
      case LayoutTag::row_major:
        return B::row_major(dtype_, shape_ = shape(0, deep ? 64 : 6));
      case LayoutTag::col_major:
        return B::col_major(dtype_, shape_ = shape(1, deep ? 64 : 6));
      case LayoutTag::strided: {
        shape_ = shape(1, deep ? 64 : 5);
        Strides strides;
        strides.resize(shape_.rank());
        for (auto& s : strides) s = stride();
        return B::strided(dtype_, shape_, strides);
      }
      case LayoutTag::tiled:
        shape_ = shape(1, 4);
        return B::tiled(dtype_, shape_, tiles(shape_.rank()));
      case LayoutTag::morton: {
        shape_ = shape(1, 4);
        Morton curve = Morton::fitting(shape_);
        if (chance(2)) ++curve.bits[static_cast<std::size_t>(below(shape_.rank()))];
        return B::morton(dtype_, shape_, curve);
      }
      case LayoutTag::hilbert: {
        const auto order = static_cast<std::uint32_t>(1 + below(3));
        const auto rank = static_cast<std::uint32_t>(2 + below(3));
        shape_.resize(rank);
        std::ranges::fill(shape_, std::uint64_t{1} << order);
        return B::hilbert(dtype_, order, rank);
      }
      case LayoutTag::coo:
        shape_ = shape(1, deep ? 64 : 5);
        return B::coo(dtype_, shape_, stored(shape_), chance(2));
      case LayoutTag::csr:
        shape_ = shape(2, 2);
        return B::csr(dtype_, shape_, stored(shape_));
      case LayoutTag::csc:
        shape_ = shape(2, 2);
        return B::csc(dtype_, shape_, stored(shape_));
      case LayoutTag::csf: {
        shape_ = shape(3, deep ? 64 : 5);
        std::vector<std::uint32_t> order(shape_.rank());
        for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
        for (std::size_t k = order.size(); k > 1; --k)
          std::swap(order[k - 1], order[static_cast<std::size_t>(below(k))]);
        std::vector<std::uint64_t> nodes(shape_.rank());
        for (auto& n : nodes) n = below(6);
        nodes.back() = stored(shape_);
        return B::csf(dtype_, shape_, order, nodes);
      }
      case LayoutTag::block_paged: {
        shape_ = shape(3, 3);
        BlockPaged pages{.num_pages = below(5),
                         .page_size = static_cast<std::uint32_t>(1u << below(3)),
                         .num_seqs = static_cast<std::uint32_t>(below(4)),
                         .layer_index = static_cast<std::uint32_t>(below(100)),
                         .kv_role = pick(kv_roles),
                         .index_type = pick(index_types)};
        return B::block_paged(dtype_, shape_, pages, below(8));
      }
      case LayoutTag::composite: {
        shape_ = shape(0, 4);
        const auto members = static_cast<std::uint32_t>(below(5));
        switch (below(3)) {
          case 0:
            return B::partition(dtype_, shape_, members);
          case 1:
            return B::overlay(dtype_, shape_, chance(2) ? CombineOp::add : CombineOp::replace,
                              members);
          default:
            return B::group(dtype_, shape_, members);
        }
      }
      default: {
        shape_ = shape(0, 4);
        PrivateLayout own;
        own.tag = layout;
        own.id = below(1000);
        std::vector<std::byte> data(static_cast<std::size_t>(below(9)));
        for (auto& b : data) b = static_cast<std::byte>(below(256));
        own.data = Blob(data);
        std::vector<std::uint64_t> sizes(1 + static_cast<std::size_t>(below(3)));
        for (auto& n : sizes) n = below(40);
        return B::agreed(dtype_, shape_, std::move(own), sizes);
      }
    }
  }

  void quantize(DescriptorBuilder& builder) {
    const auto axis = static_cast<std::uint32_t>(below(std::max<std::size_t>(1, shape_.rank())));
    const auto zero_points = chance(2) ? ZeroPoints::stored : ZeroPoints::none;
    std::uint64_t scheme = below(6);
    for (int tries = 0; tries < 8 && scheme < schemes.size(); ++tries) {
      if (schemes[static_cast<std::size_t>(scheme)].stores(dtype_)) break;
      scheme = below(6);
    }
    switch (scheme) {
      case 0:
        builder.per_tensor_affine(0.5f, static_cast<std::int32_t>(below(2)));
        break;
      case 1:
        builder.per_channel_affine(axis, zero_points);
        break;
      case 2: {
        constexpr DType scales[] = {DType::float16, DType::bfloat16, DType::float32};
        builder.per_block_affine(axis, 1u << (1 + below(3)), scales[below(3)], zero_points);
        break;
      }
      case 3:
        builder.nf4(axis, 8);
        break;
      case 4:
        builder.mxfp(axis, 16);
        break;
      default: {
        const std::uint64_t sizes[] = {below(20)};
        const std::byte payload[] = {std::byte{1}, std::byte{2}};
        builder.agreed_scheme({.tag = static_cast<SchemeTag>(0xF0 + below(15))},
                              std::span(payload, static_cast<std::size_t>(below(3))), sizes);
        break;
      }
    }
  }

  void shard(DescriptorBuilder& builder) {
    std::vector<std::uint64_t> parent;
    std::vector<std::uint64_t> offset;
    for (const std::uint64_t n : shape_) {
      offset.push_back(below(5));
      parent.push_back(n == dynamic ? 1 : n + offset.back() + below(3));
    }
    builder.shard_of(parent, offset);
  }

  Statistics statistics() {
    Statistics s;
    s.computed_mask = static_cast<std::uint32_t>(below(64)) & ~1u;  // nnz must match the layout's
    s.sparsity_ratio = static_cast<double>(below(101)) / 100;
    s.value_min = -static_cast<double>(below(1000)) / 7;
    s.value_max = static_cast<double>(below(1000)) / 7;
    s.value_stddev = static_cast<double>(below(1000)) / 3;
    s.nm_m = static_cast<std::uint8_t>(below(9));
    s.nm_n = static_cast<std::uint8_t>(below(s.nm_m + std::uint64_t{1}));
    s.has_nan = static_cast<std::uint8_t>(below(2));
    s.has_inf = static_cast<std::uint8_t>(below(2));
    return s;
  }

  void place(DescriptorBuilder& builder) {
    const Device device = pick(devices);
    const MemoryClass memory = pick(memory_classes);
    const auto sync = device == Device::cpu ? SyncMode::producer_synced : pick(sync_modes);
    if (can_have(device, memory)) builder.on(device, memory, sync);
  }

  Source& source_;
  Shape shape_;
  DType dtype_ = DType::float32;
  bool head_ = false;
};

}  // namespace hurray::testing
