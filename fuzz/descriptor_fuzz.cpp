// Any bytes: decoding never crashes, and what it accepts is written back the same and explained to
// the last byte.
#include <cstdlib>
#include <cstring>

#include "hurray/descriptor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const bool agreed : {false, true}) {
    const hurray::DecodeOptions options{.permissive = agreed, .agreed = {.all = agreed}};
    const auto descriptor = hurray::decode(bytes, options);
    if (!descriptor) {
      if (hurray::to_string(descriptor.error()).empty()) std::abort();
      continue;
    }
    std::uint64_t end = 0;
    const auto described = hurray::describe(
        bytes, [&](const hurray::FieldRow& row) { end = row.offset + row.size; }, options);
    if (!described || end != *hurray::descriptor_length(bytes)) std::abort();
    const auto again = hurray::encode(*descriptor, {.permissive = options.permissive});
    if (descriptor->version.minor != 0) {
      if (again) std::abort();
      continue;
    }
    if (!again || again->size() != end) std::abort();
    // Permissive mode drops groups of statistics that break a rule (row 58), and nothing else.
    const bool dropped = options.permissive && descriptor->statistics() != nullptr;
    if (std::memcmp(again->data(), data, end) != 0 && !dropped) std::abort();
  }
  return 0;
}
