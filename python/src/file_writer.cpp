#include "hurray/io/file_writer.hpp"

#include <nanobind/stl/string.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// `hurray.FileWriter`.
class PyFileWriter {
 public:
  PyFileWriter(nb::handle path, nb::handle kv, bool checksums, bool sync) {
    const std::string file = path_argument(path);
    unwrap(io::encode_kv(key_values_argument(kv)));
    if (!kv.is_none() && PyDict_Update(kv_.ptr(), kv.ptr()) != 0) nb::raise_python_error();
    const io::WriteOptions options = write_options(checksums, sync);
    writer_ = unwrap_waited(without_gil([&] { return io::FileWriter::create(file, options); }));
  }

  nb::dict kv() const { return kv_; }

  void write(nb::handle name, nb::object value) {
    NamedItem item = NamedItem::of(name, std::move(value));
    if (item.composite == nullptr) item.ready();
    unwrap_waited(turn_.take([&]() -> io::Result<void> {
      if (!writer_) return given_up();
      return item.write(*writer_);
    }));
  }

  void finish() {
    if (finished_) return;
    const io::KeyValues kv = key_values_argument(kv_);
    unwrap_waited(turn_.take([&]() -> io::Result<void> {
      if (finished_) return {};
      if (!writer_) return given_up();
      auto result = writer_->finish(kv);
      finished_ = result.has_value();
      return result;
    }));
  }

  /// Nothing appears under the path.
  void abandon() {
    turn_.take([&] {
      if (!finished_) writer_.reset();
      return true;
    });
  }

  void exit(nb::handle type) {
    if (!type.is_none()) return abandon();
    try {
      finish();
    } catch (...) {
      const nb::error_scope scope;
      abandon();
      throw;
    }
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(kv_.ptr());
    return 0;
  }
  void clear() { kv_ = nb::dict(); }

 private:
  static io::Error given_up() {
    hurray::Error error;
    error.code = Errc::invalid_state;
    error.origin = Origin::file;
    error.what = "this writer was given up, and nothing was saved; write to a new one";
    return io::Error(error);
  }

  Turn turn_;
  std::optional<io::FileWriter> writer_;  // none: given up
  std::atomic<bool> finished_ = false;
  nb::dict kv_;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<PyFileWriter>(self)->traverse(visit, arg);
}
int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyFileWriter>(self)->clear();
  return 0;
}
PyType_Slot collected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {0, nullptr},
};

}  // namespace

void bind_file_writer(nb::module_& m) {
  nb::class_<PyFileWriter>(
      m, "FileWriter", nb::type_slots(collected),
      "Writes a `.hrry` file piece by piece, for models that do not fit in memory.\n\n"
      "The file appears whole at `finish`, in place of an older one; a writer that is given up\n"
      "(dropped, or left by an exception) leaves nothing there. At most 16 MiB are taken beyond\n"
      "the item that is written. One object may be used from several threads; calls come one\n"
      "after the other.")
      .def(
          nb::init<nb::handle, nb::handle, bool, bool>(), nb::arg("path"), nb::kw_only(),
          nb::arg("kv").none() = nb::none(), nb::arg("checksums") = true, nb::arg("sync") = true,
          nb::sig("def __init__(self, path: str | os.PathLike[str], *, "
                  "kv: collections.abc.Mapping[str, typing.Any] | None = None, "
                  "checksums: bool = True, sync: bool = True) -> None"),
          "`kv`, `checksums` and `sync` as in `save`; `kv` is copied. Raises FileError, TypeError.")
      .def("write", &PyFileWriter::write, nb::arg("name"), nb::arg("item").none(),
           nb::sig("def write(self, name: str, item: typing.Any) -> None"),
           "Write `item` under `name`: what `save` takes, straight from its memory. The bytes are\n"
           "out when this returns; the item may be dropped or changed.\n\n"
           "Raises as `save`. What is refused (a name that is taken, a value that the format "
           "cannot\n"
           "hold) writes nothing and leaves the writer usable; after an error of the system "
           "nothing\n"
           "is saved.")
      .def_prop_ro("kv", &PyFileWriter::kv, nb::sig("def kv(self) -> dict[str, typing.Any]"),
                   "The typed metadata, which may be changed until `finish` writes them.")
      .def("finish", &PyFileWriter::finish,
           "Write `kv` and the index; the file appears. Idempotent. Refused `kv` can be mended.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> FileWriter"))
      .def(
          "__exit__",
          [](PyFileWriter& self, nb::handle type, nb::handle, nb::handle) { self.exit(type); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none());
}

}  // namespace hurray::python
