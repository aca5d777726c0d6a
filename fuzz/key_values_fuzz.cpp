// Any bytes: a KV section is refused or written back the same, but for what is ours.
#include <algorithm>
#include <cstdlib>

#include "../io/src/key_values.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const bool newer_minor : {false, true}) {
    const auto split = hurray::io::split_kv(bytes, 0, newer_minor);
    if (!split) {
      if (hurray::io::to_string(split.error()).empty()) std::abort();
      continue;
    }
    const auto again = hurray::io::encode_kv(split->entries);
    if (!again || again->size() > size) std::abort();
    const bool all_is_there = split->checksums.empty() && !newer_minor;
    if (all_is_there && !std::ranges::equal(*again, bytes)) std::abort();
    for (const auto& ours : split->checksums)
      if (ours.offset > size || ours.payload.size() > size - ours.offset) std::abort();
  }
  return 0;
}
