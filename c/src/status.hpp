#pragma once

#include <new>
#include <string_view>
#include <utility>

#include "hurray.h"
#include "hurray/io/error.hpp"

/// How functions of the C interface end.
namespace hurray::c {

/// Makes `message` this thread's last error, cut at a character after 1023 bytes, and returns
/// `status`. Allocates nothing.
HurrayStatus fail(HurrayStatus status, std::string_view message) noexcept;

/// "<argument> is null".
HurrayStatus null_pointer(std::string_view argument) noexcept;

/// Which codes a function may return (07-c-abi.md sections 2 and 11.3).
enum class Codes : std::uint8_t { published, added };

/// `error` with its code for `codes` and its sentence.
HurrayStatus fail(Codes codes, const hurray::Error& error);
HurrayStatus fail(Codes codes, const io::Error& error);

/// The same for what a writer refuses: a broken rule of a container is the caller's argument.
HurrayStatus refuse(const io::Error& error);

/// The end of every exported function that could throw: nothing leaves `body`.
template <class Body>
HurrayStatus contained(Codes codes, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(codes == Codes::published ? HURRAY_ERR_INTERNAL : HURRAY_ERR_OUT_OF_MEMORY,
                "out of memory");
  } catch (...) {
    return fail(HURRAY_ERR_INTERNAL_PANIC, "a failure inside the library");
  }
}

/// Calls a function of the caller's; false when an exception came out of it.
template <class Function, class... Arguments>
bool call_back(Function function, Arguments... arguments) noexcept {
  try {
    function(arguments...);
    return true;
  } catch (...) {
    return false;
  }
}

HurrayStatus callback_threw() noexcept;

/// Whether an exception came out of a callback during this thread's current call.
bool& threw() noexcept;

}  // namespace hurray::c
