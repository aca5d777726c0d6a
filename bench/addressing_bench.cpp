#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <vector>

#include "hurray/layout.hpp"

namespace {

using hurray::BitPath;
using hurray::HilbertCodec;
using hurray::MortonCodec;
using Index = std::array<std::uint64_t, 2>;

constexpr std::uint32_t order = 16;

const hurray::Shape& plane() {
  static const hurray::Shape shape{std::uint64_t{1} << order, std::uint64_t{1} << order};
  return shape;
}

hurray::Morton morton() {
  hurray::Morton layout;
  layout.bits.push_back(order);
  layout.bits.push_back(order);
  return layout;
}

hurray::Hilbert hilbert(std::uint32_t of_order) { return {.order = of_order, .rank = 2}; }

hurray::Tiled tiled() { return hurray::Tiled({32, 32}); }

/// Indices that no branch predictor learns, few enough for the first-level cache.
std::vector<Index> scattered() {
  std::vector<Index> indices(1024);
  std::uint64_t x = 1;
  for (Index& index : indices)
    for (std::uint64_t& n : index) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      n = x >> (64 - order);
    }
  return indices;
}

template <class Codec>
void addresses(benchmark::State& state, const Codec& codec) {
  const auto indices = scattered();
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(codec.offset(indices[i++ % indices.size()]));
}

template <class Codec>
void inverses(benchmark::State& state, const Codec& codec) {
  std::vector<std::int64_t> offsets;
  for (const Index& index : scattered()) offsets.push_back(codec.offset(index));
  std::size_t i = 0;
  Index index{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(codec.index_of(offsets[i++ % offsets.size()], index));
    benchmark::DoNotOptimize(index);
  }
}

/// The layout's own `offset`, which works everything out anew.
template <class Layout>
void addresses_of_layout(benchmark::State& state, const Layout& layout) {
  const auto indices = scattered();
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(layout.offset(indices[i++ % indices.size()], plane()));
}

template <class Layout>
void in_storage_order(benchmark::State& state, const Layout& layout, const hurray::Shape& shape) {
  std::int64_t elements = 0;
  for (auto _ : state)
    layout.for_each(shape, [&](auto index, std::int64_t offset) {
      benchmark::DoNotOptimize(index);
      benchmark::DoNotOptimize(offset);
      ++elements;
      return true;
    });
  state.SetItemsProcessed(elements);
}

MortonCodec morton_codec(const benchmark::State& state) {
  return {morton(), plane(), static_cast<BitPath>(state.range(0))};
}
HilbertCodec hilbert_codec(const benchmark::State& state) {
  return HilbertCodec(hilbert(order), static_cast<BitPath>(state.range(0)));
}

void repeated(benchmark::internal::Benchmark* benchmark) {
  benchmark->Repetitions(21)->ReportAggregatesOnly();
}
void on_each_path(benchmark::internal::Benchmark* benchmark) {
  repeated(benchmark);
  benchmark->ArgName("bmi2")->Arg(static_cast<int>(BitPath::portable));
  if (hurray::fastest_bit_path() == BitPath::bmi2) benchmark->Arg(static_cast<int>(BitPath::bmi2));
}

void morton_address(benchmark::State& state) { addresses(state, morton_codec(state)); }
BENCHMARK(morton_address)->Apply(on_each_path);
void morton_inverse(benchmark::State& state) { inverses(state, morton_codec(state)); }
BENCHMARK(morton_inverse)->Apply(on_each_path);
void hilbert_address(benchmark::State& state) { addresses(state, hilbert_codec(state)); }
BENCHMARK(hilbert_address)->Apply(on_each_path);
void hilbert_inverse(benchmark::State& state) { inverses(state, hilbert_codec(state)); }
BENCHMARK(hilbert_inverse)->Apply(on_each_path);
void tiled_address(benchmark::State& state) { addresses(state, tiled().codec(plane())); }
BENCHMARK(tiled_address)->Apply(repeated);

void morton_layout_address(benchmark::State& state) { addresses_of_layout(state, morton()); }
BENCHMARK(morton_layout_address)->Apply(repeated);
void hilbert_layout_address(benchmark::State& state) { addresses_of_layout(state, hilbert(order)); }
BENCHMARK(hilbert_layout_address)->Apply(repeated);
void tiled_layout_address(benchmark::State& state) { addresses_of_layout(state, tiled()); }
BENCHMARK(tiled_layout_address)->Apply(repeated);

void row_major_for_each(benchmark::State& state) {
  in_storage_order(state, hurray::RowMajor{}, {500, 500});
}
BENCHMARK(row_major_for_each)->Apply(repeated);
void tiled_for_each(benchmark::State& state) { in_storage_order(state, tiled(), {500, 500}); }
BENCHMARK(tiled_for_each)->Apply(repeated);
void morton_for_each(benchmark::State& state) {
  in_storage_order(state, hurray::Morton::fitting({500, 500}), {500, 500});
}
BENCHMARK(morton_for_each)->Apply(repeated);
void hilbert_for_each(benchmark::State& state) { in_storage_order(state, hilbert(9), {512, 512}); }
BENCHMARK(hilbert_for_each)->Apply(repeated);

}  // namespace
