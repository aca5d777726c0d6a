#include <benchmark/benchmark.h>

#include <numeric>

#include "hurray/builder.hpp"

namespace {

using hurray::DescriptorBuilder;
using hurray::DType;

hurray::Shape cube(std::size_t rank, std::uint64_t size) {
  hurray::Shape shape;
  shape.resize(rank);
  for (auto& n : shape) n = size;
  return shape;
}

hurray::Descriptor dense(std::size_t rank) {
  return *DescriptorBuilder::row_major(DType::float32, cube(rank, 4)).build();
}
hurray::Descriptor strided() {
  return *DescriptorBuilder::strided(DType::float32, {4, 4, 4, 4}, {-64, 16, 4, 1}).build();
}
hurray::Descriptor csr() { return *DescriptorBuilder::csr(DType::float32, {3, 3}, 2).build(); }
hurray::Descriptor tiled() {
  return *DescriptorBuilder::tiled(DType::float32, {64, 64}, hurray::Tiled({8, 8})).build();
}
hurray::Descriptor quantized() {
  return *DescriptorBuilder::row_major(DType::int4, {64, 64})
              .per_block_affine(1, 32, DType::float16, hurray::ZeroPoints::stored)
              .build();
}
hurray::Descriptor csf_64() {
  std::vector<std::uint32_t> order(64);
  std::iota(order.begin(), order.end(), 0u);
  const std::vector<std::uint64_t> nodes(64, 1);
  return *DescriptorBuilder::csf(DType::float32, cube(64, 2), order, nodes).build();
}
hurray::Descriptor tiled_8_levels() {
  const std::vector<std::uint64_t> ones(64, 1);
  const std::vector<std::int64_t> strides(64, 1);
  const hurray::TileOrders both{hurray::LayoutTag::strided, hurray::LayoutTag::strided};
  const hurray::TileOrders outer{hurray::LayoutTag::strided, hurray::LayoutTag::tiled};
  hurray::Tiled tiles(ones, outer, strides);
  for (int level = 1; level < 7; ++level) tiles.inside(hurray::Tiled(ones, outer, strides));
  tiles.inside(hurray::Tiled(ones, both, strides, strides));
  return *DescriptorBuilder::tiled(DType::float32, cube(64, 1), tiles).build();
}

void decode(benchmark::State& state, const hurray::Descriptor& descriptor) {
  const auto bytes = *hurray::encode(descriptor);
  for (auto _ : state) {
    auto d = hurray::decode(bytes);
    benchmark::DoNotOptimize(d);
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
}

void encode(benchmark::State& state, const hurray::Descriptor& descriptor) {
  std::vector<std::byte> out(*hurray::encoded_size(descriptor));
  for (auto _ : state) {
    auto size = hurray::encode_into(descriptor, out);
    benchmark::DoNotOptimize(size);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["bytes"] = static_cast<double>(out.size());
}

#define BOTH(name, descriptor)                                                          \
  BENCHMARK_CAPTURE(decode, name, descriptor)->Repetitions(21)->ReportAggregatesOnly(); \
  BENCHMARK_CAPTURE(encode, name, descriptor)->Repetitions(21)->ReportAggregatesOnly()

BOTH(dense_rank_0, dense(0));
BOTH(dense_rank_2, dense(2));
BOTH(dense_rank_4, dense(4));
BOTH(strided_rank_4, strided());
BOTH(tiled_rank_2, tiled());
BOTH(csr, csr());
BOTH(quantized_3_buffers, quantized());
BOTH(csf_rank_64, csf_64());
BOTH(tiled_8_levels_rank_64, tiled_8_levels());

}  // namespace
