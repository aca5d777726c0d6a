#include "hurray/io/crc32c.hpp"

#include "hurray/memory.hpp"
#include "status.hpp"

using namespace hurray;
using namespace hurray::c;

HurrayStatus hurray_crc32c(const void* bytes, uint64_t len, uint32_t* inout) {
  if (bytes == nullptr && len != 0) return null_pointer("bytes");
  if (inout == nullptr) return null_pointer("inout");
  const auto size = to_size(len);
  if (!size) return fail(HURRAY_ERR_INVALID_ARGUMENT, "len: more than this machine can address");
  *inout = io::crc32c({static_cast<const std::byte*>(bytes), *size}, *inout);
  return HURRAY_OK;
}
