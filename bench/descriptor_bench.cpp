#include <benchmark/benchmark.h>

#include "hurray/descriptor.hpp"

namespace {

hurray::Descriptor dense(std::size_t rank) {
  hurray::Descriptor d;
  d.shape.resize(rank);
  for (auto& n : d.shape) n = 4;
  d.buffers = {{.byte_size = d.shape.count() * 4, .alignment = 64}};
  return d;
}

void decode_dense(benchmark::State& state) {
  const auto bytes = *hurray::encode(dense(static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) {
    auto d = hurray::decode(bytes);
    benchmark::DoNotOptimize(d);
  }
}
BENCHMARK(decode_dense)->Arg(0)->Arg(2)->Arg(4)->Repetitions(21)->ReportAggregatesOnly();

void encode_dense(benchmark::State& state) {
  const auto d = dense(static_cast<std::size_t>(state.range(0)));
  std::byte out[256];
  for (auto _ : state) {
    auto size = hurray::encode_into(d, out);
    benchmark::DoNotOptimize(size);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(encode_dense)->Arg(0)->Arg(2)->Arg(4)->Repetitions(21)->ReportAggregatesOnly();

void decode_csr(benchmark::State& state) {
  hurray::Descriptor d;
  d.shape = {3, 3};
  d.layout = hurray::Csr{2};
  d.buffers = {{.byte_size = 8, .alignment = 64},
               {.byte_size = 16, .alignment = 64},
               {.byte_size = 32, .alignment = 64}};
  const auto bytes = *hurray::encode(d);
  for (auto _ : state) {
    auto decoded = hurray::decode(bytes);
    benchmark::DoNotOptimize(decoded);
  }
}
BENCHMARK(decode_csr)->Repetitions(21)->ReportAggregatesOnly();

}  // namespace
