#include "hurray/io/stream.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "read_options.hpp"
#include "transport.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// Of one call of an object's method, in memory of Python's own.
constexpr std::size_t lent_bytes = std::size_t{1} << 20;

io::ReadFunction reading_through(nb::handle endpoint) {
  return [endpoint](std::span<std::byte> out) -> io::Result<std::size_t> {
    return transferred([&] {
      return filled_by(out, lent_bytes, Exc::stream, "readinto",
                       [&](const nb::object& view) { return endpoint.attr("readinto")(view); });
    });
  };
}

io::WriteFunction writing_through(nb::handle endpoint) {
  return [endpoint](std::span<const std::byte> bytes) -> io::Result<void> {
    auto written = transferred([&] {
      for (auto rest = bytes; !rest.empty();) {
        const auto piece = rest.first(std::min(rest.size(), lent_bytes));
        endpoint.attr("write")(
            nb::bytes(reinterpret_cast<const char*>(piece.data()), piece.size()));
        rest = rest.subspan(piece.size());
      }
      return true;
    });
    if (!written) return std::move(written).error();
    return {};
  };
}

std::optional<int> descriptor_of(const nb::object& endpoint) {
  const nb::object number = endpoint.attr("descriptor");
  if (number.is_none()) return std::nullopt;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  return static_cast<int>(unsigned_argument(number, "fileno()", most));
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double longest = 1e9;
  const double milliseconds = std::ceil(std::min(seconds, longest) * 1000);
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(milliseconds));
}

/// The longest wait that the endpoint allows: the socket's own, or what was asked for.
std::optional<std::chrono::milliseconds> timeout_of(const nb::object& endpoint) {
  const nb::object seconds = endpoint.attr("timeout");
  if (seconds.is_none()) return std::nullopt;
  return milliseconds_of(nb::cast<double>(seconds));
}

template <class Options>
void adopt_cross_machine(const nb::object& endpoint, Options& options) {
  const nb::object known = endpoint.attr("cross_machine");
  if (!options.cross_machine && !known.is_none()) options.cross_machine = nb::cast<bool>(known);
}

// ---- reader

/// The bytes of a buffer-protocol object for as long as this lives. Use it with the GIL.
class HeldBytes {
 public:
  HeldBytes() = default;
  explicit HeldBytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
      nb::python_error refused;
      nb::raise_from(refused, PyExc_TypeError,
                     "expected contiguous bytes; pass a copy: bytes(source)");
    }
  }
  HeldBytes(HeldBytes&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~HeldBytes() { PyBuffer_Release(&view_); }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

std::chrono::milliseconds timeout_argument(double seconds) {
  if (!(seconds > 0))
    fail(PyExc_ValueError,
         "read_timeout: expected seconds above 0, or None to wait without a limit");
  return milliseconds_of(seconds);
}

/// `hurray.StreamReader`. Members are used by the thread whose turn it is.
class PyStreamReader {
 public:
  PyStreamReader(nb::handle source, io::StreamReadOptions options) {
    options.interrupted = signal_raised;
    if (is_path(source)) {
      const std::string path = path_argument(source);
      reader_ = unwrap_waited(without_gil([&] { return io::StreamReader::open(path, options); }));
    } else if (PyObject_CheckBuffer(source.ptr()) != 0) {
      bytes_ = HeldBytes(source);
      reader_ = unwrap(io::StreamReader::over(bytes_.bytes(), options));
    } else if (attribute(source, "fileno").is_valid()) {
      nb::object limit = nb::none();
      if (options.read_timeout) limit = nb::float_(double(options.read_timeout->count()) / 1000);
      endpoint_ =
          of_transport([&]() -> nb::object { return transport().attr("source")(source, limit); });
      adopt_cross_machine(endpoint_, options);
      options.read_timeout = timeout_of(endpoint_);
      const auto number = descriptor_of(endpoint_);
      reader_ = unwrap(number ? io::StreamReader::over(*number, options)
                              : io::StreamReader::over(reading_through(endpoint_), options));
    } else {
      fail(PyExc_TypeError,
           "expected a path, bytes or an object with fileno() (socket, pipe, open file)");
    }
  }
  PyStreamReader(const PyStreamReader&) = delete;
  PyStreamReader& operator=(const PyStreamReader&) = delete;
  ~PyStreamReader() {
    const nb::error_scope scope;
    try {
      settle(end());
    } catch (const nb::python_error&) {
      // There is nobody to tell; the position of the file object is all that is lost.
    }
  }

  nb::object next() {
    End end;
    auto item = turn_.take([&]() -> io::Result<std::optional<Item>> {
      if (!reader_) return std::optional<Item>();
      auto next = reader_->next_item();
      if (!next || !*next) end = this->end();
      return next;
    });
    std::optional<Item> got;
    if (item && *item) {
      got = **std::move(item);
    } else if (item) {
      settle(std::move(end));
      throw nb::stop_iteration();
    } else {
      settle_quietly(std::move(end));
      unwrap_waited(std::move(item));
    }
    return wrap_item(*std::move(got));
  }

  void close() {
    settle(turn_.take([&] { return end(); }));
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(endpoint_.ptr());
    return 0;
  }
  void clear() { endpoint_.reset(); }

 private:
  /// What is left to do, with the GIL, once reading is over.
  struct End {
    nb::object endpoint;
    std::uint64_t position = 0;
    HeldBytes bytes;
  };

  End end() {
    End end;
    end.position = reader_ ? reader_->position() : 0;
    reader_.reset();
    end.endpoint = std::move(endpoint_);
    end.bytes = std::move(bytes_);
    return end;
  }

  static void settle(End end) {
    if (end.endpoint.is_valid()) of_transport([&] { end.endpoint.attr("settle")(end.position); });
  }
  /// The same while an exception of this thread is on its way.
  static void settle_quietly(End end) {
    const nb::error_scope scope;
    try {
      settle(std::move(end));
    } catch (const nb::python_error&) {
      // The exception on its way says more.
    }
  }

  Turn turn_;
  std::optional<io::StreamReader> reader_;  // none: at its end, failed or closed
  nb::object endpoint_;
  HeldBytes bytes_;
};

// ---- writer

/// `hurray.StreamWriter`. Members are used by the thread whose turn it is.
class PyStreamWriter {
 public:
  PyStreamWriter(nb::handle destination, io::StreamWriteOptions options)
      : in_memory_(destination.is_none()) {
    options.interrupted = signal_raised;
    if (in_memory_) {
      writer_ = unwrap(io::StreamWriter::in_memory(options));
    } else if (is_path(destination)) {
      const std::string path = path_argument(destination);
      writer_ = unwrap_waited(without_gil([&] { return io::StreamWriter::create(path, options); }));
    } else if (attribute(destination, "fileno").is_valid()) {
      endpoint_ = of_transport(
          [&]() -> nb::object { return transport().attr("destination")(destination); });
      adopt_cross_machine(endpoint_, options);
      options.write_timeout = timeout_of(endpoint_);
      const auto number = descriptor_of(endpoint_);
      writer_ = unwrap(number ? io::StreamWriter::over(*number, options)
                              : io::StreamWriter::over(writing_through(endpoint_), options));
    } else {
      fail(
          PyExc_TypeError,
          "expected a path, an object with fileno() (socket, pipe, open file), or nothing to write "
          "in memory");
    }
  }
  PyStreamWriter(const PyStreamWriter&) = delete;
  PyStreamWriter& operator=(const PyStreamWriter&) = delete;
  ~PyStreamWriter() {
    const nb::error_scope scope;
    try {
      settle(std::move(endpoint_));
    } catch (const nb::python_error&) {
      // There is nobody to tell; the position of the file object is all that is lost.
    }
  }

  void write(nb::handle item) {
    if (unwrap_composite(item) != nullptr) return write_composite(item);
    const auto source = writable_source(item);
    if (!source) {
      fail(PyExc_TypeError,
           "expected a hurray.Tensor or a hurray.Composite, an array (NumPy, PyTorch, DLPack) or "
           "an object with the buffer protocol, got " +
               python::type_name(item));
    }
    take_turn([&](io::StreamWriter& w) { return w.write(source->descriptor, source->buffers); });
  }

  void write_composite(nb::handle composite) {
    const PyComposite* given = unwrap_composite(composite);
    if (given == nullptr)
      fail(PyExc_TypeError, "expected a hurray.Composite, got " + python::type_name(composite));
    take_turn([&](io::StreamWriter& w) { return w.write_item(given->item); });
  }

  void finish() {
    nb::object endpoint;
    auto finished = turn_.take([&]() -> io::Result<void> {
      if (!writer_) return abandoned();
      auto result = writer_->finish();
      endpoint = std::move(endpoint_);
      if (!result && !in_memory_) writer_.reset();
      return result;
    });
    if (finished) return settle(std::move(endpoint));
    unwrap_waited(std::move(finished));
  }

  /// The `with` block ended by an exception: nothing appears under a path; what is in a pipe or in
  /// memory stays.
  void abandon() {
    nb::object endpoint;
    turn_.take([&] {
      endpoint = std::move(endpoint_);
      if (!in_memory_) writer_.reset();
      return true;
    });
    settle(std::move(endpoint));
  }

  nb::object getvalue() {
    if (!in_memory_) {
      fail(Exc::stream,
           "getvalue() is for streams in memory; this one has a destination, which has "
           "the bytes");
    }
    nb::object value;
    turn_.take([&] {
      const WithGil gil;
      const auto bytes = writer_->bytes();
      value = nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                                  static_cast<Py_ssize_t>(bytes.size())));
      return true;
    });
    if (!value.is_valid()) nb::raise_python_error();
    return value;
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(endpoint_.ptr());
    return 0;
  }
  void clear() { endpoint_.reset(); }

 private:
  template <class Write>
  void take_turn(Write write) {
    unwrap_waited(turn_.take([&]() -> io::Result<void> {
      if (!writer_) return abandoned();
      if (auto flushed = flush(); !flushed) return flushed;
      return write(*writer_);
    }));
  }

  io::Error abandoned() const {
    hurray::Error error;
    error.code = Errc::invalid_state;
    error.origin = Origin::stream;
    error.what = "this writer was given up after an error; write to a new one";
    return io::Error(error);
  }

  /// A Python file object's own buffer goes out first.
  io::Result<void> flush() const {
    if (!endpoint_.is_valid()) return {};
    auto flushed = transferred([&] { return endpoint_.attr("flush")(), true; });
    if (!flushed) return std::move(flushed).error();
    return {};
  }
  static void settle(nb::object endpoint) {
    if (endpoint.is_valid()) of_transport([&] { endpoint.attr("settle")(); });
  }

  Turn turn_;
  std::optional<io::StreamWriter> writer_;  // none: given up
  nb::object endpoint_;
  const bool in_memory_;
};

// ---- garbage collection

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<T>(self)->traverse(visit, arg);
}
template <class T>
int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear();
  return 0;
}
template <class T>
PyType_Slot collected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse<T>)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear<T>)},
    {0, nullptr},
};

}  // namespace

void bind_stream(nb::module_& m) {
  nb::class_<PyStreamReader>(m, "StreamReader", nb::type_slots(collected<PyStreamReader>),
                             "Iterates over the tensors and composites of a stream: a path, bytes, "
                             "or an object with\n"
                             "`fileno()` (socket, pipe, open file), whose descriptor is "
                             "duplicated.\n\n"
                             "Each is given out as soon as its bytes are there. One object "
                             "may be used from several\n"
                             "threads; calls come one after the other. After the end, a failure or "
                             "`close` it is exhausted.")
      .def(
          "__init__",
          [](PyStreamReader* self, nb::handle source, nb::handle descriptor_bytes,
             nb::handle buffer_bytes, nb::handle composite_depth, std::optional<bool> cross_machine,
             nb::handle tensor_bytes, nb::handle item_members, nb::handle expected_items,
             std::optional<double> read_timeout) {
            io::StreamReadOptions options =
                read_options(descriptor_bytes, buffer_bytes, composite_depth, cross_machine,
                             tensor_bytes, item_members, expected_items);
            if (read_timeout) options.read_timeout = timeout_argument(*read_timeout);
            new (self) PyStreamReader(source, std::move(options));
          },
          nb::arg("source"), nb::kw_only(), nb::arg("max_descriptor_bytes") = nb::none(),
          nb::arg("max_buffer_bytes") = nb::none(), nb::arg("max_composite_depth") = nb::none(),
          nb::arg("cross_machine") = nb::none(), nb::arg("max_tensor_bytes") = nb::none(),
          nb::arg("max_item_members") = nb::none(), nb::arg("expected_items") = nb::none(),
          nb::arg("read_timeout") = nb::none(),
          nb::sig("def __init__(self, source: str | os.PathLike[str] | typing_extensions.Buffer | "
                  "typing.Any, *, max_descriptor_bytes: int | None = None, "
                  "max_buffer_bytes: int | None = None, max_composite_depth: int | None = None, "
                  "cross_machine: bool | None = None, max_tensor_bytes: int | None = None, "
                  "max_item_members: int | None = None, expected_items: int | None = None, "
                  "read_timeout: float | None = None) -> None"),
          "Limits count bytes per frame (`None`: 16 MiB for descriptors, else unlimited), "
          "composites inside\n"
          "each other (8; at most 64, the outermost is level 1) and tensors below one composite "
          "(2**20), and\n"
          "are judged before memory is taken. `cross_machine` (`None`: on for IPv4 and IPv6 "
          "sockets) refuses\n"
          "tensors that are not producer-synced. A clean end before `expected_items` (a composite "
          "is one), and a wait\n"
          "of more than `read_timeout` seconds for the next bytes (`None`: of the socket's own "
          "time limit),\n"
          "which is also a TimeoutError, are StreamErrors; the first wait of a buffered pipe, "
          "which "
          "may hold\n"
          "bytes already, has no limit.\n\n"
          "Raises TypeError for objects whose descriptor is not their content.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> StreamReader"))
      .def("__next__", &PyStreamReader::next, nb::sig("def __next__(self) -> Tensor | Composite"),
           "The next tensor, or the next composite with all of its members.\n\n"
           "Raises StopIteration at the clean end; StreamError for truncated, malformed or "
           "oversized\n"
           "frames and torn composites; InvalidDescriptorError, UnsupportedError; FileError for "
           "the transport.")
      .def("close", &PyStreamReader::close,
           "Give the descriptor back. A Python file object that can seek then stands behind the "
           "last\n"
           "frame that was read.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> StreamReader"))
      .def(
          "__exit__",
          [](PyStreamReader& self, nb::handle, nb::handle, nb::handle) { self.close(); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none());

  nb::class_<PyStreamWriter>(
      m, "StreamWriter", nb::type_slots(collected<PyStreamWriter>),
      "Writes tensors and composites one after the other: to a path, to an object with `fileno()` "
      "(socket, pipe, "
      "open\n"
      "file), whose descriptor is duplicated, or without a destination in memory.\n\n"
      "A path gets the stream at `finish`, in place of an older file; a writer that is given up "
      "leaves\n"
      "nothing there. One object may be used from several threads; calls come one after the other.")
      .def(
          "__init__",
          [](PyStreamWriter* self, nb::handle destination, std::optional<bool> cross_machine) {
            io::StreamWriteOptions options;
            options.cross_machine = cross_machine;
            new (self) PyStreamWriter(destination, std::move(options));
          },
          nb::arg("destination") = nb::none(), nb::kw_only(), nb::arg("cross_machine") = nb::none(),
          nb::sig(
              "def __init__(self, destination: str | os.PathLike[str] | typing.Any | None = None, "
              "*, cross_machine: bool | None = None) -> None"),
          "`cross_machine` (`None`: on for IPv4 and IPv6 sockets) refuses tensors that are not\n"
          "producer-synced. A socket that takes no byte for its own time limit (`settimeout`) is "
          "a\n"
          "StreamError that is also a TimeoutError, and the writer is given up. Raises TypeError "
          "for\n"
          "objects whose descriptor is not their content.")
      .def("write", &PyStreamWriter::write, nb::arg("item").none(),
           nb::sig("def write(self, item: typing.Any) -> None"),
           "Write a tensor, a composite with all of its members, an array (NumPy, PyTorch, DLPack) "
           "or an\n"
           "object with the buffer protocol, straight from its memory.\n\n"
           "Raises TypeError for anything else, after which the writer is usable as before; "
           "StreamError\n"
           "once finished; FileError for the transport.")
      .def("write_composite", &PyStreamWriter::write_composite, nb::arg("composite").none(),
           nb::sig("def write_composite(self, composite: Composite) -> None"),
           "The same for a composite only. Everything is judged before the first byte.")
      .def("finish", &PyStreamWriter::finish, "End the stream; idempotent.")
      .def("getvalue", &PyStreamWriter::getvalue, nb::sig("def getvalue(self) -> bytes"),
           "The bytes written so far, in memory. Raises StreamError where there is a destination.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> StreamWriter"))
      .def(
          "__exit__",
          [](PyStreamWriter& self, nb::handle type, nb::handle, nb::handle) {
            type.is_none() ? self.finish() : self.abandon();
          },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none());
}

}  // namespace hurray::python
