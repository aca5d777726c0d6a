#pragma once

#include <cassert>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include "hurray/error.hpp"

namespace hurray {

/// A value or the error that kept it from being made. Reading the wrong one breaks a precondition.
/// As shareable between threads as what it holds.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  /// A value made from nothing, to be filled where it is.
  explicit Result(std::in_place_t) : state_(std::in_place_index<0>) {}
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}
  /// From an error of a lower layer.
  template <class Lower>
    requires(std::is_convertible_v<Lower, E> && !std::is_same_v<Lower, E> &&
             !std::is_convertible_v<Lower, T>)
  Result(Lower error) : state_(std::in_place_index<1>, E(std::move(error))) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  T& operator*() & { return assert(has_value()), *std::get_if<0>(&state_); }
  const T& operator*() const& { return assert(has_value()), *std::get_if<0>(&state_); }
  T&& operator*() && { return assert(has_value()), std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  const E& error() const& { return assert(!has_value()), *std::get_if<1>(&state_); }
  E&& error() && { return assert(!has_value()), std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, E> state_;
};

/// Success or an error.
template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Result() = default;
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <class Lower>
    requires(std::is_convertible_v<Lower, E> && !std::is_same_v<Lower, E>)
  Result(Lower error) : state_(std::in_place_index<1>, E(std::move(error))) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }
  const E& error() const& { return assert(!has_value()), *std::get_if<1>(&state_); }
  E&& error() && { return assert(!has_value()), std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<std::monostate, E> state_;
};

/// Runs `body`, which returns a `Result`, and turns a failed allocation in it into `out_of_memory`.
template <class Body>
auto contain(Origin origin, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    Error error;
    error.code = Errc::out_of_memory;
    error.origin = origin;
    return error;
  }
}

}  // namespace hurray
