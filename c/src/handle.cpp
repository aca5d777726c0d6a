#include "handle.hpp"

#include <algorithm>
#include <array>

#include "hurray/io/key_values.hpp"
#include "status.hpp"

#ifndef HURRAY_C_VERSION
#error "HURRAY_C_VERSION: the library's version, as text"
#endif

namespace hurray::c {

const HurrayHandleFunctions functions = {
    .table_size = sizeof(HurrayHandleFunctions),
    .extension_version = HURRAY_C_ABI_EXTENSION_VERSION,
    .producer = "hurray-cpp " HURRAY_C_VERSION,
    .buffer_destroy = &hurray_buffer_destroy,
    .buffer_byte_size = &hurray_buffer_byte_size,
    .buffer_alignment = &hurray_buffer_alignment,
    .buffer_device_tag = &hurray_buffer_device_tag,
    .buffer_sync_mode = &hurray_buffer_sync_mode,
    .buffer_memory_class = &hurray_buffer_memory_class,
    .buffer_data_ptr = &hurray_buffer_data_ptr,
    .list_len = &hurray_buffer_list_len,
    .list_get = &hurray_buffer_list_get,
    .list_push = &hurray_buffer_list_push,
    .list_destroy = &hurray_buffer_list_destroy,
    .context_abi_version = &hurray_tensor_context_abi_version,
    .context_descriptor = &hurray_tensor_context_descriptor,
    .context_destroy = &hurray_tensor_context_destroy,
    .last_error = &hurray_last_error,
};

namespace {

constexpr auto kind_names = std::to_array<std::string_view>(
    {"nothing", "a buffer", "a buffer list", "a tensor context", "a descriptor", "a stream reader",
     "a stream writer", "a file", "a file writer"});

std::string_view kind_name(std::uint32_t kind) noexcept {
  return kind < kind_names.size() ? kind_names[kind] : "a handle of unknown kind";
}

/// Pieces of a message, joined without allocating.
class Words {
 public:
  Words& operator<<(std::string_view piece) noexcept {
    const std::size_t size = std::min(piece.size(), text_.size() - size_);
    std::copy_n(piece.data(), size, text_.data() + size_);
    size_ += size;
    return *this;
  }
  std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_;
  std::size_t size_ = 0;
};

}  // namespace

HurrayStatus recognize(const void* handle, std::uint32_t kind, std::string_view argument) noexcept {
  if (handle == nullptr) return null_pointer(argument);
  std::uint8_t magic[sizeof handle_magic];
  std::memcpy(magic, handle, sizeof magic);
  if (std::memcmp(magic, handle_magic, sizeof magic) != 0) {
    if (std::ranges::all_of(magic, [](std::uint8_t byte) { return byte == dead_byte; }))
      return fail(HURRAY_ERR_INTERNAL, (Words() << argument << " is a destroyed handle").text());
    return fail(HURRAY_ERR_FOREIGN_HANDLE,
                (Words() << argument
                         << " is not a handle that explains itself: it does not begin with "
                            "HRRYABI1; hand the tensor over as a file or stream instead")
                    .text());
  }
  const auto& prefix = *static_cast<const HurrayHandlePrefix*>(handle);
  if (prefix.kind == kind) return HURRAY_OK;
  return fail(HURRAY_ERR_FOREIGN_HANDLE, (Words() << argument << ": expected " << kind_name(kind)
                                                  << ", found " << kind_name(prefix.kind))
                                             .text());
}

HurrayStatus not_served(const HurrayHandleFunctions* theirs) noexcept {
  Words words;
  words << "a handle of ";
  if (theirs != nullptr && reaches(*theirs, &HurrayHandleFunctions::producer))
    words << (io::is_utf8(theirs->producer) ? theirs->producer : "an unreadable name");
  else
    words << "an unnamed library";
  words << ", which offers no function for this; hand the tensor over as a file or stream instead";
  return fail(HURRAY_ERR_FOREIGN_HANDLE, words.text());
}

HurrayStatus relayed(const HurrayHandleFunctions& theirs, HurrayStatus status) noexcept {
  const char* text = nullptr;
  if (reaches(theirs, &HurrayHandleFunctions::last_error))
    call_back([&] { text = theirs.last_error(); });
  if (text == nullptr) return fail(status, "another library refused, without words");
  if (!io::is_utf8(text))
    return fail(status, "another library refused, in words that are no UTF-8");
  return fail(status, text);
}

}  // namespace hurray::c

uint32_t hurray_c_abi_version(void) { return HURRAY_C_ABI_VERSION; }

uint32_t hurray_abi_extension_version(void) { return HURRAY_C_ABI_EXTENSION_VERSION; }
