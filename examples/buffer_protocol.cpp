// What a consumer may rely on: handles, alignment, sync modes. docs/buffer-protocol.md shows these
// functions beside their Python form.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/tensor.hpp"

using namespace hurray;

namespace {

bool failed = false;

void expect(bool holds, const char* what) {
  if (holds) return;
  failed = true;
  std::cerr << "not so: " << what << '\n';
}

void read_handles() {
  auto memory = Buffer::allocate(24, /*zeroed=*/true);
  if (!memory) return expect(false, "memory");
  Descriptor d;
  d.dtype = DType::float32;
  d.shape = Shape{2, 3};
  const auto t = bind(d, {*memory});
  if (!t) return expect(false, "bind");

  const BufferHandle& h = t->descriptor().buffers[0];
  std::cout << h.byte_size << ' ' << h.alignment << ' ' << name(h.sync_mode) << ' '
            << name(h.device) << '\n';
  expect(h.byte_size == 24 && h.alignment == 64, "own memory declares 64");
  expect(h.sync_mode == SyncMode::producer_synced, "what we made is complete");
}

void handles_pin_nothing() {
  std::vector<BufferHandle> seen;
  std::weak_ptr<Owner> memory;
  {
    auto buffer = Buffer::allocate(4096);
    if (!buffer) return expect(false, "memory");
    memory = buffer->owner();
    Descriptor d;
    d.dtype = DType::uint8;
    d.shape = Shape{4096};
    const auto t = bind(d, {*std::move(buffer)});
    if (!t) return expect(false, "bind");
    buffer = Buffer();
    for (const BufferHandle& h : t->descriptor().buffers) seen.push_back(h);
  }
  expect(memory.expired() && seen.size() == 1, "only the tensor kept the memory");
}

void alignment_is_measured() {
  alignas(4096) static std::byte page[8192];
  Descriptor d;
  d.dtype = DType::uint8;
  d.shape = Shape{64};
  int released = 0;
  for (const std::size_t offset : {0u, 64u, 192u, 256u, 16u}) {
    auto borrowed = Buffer::borrow(page + offset, 64, [&] { ++released; }, /*readonly=*/true);
    if (!borrowed) return expect(false, "borrow");
    std::cout << "at " << offset << ": " << borrowed->alignment();
    const auto t = bind(d, {*std::move(borrowed)});
    std::cout << (t ? "\n" : ", refused: " + to_string(t.error()) + '\n');
    expect(t.has_value() == (offset != 16), "below 64 there is no handle");
  }
  expect(released == 5, "each release ran once");
}

void ask_for_more() {
  const auto memory = Buffer::allocate(1 << 20, /*zeroed=*/true, page_alignment);
  if (!memory) return expect(false, "memory");
  const auto address = reinterpret_cast<std::uintptr_t>(memory->data());
  expect(memory->alignment() == 4096 && address % 4096 == 0, "it declares what was asked for");
}

Result<Tensor> from_a_gpu(SyncMode mode) {
  auto received = Buffer::allocate(16);  // a stream's reader puts the bytes into host memory
  if (!received) return received.error();
  Descriptor d;
  d.dtype = DType::float32;
  d.shape = Shape{4};
  d.buffers = BufferTable{{.byte_size = 16,
                           .alignment = 256,
                           .device = Device::cuda,
                           .sync_mode = mode,
                           .memory_class = MemoryClass::unified}};
  return bind(d, {*received}, {.provenance = Provenance::outside});
}

void sync_modes_are_honoured() {
  const auto t = from_a_gpu(SyncMode::event);
  if (!t) return expect(false, "bind");
  const auto allowed = readable(*t);
  expect(!allowed && allowed.error().code == Errc::unsupported, "nobody waited for the event");
  if (!allowed) std::cout << to_string(allowed.error()) << '\n';
  const BufferHandle wire = t->wire_descriptor().buffers[0];
  expect(wire.sync_mode == SyncMode::event && wire.alignment == 256, "relayed as it came");
}

void placement_is_declared() {
  const auto t = from_a_gpu(SyncMode::producer_synced);
  if (!t) return expect(false, "bind");
  const auto allowed = readable(*t);
  expect(!allowed, "declared on the GPU, held by the host");
  if (!allowed) std::cout << to_string(allowed.error()) << '\n';
  const auto host = to_cpu(*t);
  expect(host && readable(*host) && host->buffer(0).data() == t->buffer(0).data(),
         "the same memory under its true label");
}

}  // namespace

int main() {
  read_handles();
  handles_pin_nothing();
  alignment_is_measured();
  ask_for_more();
  sync_modes_are_honoured();
  placement_is_declared();
  return failed ? 1 : 0;
}
