#include "transport.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <span>
#include <string>
#include <thread>

namespace hurray::python {
namespace {

/// The objects whose methods this thread is inside of.
struct Inside {
  explicit Inside(const void* what) noexcept : object(what), outer(innermost) { innermost = this; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { innermost = outer; }

  const void* object;
  Inside* outer;
  static thread_local Inside* innermost;
};
thread_local Inside* Inside::innermost = nullptr;

/// Threads that Python does not know, which are inside a call of an object or about to be. At the
/// interpreter's end no more are let in, and those inside are waited for: what runs Python then is
/// ended in the middle of it.
std::atomic<int> outsiders = 0;
std::atomic<bool> ending = false;
/// That led to this process.
std::atomic<std::uint64_t> forks = 0;

/// The bytes that a text stands for where it names a file.
std::string file_system_text(const nb::object& text) {
  const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(text.ptr()));
  if (!bytes.is_valid()) nb::raise_python_error();
  return PyBytes_AS_STRING(bytes.ptr());
}

class Outsider {
 public:
  Outsider() noexcept : counted_(PyGILState_GetThisThreadState() == nullptr) {
    if (counted_) ++outsiders;
  }
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;
  ~Outsider() {
    if (counted_) --outsiders;
  }

  bool refused() const noexcept { return counted_ && ending; }

 private:
  const bool counted_;
};

}  // namespace

void bind_transport(nb::module_&) {
  const auto on_exit = nb::cpp_function([] {
    ending = true;
    const WithoutGil released;
    for (int waited = 0; outsiders > 0; ++waited) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (waited % 100 != 99) continue;
      // An object that never answers would be waited for for ever: a signal ends all of it.
      const WithGil gil;
      if (PyErr_CheckSignals() == 0) continue;
      PyErr_Clear();
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    }
  });
  nb::module_::import_("atexit").attr("register")(on_exit);
  // A fork has none of its parent's threads.
  const nb::module_ os = nb::module_::import_("os");
  if (nb::hasattr(os, "register_at_fork")) {
    using namespace nb::literals;
    os.attr("register_at_fork")("after_in_child"_a = nb::cpp_function([] {
                                  outsiders = 0;
                                  ++forks;
                                }));
  }
}

nb::module_ transport() { return nb::module_::import_("hurray._transport"); }

bool is_path(nb::handle object) {
  return PyUnicode_Check(object.ptr()) || attribute(object, "__fspath__").is_valid();
}

std::string words_of(const nb::python_error& error) {
  const nb::object words = nb::steal(PyObject_Str(error.value().ptr()));
  const char* text = words.is_valid() ? PyUnicode_AsUTF8(words.ptr()) : nullptr;
  PyErr_Clear();
  return text != nullptr ? text : "";
}

namespace {

/// The error number of an exception of the system's, 0 for what has none: other libraries put
/// numbers and texts of their own where the system's belong.
int system_number(const nb::object& cause) {
  const nb::object number = cause.attr("errno");
  if (!PyLong_CheckExact(number.ptr())) return 0;
  const long value = PyLong_AsLong(number.ptr());
  if (PyErr_Occurred() != nullptr || value <= 0 || value > 1 << 20) {
    PyErr_Clear();
    return 0;
  }
  const nb::object words = nb::module_::import_("os").attr("strerror")(value);
  return words.equal(cause.attr("strerror")) ? static_cast<int>(value) : 0;
}

/// The exception that the caller gets for `error`; null for that itself.
nb::object transfer_error(const nb::python_error& error) {
  const nb::object cause = nb::borrow(error.value());
  if (error.matches(transport().attr("TimeLimit")))
    return nb::borrow(exception_class(Exc::stream_timeout))(ETIMEDOUT, nb::str(cause));
  if (!error.matches(PyExc_OSError) || error.matches(exception_class(Exc::file)) ||
      error.matches(exception_class(Exc::stream)))
    return {};
  if (const int number = system_number(cause))
    return file_class_of(number)(number, cause.attr("strerror"));
  // Their text alone may be the name of a method.
  const std::string words =
      "the object that is read or written: " + python::type_name(cause) + ": " + words_of(error);
  const nb::object of_file = error.matches(PyExc_TimeoutError)
                                 ? file_class_of(ETIMEDOUT)
                                 : nb::borrow(exception_class(Exc::file));
  return of_file(nb::str(words.data(), words.size()));
}

}  // namespace

/// Makes `error`, which a transfer raised, the exception that the caller gets: what the transport
/// refuses is a FileError, a time limit of the reader's own a StreamError, all else stays as it is.
void set_transfer_error(nb::python_error& error) {
  try {
    const nb::object raised = transfer_error(error);
    if (!raised.is_valid()) return error.restore();
    raised.attr("__cause__") = nb::borrow(error.value());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  } catch (nb::python_error&) {  // of an exception that cannot say what it is
    PyErr_Clear();
    error.restore();
  }
}

std::size_t count_returned(nb::handle count, std::size_t size, Exc error, const char* method) {
  const std::size_t told =
      PyLong_Check(count.ptr()) != 0 ? PyLong_AsSize_t(count.ptr()) : std::size_t(-1);
  PyErr_Clear();
  if (told > size)
    fail(error, std::string(method) + " of the source returned " +
                    nb::cast<std::string>(nb::repr(count)) + " for room of " +
                    std::to_string(size) + " bytes");
  return told;
}

/// Of one request, in memory of Python's own.
constexpr std::size_t lent_bytes = std::size_t{16} << 20;

struct PositionedObject::State {
  std::uint64_t forks;  ///< Before it was opened.
  nb::handle reader;    ///< `hurray._transport.Positioned`
  std::shared_ptr<Owner> owner;
  std::uint64_t size;
  std::string name;
};

PositionedObject::PositionedObject(nb::handle object) {
  const nb::object reader =
      of_transport([&]() -> nb::object { return transport().attr("Positioned")(object); });
  const nb::object name = reader.attr("name");
  state_ = std::make_shared<const State>(
      State{forks, reader, hold(reader), unsigned_argument(reader.attr("size"), "size", UINT64_MAX),
            file_system_text(name)});
}

io::PositionedSource PositionedObject::source() const {
  return {.size = state_->size,
          .read_at = [state = state_](std::span<std::byte> into,
                                      std::uint64_t offset) -> io::Result<std::size_t> {
            const Outsider outsider;
            if (outsider.refused())
              return io::Error({.code = Errc::invalid_state,
                                .origin = Origin::file,
                                .what = "the interpreter is going"});
            return transferred([&] {
              const Inside inside(state.get());
              return filled_by(into, lent_bytes, Exc::file, "read", [&](const nb::object& view) {
                return state->reader.attr("read_at")(view, offset);
              });
            });
          },
          .name = state_->name};
}

bool PositionedObject::is_of_this_process() const noexcept { return state_->forks == forks; }

bool PositionedObject::is_reading() const noexcept {
  for (const Inside* inside = Inside::innermost; inside != nullptr; inside = inside->outer)
    if (inside->object == state_.get()) return true;
  return false;
}

bool is_positioned(nb::handle object) {
  return !is_path(object) && !PyBytes_Check(object.ptr()) && attribute(object, "read").is_valid() &&
         attribute(object, "seek").is_valid();
}

}  // namespace hurray::python
