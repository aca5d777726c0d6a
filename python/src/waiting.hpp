#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bindings.hpp"

namespace hurray::python {

/// Runs the handlers of signals that have arrived; true when one of them raised, and the exception
/// is then set in this thread. Call it without the GIL. What `interrupted` options ask.
inline bool signal_raised() {
  const WithGil gil;
  return PyErr_CheckSignals() != 0;
}

/// As `unwrap`, for calls that Python code or a signal handler may have ended: what that raised
/// comes first.
template <class T, class E>
T unwrap_waited(Result<T, E>&& result) {
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  return unwrap(std::move(result));
}

/// Calls on one object come one after the other, whichever threads they come from (Y43).
class Turn {
 public:
  /// The result of `body`, which runs without the GIL when it is this thread's turn. `body` may
  /// take the GIL: nobody waits here with it.
  template <class Body>
  auto take(Body&& body) -> decltype(body()) {
    if (holder_.load() == std::this_thread::get_id()) {
      fail(PyExc_RuntimeError,
           "a call of this object cannot be made from within another one (in a signal handler?); "
           "wait until that has returned");
    }
    std::optional<decltype(body())> result;
    {
      const WithoutGil released;
      std::unique_lock lock(mutex_, std::defer_lock);
      while (!lock.try_lock_for(std::chrono::milliseconds(200)))
        if (signal_raised()) break;
      if (lock.owns_lock()) {
        const Holding holding(holder_);
        result.emplace(body());
      }
    }
    if (!result) nb::raise_python_error();
    return *std::move(result);
  }

 private:
  class Holding {
   public:
    explicit Holding(std::atomic<std::thread::id>& holder) : holder_(holder) {
      holder_.store(std::this_thread::get_id());
    }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    ~Holding() { holder_.store({}); }

   private:
    std::atomic<std::thread::id>& holder_;
  };

  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_;
};

}  // namespace hurray::python
