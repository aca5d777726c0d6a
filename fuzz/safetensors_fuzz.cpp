// The reader of safetensors headers: what it accepts covers the file's data exactly.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto header = hurray::formats::read_safetensors_header(file, size);
  if (!header) {
    if (to_string(header.error()).empty()) std::abort();
    return 0;
  }
  std::uint64_t end = 0;
  for (const auto& tensor : header->tensors) {
    if (tensor.begin != end || tensor.shape.is_dynamic()) std::abort();
    end = tensor.end;
    const auto packed = hurray::packed_bytes(bits(tensor.dtype), tensor.shape.count());
    if (!packed || *packed > tensor.end - tensor.begin) std::abort();
  }
  if (header->data_offset + end != size) std::abort();
  return 0;
}
