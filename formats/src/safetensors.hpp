#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/dtype.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/shape.hpp"

namespace hurray::formats {

/// The element types of safetensors that have a type of the same encoding here. Bits are stored in
/// the same order, and shapes count elements, also below a byte; only BOOL takes a whole byte
/// there.
struct SafetensorsType {
  std::string_view name;
  DType dtype;
};

inline constexpr auto safetensors_types = std::to_array<SafetensorsType>({
    {"BOOL", DType::bool_},
    {"F4", DType::float4_e2m1},
    {"F6_E2M3", DType::float6_e2m3},
    {"F6_E3M2", DType::float6_e3m2},
    {"U8", DType::uint8},
    {"I8", DType::int8},
    {"F8_E5M2", DType::float8_e5m2},
    {"F8_E4M3", DType::float8_e4m3},
    {"F8_E8M0", DType::float8_e8m0},
    {"I16", DType::int16},
    {"U16", DType::uint16},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"I32", DType::int32},
    {"U32", DType::uint32},
    {"F32", DType::float32},
    {"C64", DType::complex64},
    {"F64", DType::float64},
    {"I64", DType::int64},
    {"U64", DType::uint64},
});

/// The first byte of the header, and the largest header that is read.
inline constexpr std::size_t safetensors_prefix_bytes = 8;
inline constexpr std::uint64_t max_safetensors_header_bytes = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  std::uint64_t begin = 0, end = 0;  ///< Bytes from the start of the data.
  std::uint64_t offset = 0;          ///< Of its name in the file.
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor>
      tensors;                    ///< In the order of their data; empty ones as in the header.
  io::KeyValues metadata;         ///< `__metadata__`, strings in the order of the header.
  std::uint64_t data_offset = 0;  ///< Bytes from the start of the file.
};

/// Bytes of the header that follows the prefix: positive, at most what the file and the limit hold.
/// `bytes` are the first bytes of a file of `file_size` bytes; 9 suffice.
io::Result<std::uint64_t> safetensors_header_bytes(std::span<const std::byte> bytes,
                                                   std::uint64_t file_size);

/// Reads the prefix and the header that is announced there: `bytes` begin with both. Refuses what
/// is not JSON of the published form, names and keys that occur twice, types without a counterpart,
/// sizes that do not follow from shape and type, and data that does not cover the rest of the file
/// exactly, without holes, overlaps and bytes left over.
io::Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> bytes,
                                                      std::uint64_t file_size);

}  // namespace hurray::formats
