#include "status.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace hurray::c {

namespace {

constexpr std::size_t most_bytes = 1023;
thread_local char last_error[most_bytes + 1] = "";

/// What the published functions may return of what `hurray::status` says.
HurrayStatus narrowed(Codes codes, std::int32_t status) noexcept {
  if (codes == Codes::added || status > -100) return status;
  return status == HURRAY_ERR_OUT_OF_MEMORY ? HURRAY_ERR_INTERNAL : HURRAY_ERR_INVALID_LAYOUT;
}

}  // namespace

HurrayStatus fail(HurrayStatus status, std::string_view message) noexcept {
  std::size_t size = std::min(message.size(), most_bytes);
  if (size < message.size())
    while (size != 0 && (static_cast<unsigned char>(message[size]) & 0xC0) == 0x80) --size;
  if (size != 0) std::memmove(last_error, message.data(), size);
  last_error[size] = '\0';
  return status;
}

HurrayStatus null_pointer(std::string_view argument) noexcept {
  char text[80];
  constexpr std::string_view rest = " is null";
  const std::size_t size = std::min(argument.size(), sizeof text - rest.size());
  std::memcpy(text, argument.data(), size);
  std::memcpy(text + size, rest.data(), rest.size());
  return fail(HURRAY_ERR_NULL_POINTER, {text, size + rest.size()});
}

HurrayStatus fail(Codes codes, const hurray::Error& error) {
  return fail(narrowed(codes, hurray::status(error)), to_string(error));
}

HurrayStatus fail(Codes codes, const io::Error& error) {
  return fail(narrowed(codes, hurray::status(error)), io::to_string(error));
}

HurrayStatus refuse(const io::Error& error) {
  const HurrayStatus status = fail(Codes::added, error);
  return status == HURRAY_ERR_INVALID_FILE ? HURRAY_ERR_INVALID_ARGUMENT : status;
}

bool& threw() noexcept {
  thread_local bool flag = false;
  return flag;
}

HurrayStatus callback_threw() noexcept {
  return fail(HURRAY_ERR_INTERNAL_PANIC, "an exception came out of a callback");
}

}  // namespace hurray::c

const char* hurray_last_error(void) { return hurray::c::last_error; }

void hurray_clear_last_error(void) { hurray::c::last_error[0] = '\0'; }
