#pragma once

// `hurray._transport`: Python objects that bytes come from and go to.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "hurray/io/positioned_source.hpp"

namespace hurray::python {

nb::module_ transport();

/// A str or an object with `__fspath__`.
bool is_path(nb::handle object);

/// Makes `error`, which a transfer raised, the exception that the caller gets: what the transport
/// refuses is a FileError, a time limit of the reader's own a StreamError, all else stays as it is.
void set_transfer_error(nb::python_error& error);

/// Runs `call`, a function of the transport, and raises what it raises so.
template <class Call>
auto of_transport(Call&& call) {
  try {
    return call();
  } catch (nb::python_error& error) {
    set_transfer_error(error);
    nb::raise_python_error();
  }
}

/// What the exception says; empty where it cannot say it.
std::string words_of(const nb::python_error& error);

/// What a method that was to fill `size` bytes said, as a number of them.
std::size_t count_returned(nb::handle count, std::size_t size, Exc error, const char* method);

/// Runs `transfer` with the GIL; what it raises is set in this thread and ends the call.
template <class Transfer>
auto transferred(Transfer&& transfer) -> io::Result<decltype(transfer())> {
  const WithGil gil;
  try {
    return transfer();
  } catch (nb::python_error& error) {
    io::Error ended({.code = Errc::system, .origin = Origin::stream});
    ended.detail = words_of(error);
    set_transfer_error(error);
    return ended;
  }
}

/// Lets `read(view)` fill memory of Python's own, of `into.size()` bytes but at most `most`, and
/// copies what it says it filled: what keeps a view of it keeps that memory, not ours. Fails with
/// `error` where `method` says what cannot be.
template <class Read>
std::size_t filled_by(std::span<std::byte> into, std::size_t most, Exc error, const char* method,
                      Read&& read) {
  const std::size_t size = std::min(into.size(), most);
  const nb::object memory =
      nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!memory.is_valid()) nb::raise_python_error();
  const nb::object view = nb::steal(PyMemoryView_FromObject(memory.ptr()));
  if (!view.is_valid()) nb::raise_python_error();
  const std::size_t count = count_returned(read(view), size, error, method);
  std::memcpy(into.data(), PyByteArray_AS_STRING(memory.ptr()), count);
  return count;
}

/// A seekable binary object, as bytes that are reached by position (09-models-and-frameworks.md
/// section 2). `TypeError` for one that is none.
class PositionedObject {
 public:
  explicit PositionedObject(nb::handle object);

  io::PositionedSource source() const;
  /// Whether this thread is inside a call of the object.
  bool is_reading() const noexcept;
  /// It was opened by this process: a fork shares the position of what its parent reads.
  bool is_of_this_process() const noexcept;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// It has `read` and `seek`, and is no path.
bool is_positioned(nb::handle object);

}  // namespace hurray::python
