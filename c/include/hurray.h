/*
 * The C interface of Hurray: tensors without copies, in files (.hrry), in streams, and between
 * libraries in one process. C99; every name begins with hurray_, Hurray or HURRAY_.
 *
 * Rules that hold everywhere (docs/format/07-c-abi.md is the reference, "section N" below):
 *
 * - Functions return a HurrayStatus: 0 is success, negatives are errors. What went wrong, in words,
 *   is in hurray_last_error(), for each thread its own.
 * - Null checks come first, in argument order: HURRAY_ERR_NULL_POINTER.
 * - Out parameters are written on success only. Where that is not so, it is said.
 * - Handles are opaque. Each begins with a HurrayHandlePrefix; one of another library is served
 *   through that library's own functions (section 11.1), one that cannot be is
 *   HURRAY_ERR_FOREIGN_HANDLE. A handle that has been destroyed is answered by an error as long as
 *   its memory has not become another handle.
 * - Sizes and offsets are bytes, unless they are named otherwise. Strings are UTF-8 with a length;
 *   those given out have no terminating zero unless that is said.
 * - One handle belongs to one thread at a time; different handles are independent. The library has
 *   no threads of its own. No C++ exception leaves any of these functions.
 * - "Capacity in, length out": *len says how many elements `out` takes, and afterwards how many
 *   there are, also on HURRAY_ERR_BUFFER_TOO_SMALL, which a null `out` gives as well; nothing else
 *   is written then.
 * - Options: a null pointer means defaults, and so does 0 in any field. `struct_size` is
 *   sizeof(the struct) as the caller knows it; fields beyond it take their defaults.
 */
#ifndef HURRAY_H
#define HURRAY_H

#include <stdint.h>

/* HURRAY_C_STATIC: the library's objects are part of the program. */
#if defined(HURRAY_C_STATIC)
#define HURRAY_C_API
#elif defined(_WIN32)
#if defined(HURRAY_C_BUILDING)
#define HURRAY_C_API __declspec(dllexport)
#else
#define HURRAY_C_API __declspec(dllimport)
#endif
#else
#define HURRAY_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions (section 1) ------------------------------------------------------------------ */

#define HURRAY_C_ABI_VERSION 4
#define HURRAY_C_ABI_EXTENSION_VERSION 1

/* The version that the library was built as; cannot fail. */
HURRAY_C_API uint32_t hurray_c_abi_version(void);
/* The version of what this library adds to the published functions (section 11); cannot fail. */
HURRAY_C_API uint32_t hurray_abi_extension_version(void);

/* ---- Status (sections 2 and 11.3) ---------------------------------------------------------- */

typedef int32_t HurrayStatus;

enum {
  HURRAY_OK = 0,
  HURRAY_ERR_INVALID_MAGIC = -1,      /* the bytes are no descriptor */
  HURRAY_ERR_VERSION_MISMATCH = -2,   /* a version that this library does not read */
  HURRAY_ERR_INVALID_LAYOUT = -3,     /* anything structural; also a false alignment */
  HURRAY_ERR_INVALID_TYPE = -4,       /* type tag, device tag or memory class */
  HURRAY_ERR_BUFFER_TOO_SMALL = -5,   /* the caller's array is too small */
  HURRAY_ERR_NULL_POINTER = -6,       /* a required pointer is null */
  HURRAY_ERR_INTERNAL_PANIC = -7,     /* a failure inside, or an exception out of a callback */
  HURRAY_ERR_INVALID_SYNC_MODE = -8,  /* unknown, or not 0 on the CPU */
  HURRAY_ERR_SYNC_MODE_MISMATCH = -9, /* the payload does not fit the buffer's mode */
  HURRAY_ERR_INTERNAL = -10,          /* anything else: no memory, a destroyed handle */
  HURRAY_ERR_INDEX_OUT_OF_BOUNDS = -11,

  HURRAY_ERR_IO = -100, /* the operating system, or a callback, refused */
  HURRAY_ERR_TRUNCATED = -101,
  HURRAY_ERR_LIMIT_EXCEEDED = -102, /* a limit that the options can raise */
  HURRAY_ERR_NOT_FOUND = -103,      /* no such name, section or field */
  HURRAY_ERR_DUPLICATE = -104,
  HURRAY_ERR_CRC_MISMATCH = -105,
  HURRAY_ERR_INVALID_FILE = -106, /* the bytes of a file or stream break a rule */
  HURRAY_ERR_INVALID_ARGUMENT = -107,
  HURRAY_ERR_FOREIGN_HANDLE = -108, /* no handle, or one that its producer does not explain */
  HURRAY_ERR_OUT_OF_MEMORY = -109,
  HURRAY_ERR_UNSUPPORTED = -110,
  HURRAY_ERR_INVALID_STATE = -111, /* a finished writer, a failed reader, a handle in use */
  HURRAY_ERR_TORN_COMPOSITE = -112 /* a composite whose members are not all there */
};

/* What the last failing call of this thread has to say: UTF-8, terminated, never null, at most
 * 1023 bytes. Untouched by calls that succeed; the pointer stays valid until the thread ends, the
 * text until the next failing call. */
HURRAY_C_API const char* hurray_last_error(void);
/* Makes it "". */
HURRAY_C_API void hurray_clear_last_error(void);

/* ---- Tags of the format (01-descriptor.md) ------------------------------------------------- */

/* Element types; 0xF0 to 0xFE are private. */
enum {
  HURRAY_TYPE_FLOAT16 = 0x01,
  HURRAY_TYPE_BFLOAT16 = 0x02,
  HURRAY_TYPE_FLOAT32 = 0x03,
  HURRAY_TYPE_FLOAT64 = 0x04,
  HURRAY_TYPE_INT8 = 0x10,
  HURRAY_TYPE_UINT8 = 0x11,
  HURRAY_TYPE_INT16 = 0x12,
  HURRAY_TYPE_UINT16 = 0x13,
  HURRAY_TYPE_INT32 = 0x14,
  HURRAY_TYPE_UINT32 = 0x15,
  HURRAY_TYPE_INT64 = 0x16,
  HURRAY_TYPE_UINT64 = 0x17,
  HURRAY_TYPE_BOOL = 0x20,
  HURRAY_TYPE_FLOAT8_E4M3 = 0x40,
  HURRAY_TYPE_FLOAT8_E5M2 = 0x41,
  HURRAY_TYPE_FLOAT8_E8M0 = 0x42,
  HURRAY_TYPE_FLOAT4_E2M1 = 0x43,
  HURRAY_TYPE_FLOAT6_E2M3 = 0x44,
  HURRAY_TYPE_FLOAT6_E3M2 = 0x45,
  HURRAY_TYPE_FLOAT128 = 0x46,
  HURRAY_TYPE_INT4 = 0x48,
  HURRAY_TYPE_UINT4 = 0x49,
  HURRAY_TYPE_INT2 = 0x4A,
  HURRAY_TYPE_UINT2 = 0x4B,
  HURRAY_TYPE_COMPLEX64 = 0x50,
  HURRAY_TYPE_COMPLEX128 = 0x51
};

/* Layouts; 0xF0 to 0xFE are private. */
enum {
  HURRAY_LAYOUT_ROW_MAJOR = 0x01,
  HURRAY_LAYOUT_COL_MAJOR = 0x02,
  HURRAY_LAYOUT_STRIDED = 0x03,
  HURRAY_LAYOUT_TILED = 0x04,
  HURRAY_LAYOUT_MORTON = 0x05,
  HURRAY_LAYOUT_COO = 0x06,
  HURRAY_LAYOUT_CSR = 0x07,
  HURRAY_LAYOUT_CSC = 0x08,
  HURRAY_LAYOUT_CSF = 0x09,
  HURRAY_LAYOUT_BLOCK_PAGED = 0x0A,
  HURRAY_LAYOUT_COMPOSITE = 0x0B,
  HURRAY_LAYOUT_HILBERT = 0x40
};

/* Devices; 0xF0 to 0xFE are private. */
enum {
  HURRAY_DEVICE_CPU = 0x00,
  HURRAY_DEVICE_CUDA = 0x01,
  HURRAY_DEVICE_ROCM = 0x02,
  HURRAY_DEVICE_METAL = 0x03,
  HURRAY_DEVICE_VULKAN = 0x04,
  HURRAY_DEVICE_WEBGPU = 0x05,
  HURRAY_DEVICE_HEXAGON = 0x06,
  HURRAY_DEVICE_LEVEL_ZERO = 0x07,
  HURRAY_DEVICE_OPENCL = 0x08
};

/* Who reaches the bytes without a copy. */
enum {
  HURRAY_MEMORY_STANDARD = 0,
  HURRAY_MEMORY_HOST_PINNED = 1,
  HURRAY_MEMORY_UNIFIED = 2,
  HURRAY_MEMORY_PEER = 3
};

/* How a consumer's access starts. */
enum { HURRAY_SYNC_PRODUCER_SYNCED = 0, HURRAY_SYNC_EVENT = 1, HURRAY_SYNC_CONSUMER_STREAM = 2 };

/* Bits of a descriptor's flags: the sections that are there. */
enum {
  HURRAY_FLAG_HAS_QUANTIZATION = 1 << 0,
  HURRAY_FLAG_HAS_SHARD = 1 << 1,
  HURRAY_FLAG_HAS_EXTENSION_TYPE = 1 << 2,
  HURRAY_FLAG_HAS_STATISTICS = 1 << 3,
  HURRAY_FLAG_HAS_COMPOSITE_MEMBER = 1 << 4
};

/* Quantization schemes: the first byte of that section. */
enum {
  HURRAY_SCHEME_PER_TENSOR_AFFINE = 0x01,
  HURRAY_SCHEME_PER_CHANNEL_AFFINE = 0x02,
  HURRAY_SCHEME_PER_BLOCK_AFFINE = 0x03,
  HURRAY_SCHEME_NF4 = 0x04,
  HURRAY_SCHEME_MXFP = 0x05
};

/* Bits of HurrayStatistics.computed_mask. */
enum {
  HURRAY_STATISTICS_NNZ_VALID = 1 << 0,
  HURRAY_STATISTICS_SPARSITY_VALID = 1 << 1,
  HURRAY_STATISTICS_VALUE_RANGE_VALID = 1 << 2,
  HURRAY_STATISTICS_VALUE_STATS_VALID = 1 << 3,
  HURRAY_STATISTICS_NM_SPARSITY_VALID = 1 << 4,
  HURRAY_STATISTICS_NAN_INF_VALID = 1 << 5
};

/* Composites. */
enum { HURRAY_RULE_PARTITION = 1, HURRAY_RULE_OVERLAY = 2, HURRAY_RULE_GROUP = 3 };
enum { HURRAY_OP_NONE = 0, HURRAY_OP_REPLACE = 1, HURRAY_OP_ADD = 2 };
enum { HURRAY_ROLE_CORRECTION = 0, HURRAY_ROLE_BASE = 1 };

/* A dimension that is not known yet. */
#define HURRAY_DYNAMIC UINT64_MAX

/* ---- Handles (sections 3 and 11.1) --------------------------------------------------------- */

typedef struct HurrayBuffer HurrayBuffer;               /* memory, and who gives it back */
typedef struct HurrayBufferList HurrayBufferList;       /* the buffers of one tensor */
typedef struct HurrayTensorContext HurrayTensorContext; /* what they are, and what keeps them */
typedef struct HurrayDescriptor HurrayDescriptor;
typedef struct HurrayReader HurrayReader; /* of a stream */
typedef struct HurrayWriter HurrayWriter; /* of a stream */
typedef struct HurrayFile HurrayFile;
typedef struct HurrayFileWriter HurrayFileWriter;

struct HurrayHandleFunctions;

enum {
  HURRAY_KIND_BUFFER = 1,
  HURRAY_KIND_BUFFER_LIST = 2,
  HURRAY_KIND_TENSOR_CONTEXT = 3,
  HURRAY_KIND_DESCRIPTOR = 4,
  HURRAY_KIND_READER = 5,
  HURRAY_KIND_WRITER = 6,
  HURRAY_KIND_FILE = 7,
  HURRAY_KIND_FILE_WRITER = 8
};

/* The first bytes of every handle. */
typedef struct HurrayHandlePrefix {
  uint8_t magic[8];                       /* "HRRYABI1"; 8 x 0xDD once destroyed */
  uint32_t abi_version;                   /* the producer's HURRAY_C_ABI_VERSION */
  uint32_t kind;                          /* HURRAY_KIND_... */
  const struct HurrayHandleFunctions* fn; /* the producer's, static */
} HurrayHandlePrefix;

/* What a producer does for handles of its own. Entries keep their place; the table grows at its
 * end, and table_size says how far it is filled. */
typedef struct HurrayHandleFunctions {
  uint32_t table_size;        /* bytes of this table */
  uint32_t extension_version; /* HURRAY_C_ABI_EXTENSION_VERSION */
  const char* producer;       /* library and version, terminated, never null */
  HurrayStatus (*buffer_destroy)(HurrayBuffer*);
  HurrayStatus (*buffer_byte_size)(const HurrayBuffer*, uint64_t*);
  HurrayStatus (*buffer_alignment)(const HurrayBuffer*, uint32_t*);
  HurrayStatus (*buffer_device_tag)(const HurrayBuffer*, uint8_t*);
  HurrayStatus (*buffer_sync_mode)(const HurrayBuffer*, uint8_t*);
  HurrayStatus (*buffer_memory_class)(const HurrayBuffer*, uint8_t*);
  HurrayStatus (*buffer_data_ptr)(const HurrayBuffer*, void**);
  HurrayStatus (*list_len)(const HurrayBufferList*, uint64_t*);
  HurrayStatus (*list_get)(const HurrayBufferList*, uint64_t, HurrayBuffer**);
  HurrayStatus (*list_push)(HurrayBufferList*, HurrayBuffer*);
  HurrayStatus (*list_destroy)(HurrayBufferList**);
  HurrayStatus (*context_abi_version)(const HurrayTensorContext*, uint32_t*);
  HurrayStatus (*context_descriptor)(const HurrayTensorContext*, const uint8_t**, uint64_t*);
  HurrayStatus (*context_destroy)(HurrayTensorContext**);
  const char* (*last_error)(void);
} HurrayHandleFunctions;

/* ---- Buffers (sections 4 and 11.2) --------------------------------------------------------- */

/* Gives memory back: gets exactly what hurray_buffer_from_ptr got. Called once for each handle, by
 * the thread that destroys it; must not throw, longjmp or use the handle. */
typedef void (*HurrayReleaseCallback)(void* data, void* release_context);

/* A handle over memory that stays the caller's. `data` may be null when byte_size is 0; `release`
 * may be null: then the memory must outlive the handle.
 *
 * `alignment` is a power of two, at least 64 unless the buffer is empty; where the device has plain
 * addresses (CPU, CUDA, ROCm, Hexagon, Level Zero) the address is divided by it, and a false value
 * is HURRAY_ERR_INVALID_LAYOUT. Other errors: HURRAY_ERR_INVALID_TYPE for a device, a memory class
 * or a pair of them that does not exist, HURRAY_ERR_INVALID_SYNC_MODE. On any error the memory
 * stays with the caller and `release` is not called. */
HURRAY_C_API HurrayStatus hurray_buffer_from_ptr(void* data, uint64_t byte_size, uint32_t alignment,
                                                 uint8_t device_tag, uint8_t sync_mode,
                                                 uint8_t memory_class,
                                                 HurrayReleaseCallback release,
                                                 void* release_context, HurrayBuffer** out_handle);
/* Own host memory on `alignment` (a power of two from 64 to 2097152) with a copy of the bytes. */
HURRAY_C_API HurrayStatus hurray_buffer_copy(const void* data, uint64_t byte_size,
                                             uint32_t alignment, HurrayBuffer** out_handle);
/* Calls `release` and frees the handle. Null is an error, and so is a handle that a list owns. */
HURRAY_C_API HurrayStatus hurray_buffer_destroy(HurrayBuffer* handle);

HURRAY_C_API HurrayStatus hurray_buffer_byte_size(const HurrayBuffer* handle, uint64_t* out);
/* The declared value. */
HURRAY_C_API HurrayStatus hurray_buffer_alignment(const HurrayBuffer* handle, uint32_t* out);
HURRAY_C_API HurrayStatus hurray_buffer_device_tag(const HurrayBuffer* handle, uint8_t* out);
HURRAY_C_API HurrayStatus hurray_buffer_sync_mode(const HurrayBuffer* handle, uint8_t* out);
HURRAY_C_API HurrayStatus hurray_buffer_memory_class(const HurrayBuffer* handle, uint8_t* out);
/* Null only for an empty buffer. Whoever got the handle from a list must not write through it:
 * after a hand-over nobody does (05-stream.md section 8). */
HURRAY_C_API HurrayStatus hurray_buffer_data_ptr(const HurrayBuffer* handle, void** out);

/* The largest power of two up to 4096 that divides the address; 1 for an empty buffer. */
HURRAY_C_API HurrayStatus hurray_measure_alignment(const void* data, uint64_t byte_size,
                                                   uint32_t* out);

/* ---- Descriptors (sections 5 and 11.3) ----------------------------------------------------- */

/* One row of a buffer table (01-descriptor.md section 4.1). */
typedef struct HurrayBufferInfo {
  uint64_t byte_size;
  uint32_t alignment;
  uint8_t device_tag;
  uint8_t sync_mode;
  uint8_t memory_class;
  uint8_t reserved; /* 0 */
} HurrayBufferInfo;

/* What a descriptor is made of. Fields of the layout and sections are the bytes that the wire has
 * (01-descriptor.md sections 3.4 to 3.7); flags and lengths follow from them. A null section is
 * absent; at rank 0 a shard section is 0 bytes, and any pointer but null says that it is there. */
typedef struct HurrayDescriptorInit {
  uint32_t struct_size;
  uint8_t element_type_tag;
  uint8_t layout_tag;
  uint8_t reserved[2];   /* 0 */
  const uint64_t* shape; /* `rank` dimensions in logical elements; UINT64_MAX: dynamic */
  uint32_t rank;         /* 0 to 64 */
  uint32_t buffer_count; /* 0 to 255 */
  const HurrayBufferInfo* buffers;
  uint64_t byte_offset; /* from the start of buffer 0 to element [0,...,0] */
  const uint8_t* layout_fields;
  uint64_t layout_fields_length;
  const uint8_t* quantization; /* from scheme_tag on, without the length before it */
  uint64_t quantization_length;
  const uint8_t* shard;
  uint64_t shard_length;
  const uint8_t* statistics;
  uint64_t statistics_length;
  const uint8_t* extension_type;
  uint64_t extension_type_length;
  const uint8_t* composite_member;
  uint64_t composite_member_length;
} HurrayDescriptorInit;

/* The statistics section (01-descriptor.md section 3.7). */
typedef struct HurrayStatistics {
  uint32_t computed_mask; /* which of the fields below mean something */
  uint32_t reserved;
  uint64_t nnz;
  double sparsity_ratio;
  double value_min;
  double value_max;
  double value_abs_max;
  double value_mean;
  double value_stddev;
  uint8_t nm_n;
  uint8_t nm_m;
  uint8_t has_nan;
  uint8_t has_inf;
  uint8_t reserved_end[4];
} HurrayStatistics;

/* The extension type section (01-descriptor.md section 3.7). */
typedef struct HurrayExtensionType {
  uint32_t bit_width;
  uint8_t packing_factor;
  uint8_t is_float;
  uint8_t is_signed;
  uint8_t sign_bits;
  uint8_t exponent_bits;
  uint8_t mantissa_bits;
  uint8_t reserved[2];
  uint32_t exponent_bias;
  uint8_t has_nan;
  uint8_t has_inf;
  uint8_t reserved_end[2];
} HurrayExtensionType;

/* Strict decoding of what begins at `bytes`; bytes after descriptor_length are not looked at.
 * Copies. */
HURRAY_C_API HurrayStatus hurray_descriptor_decode(const uint8_t* bytes, uintptr_t len,
                                                   HurrayDescriptor** out_handle);
typedef struct HurrayDecodeOptions {
  uint32_t struct_size;
  uint32_t max_descriptor_bytes; /* 0: 16 MiB */
  uint8_t permissive;            /* as in HurrayStreamOptions */
  uint8_t private_values;        /* as in HurrayStreamOptions */
  uint8_t cross_machine;         /* the bytes come from another machine */
  uint8_t reserved;              /* 0 */
} HurrayDecodeOptions;
HURRAY_C_API HurrayStatus hurray_descriptor_decode_with(const uint8_t* bytes, uint64_t len,
                                                        const HurrayDecodeOptions* options,
                                                        HurrayDescriptor** out_handle);
/* From its parts, judged as strictly. Private tags count as agreed. */
HURRAY_C_API HurrayStatus hurray_descriptor_new(const HurrayDescriptorInit* init,
                                                HurrayDescriptor** out_handle);
/* Null is an error. */
HURRAY_C_API HurrayStatus hurray_descriptor_destroy(HurrayDescriptor* handle);

HURRAY_C_API HurrayStatus hurray_descriptor_rank(const HurrayDescriptor* handle, uint32_t* out);
HURRAY_C_API HurrayStatus hurray_descriptor_element_type_tag(const HurrayDescriptor* handle,
                                                             uint8_t* out);
HURRAY_C_API HurrayStatus hurray_descriptor_layout_tag(const HurrayDescriptor* handle,
                                                       uint8_t* out);
HURRAY_C_API HurrayStatus hurray_descriptor_byte_offset(const HurrayDescriptor* handle,
                                                        uint64_t* out);
HURRAY_C_API HurrayStatus hurray_descriptor_buffer_count(const HurrayDescriptor* handle,
                                                         uint32_t* out);
/* Capacity in, rank out. A null array is HURRAY_ERR_BUFFER_TOO_SMALL at rank 0 too. */
HURRAY_C_API HurrayStatus hurray_descriptor_shape(const HurrayDescriptor* handle,
                                                  uint64_t* out_dims, uintptr_t* out_rank);

/* The wire bytes; capacity in, length out. Decoding and encoding is the identity. */
HURRAY_C_API HurrayStatus hurray_descriptor_encode(const HurrayDescriptor* handle, uint8_t* out,
                                                   uint64_t* len);
HURRAY_C_API HurrayStatus hurray_descriptor_version(const HurrayDescriptor* handle, uint8_t* major,
                                                    uint8_t* minor);
HURRAY_C_API HurrayStatus hurray_descriptor_flags(const HurrayDescriptor* handle, uint32_t* out);
HURRAY_C_API HurrayStatus hurray_descriptor_buffer(const HurrayDescriptor* handle, uint32_t i,
                                                   HurrayBufferInfo* out);
/* Borrowed, valid until the handle is destroyed; null and 0 for a layout without fields. */
HURRAY_C_API HurrayStatus hurray_descriptor_layout_bytes(const HurrayDescriptor* handle,
                                                         const uint8_t** out, uint64_t* len);
/* Borrowed, from scheme_tag on; HURRAY_ERR_NOT_FOUND without the section. */
HURRAY_C_API HurrayStatus hurray_descriptor_quantization_bytes(const HurrayDescriptor* handle,
                                                               const uint8_t** out, uint64_t* len);
/* Strides in elements of a row-major, column-major or strided tensor; capacity in, rank out.
 * HURRAY_ERR_NOT_FOUND for other layouts, HURRAY_ERR_UNSUPPORTED where dynamic dimensions hide
 * them. */
HURRAY_C_API HurrayStatus hurray_descriptor_strides(const HurrayDescriptor* handle, int64_t* out,
                                                    uintptr_t* rank);
/* Stored elements of a sparse layout; HURRAY_ERR_NOT_FOUND for others. */
HURRAY_C_API HurrayStatus hurray_descriptor_nnz(const HurrayDescriptor* handle, uint64_t* out);
/* Of a composite head; HURRAY_ERR_NOT_FOUND for others. */
HURRAY_C_API HurrayStatus hurray_descriptor_composite(const HurrayDescriptor* handle, uint8_t* rule,
                                                      uint8_t* op, uint32_t* members);
/* HURRAY_ERR_NOT_FOUND without the section, as in the next three. */
HURRAY_C_API HurrayStatus hurray_descriptor_member_role(const HurrayDescriptor* handle,
                                                        uint8_t* out);
/* Two arrays of the same capacity; rank out. */
HURRAY_C_API HurrayStatus hurray_descriptor_shard(const HurrayDescriptor* handle,
                                                  uint64_t* parent_shape, uint64_t* shard_offset,
                                                  uintptr_t* rank);
HURRAY_C_API HurrayStatus hurray_descriptor_statistics(const HurrayDescriptor* handle,
                                                       HurrayStatistics* out);
HURRAY_C_API HurrayStatus hurray_descriptor_extension_type(const HurrayDescriptor* handle,
                                                           HurrayExtensionType* out);
/* The product of the shape; HURRAY_ERR_UNSUPPORTED with dynamic dimensions, as in the next. */
HURRAY_C_API HurrayStatus hurray_descriptor_element_count(const HurrayDescriptor* handle,
                                                          uint64_t* out);
/* Bytes that buffer `buffer` needs at least. */
HURRAY_C_API HurrayStatus hurray_descriptor_required_bytes(const HurrayDescriptor* handle,
                                                           uint32_t buffer, uint64_t* out);

/* ---- Buffer lists (section 6) -------------------------------------------------------------- */

/* A tensor's buffers in the order of its buffer table, at most 255. `capacity` is a hint. */
HURRAY_C_API HurrayStatus hurray_buffer_list_new(uint64_t capacity, HurrayBufferList** out_list);
/* Moves the handle into the list, which destroys it; on failure it stays with the caller.
 * HURRAY_ERR_INVALID_LAYOUT for a handle that a list owns already, for a 256th, and for a device or
 * memory class that is not that of the first. */
HURRAY_C_API HurrayStatus hurray_buffer_list_push(HurrayBufferList* list, HurrayBuffer* handle);
HURRAY_C_API HurrayStatus hurray_buffer_list_len(const HurrayBufferList* list, uint64_t* out_len);
/* Borrowed: never to be destroyed, dead when the list is destroyed. */
HURRAY_C_API HurrayStatus hurray_buffer_list_get(const HurrayBufferList* list, uint64_t index,
                                                 HurrayBuffer** out_buffer);
/* Destroys every handle once, in order, then the list; makes *list null. Null inside: OK. */
HURRAY_C_API HurrayStatus hurray_buffer_list_destroy(HurrayBufferList** list);

/* ---- Tensor context (section 7) ------------------------------------------------------------ */

typedef void (*HurrayOwnerReleaseFn)(void* owner);

/* Beside a buffer list: the encoded descriptor (copied), the producer's ABI version, and what keeps
 * the memory alive. Whoever uses the buffers keeps the context until they are done. `owner` is
 * never looked at; `owner_release` may be null and may be called on any thread. */
HURRAY_C_API HurrayStatus hurray_tensor_context_new(uint32_t abi_version,
                                                    const uint8_t* descriptor_bytes,
                                                    uint64_t descriptor_len, void* owner,
                                                    HurrayOwnerReleaseFn owner_release,
                                                    HurrayTensorContext** out_ctx);
/* To be called first, before the list is touched. */
HURRAY_C_API HurrayStatus hurray_tensor_context_abi_version(const HurrayTensorContext* ctx,
                                                            uint32_t* out);
/* Borrowed, valid until the context is destroyed; null and 0 when there is none. */
HURRAY_C_API HurrayStatus hurray_tensor_context_descriptor(const HurrayTensorContext* ctx,
                                                           const uint8_t** out_bytes,
                                                           uint64_t* out_len);
/* Frees the copy, makes *ctx null, then calls owner_release(owner). Null inside: OK. */
HURRAY_C_API HurrayStatus hurray_tensor_context_destroy(HurrayTensorContext** ctx);

/* ---- Sync hand-off (section 8) ------------------------------------------------------------- */

typedef void (*HurrayEventReleaseFn)(void* sync_handle, void* event_release_context);

/* Goes with HURRAY_SYNC_EVENT. The consumer's streams wait for the event, then it calls
 * event_release_fn once, from any thread. */
typedef struct HurraySyncEventPayload {
  void* sync_handle;
  uint8_t sync_handle_device_tag;
  HurrayEventReleaseFn event_release_fn;
  void* event_release_context; /* may be null */
} HurraySyncEventPayload;

/* Goes with HURRAY_SYNC_CONSUMER_STREAM. */
typedef struct HurraySyncConsumerStreamPayload {
  void* consumer_stream;
  uint8_t consumer_stream_device_tag;
} HurraySyncConsumerStreamPayload;

/* Whether payload and declaration agree, else HURRAY_ERR_SYNC_MODE_MISMATCH. Nothing is waited for
 * and nothing is called. */
HURRAY_C_API HurrayStatus hurray_buffer_handoff_producer_synced(const HurrayBuffer* handle);
HURRAY_C_API HurrayStatus hurray_buffer_handoff_event(const HurrayBuffer* handle,
                                                      const HurraySyncEventPayload* payload);
HURRAY_C_API HurrayStatus hurray_buffer_handoff_consumer_stream(
    const HurrayBuffer* handle, const HurraySyncConsumerStreamPayload* payload);

/* ---- Streams (section 11.3, 05-stream.md) -------------------------------------------------- */

/* Callbacks may use this interface, but not the handle whose call has called them: that is
 * HURRAY_ERR_INVALID_STATE. They must not longjmp; an exception out of one ends the call as
 * HURRAY_ERR_INTERNAL_PANIC. */

/* A switch with a default of its own. */
enum { HURRAY_AUTO = 0, HURRAY_ON = 1, HURRAY_OFF = 2 };

/* Asked at least once a second while a call waits; not 0 ends it as HURRAY_ERR_IO. */
typedef int (*HurrayInterruptedFn)(void* interrupted_context);

typedef struct HurrayStreamOptions {
  uint32_t struct_size;
  uint32_t max_descriptor_bytes; /* 0: 16 MiB */
  uint64_t max_buffer_bytes;     /* 0: no limit */
  uint64_t max_tensor_bytes;     /* 0: no limit */
  uint64_t max_item_members;     /* tensors inside one composite; 0: 1048576 */
  uint64_t expected_items;       /* with has_expected_items: a stream of others is an error */
  uint64_t read_timeout_ms;      /* the longest wait for the next bytes; 0: none */
  uint32_t max_composite_depth;  /* 1 to 64; 0: 8 */
  uint8_t has_expected_items;
  uint8_t cross_machine; /* HURRAY_AUTO: on for internet sockets */
  uint8_t permissive; /* also what strict decoding refuses and permissive decoding lets through */
  uint8_t private_values; /* private tags count as agreed */
  HurrayInterruptedFn interrupted;
  void* interrupted_context;
} HurrayStreamOptions;

typedef struct HurrayStreamWriteOptions {
  uint32_t struct_size;
  uint8_t cross_machine; /* as above */
  uint8_t no_sync;       /* over a path: do not wait for the disk */
  uint8_t reserved[2];
  HurrayInterruptedFn interrupted;
  void* interrupted_context;
} HurrayStreamWriteOptions;

/* Puts 1 to `capacity` bytes at `out` and returns how many; 0 at the end, negative on failure. */
typedef int64_t (*HurrayReadFn)(void* context, uint8_t* out, uint64_t capacity);
/* Takes 1 to `len` bytes and returns how many; 0 or negative on failure. */
typedef int64_t (*HurrayWriteFn)(void* context, const uint8_t* bytes, uint64_t len);

/* From the position of an open descriptor on. It is duplicated; the caller's stays open. */
HURRAY_C_API HurrayStatus hurray_stream_open(int fd, const HurrayStreamOptions* options,
                                             HurrayReader** out);
HURRAY_C_API HurrayStatus hurray_stream_open_path(const char* path, uint64_t path_length,
                                                  const HurrayStreamOptions* options,
                                                  HurrayReader** out);
/* The bytes must outlive the reader; tensors are copies. */
HURRAY_C_API HurrayStatus hurray_stream_open_memory(const uint8_t* bytes, uint64_t len,
                                                    const HurrayStreamOptions* options,
                                                    HurrayReader** out);
HURRAY_C_API HurrayStatus hurray_stream_open_callback(HurrayReadFn read, void* context,
                                                      const HurrayStreamOptions* options,
                                                      HurrayReader** out);

/* The next tensor: its buffers, each in own memory on 64, and its context; the caller destroys
 * both. The memory is the host's, whatever the descriptor declares. Two nulls at the clean end;
 * after a failure, HURRAY_ERR_INVALID_STATE. A composite head has an empty list, and its members
 * follow. */
HURRAY_C_API HurrayStatus hurray_reader_next(HurrayReader* reader, HurrayBufferList** out_list,
                                             HurrayTensorContext** out_ctx);
/* Makes *reader null. Null inside: OK. */
HURRAY_C_API HurrayStatus hurray_reader_destroy(HurrayReader** reader);

/* Over an open descriptor, which is duplicated. */
HURRAY_C_API HurrayStatus hurray_stream_create(int fd, const HurrayStreamWriteOptions* options,
                                               HurrayWriter** out);
/* The file appears at hurray_writer_finish, and an old one is replaced then. */
HURRAY_C_API HurrayStatus hurray_stream_create_path(const char* path, uint64_t path_length,
                                                    const HurrayStreamWriteOptions* options,
                                                    HurrayWriter** out);
HURRAY_C_API HurrayStatus hurray_stream_create_callback(HurrayWriteFn write, void* context,
                                                        const HurrayStreamWriteOptions* options,
                                                        HurrayWriter** out);

/* Borrows both. What follows a composite head is its members. A refusal writes nothing and leaves
 * the writer usable. Where list and descriptor disagree: HURRAY_ERR_INVALID_LAYOUT. */
HURRAY_C_API HurrayStatus hurray_writer_write(HurrayWriter* writer, const HurrayBufferList* list,
                                              const HurrayTensorContext* ctx);
/* Flushes; idempotent. HURRAY_ERR_TORN_COMPOSITE while a composite waits for members, which can
 * still be written. */
HURRAY_C_API HurrayStatus hurray_writer_finish(HurrayWriter* writer);
/* Makes *writer null. Null inside: OK. Without finish, nothing appears at a path. */
HURRAY_C_API HurrayStatus hurray_writer_destroy(HurrayWriter** writer);

/* ---- Files (section 11.3, 04-file.md) ------------------------------------------------------ */

/* Where an open file's tensors have their memory. */
enum {
  HURRAY_MODE_MAP = 0,           /* a private mapping, not to be written to */
  HURRAY_MODE_COPY_ON_WRITE = 1, /* a private mapping; writes stay in the process */
  HURRAY_MODE_MEMORY = 2         /* own memory on 64, read when the tensor is asked for */
};

typedef struct HurrayFileOptions {
  uint32_t struct_size;
  uint8_t mode;                  /* HURRAY_MODE_... */
  uint8_t verify;                /* HURRAY_AUTO: checksums are compared in HURRAY_MODE_MEMORY */
  uint8_t permissive;            /* as in HurrayStreamOptions */
  uint8_t private_values;        /* as in HurrayStreamOptions */
  uint64_t max_index_bytes;      /* 0: 256 MiB */
  uint64_t max_tensors;          /* 0: 16777216 */
  uint64_t max_kv_bytes;         /* 0: 256 MiB */
  uint64_t max_tensor_bytes;     /* 0: no limit */
  uint64_t max_spool_bytes;      /* of a pipe in HURRAY_MODE_MEMORY; 0: 1 GiB */
  uint32_t max_descriptor_bytes; /* 0: 16 MiB */
  uint32_t max_composite_depth;  /* 1 to 64; 0: 8 */
  HurrayInterruptedFn interrupted;
  void* interrupted_context;
} HurrayFileOptions;

/* One entry of the index (04-file.md section 5). */
typedef struct HurrayFileEntry {
  const char* name; /* borrowed, valid until the file is destroyed */
  uint64_t name_length;
  uint64_t descriptor_offset;
  uint64_t data_offset;
  uint64_t data_length;
  uint32_t descriptor_length;
  uint32_t reserved;
} HurrayFileEntry;

/* Types of metadata values (04-file.md section 4). */
enum {
  HURRAY_KV_STRING = 0x01,
  HURRAY_KV_INT64 = 0x02,
  HURRAY_KV_UINT64 = 0x03,
  HURRAY_KV_FLOAT64 = 0x04,
  HURRAY_KV_BOOL = 0x05,
  HURRAY_KV_BYTES = 0x06,
  HURRAY_KV_ARRAY = 0x07
};

/* Text or bytes inside an array. */
typedef struct HurraySpan {
  const void* data;
  uint64_t length;
} HurraySpan;

/* One key with its value. `data` points to `count` values: characters of a string, bytes, or the
 * elements of an array; to one value otherwise. They are int64_t, uint64_t, double, uint8_t (0 or
 * 1) for a bool, and HurraySpan for a string or bytes inside an array. */
typedef struct HurrayKvEntry {
  const char* key; /* 1 to 65535 bytes */
  uint64_t key_length;
  uint8_t type;         /* HURRAY_KV_... */
  uint8_t element_type; /* of an array; 0 otherwise */
  uint8_t reserved[6];
  const void* data;
  uint64_t count;
} HurrayKvEntry;

/* One thing that verification found. */
typedef struct HurrayFinding {
  const char* message; /* terminated */
  const char* part;    /* "header", "index" and so on; a tensor's name where there is one */
  uint64_t part_length;
  uint64_t offset;     /* first byte of the range in the file */
  uint64_t length;     /* bytes of the range */
  HurrayStatus status; /* HURRAY_OK: odd, but every reader accepts it */
  uint32_t reserved;
} HurrayFinding;

/* Gets one finding, valid during the call; not 0 ends the verification. */
typedef int (*HurrayFindingFn)(void* context, const HurrayFinding* finding);

HURRAY_C_API HurrayStatus hurray_file_open(const char* path, uint64_t path_length,
                                           const HurrayFileOptions* options, HurrayFile** out);
/* The whole file behind an open descriptor, which is duplicated. */
HURRAY_C_API HurrayStatus hurray_file_open_fd(int fd, const HurrayFileOptions* options,
                                              HurrayFile** out);
/* A file's bytes in memory, which must outlive the handle. In HURRAY_MODE_MAP tensors share them,
 * and they must be on 64; in the other modes tensors are copies. */
HURRAY_C_API HurrayStatus hurray_file_open_memory(const uint8_t* bytes, uint64_t len,
                                                  const HurrayFileOptions* options,
                                                  HurrayFile** out);

/* Tensors in the file; what follows counts them in index order. */
HURRAY_C_API HurrayStatus hurray_file_count(const HurrayFile* file, uint64_t* out);
/* Borrowed, valid until the file is destroyed. */
HURRAY_C_API HurrayStatus hurray_file_name(const HurrayFile* file, uint64_t i, const char** out,
                                           uint64_t* len);
/* HURRAY_ERR_NOT_FOUND where there is no such name. */
HURRAY_C_API HurrayStatus hurray_file_find(const HurrayFile* file, const char* name, uint64_t len,
                                           uint64_t* out);
HURRAY_C_API HurrayStatus hurray_file_entry(const HurrayFile* file, uint64_t i,
                                            HurrayFileEntry* out);
/* The stored descriptor; no data is touched. */
HURRAY_C_API HurrayStatus hurray_file_descriptor(const HurrayFile* file, uint64_t i,
                                                 HurrayDescriptor** out);
/* The tensor; the caller destroys both. They keep the mapping, and outlive the file handle. */
HURRAY_C_API HurrayStatus hurray_file_read(const HurrayFile* file, uint64_t i,
                                           HurrayBufferList** out_list,
                                           HurrayTensorContext** out_ctx);
/* The direct members of a composite head, in order; capacity in, count out. None for a plain
 * tensor. */
HURRAY_C_API HurrayStatus hurray_file_members(const HurrayFile* file, uint64_t i, uint64_t* indices,
                                              uint64_t* n);

/* Metadata in file order, without the checksums. Views are borrowed, valid until the file is
 * destroyed. */
HURRAY_C_API HurrayStatus hurray_file_kv_count(const HurrayFile* file, uint64_t* out);
HURRAY_C_API HurrayStatus hurray_file_kv_entry(const HurrayFile* file, uint64_t i,
                                               HurrayKvEntry* out);
HURRAY_C_API HurrayStatus hurray_file_kv_find(const HurrayFile* file, const char* key,
                                              uint64_t key_length, HurrayKvEntry* out);

/* Compares every checksum and every rule with the bytes of the whole file (04-file.md section 16).
 * `report` may be null. The status is that of the first finding, HURRAY_OK without any; a file
 * without checksums passes on the rules alone. */
HURRAY_C_API HurrayStatus hurray_file_verify(const HurrayFile* file, HurrayFindingFn report,
                                             void* context);
/* Makes *file null. Null inside: OK. */
HURRAY_C_API HurrayStatus hurray_file_destroy(HurrayFile** file);

typedef struct HurrayFileWriteOptions {
  uint32_t struct_size;
  uint32_t alignment; /* of every buffer's position: a power of two, 4096 to 2097152; 0: 4096 */
  uint8_t sorted_index;
  uint8_t no_checksums;
  uint8_t no_key_values; /* also without checksums, which live among them */
  uint8_t no_sync;       /* do not wait for the disk before the file appears */
  uint8_t has_tensor_count;
  uint8_t reserved[3];
  uint64_t tensor_count;   /* with has_tensor_count: another number at finish is an error */
  uint64_t expected_bytes; /* compared with the free space beforehand */
  HurrayInterruptedFn interrupted;
  void* interrupted_context;
} HurrayFileWriteOptions;

/* A writer that makes one pass. At hurray_file_writer_finish the file appears under its name, or
 * replaces the old one; before that there is nothing. */
HURRAY_C_API HurrayStatus hurray_file_create(const char* path, uint64_t path_length,
                                             const HurrayFileWriteOptions* options,
                                             HurrayFileWriter** out);
/* Borrows all. What follows a composite head is its members. A refusal writes nothing and leaves
 * the writer usable; after HURRAY_ERR_IO every later call fails. */
HURRAY_C_API HurrayStatus hurray_file_writer_write(HurrayFileWriter* writer, const char* name,
                                                   uint64_t name_length,
                                                   const HurrayBufferList* list,
                                                   const HurrayTensorContext* ctx);
/* Copies; HURRAY_ERR_DUPLICATE for a key that is there already. */
HURRAY_C_API HurrayStatus hurray_file_writer_put_kv(HurrayFileWriter* writer,
                                                    const HurrayKvEntry* entry);
HURRAY_C_API HurrayStatus hurray_file_writer_finish(HurrayFileWriter* writer);
/* Makes *writer null. Null inside: OK. Without finish nothing is left. */
HURRAY_C_API HurrayStatus hurray_file_writer_destroy(HurrayFileWriter** writer);

/* ---- Checksum ------------------------------------------------------------------------------ */

/* CRC-32C of `len` bytes. *inout: the sum of the bytes before these, 0 at the start; afterwards
 * that of all. */
HURRAY_C_API HurrayStatus hurray_crc32c(const void* bytes, uint64_t len, uint32_t* inout);

#ifdef __cplusplus
}
#endif

#endif /* HURRAY_H */
