#include "gil.hpp"

#include <chrono>
#include <thread>

namespace hurray::python {
namespace {

/// What `take` returns, in a thread that goes on. Whatever comes out of it otherwise is the end of
/// the thread.
template <class Take>
auto or_stay(Take take) noexcept {
  try {
    return take();
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace

void take_gil(PyThreadState* state) noexcept {
  or_stay([&] { PyEval_RestoreThread(state); });
}

PyGILState_STATE take_gil() noexcept {
  return or_stay([] { return PyGILState_Ensure(); });
}

}  // namespace hurray::python
