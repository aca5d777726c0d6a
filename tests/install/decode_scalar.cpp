// The smallest use of an installed hurray: decode the descriptor of a float32 scalar.
#include <array>
#include <cstdio>
#include <hurray/descriptor.hpp>
#include <hurray/version.hpp>
#include <span>

int main() {
  constexpr std::array<unsigned char, 45> scalar = {
      'H',  'R', 'R', 'Y', 1, 0,        // magic, version 1.0
      45,   0,   0,   0,   0, 0, 0, 0,  // descriptor_length, flags
      0x03, 1,   0,   0,   0, 0,        // float32, row-major, rank 0
      0,    0,   0,   0,   0, 0, 0, 0,  // byte_offset
      1,    4,   0,   0,   0, 0, 0, 0,  // one buffer of 4 bytes
      0,    64,  0,   0,   0, 0, 0, 0,  // aligned to 64, CPU
      0,
  };
  const auto descriptor = hurray::decode(std::as_bytes(std::span(scalar)));
  if (!descriptor) {
    std::puts("hurray::decode refused a scalar");
    return 1;
  }
  std::printf("hurray %s decoded a scalar\n", HURRAY_VERSION);
  return descriptor->dtype == hurray::DType::float32 ? 0 : 1;
}
