// The C interface: handles made and destroyed, a tensor handed over, a descriptor decoded.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "hurray.h"
#include "hurray/descriptor.hpp"

namespace {

alignas(64) std::byte memory[4096];

void must(HurrayStatus status) {
  if (status != HURRAY_OK) std::abort();
}

HurrayBuffer* buffer() {
  HurrayBuffer* handle = nullptr;
  must(hurray_buffer_from_ptr(memory, sizeof memory, 64, HURRAY_DEVICE_CPU, 0, 0, nullptr, nullptr,
                              &handle));
  return handle;
}

std::vector<std::byte> descriptor() {
  hurray::Descriptor d;
  d.shape = hurray::Shape{32, 32};
  d.buffers.push_back({.byte_size = 4096, .alignment = 64});
  return *encode(d);
}

void c_buffer_create_destroy(benchmark::State& state) {
  for (auto _ : state) must(hurray_buffer_destroy(buffer()));
}
BENCHMARK(c_buffer_create_destroy);

/// What a capsule does: a list of one buffer and a context are made, read and destroyed.
void c_hand_over(benchmark::State& state) {
  const auto encoded = descriptor();
  for (auto _ : state) {
    HurrayBufferList* list = nullptr;
    HurrayTensorContext* ctx = nullptr;
    must(hurray_buffer_list_new(1, &list));
    must(hurray_buffer_list_push(list, buffer()));
    must(hurray_tensor_context_new(HURRAY_C_ABI_VERSION,
                                   reinterpret_cast<const std::uint8_t*>(encoded.data()),
                                   encoded.size(), nullptr, nullptr, &ctx));
    std::uint32_t version = 0;
    std::uint64_t length = 0;
    const std::uint8_t* bytes = nullptr;
    HurrayBuffer* handle = nullptr;
    void* data = nullptr;
    must(hurray_tensor_context_abi_version(ctx, &version));
    must(hurray_tensor_context_descriptor(ctx, &bytes, &length));
    must(hurray_buffer_list_get(list, 0, &handle));
    must(hurray_buffer_data_ptr(handle, &data));
    benchmark::DoNotOptimize(data);
    must(hurray_buffer_list_destroy(&list));
    must(hurray_tensor_context_destroy(&ctx));
  }
}
BENCHMARK(c_hand_over);

void c_decode_and_shape(benchmark::State& state) {
  const auto encoded = descriptor();
  for (auto _ : state) {
    HurrayDescriptor* handle = nullptr;
    must(hurray_descriptor_decode(reinterpret_cast<const std::uint8_t*>(encoded.data()),
                                  encoded.size(), &handle));
    std::uint64_t shape[64];
    std::uintptr_t rank = 64;
    must(hurray_descriptor_shape(handle, shape, &rank));
    benchmark::DoNotOptimize(shape[0]);
    must(hurray_descriptor_destroy(handle));
  }
}
BENCHMARK(c_decode_and_shape);

}  // namespace
