#include "hurray/io/file.hpp"
#include "hurray/io/verify.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "key_values.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

constexpr const char* mode_variable = "HURRAY_MODE";

std::string mode_names() {
  std::string names;
  for (const io::ModeInfo& row : io::modes)
    names += (names.empty() ? "\"" : ", \"") + std::string(row.name) + "\"";
  return names;
}

io::Mode mode_from(std::string_view name, const std::string& where) {
  if (const auto* row = find_name(io::modes, name)) return row->tag;
  fail(PyExc_ValueError, where + ": expected one of " + mode_names() + ", found \"" +
                             std::string(name) + "\"" +
                             (where == "mode" ? "; a file is written by hurray.save" : ""));
}

/// `mode=`, else the environment's, else `mapped` where mapping is a good default (section 19.3).
io::Mode mode_argument(nb::handle mode, const std::string& path, io::Mode mapped) {
  if (!mode.is_none()) {
    if (!PyUnicode_Check(mode.ptr())) fail(PyExc_TypeError, "mode must be a str or None");
    return mode_from(utf8_argument(mode, "mode"), "mode");
  }
  const char* set = std::getenv(mode_variable);
  if (set != nullptr && *set != '\0') return mode_from(set, mode_variable);
  return io::is_local_file(path) ? mapped : io::Mode::memory;
}

/// `verify` and the limits of 04-file.md section 12, as keywords of `load` and `open`. `None`: the
/// default.
struct Limits {
  nb::object verify, index_bytes, tensors, kv_bytes, descriptor_bytes, tensor_bytes;

  std::optional<bool> verifies() const {
    if (verify.is_none()) return std::nullopt;
    if (!PyBool_Check(verify.ptr())) fail(PyExc_TypeError, "verify must be a bool or None");
    return verify.ptr() == Py_True;
  }

  io::OpenOptions options(io::Mode mode) const {
    io::OpenOptions options;
    options.mode = mode;
    options.verify = verifies();
    options.agreed.all = true;  // section 7, Y16
    options.interrupted = signal_raised;
    take(index_bytes, "max_index_bytes", options.max_index_bytes);
    take(tensors, "max_tensors", options.max_tensors);
    take(kv_bytes, "max_kv_bytes", options.max_kv_bytes);
    take(descriptor_bytes, "max_descriptor_bytes", options.max_descriptor_bytes);
    if (!tensor_bytes.is_none())
      options.max_tensor_bytes = unsigned_argument(tensor_bytes, "max_tensor_bytes", UINT64_MAX);
    return options;
  }

 private:
  template <class T>
  static void take(nb::handle value, std::string_view name, T& limit) {
    if (!value.is_none())
      limit = static_cast<T>(unsigned_argument(value, name, std::numeric_limits<T>::max()));
  }
};

io::File open_file(const std::string& path, nb::handle mode, io::Mode mapped,
                   const Limits& limits) {
  const io::OpenOptions options = limits.options(mode_argument(mode, path, mapped));
  return unwrap_waited(without_gil([&] { return io::File::open(path, options); }));
}

/// The entry of `name`; none where there is no such name.
std::optional<std::size_t> find(const io::File& file, nb::handle name) {
  if (!PyUnicode_Check(name.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) {  // a lone surrogate: no name of a file
    PyErr_Clear();
    return std::nullopt;
  }
  return file.find({text, static_cast<std::size_t>(size)});
}

std::vector<std::size_t> entries_argument(const io::File& file, nb::handle names) {
  std::vector<std::size_t> entries;
  if (names.is_none()) {
    for (std::size_t i = 0; i < file.size(); ++i) entries.push_back(i);
    return entries;
  }
  if (PyUnicode_Check(names.ptr()) || PyBytes_Check(names.ptr()))
    fail(PyExc_TypeError, "names must be an iterable of names, such as [\"w\"]");
  for (nb::handle name : nb::iter(names)) {
    if (!PyUnicode_Check(name.ptr())) fail(PyExc_TypeError, "a name must be a str");
    const auto entry = find(file, name);
    if (!entry) {
      fail(Exc::file, file.path() + ": no tensor is named " +
                          nb::cast<std::string>(nb::repr(name)) + "; the file holds " +
                          std::to_string(file.size()) +
                          " tensor(s), which hurray.open(path).names lists");
    }
    entries.push_back(*entry);
  }
  return entries;
}

/// The tensor of entry `i`, of a kind that has a class.
io::Result<hurray::Tensor> read_tensor(const io::File& file, std::size_t i) {
  auto tensor = file.tensor(i);
  if (tensor)
    if (const auto missing = lacks_class(tensor->descriptor()))
      return io::Error(*missing, file.path(), std::string(file.entry(i).name));
  return tensor;
}

/// Every byte of the file, or of the entries of `names`; raises what is found first.
void verify(const io::File& file, nb::handle names) {
  const io::VerifyOptions options{.interrupted = signal_raised};
  if (names.is_none()) {
    unwrap_waited(without_gil([&] { return io::verify(file, {}, options); }));
    return;
  }
  for (const std::size_t i : entries_argument(file, names))
    unwrap_waited(without_gil([&] { return io::verify_tensor(file, i, {}, options); }));
}

nb::dict load(nb::handle path, nb::handle names, nb::handle mode, const Limits& limits) {
  const io::File file = open_file(path_argument(path), mode, io::Mode::copy_on_write, limits);
  if (names.is_none() && limits.verifies() == true) verify(file, names);
  nb::dict tensors;
  for (const std::size_t i : entries_argument(file, names)) {
    nb::object name = wrap_utf8(file.entry(i).name);
    if (tensors.contains(name)) continue;
    tensors[name] = wrap_tensor(unwrap(without_gil([&] { return read_tensor(file, i); })));
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
  return tensors;
}

nb::dict load_kv(nb::handle path) {
  const std::string file = path_argument(path);
  return wrap_key_values(unwrap(without_gil([&] { return io::load_kv(file); })));
}

/// The mapping on behalf of one tensor, so that what still holds it can be named.
class Hold final : public Owner {
 public:
  explicit Hold(std::shared_ptr<Owner> mapping) : mapping_(std::move(mapping)) {}
  Result<void> make_writable(std::span<std::byte> bytes) override {
    return mapping_->make_writable(bytes);
  }

 private:
  std::shared_ptr<Owner> mapping_;
};

/// `hurray.file.File`. Safe for concurrent use: `file_` is replaced under the lock only, and an
/// `io::File` is a value that is shared.
class PyFile {
 public:
  PyFile(nb::handle path, nb::handle mode, const Limits& limits)
      : file_(open_file(path_argument(path), mode, io::Mode::map, limits)),
        path_(file_->path()),
        mode_(file_->mode()) {}

  nb::object path_object() const { return nb::steal(PyUnicode_DecodeFSDefault(path_.c_str())); }
  io::Mode mode() const noexcept { return mode_; }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return !file_;
  }

  /// `ValueError` once closed.
  io::File file() const {
    std::optional<io::File> open;
    {
      const std::lock_guard lock(mutex_);
      open = file_;
    }
    if (!open)
      fail(PyExc_ValueError, path_ + ": this File is closed; open it again with hurray.open");
    return *std::move(open);
  }

  nb::object tensor(const io::File& file, std::size_t i) {
    return wrap_tensor(unwrap(without_gil([&] { return held_tensor(file, i); })));
  }

  nb::tuple close(bool strict) {
    std::optional<io::File> open;
    std::vector<std::size_t> held;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [i, hold] : holds_)
        if (!hold.expired()) held.push_back(i);
      open = file_;
      if (!strict || held.empty()) {
        file_.reset();
        holds_.clear();
      }
    }
    std::ranges::sort(held);
    nb::list names;
    for (const std::size_t i : held) names.append(wrap_utf8(open->entry(i).name));
    if (strict && !held.empty()) {
      fail(PyExc_BufferError, path_ + ": tensors or arrays still hold the mapping of " +
                                  nb::cast<std::string>(nb::repr(names)) +
                                  "; release them first, or close() without strict=True");
    }
    return nb::tuple(names);
  }

 private:
  io::Result<hurray::Tensor> held_tensor(const io::File& file, std::size_t i) {
    auto tensor = read_tensor(file, i);
    const std::shared_ptr<Owner> mapping = file.mapping();
    if (!tensor || !mapping) return tensor;
    auto stored = file.descriptor(i);
    if (!stored) return std::move(stored).error();
    return contain(Origin::file, [&]() -> io::Result<hurray::Tensor> {
      const std::shared_ptr<Owner> hold = hold_of(i, mapping);
      std::vector<Buffer> buffers;
      for (const Buffer& buffer : tensor->buffers())
        buffers.push_back(Buffer::borrow(buffer.data(), buffer.size(), hold, buffer.readonly()));
      auto bound = bind(*std::move(stored), std::move(buffers),
                        {tensor->provenance(), tensor->memory_device()});
      if (!bound) return io::Error(bound.error(), path_);
      return *std::move(bound);
    });
  }

  std::shared_ptr<Owner> hold_of(std::size_t i, const std::shared_ptr<Owner>& mapping) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Owner>& known = holds_[i];
    std::shared_ptr<Owner> hold = known.lock();
    if (!hold) known = hold = std::make_shared<Hold>(mapping);
    return hold;
  }

  mutable std::mutex mutex_;  // no Python code runs under it: that could wait for another thread
  std::optional<io::File> file_;
  std::unordered_map<std::size_t, std::weak_ptr<Owner>> holds_;
  const std::string path_;
  const io::Mode mode_;
};

nb::object getitem(PyFile& self, nb::handle name) {
  const io::File file = self.file();
  if (!PyUnicode_Check(name.ptr())) fail(PyExc_TypeError, "a tensor's name is a str");
  const auto entry = find(file, name);
  if (!entry) {
    PyErr_SetObject(PyExc_KeyError, name.ptr());
    nb::raise_python_error();
  }
  return self.tensor(file, *entry);
}

nb::tuple names(const PyFile& self) {
  const io::File file = self.file();
  nb::object names = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(file.size())));
  if (!names.is_valid()) nb::raise_python_error();
  for (std::size_t i = 0; i < file.size(); ++i)
    PyTuple_SET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i),
                     wrap_utf8(file.entry(i).name).release().ptr());
  return nb::borrow<nb::tuple>(names);
}

nb::object descriptor(const io::File& file, std::size_t i) {
  return wrap_descriptor(unwrap(without_gil([&] { return file.descriptor(i); })));
}

nb::object descriptor_of(const PyFile& self, nb::handle name) {
  const io::File file = self.file();
  const auto entry = find(file, name);
  if (!entry) {
    PyErr_SetObject(PyExc_KeyError, name.ptr());
    nb::raise_python_error();
  }
  return descriptor(file, *entry);
}

/// `KeysView(self)` and its relatives, which make everything else of a read-only mapping.
nb::object mapping_view(const char* kind, nb::handle self) {
  return nb::module_::import_("collections.abc").attr(kind)(self);
}

/// Calls `define` with the keywords of `Limits`, in the order of its members.
template <class Define>
void with_limits(Define&& define) {
  define(nb::arg("verify") = nb::none(), nb::arg("max_index_bytes") = nb::none(),
         nb::arg("max_tensors") = nb::none(), nb::arg("max_kv_bytes") = nb::none(),
         nb::arg("max_descriptor_bytes") = nb::none(), nb::arg("max_tensor_bytes") = nb::none());
}

#define HURRAY_MODE_SIG "mode: typing.Literal['map', 'copy_on_write', 'memory'] | None = None, "
#define HURRAY_LIMITS_SIG                                                      \
  "verify: bool | None = None, "                                               \
  "max_index_bytes: int | None = None, max_tensors: int | None = None, "       \
  "max_kv_bytes: int | None = None, max_descriptor_bytes: int | None = None, " \
  "max_tensor_bytes: int | None = None"

}  // namespace

void bind_file(nb::module_& m) {
  // The class lives where users find it; that module is empty until now.
  nb::module_ home = nb::module_::import_("hurray.file");
  nb::class_<PyFile> file(
      home, "File", nb::sig("class File(collections.abc.Mapping[str, hurray.Tensor])"),
      "An open `.hrry` file: a read-only mapping of names to tensors, in the file's order.\n\n"
      "Made by `hurray.open`. Opening reads header, index and kv; a tensor's descriptor is read "
      "when\n"
      "it is asked for, its data when they are touched. Tensors stay valid after `close`. Safe "
      "for\n"
      "concurrent use.");
  file.def("__getitem__", getitem, nb::arg("name"),
           nb::sig("def __getitem__(self, name: str, /) -> hurray.Tensor"),
           "The tensor of that name. Raises KeyError; FileError, InvalidDescriptorError or\n"
           "UnsupportedError where this entry is damaged or needs what is not built.")
      .def(
          "get",
          [](PyFile& self, nb::handle name, nb::object otherwise) {
            const io::File open = self.file();
            const auto entry = find(open, name);
            return entry ? self.tensor(open, *entry) : otherwise;
          },
          nb::arg("name"), nb::arg("default") = nb::none(),
          nb::sig("def get(self, name: str, default: typing.Any = None) -> typing.Any"),
          "The tensor of that name, or `default` where there is none.")
      .def(
          "__contains__",
          [](const PyFile& self, nb::handle name) { return find(self.file(), name).has_value(); },
          nb::arg("name").none(), nb::sig("def __contains__(self, name: object, /) -> bool"))
      .def("__len__", [](const PyFile& self) { return self.file().size(); })
      .def(
          "__iter__", [](const PyFile& self) { return nb::iter(names(self)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "keys", [](nb::handle self) { return mapping_view("KeysView", self); },
          nb::sig("def keys(self) -> collections.abc.KeysView[str]"), "The names, as a view.")
      .def(
          "values", [](nb::handle self) { return mapping_view("ValuesView", self); },
          nb::sig("def values(self) -> collections.abc.ValuesView[hurray.Tensor]"),
          "The tensors, made while they are iterated.")
      .def(
          "items", [](nb::handle self) { return mapping_view("ItemsView", self); },
          nb::sig("def items(self) -> collections.abc.ItemsView[str, hurray.Tensor]"),
          "Pairs of name and tensor, made while they are iterated.")
      .def_prop_ro("names", names, nb::sig("def names(self) -> tuple[str, ...]"),
                   "All names in the file's order.")
      .def_prop_ro(
          "kv", [](const PyFile& self) { return wrap_key_values(self.file().kv()); },
          nb::sig("def kv(self) -> dict[str, typing.Any]"), "The typed metadata, as `load_kv`.")
      .def("descriptor", descriptor_of, nb::arg("name"),
           nb::sig("def descriptor(self, name: str) -> hurray.Descriptor"),
           "The stored descriptor, declared alignment included; no data are touched. Raises "
           "KeyError,\n"
           "FileError, InvalidDescriptorError.")
      .def(
          "descriptors",
          [](const PyFile& self) {
            const io::File open = self.file();
            nb::dict all;
            for (std::size_t i = 0; i < open.size(); ++i)
              all[wrap_utf8(open.entry(i).name)] = descriptor(open, i);
            return all;
          },
          nb::sig("def descriptors(self) -> dict[str, hurray.Descriptor]"), "All of them, by name.")
      .def_prop_ro(
          "has_checksums",
          [](const PyFile& self) {
            const io::File open = self.file();
            return without_gil([&] { return open.has_checksums(); });
          },
          "Whether the file has checksums of its own (04-file.md section 16).")
      .def(
          "verify", [](const PyFile& self, nb::handle names) { verify(self.file(), names); },
          nb::arg("names") = nb::none(),
          nb::sig("def verify(self, names: collections.abc.Iterable[str] | None = None) -> None"),
          "Compare every byte of the file, or of the tensors in `names`, with its checksum, and\n"
          "every rule with what is under none. A file without checksums passes on the rules alone\n"
          "(`has_checksums` is false). Raises FileError naming part or tensor, buffer, byte range\n"
          "and both sums.")
      .def_prop_ro("path", &PyFile::path_object, nb::sig("def path(self) -> str"),
                   "What was opened.")
      .def_prop_ro(
          "mode",
          [](const PyFile& self) { return wrap_utf8(find_row(io::modes, self.mode())->name); },
          nb::sig("def mode(self) -> typing.Literal['map', 'copy_on_write', 'memory']"),
          "How tensors get their memory.")
      .def_prop_ro("closed", &PyFile::closed,
                   "Whether `close` has ended access through this object.")
      .def("close", &PyFile::close, nb::kw_only(), nb::arg("strict") = false,
           nb::sig("def close(self, *, strict: bool = False) -> tuple[str, ...]"),
           "End access through this object (afterwards ValueError); idempotent.\n\n"
           "Returns the names whose tensors or arrays still hold the mapping; they stay valid, and "
           "the\n"
           "mapping goes with the last of them. With `strict`, these names are a BufferError (the\n"
           "built-in one) instead, and the file stays open.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> File"))
      .def(
          "__exit__", [](PyFile& self, nb::handle, nb::handle, nb::handle) { self.close(false); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none());
  nb::module_::import_("collections.abc").attr("Mapping").attr("register")(file);

  with_limits([&](const auto&... limits) {
    m.def(
        "open",
        [](nb::handle path, nb::handle mode, nb::object checked, nb::object index_bytes,
           nb::object tensors, nb::object kv_bytes, nb::object descriptor_bytes,
           nb::object tensor_bytes) {
          return std::make_unique<PyFile>(
              path, mode,
              Limits{checked, index_bytes, tensors, kv_bytes, descriptor_bytes, tensor_bytes});
        },
        nb::arg("path"), nb::kw_only(), nb::arg("mode") = nb::none(), limits...,
        nb::sig("def open(path: str | os.PathLike[str], *, " HURRAY_MODE_SIG HURRAY_LIMITS_SIG
                ") -> hurray.file.File"),
        "Open a `.hrry` file as a read-only mapping of names to tensors.\n\n"
        "`mode`: \"map\" maps it, read-only; \"copy_on_write\" maps it so that writes stay in "
        "this\n"
        "process; \"memory\" reads each tensor when it is asked for. Default: the environment "
        "variable\n"
        "HURRAY_MODE, else \"map\" for regular files on local file systems, else \"memory\". If "
        "somebody\n"
        "else cuts a mapped file short, touching what is gone ends the process: \"memory\" avoids "
        "that.\n\n"
        "`verify`: whether a tensor's checksums are compared when it is asked for; None: in mode\n"
        "\"memory\", where it is part of the copy.\n\n"
        "Raises FileError, ValueError (unknown mode), UnsupportedError (what cannot be mapped).");
    m.def(
        "load",
        [](nb::handle path, nb::handle names, nb::handle mode, nb::object checked,
           nb::object index_bytes, nb::object tensors, nb::object kv_bytes,
           nb::object descriptor_bytes, nb::object tensor_bytes) {
          return load(
              path, names, mode,
              Limits{checked, index_bytes, tensors, kv_bytes, descriptor_bytes, tensor_bytes});
        },
        nb::arg("path"), nb::kw_only(), nb::arg("names") = nb::none(), nb::arg("mode") = nb::none(),
        limits...,
        nb::sig(
            "def load(path: str | os.PathLike[str], *, "
            "names: collections.abc.Iterable[str] | None = None, " HURRAY_MODE_SIG HURRAY_LIMITS_SIG
            ") -> dict[str, Tensor]"),
        "The tensors of a `.hrry` file, all of them or those in `names` (in that order).\n\n"
        "As `open`, but the default is \"copy_on_write\": tensors are writable, and writes stay in "
        "this\n"
        "process. One tensor that cannot be given fails the whole call; `names` and `open` reach "
        "the\n"
        "others. `verify=True` compares every byte with its checksum before it returns.\n\n"
        "Raises FileError (also for an unknown name), InvalidDescriptorError, UnsupportedError,\n"
        "ValueError.");
  });
  m.def("load_kv", load_kv, nb::arg("path"),
        nb::sig("def load_kv(path: str | os.PathLike[str]) -> dict[str, typing.Any]"),
        "The typed metadata of a `.hrry` file; reads nothing else. Raises FileError.");
}

}  // namespace hurray::python
