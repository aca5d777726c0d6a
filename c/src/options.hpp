#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "handle.hpp"
#include "hurray/io/error.hpp"

/// What option structs and callbacks of C are in C++.
namespace hurray::c {

/// `value`, or what is meant by 0.
template <class T, class Default>
constexpr T or_default(T value, Default otherwise) noexcept {
  return value != 0 ? value : static_cast<T>(otherwise);
}

inline std::optional<std::uint64_t> limit(std::uint64_t value) noexcept {
  return value != 0 ? std::optional(value) : std::nullopt;
}

/// Not a callback's fault, but the caller's: what `status` and the last error say.
inline HurrayStatus check_switch(std::uint8_t value, std::string_view field) {
  if (value <= HURRAY_OFF) return HURRAY_OK;
  return fail(HURRAY_ERR_INVALID_ARGUMENT,
              std::string(field) + ": expected HURRAY_AUTO, HURRAY_ON or HURRAY_OFF, found " +
                  std::to_string(value));
}

inline std::optional<bool> to_optional(std::uint8_t value) noexcept {
  if (value == HURRAY_AUTO) return std::nullopt;
  return value == HURRAY_ON;
}

inline HurrayStatus check_depth(std::uint32_t depth) {
  if (depth <= 64) return HURRAY_OK;
  return fail(HURRAY_ERR_INVALID_ARGUMENT,
              "max_composite_depth: expected at most 64, found " + std::to_string(depth));
}

/// The caller's functions, called from inside the library: an exception out of one ends the
/// operation, and is remembered until the exported function returns.
class Callbacks {
 public:
  /// What `function` returns, or `otherwise`.
  template <class T, class Function>
  T call(T otherwise, Function&& function) noexcept {
    T result = otherwise;
    if (!call_back([&] { result = function(); })) threw() = true;
    return threw() ? otherwise : result;
  }

  std::function<bool()> interrupted(HurrayInterruptedFn ask, void* context) {
    if (ask == nullptr) return {};
    return [this, ask, context] { return call(1, [&] { return ask(context); }) != 0; };
  }

  /// The end of a call during which callbacks may have run.
  HurrayStatus ended(HurrayStatus status) noexcept {
    return std::exchange(threw(), false) ? callback_threw() : status;
  }

  /// One call that may call back at a time; false for the second.
  class Turn {
   public:
    explicit Turn(Callbacks& callbacks) noexcept
        : callbacks_(callbacks), first_(!callbacks.busy_.exchange(true)) {}
    ~Turn() {
      if (first_) callbacks_.busy_ = false;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const noexcept { return first_; }

   private:
    Callbacks& callbacks_;
    bool first_;
  };
  bool busy() const noexcept { return busy_; }

 private:
  std::atomic<bool> busy_ = false;
};

inline HurrayStatus in_use() noexcept {
  return fail(
      HURRAY_ERR_INVALID_STATE,
      "the handle is in use by a call that has called back; return from the callback first");
}

/// Ends the handle of a kind without entries, and makes the caller's variable null.
template <class T>
HurrayStatus destroy_handle(T** handle, std::string_view argument,
                            std::string_view inside) noexcept {
  if (handle == nullptr) return null_pointer(argument);
  if (*handle == nullptr) return HURRAY_OK;
  const HurrayStatus status = own(*handle, inside);
  if (status != HURRAY_OK) return status;
  if (state(**handle).callbacks->busy()) return in_use();
  return contained(Codes::added, [&] {
    end(std::exchange(*handle, nullptr));
    return HurrayStatus{HURRAY_OK};
  });
}

/// A path of the caller's, or the status that says why it is none.
struct Path {
  Path(const char* path, std::uint64_t length) noexcept {
    status = contained(Codes::added, [&] { return read(path, length); });
  }

  std::string text;
  HurrayStatus status;

 private:
  HurrayStatus read(const char* path, std::uint64_t length) {
    constexpr std::uint64_t most = 1u << 20;
    if (length > most)
      return fail(HURRAY_ERR_INVALID_ARGUMENT,
                  "path_length: expected at most 1048576 bytes, found " + std::to_string(length));
    text.assign(path, static_cast<std::size_t>(length));
    if (text.empty()) return fail(HURRAY_ERR_INVALID_ARGUMENT, "path_length: the path is empty");
    if (text.find('\0') != std::string::npos)
      return fail(HURRAY_ERR_INVALID_ARGUMENT, "path: expected a name without a zero byte");
    return HURRAY_OK;
  }
};

/// The end of a writer's `finish`, which refuses to end inside a composite.
inline HurrayStatus finished(Callbacks& callbacks, const io::Result<void>& result) {
  if (result) return HURRAY_OK;
  const HurrayStatus failed = refuse(result.error());
  const bool torn = result.error().field == "layout.member_count";
  return callbacks.ended(torn ? HURRAY_ERR_TORN_COMPOSITE : failed);
}

}  // namespace hurray::c
