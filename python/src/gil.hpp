#pragma once

#include <Python.h>

namespace hurray::python {

/// Takes the interpreter's lock back. Python ends a thread that asks for it when the interpreter is
/// going, by unwinding its stack, which frames of C++ do not stand: such a thread stays here.
void take_gil(PyThreadState* state) noexcept;
PyGILState_STATE take_gil() noexcept;

/// This thread does not have the lock while this lives.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { take_gil(state_); }

 private:
  PyThreadState* state_;
};

/// This thread has it.
class WithGil {
 public:
  WithGil() noexcept : state_(take_gil()) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace hurray::python
