#pragma once

#include <array>
#include <string_view>

#include "hurray/dtype.hpp"

namespace hurray::formats {

/// The type codes of NumPy that have a type here.
struct NpyType {
  std::string_view code;
  DType dtype;
};
inline constexpr auto npy_types = std::to_array<NpyType>({
    {"b1", DType::bool_},
    {"i1", DType::int8},
    {"u1", DType::uint8},
    {"i2", DType::int16},
    {"u2", DType::uint16},
    {"f2", DType::float16},
    {"i4", DType::int32},
    {"u4", DType::uint32},
    {"f4", DType::float32},
    {"i8", DType::int64},
    {"u8", DType::uint64},
    {"f8", DType::float64},
    {"c8", DType::complex64},
    {"c16", DType::complex128},
});

}  // namespace hurray::formats
