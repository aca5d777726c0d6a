#include "transport.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
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
    while (outsiders > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  nb::module_::import_("atexit").attr("register")(on_exit);
  // A fork has none of its parent's threads.
  const nb::module_ os = nb::module_::import_("os");
  if (nb::hasattr(os, "register_at_fork")) {
    using namespace nb::literals;
    os.attr("register_at_fork")("after_in_child"_a = nb::cpp_function([] { outsiders = 0; }));
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

/// Makes `error`, which a transfer raised, the exception that the caller gets: what the transport
/// refuses is a FileError, a time limit of the reader's own a StreamError, all else stays as it is.
void set_transfer_error(nb::python_error& error) {
  const nb::object cause = nb::borrow(error.value());
  nb::object raised;
  if (error.matches(transport().attr("TimeLimit"))) {
    raised = nb::borrow(exception_class(Exc::stream_timeout))(ETIMEDOUT, nb::str(cause));
  } else if (error.matches(PyExc_OSError)) {
    const nb::object number = cause.attr("errno");
    const nb::object words = cause.attr("strerror");
    // Other libraries put numbers of their own where the system's belong.
    const bool of_system =
        !number.is_none() && nb::module_::import_("os").attr("strerror")(number).equal(words);
    raised = of_system ? file_class_of(nb::cast<int>(number))(number, words)
             : error.matches(PyExc_TimeoutError)
                 ? file_class_of(ETIMEDOUT)(nb::str(cause))
                 : nb::borrow(exception_class(Exc::file))(nb::str(cause));
  } else {
    error.restore();
    return;
  }
  raised.attr("__cause__") = cause;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
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

struct PositionedObject::State {
  nb::handle reader;  ///< `hurray._transport.Positioned`
  std::shared_ptr<Owner> owner;
  std::uint64_t size;
  std::string name;
};

PositionedObject::PositionedObject(nb::handle object) {
  const nb::object reader =
      of_transport([&]() -> nb::object { return transport().attr("Positioned")(object); });
  const nb::object name = reader.attr("name");
  state_ = std::make_shared<const State>(
      State{reader, hold(reader), unsigned_argument(reader.attr("size"), "size", UINT64_MAX),
            nb::str(name).c_str()});
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
              return lend(into.data(), into.size(), PyBUF_WRITE, [&](const nb::object& view) {
                return count_returned(state->reader.attr("read_at")(view, offset), into.size(),
                                      Exc::file, "read");
              });
            });
          },
          .name = state_->name};
}

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
