// A descriptor as a value: build, encode, decode, explain, and what a damaged one gives.
#include <cstddef>
#include <iostream>
#include <vector>

#include "hurray/descriptor.hpp"

using namespace hurray;

int main() {
  Descriptor d;
  d.dtype = DType::int16;
  d.shape = Shape{4, 3};
  d.layout = Strided{.strides = {-8, -2}};  // in elements, not bytes
  d.byte_offset = 60;                       // of element [0, 0]
  d.buffers = BufferTable{{.byte_size = 64, .alignment = 64}};

  const auto bytes = encode(d);  // every rule of the format is checked here
  if (!bytes) return std::cerr << to_string(bytes.error()) << '\n', 1;
  const auto back = decode(*bytes);
  if (!back || !(*back == d)) return 1;

  const auto explained = describe(*bytes, [](const FieldRow& row) {
    std::cout << row.offset << '\t' << row.name << " = " << row.value << '\n';
  });
  if (!explained) return 1;

  d.byte_offset = 64;  // now the last element lies outside the buffer
  const auto refused = encode(d);
  if (refused) return 1;
  std::cout << to_string(refused.error()) << '\n';
  if (refused.error().code != Errc::out_of_bounds || refused.error().field != "byte_offset")
    return 1;

  std::vector<std::byte> damaged = *bytes;
  damaged[14] = std::byte{0x47};  // a type tag that is held back
  const auto unknown = decode(damaged);
  if (unknown) return 1;
  std::cout << to_string(unknown.error()) << '\n';
  return unknown.error().code == Errc::invalid_tag && unknown.error().offset == 14 ? 0 : 1;
}
