// A descriptor of any layout, type and scheme that holds together, over buffers of any bytes: it
// comes back from its encoding, and its elements are found, refused or converted, never misread.
#include <fuzzer/FuzzedDataProvider.h>

#include "../core/tests/random_descriptor.hpp"
#include "use_tensor.hpp"

namespace {

struct Input {
  FuzzedDataProvider data;
  std::uint64_t below(std::uint64_t n) {
    return data.ConsumeIntegralInRange<std::uint64_t>(0, n - 1);
  }
};

constexpr std::uint64_t most_bytes = 1u << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hurray;
  Input input{FuzzedDataProvider(data, size)};
  const auto d = testing::RandomDescriptor<Input>(input)();
  if (!d) return 0;
  const auto bytes = encode(*d);
  fuzz::require(bytes.has_value());
  const auto again = decode(*bytes, {.agreed = {.all = true}});
  fuzz::require(again && *again == *d);

  std::vector<Buffer> buffers;
  for (const BufferHandle& handle : d->buffers) {
    if (handle.byte_size > most_bytes) return 0;
    auto buffer = Buffer::allocate(handle.byte_size, true);
    fuzz::require(buffer.has_value());
    // Small numbers are what pointers and coordinates are made of.
    const bool small = input.below(2) == 0;
    const auto given = input.data.ConsumeBytes<std::uint8_t>(
        std::min<std::size_t>(static_cast<std::size_t>(handle.byte_size), 256));
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::size_t at = small && i * 8 < handle.byte_size ? i * 8 : i;
      buffer->data()[at] = static_cast<std::byte>(given[i]);
    }
    buffers.push_back(*std::move(buffer));
  }
  Descriptor here = *d;  // on this machine
  for (BufferHandle& handle : here.buffers) handle = {.byte_size = handle.byte_size};
  const auto tensor = bind(std::move(here), std::move(buffers));
  if (fuzz::explained(tensor)) fuzz::use(*tensor);
  return 0;
}
