#include "hurray/tensor.hpp"

#include <algorithm>
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
  return contain(Origin::descriptor, [&]() -> Result<Tensor> {
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
    Tensor tensor;
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
    if (auto valid = validate(descriptor, {.permissive = options.permissive}); !valid)
      return blame(valid.error());
    tensor.descriptor_ = std::move(descriptor);
    tensor.buffers_ = std::move(buffers);
    tensor.memory_device_ = options.memory_device;
    tensor.provenance_ = options.provenance;
    tensor.relayed_ = relayed;
    return tensor;
  });
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

}  // namespace hurray
