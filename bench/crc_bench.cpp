#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "../io/src/crc32c.hpp"

namespace {

void crc32c(benchmark::State& state, hurray::io::Crc32cPath path) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{0x5A});
  std::uint32_t crc = 0;
  for (auto _ : state) {
    crc = path.crc32c(bytes, crc);
    benchmark::DoNotOptimize(crc);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

[[maybe_unused]] const bool registered = [] {
  for (const hurray::io::Crc32cPath& path : hurray::io::crc32c_paths())
    benchmark::RegisterBenchmark(("crc32c/" + std::string(path.name)).c_str(), crc32c, path)
        ->Arg(64)
        ->Arg(4096)
        ->Arg(1 << 20);
  return true;
}();

}  // namespace
