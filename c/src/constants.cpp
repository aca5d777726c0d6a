// The constants of hurray.h are the tables of C++: same names, same values, all of them. And its
// structs have the sizes and offsets that other compilers have been told.
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "hurray.h"
#include "hurray/composite.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/device.hpp"
#include "hurray/dtype.hpp"
#include "hurray/io/file.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/layout.hpp"
#include "hurray/quantization.hpp"
#include "hurray/statistics.hpp"

namespace {

using namespace hurray;

struct Constant {
  std::string_view name;
  std::uint32_t value;
};

constexpr bool same_word(std::string_view upper, std::string_view name) {
  if (upper.size() != name.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const char expected = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (upper[i] != expected) return false;
  }
  return true;
}

template <class Table, std::size_t N>
constexpr bool same(const Table& table, const Constant (&constants)[N]) {
  if (table.size() != N) return false;
  for (std::size_t i = 0; i < N; ++i)
    if (static_cast<std::uint32_t>(table[i].tag) != constants[i].value ||
        !same_word(constants[i].name, table[i].name))
      return false;
  return true;
}

#define C(prefix, name) {#name, HURRAY_##prefix##_##name}

constexpr Constant types[] = {
    C(TYPE, FLOAT16),     C(TYPE, BFLOAT16),    C(TYPE, FLOAT32),     C(TYPE, FLOAT64),
    C(TYPE, INT8),        C(TYPE, UINT8),       C(TYPE, INT16),       C(TYPE, UINT16),
    C(TYPE, INT32),       C(TYPE, UINT32),      C(TYPE, INT64),       C(TYPE, UINT64),
    C(TYPE, BOOL),        C(TYPE, FLOAT8_E4M3), C(TYPE, FLOAT8_E5M2), C(TYPE, FLOAT8_E8M0),
    C(TYPE, FLOAT4_E2M1), C(TYPE, FLOAT6_E2M3), C(TYPE, FLOAT6_E3M2), C(TYPE, FLOAT128),
    C(TYPE, INT4),        C(TYPE, UINT4),       C(TYPE, INT2),        C(TYPE, UINT2),
    C(TYPE, COMPLEX64),   C(TYPE, COMPLEX128)};
static_assert(same(dtypes, types));

constexpr Constant layouts_[] = {C(LAYOUT, ROW_MAJOR),   C(LAYOUT, COL_MAJOR), C(LAYOUT, STRIDED),
                                 C(LAYOUT, TILED),       C(LAYOUT, MORTON),    C(LAYOUT, COO),
                                 C(LAYOUT, CSR),         C(LAYOUT, CSC),       C(LAYOUT, CSF),
                                 C(LAYOUT, BLOCK_PAGED), C(LAYOUT, COMPOSITE), C(LAYOUT, HILBERT)};
static_assert(same(layouts, layouts_));

constexpr Constant devices_[] = {C(DEVICE, CPU),     C(DEVICE, CUDA),       C(DEVICE, ROCM),
                                 C(DEVICE, METAL),   C(DEVICE, VULKAN),     C(DEVICE, WEBGPU),
                                 C(DEVICE, HEXAGON), C(DEVICE, LEVEL_ZERO), C(DEVICE, OPENCL)};
static_assert(same(devices, devices_));

constexpr Constant memory[] = {C(MEMORY, STANDARD), C(MEMORY, HOST_PINNED), C(MEMORY, UNIFIED),
                               C(MEMORY, PEER)};
static_assert(same(memory_classes, memory));

constexpr Constant sync[] = {C(SYNC, PRODUCER_SYNCED), C(SYNC, EVENT), C(SYNC, CONSUMER_STREAM)};
static_assert(same(sync_modes, sync));

constexpr Constant flags_[] = {C(FLAG, HAS_QUANTIZATION), C(FLAG, HAS_SHARD),
                               C(FLAG, HAS_EXTENSION_TYPE), C(FLAG, HAS_STATISTICS),
                               C(FLAG, HAS_COMPOSITE_MEMBER)};
static_assert(same(flags, flags_));

constexpr Constant schemes_[] = {C(SCHEME, PER_TENSOR_AFFINE), C(SCHEME, PER_CHANNEL_AFFINE),
                                 C(SCHEME, PER_BLOCK_AFFINE), C(SCHEME, NF4), C(SCHEME, MXFP)};
static_assert(same(schemes, schemes_));

constexpr Constant statistics[] = {
    C(STATISTICS, NNZ_VALID),         C(STATISTICS, SPARSITY_VALID),
    C(STATISTICS, VALUE_RANGE_VALID), C(STATISTICS, VALUE_STATS_VALID),
    C(STATISTICS, NM_SPARSITY_VALID), C(STATISTICS, NAN_INF_VALID)};
static_assert(same(statistics_bits, statistics));

constexpr Constant rules[] = {C(RULE, PARTITION), C(RULE, OVERLAY), C(RULE, GROUP)};
static_assert(same(composition_rules, rules));
constexpr Constant ops[] = {C(OP, NONE), C(OP, REPLACE), C(OP, ADD)};
static_assert(same(combine_ops, ops));
constexpr Constant roles[] = {C(ROLE, CORRECTION), C(ROLE, BASE)};
static_assert(same(member_roles, roles));

constexpr Constant modes_[] = {C(MODE, MAP), C(MODE, COPY_ON_WRITE), C(MODE, MEMORY)};
static_assert(same(io::modes, modes_));

#undef C

static_assert(HURRAY_KV_STRING == static_cast<int>(io::KvTag::string));
static_assert(HURRAY_KV_INT64 == static_cast<int>(io::KvTag::int64));
static_assert(HURRAY_KV_UINT64 == static_cast<int>(io::KvTag::uint64));
static_assert(HURRAY_KV_FLOAT64 == static_cast<int>(io::KvTag::float64));
static_assert(HURRAY_KV_BOOL == static_cast<int>(io::KvTag::boolean));
static_assert(HURRAY_KV_BYTES == static_cast<int>(io::KvTag::bytes));
static_assert(HURRAY_KV_ARRAY == static_cast<int>(io::KvTag::array));

static_assert(HURRAY_DYNAMIC == dynamic);

constexpr std::int32_t status_of(Errc code) {
  for (const ErrcInfo& row : errcs)
    if (row.code == code) return row.status;
  return 0;
}
static_assert(HURRAY_ERR_INVALID_MAGIC == status_of(Errc::invalid_magic));
static_assert(HURRAY_ERR_VERSION_MISMATCH == status_of(Errc::unsupported_version));
static_assert(HURRAY_ERR_IO == status_of(Errc::system));
static_assert(HURRAY_ERR_TRUNCATED == status_of(Errc::truncated));
static_assert(HURRAY_ERR_LIMIT_EXCEEDED == status_of(Errc::limit_exceeded));
static_assert(HURRAY_ERR_NOT_FOUND == status_of(Errc::not_found));
static_assert(HURRAY_ERR_DUPLICATE == status_of(Errc::duplicate));
static_assert(HURRAY_ERR_CRC_MISMATCH == status_of(Errc::checksum_mismatch));
static_assert(HURRAY_ERR_INVALID_ARGUMENT == status_of(Errc::copy_required));
static_assert(HURRAY_ERR_OUT_OF_MEMORY == status_of(Errc::out_of_memory));
static_assert(HURRAY_ERR_UNSUPPORTED == status_of(Errc::unsupported));
static_assert(HURRAY_ERR_INVALID_STATE == status_of(Errc::invalid_state));
static_assert(HURRAY_ERR_INVALID_LAYOUT == origins[0].status);
static_assert(HURRAY_ERR_INVALID_FILE == origins[2].status);

static_assert(offsetof(HurrayHandlePrefix, abi_version) == 8);
static_assert(offsetof(HurrayHandlePrefix, kind) == 12);
static_assert(offsetof(HurrayHandlePrefix, fn) == 16);
static_assert(sizeof(HurrayHandlePrefix) == 16 + sizeof(void*));
static_assert(offsetof(HurrayHandleFunctions, producer) == 8);
static_assert(offsetof(HurrayHandleFunctions, buffer_destroy) == 8 + sizeof(void*));
static_assert(offsetof(HurrayHandleFunctions, list_len) == 8 + 8 * sizeof(void*));
static_assert(offsetof(HurrayHandleFunctions, context_abi_version) == 8 + 12 * sizeof(void*));
static_assert(offsetof(HurrayHandleFunctions, last_error) == 8 + 15 * sizeof(void*));
static_assert(sizeof(HurrayHandleFunctions) == 8 + 16 * sizeof(void*));

static_assert(offsetof(HurraySyncEventPayload, sync_handle_device_tag) == sizeof(void*));
static_assert(offsetof(HurraySyncEventPayload, event_release_fn) == 2 * sizeof(void*));
static_assert(offsetof(HurraySyncEventPayload, event_release_context) == 3 * sizeof(void*));
static_assert(sizeof(HurraySyncEventPayload) == 4 * sizeof(void*));
static_assert(offsetof(HurraySyncConsumerStreamPayload, consumer_stream_device_tag) ==
              sizeof(void*));
static_assert(sizeof(HurraySyncConsumerStreamPayload) == 2 * sizeof(void*));

static_assert(offsetof(HurrayBufferInfo, alignment) == 8 && sizeof(HurrayBufferInfo) == 16);
static_assert(offsetof(HurrayStatistics, nnz) == 8 && offsetof(HurrayStatistics, nm_n) == 64 &&
              sizeof(HurrayStatistics) == 72);
static_assert(offsetof(HurrayExtensionType, exponent_bias) == 12 &&
              sizeof(HurrayExtensionType) == 20);

// Structs with pointers: on systems with pointers of 8 bytes.
static_assert(sizeof(void*) != 8 ||
              (sizeof(HurrayDescriptorInit) == 136 && offsetof(HurrayDescriptorInit, shape) == 8 &&
               offsetof(HurrayDescriptorInit, buffers) == 24 &&
               offsetof(HurrayDescriptorInit, quantization) == 56 &&
               offsetof(HurrayDescriptorInit, composite_member) == 120));
static_assert(sizeof(void*) != 8 || (sizeof(HurrayStreamOptions) == 72 &&
                                     offsetof(HurrayStreamOptions, max_composite_depth) == 48 &&
                                     offsetof(HurrayStreamOptions, interrupted) == 56));
static_assert(sizeof(void*) != 8 || (sizeof(HurrayStreamWriteOptions) == 24 &&
                                     offsetof(HurrayStreamWriteOptions, interrupted) == 8));
static_assert(sizeof(void*) != 8 || (sizeof(HurrayFileOptions) == 72 &&
                                     offsetof(HurrayFileOptions, max_index_bytes) == 8 &&
                                     offsetof(HurrayFileOptions, interrupted) == 56));
static_assert(sizeof(void*) != 8 || (sizeof(HurrayFileWriteOptions) == 48 &&
                                     offsetof(HurrayFileWriteOptions, tensor_count) == 16 &&
                                     offsetof(HurrayFileWriteOptions, interrupted) == 32));
static_assert(sizeof(void*) != 8 || (sizeof(HurrayFileEntry) == 48 && sizeof(HurrayKvEntry) == 40 &&
                                     sizeof(HurraySpan) == 16 && sizeof(HurrayFinding) == 48));

}  // namespace
