#include "hurray/tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace hurray {
namespace {

bool measurable(Device memory) noexcept {
  const DeviceInfo* row = info(memory);
  return row != nullptr && row->plain_addresses;
}

/// Rules about buffers are broken by buffers, whichever field of the descriptor shows it.
Error blame(Error error) noexcept {
  const bool of_buffer = error.field.starts_with("buffers[") ||
                         (error.field == "byte_offset" && error.code == Errc::out_of_bounds);
  if (of_buffer && error.code != Errc::out_of_memory) error.origin = Origin::buffer;
  error.offset = Error::no_offset;
  return error;
}

Error unsynced(const Tensor& tensor, std::size_t i) noexcept {
  return {.code = Errc::unsupported,
          .origin = Origin::buffer,
          .index = i,
          .field = "buffers[].sync_mode",
          .what = name(tensor.descriptor().buffers[i].sync_mode)};
}

}  // namespace

Descriptor Tensor::wire_descriptor() const { return canonical(relayed_ ? *relayed_ : descriptor_); }

std::optional<std::size_t> Tensor::unsynced_buffer() const noexcept {
  const auto& table = descriptor_.buffers;
  const auto* first = std::ranges::find_if(table, [](const BufferHandle& handle) {
    return handle.sync_mode != SyncMode::producer_synced;
  });
  if (first == table.end()) return std::nullopt;
  return static_cast<std::size_t>(first - table.begin());
}

Result<Tensor> bind(Descriptor descriptor, std::vector<Buffer> buffers, BindOptions options) {
  const auto fill = [&](Tensor& tensor) -> Result<void> {
    if (buffers.size() > BufferTable::max_size)
      return Error{.code = Errc::out_of_bounds,
                   .expect = Expect::at_most,
                   .field = "buffer_count",
                   .expected = BufferTable::max_size,
                   .found = buffers.size()};
    if (!descriptor.buffers.empty() && descriptor.buffers.size() != buffers.size())
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "buffer_count",
                   .expected = descriptor.buffers.size(),
                   .found = buffers.size()};
    const bool relays = !std::ranges::all_of(descriptor.buffers, [](const BufferHandle& handle) {
      return handle.sync_mode == SyncMode::producer_synced;
    });
    const auto relayed = relays ? std::make_shared<Descriptor>(descriptor) : nullptr;
    descriptor.buffers.resize(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      BufferHandle& handle = descriptor.buffers[i];
      handle.byte_size = buffers[i].size();
      if (!std::has_single_bit(handle.alignment) ||
          (handle.alignment < min_buffer_alignment && !handle.is_empty()))
        handle.alignment = buffers[i].alignment();  // nothing that could be kept was declared
      if (relays) relayed->buffers[i] = handle;
      if (measurable(options.memory_device)) handle.alignment = buffers[i].alignment();
      tensor.readonly_ |= buffers[i].readonly();
    }
    const EncodeOptions rules{.permissive = options.permissive};
    const auto valid = options.unfit_scheme ? validate_apart_from_scheme(descriptor, rules)
                                            : validate(descriptor, rules);
    if (!valid) return blame(valid.error());
    tensor.descriptor_ = std::move(descriptor);
    tensor.buffers_ = std::move(buffers);
    tensor.memory_device_ = options.memory_device;
    tensor.provenance_ = options.provenance;
    tensor.relayed_ = relayed;
    return {};
  };
  Result<Tensor> result(std::in_place);  // a tensor is large: it is made where it stays
  if (auto done = contain(Origin::descriptor, [&] { return fill(*result); }); !done)
    result = done.error();
  return result;
}

Result<void> readable(const Tensor& tensor) {
  if (const auto i = tensor.unsynced_buffer()) return unsynced(tensor, *i);
  const auto& table = tensor.descriptor().buffers;
  if (!table.empty() && table[0].device != tensor.memory_device())
    return Error{.code = Errc::unsupported,
                 .origin = Origin::buffer,
                 .index = 0,
                 .field = "buffers[].device_tag",
                 .what = "the declared device is not where the memory is",
                 .expected = static_cast<std::uint8_t>(table[0].device),
                 .found = static_cast<std::uint8_t>(tensor.memory_device())};
  return {};
}

Result<Tensor> to_cpu(const Tensor& tensor) {
  return contain(Origin::buffer, [&]() -> Result<Tensor> {
    if (const auto i = tensor.unsynced_buffer()) return unsynced(tensor, *i);
    if (tensor.memory_device() != Device::cpu)
      return Error{.code = Errc::unsupported,
                   .origin = Origin::buffer,
                   .what = "the memory is not the host's"};
    Tensor relabelled = tensor;
    for (BufferHandle& handle : relabelled.descriptor_.buffers) {
      handle.device = Device::cpu;
      handle.memory_class = MemoryClass::standard;
    }
    return relabelled;
  });
}

Result<Tensor> buffer_tensor(const Tensor& tensor, std::size_t i) {
  return contain(Origin::buffer, [&]() -> Result<Tensor> {
    if (const auto unready = tensor.unsynced_buffer()) return unsynced(tensor, *unready);
    const Buffer& buffer = tensor.buffer(i);
    Descriptor bytes;
    bytes.dtype = DType::uint8;
    bytes.shape = Shape{buffer.size()};
    bytes.buffers = BufferTable{tensor.descriptor().buffers[i]};
    return bind(std::move(bytes), {buffer.view(0, buffer.size())},
                {.provenance = tensor.provenance(), .memory_device = tensor.memory_device()});
  });
}

namespace {

/// Shape of part `i` (not the values) of a layout that has components; none for other layouts.
std::optional<Shape> index_shape(const Layout& layout, const Shape& shape, std::size_t i) {
  return std::visit(
      [&]<class T>(const T& alternative) -> std::optional<Shape> {
        if constexpr (std::is_same_v<T, Coo>) return Shape{alternative.nnz, shape.rank()};
        if constexpr (std::is_same_v<T, Csr> || std::is_same_v<T, Csc>) {
          if (i == 1) return Shape{alternative.nnz};
          const std::uint64_t lines = shape[T::major];
          return Shape{lines == dynamic ? dynamic : lines + 1};
        }
        return std::nullopt;
      },
      layout);
}

Error unsupported(std::string_view field, std::string_view what, std::uint8_t found) noexcept {
  return {.code = Errc::unsupported, .field = field, .what = what, .found = found};
}

}  // namespace

bool has_components(const Layout& layout) noexcept {
  return info(layout).layout_class == LayoutClass::sparse && !std::holds_alternative<Csf>(layout);
}

Result<Tensor> component_tensor(const Tensor& tensor, std::size_t i) {
  return contain(Origin::buffer, [&]() -> Result<Tensor> {
    if (const auto unready = tensor.unsynced_buffer()) return unsynced(tensor, *unready);
    const Descriptor& d = tensor.descriptor();
    auto indices = index_shape(d.layout, d.shape, i);
    if (!indices)
      return unsupported("layout_tag", "not an array for each buffer; take the buffers",
                         static_cast<std::uint8_t>(tag(d.layout)));
    Descriptor part;
    part.buffers = BufferTable{d.buffers[i]};
    if (i != 0) {
      part.dtype = DType::uint64;
      part.shape = *std::move(indices);
    } else {
      part.dtype = d.dtype;
      part.shape = Shape{*nnz_of(d.layout)};
      if (const ExtensionType* type = d.extension_type()) part.set_extension_type(*type);
      if (const Quantization* scheme = d.quantization()) {
        if (!std::holds_alternative<PerTensorAffine>(scheme->scheme))
          return unsupported(
              "quantization.scheme_tag",
              "these values are codes whose parameters belong to places in the whole tensor",
              static_cast<std::uint8_t>(tag(scheme->scheme)));
        part.set_quantization(*scheme);
      }
    }
    const Buffer& buffer = tensor.buffer(i);
    return bind(std::move(part), {buffer.view(0, buffer.size())}, tensor.binding());
  });
}

namespace {

/// The layout of the transposed matrix; none where the same bytes have none.
std::optional<Layout> transposed(const Layout& layout) {
  return std::visit(
      []<class T>(const T& alternative) -> std::optional<Layout> {
        if constexpr (std::is_same_v<T, RowMajor>) return ColumnMajor{};
        if constexpr (std::is_same_v<T, ColumnMajor>) return RowMajor{};
        if constexpr (std::is_same_v<T, Strided>)
          return Strided{{alternative.strides[1], alternative.strides[0]}};
        if constexpr (std::is_same_v<T, Csr>) return Csc{.nnz = alternative.nnz};
        if constexpr (std::is_same_v<T, Csc>) return Csr{.nnz = alternative.nnz};
        return std::nullopt;
      },
      layout);
}

}  // namespace

Result<Tensor> transpose(const Tensor& tensor) {
  return contain(Origin::descriptor, [&]() -> Result<Tensor> {
    // What is passed on with a wait in it keeps the declaration it came with.
    Descriptor d = tensor.unsynced_buffer() ? tensor.wire_descriptor() : tensor.descriptor();
    if (d.shape.rank() != 2)
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "rank",
                   .what = "dimensions to exchange",
                   .expected = 2,
                   .found = d.shape.rank()};
    auto layout = transposed(d.layout);
    if (!layout)
      return unsupported("layout_tag", "the same bytes are no transposed matrix in this layout",
                         static_cast<std::uint8_t>(tag(d.layout)));
    if (auto fits = validate_scheme(d); !fits) return fits.error();
    d.layout = *std::move(layout);
    std::swap(d.shape[0], d.shape[1]);
    if (const Quantization* quantization = d.quantization()) {
      Quantization exchanged = *quantization;
      auto* channels = std::get_if<PerChannelAffine>(&exchanged.scheme);
      if (channels != nullptr)
        channels->axis = 1 - channels->axis;
      else if (!std::holds_alternative<PerTensorAffine>(exchanged.scheme))
        return unsupported("quantization.scheme_tag", "blocks are counted along rows",
                           static_cast<std::uint8_t>(tag(exchanged.scheme)));
      d.set_quantization(std::move(exchanged));
    }
    if (const Shard* shard = d.shard()) {
      const auto parent = shard->parent_shape();
      const auto offset = shard->shard_offset();
      d.set_shard(Shard(std::array{parent[1], parent[0]}, std::array{offset[1], offset[0]}));
    }
    if (const Statistics* statistics = d.statistics()) {
      Statistics kept = statistics->sound();
      kept.computed_mask &= ~static_cast<std::uint32_t>(StatisticsBit::nm_sparsity);
      kept.nm_n = kept.nm_m = 0;
      d.set_statistics(kept);
    }
    d.set_member_role({});
    return bind(std::move(d), tensor.buffers(), tensor.binding());
  });
}

}  // namespace hurray
