#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "hurray.h"
#include "pool.hpp"
#include "status.hpp"

/// What all handles share (07-c-abi.md section 11.1).
namespace hurray::c {

inline constexpr std::uint8_t handle_magic[8] = {'H', 'R', 'R', 'Y', 'A', 'B', 'I', '1'};

/// The functions of this library; every handle made here points to it.
extern const HurrayHandleFunctions functions;

/// Bytes up to which lists and contexts are filled with FF: builds that read a version there, at a
/// place of their own, find none that they know.
inline constexpr std::size_t filled_to = 128;

/// A handle: prefix, filler, and what it is about. Of standard layout, so that the prefix is where
/// the handle points to.
template <class State, std::uint32_t Kind, std::size_t Filler = 0>
struct Handle {
  using state_type = State;
  static constexpr std::uint32_t kind = Kind;

  HurrayHandlePrefix prefix;
  std::uint8_t filler[Filler];
  alignas(State) std::byte memory[sizeof(State)];
};
template <class State, std::uint32_t Kind>
struct Handle<State, Kind, 0> {
  using state_type = State;
  static constexpr std::uint32_t kind = Kind;

  HurrayHandlePrefix prefix;
  alignas(State) std::byte memory[sizeof(State)];
};

template <class State, std::uint32_t Kind>
using FilledHandle = Handle<State, Kind, filled_to - sizeof(HurrayHandlePrefix)>;

template <class T>
Pool<T>& pool() noexcept {
  static constinit Pool<T> instance;
  return instance;
}

/// Precondition: a live handle of this library.
template <class T>
auto& state(T& handle) noexcept {
  using State =
      std::conditional_t<std::is_const_v<T>, const typename T::state_type, typename T::state_type>;
  return *std::launder(reinterpret_cast<State*>(&handle.memory));
}

/// A new handle over a state made of `arguments`; throws `std::bad_alloc`.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  static_assert(std::is_standard_layout_v<T>);
  void* memory = pool<T>().take();
  if (memory == nullptr) throw std::bad_alloc();
  T* handle = ::new (memory) T;
  try {
    ::new (static_cast<void*>(&handle->memory))
        typename T::state_type(std::forward<Arguments>(arguments)...);
  } catch (...) {
    pool<T>().give(memory);
    throw;
  }
  if constexpr (requires { handle->filler; })
    std::memset(handle->filler, 0xFF, sizeof handle->filler);
  handle->prefix.abi_version = HURRAY_C_ABI_VERSION;
  handle->prefix.kind = T::kind;
  handle->prefix.fn = &functions;
  std::memcpy(handle->prefix.magic, handle_magic, sizeof handle_magic);
  return handle;
}

/// Ends a handle. Precondition: a live one of this library.
template <class T>
void end(T* handle) noexcept {
  std::destroy_at(&state(*handle));
  pool<T>().give(handle);
}

struct Destroy {
  template <class T>
  void operator()(T* handle) const noexcept {
    end(handle);
  }
};
/// A handle that nobody else has yet.
template <class T>
using Owned = std::unique_ptr<T, Destroy>;

/// Steps 1 to 3: whether `handle` is a live one of `kind`. Reads eight bytes, and the rest of the
/// prefix only behind the right magic.
HurrayStatus recognize(const void* handle, std::uint32_t kind, std::string_view argument) noexcept;

/// Whether a recognized handle is one of this library.
inline bool is_own(const void* handle) noexcept {
  return static_cast<const HurrayHandlePrefix*>(handle)->fn == &functions;
}

/// Why a handle of the library with this table (or null) cannot be served.
HurrayStatus not_served(const HurrayHandleFunctions* theirs) noexcept;

/// Takes the words of the library with this table over. The handle may be gone.
HurrayStatus relayed(const HurrayHandleFunctions& theirs, HurrayStatus status) noexcept;

/// Whether a table has this entry.
template <class Entry>
bool reaches(const HurrayHandleFunctions& theirs, Entry HurrayHandleFunctions::* entry) noexcept {
  const auto* begin = reinterpret_cast<const std::byte*>(&theirs);
  const auto* end = reinterpret_cast<const std::byte*>(&(theirs.*entry)) + sizeof(Entry);
  return theirs.table_size >= static_cast<std::size_t>(end - begin) && theirs.*entry != nullptr;
}

/// Precondition: recognized. `own()` for a handle of this library, else its producer's `entry`.
/// `T` is the handle's type, to which a `T*` or `T**` among the arguments leads.
template <class T, class Own, class... Parameters>
HurrayStatus dispatch(const T* handle, Own&& own,
                      HurrayStatus (*HurrayHandleFunctions::*entry)(Parameters...),
                      std::type_identity_t<Parameters>... arguments) noexcept {
  if (is_own(handle)) return std::forward<Own>(own)();
  const auto& prefix = *reinterpret_cast<const HurrayHandlePrefix*>(handle);
  const HurrayHandleFunctions* theirs = prefix.fn;
  if (prefix.abi_version < HURRAY_C_ABI_VERSION || theirs == nullptr || !reaches(*theirs, entry))
    return not_served(theirs);
  HurrayStatus status = HURRAY_OK;
  if (!call_back([&] { status = (theirs->*entry)(arguments...); }))
    return fail(HURRAY_ERR_INTERNAL_PANIC, "an exception came out of another library");
  return status == HURRAY_OK ? status : relayed(*theirs, status);
}

/// For kinds that have no entries: recognized and of this library.
template <class T>
HurrayStatus own(const T* handle, std::string_view argument) noexcept {
  const HurrayStatus status = recognize(handle, T::kind, argument);
  if (status != HURRAY_OK) return status;
  return is_own(handle) ? HURRAY_OK
                        : not_served(reinterpret_cast<const HurrayHandlePrefix*>(handle)->fn);
}

/// "Capacity in, length out": tells `size`, and whether `size` elements fit.
template <class T>
HurrayStatus fits(const void* out, T* length, std::uint64_t size) noexcept {
  const std::uint64_t capacity = *length;
  *length = static_cast<T>(size);
  if (out != nullptr && capacity >= size) return HURRAY_OK;
  return fail(HURRAY_ERR_BUFFER_TOO_SMALL,
              "the array is too small; its length argument now says how many elements there are");
}

/// The fields of an options struct as far as the caller knows them; 0 beyond. Fails without a
/// size.
template <class Options>
HurrayStatus read_options(const Options* options, Options& out) noexcept {
  out = Options{};
  if (options == nullptr) return HURRAY_OK;
  const std::uint32_t size = options->struct_size;
  if (size < sizeof(std::uint32_t))
    return fail(HURRAY_ERR_INVALID_ARGUMENT,
                "struct_size of the options is too small: set it to sizeof the struct");
  std::memcpy(&out, options, size < sizeof(Options) ? size : sizeof(Options));
  return HURRAY_OK;
}

}  // namespace hurray::c
