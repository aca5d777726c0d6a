#include <benchmark/benchmark.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "hurray/dequantize.hpp"

namespace {

using hurray::DType;

/// Bytes without structure, but scales that are finite and not 0.
hurray::Buffer filled(std::uint64_t size, std::uint8_t mask, std::uint8_t add) {
  hurray::Buffer buffer = *hurray::Buffer::allocate(size);
  std::uint64_t state = 1;
  for (std::byte& b : buffer.bytes()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>((state >> 56 & mask) + add);
  }
  return buffer;
}

hurray::Tensor quantized(DType storage, hurray::Shape shape, hurray::Scheme scheme) {
  hurray::Descriptor d;
  d.dtype = storage;
  d.shape = std::move(shape);
  std::vector<hurray::Buffer> buffers{
      filled(*hurray::packed_bytes(hurray::bits(storage), d.shape.count()), 0xFF, 0)};
  const auto of = hurray::parameters(scheme);
  if (of.axis) {
    const std::uint64_t entries = *hurray::parameter_entries(scheme, d.shape, d.layout);
    // Every byte from 0x31 to 0x38 is, in each scale type, part of a number near 1.
    buffers.push_back(filled(entries * hurray::bits(of.scale_type) / 8, 7, 0x31));
    if (of.zero_point_buffer != hurray::no_buffer) {
      hurray::Buffer zeros = filled(entries * 4, 0, 0);
      for (std::uint64_t i = 0; i < entries; ++i) zeros.data()[4 * i] = std::byte{7};
      buffers.push_back(std::move(zeros));
    }
  }
  d.set_quantization(hurray::Quantization{scheme, {}});
  return *hurray::bind(std::move(d), std::move(buffers));
}

double seconds(auto&& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// `of_copy` is the bandwidth of the output against a plain copy of it, both measured in turns:
/// into memory that is there (`into`), or into a new tensor against a copy into a new buffer.
void dequantize(benchmark::State& state, const hurray::Tensor& tensor, bool into) {
  const std::uint64_t count = tensor.descriptor().shape.count();
  const std::uint64_t bytes = count * sizeof(float);
  hurray::Buffer source = *hurray::Buffer::allocate(bytes);
  hurray::Buffer target = *hurray::Buffer::allocate(bytes);
  std::memset(source.data(), 1, bytes);
  std::memset(target.data(), 1, bytes);
  const std::span out(reinterpret_cast<float*>(target.data()), count);
  double ours = 0;
  double copy = 0;
  for (auto _ : state) {
    const double took = seconds([&] {
      if (into) {
        auto done = hurray::dequantize_into(tensor, out);
        benchmark::DoNotOptimize(done);
      } else {
        auto done = hurray::dequantize(tensor);
        benchmark::DoNotOptimize(done);
      }
    });
    copy += seconds([&] {
      if (into) {
        std::memcpy(target.data(), source.data(), bytes);
        benchmark::ClobberMemory();
      } else {
        hurray::Buffer fresh = *hurray::Buffer::allocate(bytes);
        std::memcpy(fresh.data(), source.data(), bytes);
        benchmark::DoNotOptimize(fresh.data());
        benchmark::ClobberMemory();
      }
    });
    ours += took;
    state.SetIterationTime(took);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["of_copy"] = copy / ours;
}

[[maybe_unused]] const bool registered = [] {
  struct Case {
    std::string name;
    DType storage;
    hurray::Scheme scheme;
  };
  const auto half = DType::float16;
  const std::vector<Case> cases{
      {"int4_per_block", DType::int4, hurray::PerBlockAffine{1, 32, 1, hurray::no_buffer, half}},
      {"uint4_per_block_zeros", DType::uint4, hurray::PerBlockAffine{1, 128, 1, 2, half}},
      {"int4_per_block_axis_0", DType::int4,
       hurray::PerBlockAffine{0, 32, 1, hurray::no_buffer, half}},
      {"int8_per_block", DType::int8, hurray::PerBlockAffine{1, 32, 1, hurray::no_buffer, half}},
      {"int8_per_channel", DType::int8, hurray::PerChannelAffine{0, 1, hurray::no_buffer}},
      {"uint8_per_channel_last", DType::uint8, hurray::PerChannelAffine{1, 1, 2}},
      {"uint8_per_tensor", DType::uint8, hurray::PerTensorAffine{0.5f, 120}},
      {"nf4", DType::uint4, hurray::Nf4{1, 64, 1}},
      {"mxfp4", DType::float4_e2m1, hurray::Mxfp{1, 32, 1}},
      {"mxfp6", DType::float6_e2m3, hurray::Mxfp{1, 32, 1}},
      {"mxfp8", DType::float8_e4m3, hurray::Mxfp{1, 32, 1}},
  };
  for (const Case& c : cases)
    for (const bool into : {true, false})
      for (const std::uint64_t rows : {64u, 4096u}) {
        const std::string name =
            "dequantize/" + c.name + (into ? "/into/" : "/new/") + std::to_string(rows) + "x4096";
        benchmark::RegisterBenchmark(
            name.c_str(),
            [c, into, rows](benchmark::State& state) {
              dequantize(state, quantized(c.storage, {rows, 4096}, c.scheme), into);
            })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Repetitions(21)
            ->ReportAggregatesOnly();
      }
  return true;
}();

}  // namespace
