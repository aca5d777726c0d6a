#pragma once

// The C structures of DLPack 1.1 (dlpack.h): an ABI, so names and order are DLPack's.

#include <cstdint>

namespace hurray::python::dlpack {

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;    ///< Elements.
  std::int64_t* strides;  ///< Elements; null: row-major.
  std::uint64_t byte_offset;
};

/// Behind a capsule named "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor* self);
};

/// Behind a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

inline constexpr std::uint64_t flag_read_only = 1;
inline constexpr std::uint64_t flag_is_copied = 2;
inline constexpr std::uint64_t flag_subbyte_padded = 4;

inline constexpr Version newest{1, 1};

/// What a capsule is called until, and once, its content has been taken.
template <class Managed>
inline constexpr const char* capsule_name = "dltensor";
template <>
inline constexpr const char* capsule_name<ManagedTensorVersioned> = "dltensor_versioned";
template <class Managed>
inline constexpr const char* used_name = "used_dltensor";
template <>
inline constexpr const char* used_name<ManagedTensorVersioned> = "used_dltensor_versioned";

}  // namespace hurray::python::dlpack
