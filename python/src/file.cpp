#include "hurray/io/file.hpp"
#include "hurray/formats/convert.hpp"
#include "hurray/formats/formats.hpp"
#include "hurray/formats/open.hpp"
#include "hurray/io/file_set.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/io/verify.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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
#include "html.hpp"
#include "key_values.hpp"
#include "selection.hpp"
#include "transport.hpp"
#include "value_object.hpp"
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

io::Mode mode_from(nb::handle wanted, const std::string& where) {
  if (const auto name = utf8(wanted))
    if (const auto* row = find_name(io::modes, *name)) return row->tag;
  fail(PyExc_ValueError,
       where + ": expected one of " + mode_names() + ", found " + nb::repr(wanted).c_str() +
           (where == "mode" ? "; a file is written by hurray.save or hurray.FileWriter" : ""));
}

/// `mode=`, else the environment's, else what `otherwise()` returns (section 19.3).
template <class Otherwise>
io::Mode mode_argument(nb::handle mode, Otherwise&& otherwise) {
  if (!mode.is_none()) {
    if (!PyUnicode_Check(mode.ptr())) fail(PyExc_TypeError, "mode must be a str or None");
    return mode_from(mode, "mode");
  }
  const char* set = std::getenv(mode_variable);
  if (set != nullptr && *set != '\0')
    return mode_from(nb::steal(PyUnicode_DecodeFSDefault(set)), mode_variable);
  return otherwise();
}

/// `verify=`: a bool or None.
std::optional<bool> verify_argument(nb::handle verify) {
  if (verify.is_none()) return std::nullopt;
  if (!PyBool_Check(verify.ptr())) fail(PyExc_TypeError, "verify must be a bool or None");
  return verify.ptr() == Py_True;
}

/// `verify` and the limits of 04-file.md section 12, as keywords of `load` and `open`. `None`: the
/// default.
struct Limits {
  nb::object verify = nb::none(), index_bytes = nb::none(), tensors = nb::none(),
             kv_bytes = nb::none(), descriptor_bytes = nb::none(), tensor_bytes = nb::none(),
             composite_depth = nb::none(), spool_bytes = nb::none();

  std::optional<bool> verifies() const { return verify_argument(verify); }

  io::OpenOptions options(io::Mode mode) const {
    io::OpenOptions options;
    options.mode = mode;
    options.verify = verifies();
    options.agreed.all = true;  // section 7, Y16
    options.interrupted = signal_raised;
    options.foreign = formats::reader();
    take(index_bytes, "max_index_bytes", options.max_index_bytes);
    take(tensors, "max_tensors", options.max_tensors);
    take(kv_bytes, "max_kv_bytes", options.max_kv_bytes);
    take(descriptor_bytes, "max_descriptor_bytes", options.max_descriptor_bytes);
    if (!tensor_bytes.is_none())
      options.max_tensor_bytes = unsigned_argument(tensor_bytes, "max_tensor_bytes", UINT64_MAX);
    options.max_composite_depth =
        composite_depth_argument(composite_depth).value_or(options.max_composite_depth);
    take(spool_bytes, "max_spool_bytes", options.max_spool_bytes);
    return options;
  }

  /// Those that were given, as keywords.
  nb::dict keywords() const {
    nb::dict given;
    const auto add = [&](const char* name, const nb::object& value) {
      if (!value.is_none()) given[name] = value;
    };
    add("verify", verify);
    add("max_index_bytes", index_bytes);
    add("max_tensors", tensors);
    add("max_kv_bytes", kv_bytes);
    add("max_descriptor_bytes", descriptor_bytes);
    add("max_tensor_bytes", tensor_bytes);
    add("max_composite_depth", composite_depth);
    add("max_spool_bytes", spool_bytes);
    return given;
  }

 private:
  template <class T>
  static void take(nb::handle value, std::string_view name, T& limit) {
    if (!value.is_none())
      limit = static_cast<T>(unsigned_argument(value, name, std::numeric_limits<T>::max()));
  }
};

/// A descriptor of a regular file or of shared memory (09-models-and-frameworks.md section 2).
std::optional<int> descriptor_argument(nb::handle source) {
  if (!PyLong_Check(source.ptr()) || PyBool_Check(source.ptr())) return std::nullopt;
  return static_cast<int>(unsigned_argument(source, "path", std::numeric_limits<int>::max()));
}

/// An object to read from, which cannot be mapped.
std::optional<PositionedObject> positioned_argument(nb::handle source, nb::handle mode) {
  if (!is_positioned(source)) return std::nullopt;
  if (mode_argument(mode, [] { return io::Mode::memory; }) != io::Mode::memory && !mode.is_none())
    fail(Exc::unsupported, "a " + python::type_name(source) +
                               " is read, and cannot be mapped; open it with mode=\"memory\"");
  return PositionedObject(source);
}

io::FileSet open_path(const std::string& path, const formats::OptionsFor& options) {
  auto set = without_gil([&] { return formats::open(path, options); });
  if (!set && PyErr_Occurred() == nullptr && set.error().system_errno == ENOENT &&
      path.find("://") != std::string::npos) {
    io::Error error = std::move(set).error();
    error.detail =
        "a URL is opened by a library such as fsspec: hurray.open(fsspec.open(url).open())";
    throw_error(error);
  }
  return unwrap_waited(std::move(set));
}

struct Opened {
  io::FileSet file;
  std::optional<PositionedObject> object = {};
};

Opened open_file(nb::handle source, nb::handle mode, io::Mode mapped, const Limits& limits) {
  if (const auto descriptor = descriptor_argument(source)) {
    const io::OpenOptions options = limits.options(mode_argument(mode, [&] { return mapped; }));
    return {io::FileSet(
        unwrap_waited(without_gil([&] { return io::File::over(*descriptor, options); })))};
  }
  if (const auto object = positioned_argument(source, mode)) {
    const io::OpenOptions options = limits.options(io::Mode::memory);
    return {io::FileSet(unwrap_waited(
                without_gil([&] { return io::File::over(object->source(), options); }))),
            object};
  }
  if (!is_path(source) && !PyBytes_Check(source.ptr()))
    fail(
        PyExc_TypeError,
        "expected a path (str, os.PathLike), the number of an open descriptor or a seekable binary "
        "object, got a " +
            python::type_name(source) +
            (attribute(source, "fileno").is_valid() ? "; pass its fileno()"
             : attribute(source, "open").is_valid() ? "; pass what its open() returns"
                                                    : ""));
  const std::string path = path_argument(source);
  bool chosen = true;
  io::OpenOptions options = limits.options(mode_argument(mode, [&] {
    chosen = false;
    return mapped;
  }));
  return {open_path(path, [&](const std::string& file) {
    if (!chosen) options.mode = io::is_local_file(file) ? mapped : io::Mode::memory;
    return options;
  })};
}

/// The entry of `name`; none where there is no such name.
std::optional<std::size_t> find(const io::FileSet& file, nb::handle name) {
  if (!PyUnicode_Check(name.ptr())) return std::nullopt;
  const auto text = utf8(name);  // a lone surrogate is in no name of a file
  return text ? file.find(*text) : std::nullopt;
}

/// Calls `each` with every one of several names.
template <class Each>
void names_argument(nb::handle names, Each&& each) {
  if (PyUnicode_Check(names.ptr()) || PyBytes_Check(names.ptr()))
    fail(PyExc_TypeError, "names must be an iterable of names, such as [\"w\"]");
  for (nb::handle name : nb::iter(names)) {
    if (!PyUnicode_Check(name.ptr())) fail(PyExc_TypeError, "a name must be a str");
    each(name);
  }
}

std::vector<std::size_t> entries_argument(const io::FileSet& file, nb::handle names) {
  std::vector<std::size_t> entries;
  names_argument(names, [&](nb::handle name) {
    const auto entry = find(file, name);
    if (!entry) {
      fail(Exc::file, file.path() + ": no tensor is named " +
                          nb::cast<std::string>(nb::repr(name)) + "; the file holds " +
                          std::to_string(file.size()) +
                          " tensor(s), which hurray.open(path).names lists");
    }
    entries.push_back(*entry);
  });
  return entries;
}

using Owners = std::vector<std::optional<std::size_t>>;

/// For every entry the head that binds it directly.
Owners owners_of(const io::FileSet& file) {
  return unwrap_waited(without_gil([&] { return file.owners(); }));
}

/// Every byte of the file, or of the entries of `names` and what they bind; raises what is found
/// first.
void verify(const io::FileSet& file, nb::handle names) {
  const io::VerifyOptions options{.interrupted = signal_raised};
  if (names.is_none()) {
    for (const io::File& one : file.files())
      unwrap_waited(without_gil([&] { return io::verify(one, {}, options); }));
    return;
  }
  const std::vector<std::size_t> asked = entries_argument(file, names);
  const Owners owners = owners_of(file);
  std::vector<bool> wanted(file.size());
  for (const std::size_t i : asked) wanted[i] = true;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    std::optional<std::size_t> of = i;
    while (of && !wanted[*of]) of = owners[*of] == of ? std::nullopt : owners[*of];
    const auto [in, entry] = file.place(i);
    if (of) unwrap_waited(without_gil([&] { return io::verify_tensor(*in, entry, {}, options); }));
  }
}

nb::dict load(nb::handle path, nb::handle names, nb::handle mode, const Limits& limits) {
  const auto [file, object] = open_file(path, mode, io::Mode::copy_on_write, limits);
  if (names.is_none() && limits.verifies() == true) verify(file, names);
  std::vector<std::size_t> entries;
  if (names.is_none()) {
    const Owners owners = owners_of(file);
    for (std::size_t i = 0; i < owners.size(); ++i)
      if (!owners[i]) entries.push_back(i);
  } else {
    entries = entries_argument(file, names);
  }
  if (names.is_none()) file.will_read_all();
  nb::dict tensors;
  for (const std::size_t i : entries) {
    nb::object name = wrap_utf8(file.name(i));
    if (tensors.contains(name)) continue;
    tensors[name] = wrap_item(unwrap_waited(without_gil([&] { return file.item(i); })));
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
  return tensors;
}

nb::dict load_kv(nb::handle path) {
  io::OpenOptions options;
  options.foreign = formats::reader();
  options.interrupted = signal_raised;
  if (const auto descriptor = descriptor_argument(path))
    return wrap_key_values(
        unwrap_waited(without_gil([&] { return io::File::over(*descriptor, options); })).kv());
  if (const auto object = positioned_argument(path, nb::none())) {
    const auto open =
        unwrap_waited(without_gil([&] { return io::File::over(object->source(), options); }));
    return wrap_key_values(open.kv());
  }
  const std::string file = path_argument(path);
  return wrap_key_values(unwrap_waited(without_gil(
      [&] { return formats::load_kv(file, [&](const std::string&) { return options; }); })));
}

/// The mapping on behalf of one item, so that what still holds it can be named.
class Hold final : public Owner {
 public:
  explicit Hold(std::shared_ptr<Owner> mapping) : mapping_(std::move(mapping)) {}
  Result<void> make_writable(std::span<std::byte> bytes) override {
    return mapping_->make_writable(bytes);
  }

 private:
  std::shared_ptr<Owner> mapping_;
};

/// What a file was when its `File` was pickled.
struct Identity {
  std::uint64_t size = 0;
  std::uint32_t index_crc32c = 0;

  friend bool operator==(const Identity&, const Identity&) = default;
};

Identity identity_of(const io::FileSet& file) noexcept {
  return {file.size_bytes(), file.index_crc32c()};
}

/// `hurray.file.File`. Safe for concurrent use: `file_` is replaced under the lock only, and an
/// `io::FileSet` is a value that is shared.
class PyFile {
 public:
  /// `mapped`: the default mode of what can be mapped well.
  PyFile(nb::handle path, nb::handle mode, const Limits& limits, io::Mode mapped = io::Mode::map)
      : PyFile(open_file(path, mode, mapped, limits), limits) {}
  /// Opened on first use, if it is still that file.
  PyFile(std::string path, io::Mode mode, Limits limits, Identity expected)
      : expected_(expected), path_(std::move(path)), mode_(mode), limits_(std::move(limits)) {}

  nb::object path_object() const { return nb::steal(PyUnicode_DecodeFSDefault(path_.c_str())); }
  io::Mode mode() const noexcept { return mode_; }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return !file_ && !expected_;
  }

  /// `ValueError` once closed.
  io::FileSet file() const {
    if (object_ && object_->is_reading())
      fail(PyExc_RuntimeError, path_ + ": a File cannot be used by the object that it reads from");
    if (object_ && !object_->is_of_this_process())
      fail(PyExc_RuntimeError,
           path_ +
               ": this File was opened before a fork, and both processes would move its object; "
               "open another one in the child");
    std::optional<io::FileSet> open;
    std::optional<Identity> expected;
    {
      const std::lock_guard lock(mutex_);
      open = file_;
      expected = expected_;
    }
    if (open) return *std::move(open);
    if (!expected)
      fail(PyExc_ValueError, path_ + ": this File is closed; open it again with hurray.open");
    return reopened(*expected);
  }

  /// Function of `hurray._rebuild` and its arguments.
  nb::tuple reduced() const {
    if (path_.empty() || object_)
      fail(PyExc_TypeError,
           "a File over a descriptor or an object cannot be pickled; send that, or what "
           "hurray.share returned, and open it there");
    const Identity now = identity_of(file());
    return python::reduced(
        "file", nb::make_tuple(nb::module_::import_("os.path").attr("abspath")(path_object()),
                               wrap_utf8(find_row(io::modes, mode_)->name), now.size,
                               now.index_crc32c, limits_.keywords()));
  }

  /// A tensor, or a composite with all of its members.
  nb::object item(const io::FileSet& file, std::size_t i) {
    return wrap_item(unwrap_waited(without_gil([&] { return held_item(file, i); })));
  }

  /// A part of a tensor, of its own or as a view of the mapping.
  nb::object read(const io::FileSet& file, std::size_t i, nb::handle index, nb::handle out,
                  Copy copy, std::optional<bool> verify) {
    const auto stored = unwrap_waited(without_gil([&] { return file.descriptor(i); }));
    const Selection selection = selection_argument(index, stored.shape);
    const auto slice = unwrap_waited(without_gil([&] { return file.slice(i, selection); }));
    io::SliceOptions options{.verify = verify, .share = copy != Copy::always};
    if (!out.is_none()) {
      if (copy != Copy::if_needed)
        fail(PyExc_ValueError, "out says where the elements go; copy must be None with it");
      const Target target = target_argument(out, slice.descriptor(), slice.size_bytes());
      unwrap_waited(without_gil([&] { return slice.read_into(target.bytes, options); }));
      return nb::borrow(out);
    }
    if (copy == Copy::never && !slice.shareable())
      fail(Exc::copy_required,
           std::string("copy=False: ") +
               (file.mapping(i) == nullptr
                    ? "the file is not mapped (mode=\"memory\")"
                    : "the selection is not one range of the file that starts on 64 bytes") +
               "; allow a copy (copy=None)");
    return wrap_tensor(unwrap_waited(without_gil([&]() -> io::Result<hurray::Tensor> {
      auto tensor = slice.read(options);
      if (!tensor || !slice.shareable() || !options.share) return tensor;
      return contain(Origin::file, [&]() -> io::Result<hurray::Tensor> {
        Item item{*std::move(tensor), {}};
        const auto mapping = file.mapping(i);
        if (auto held = hold(item, mapping, hold_of(i, mapping)); !held)
          return io::Error(held.error(), path_);
        return std::move(item.tensor);
      });
    })));
  }

  /// Plain elements of a file of another format as they lie in the mapping, for consumers that need
  /// no 64: the bytes in a tensor that starts on 64 before them, where in it they start, type and
  /// shape. None where that is not so.
  nb::object mapped_elements(const io::FileSet& file, std::size_t i) {
    struct Elements {
      io::File::MappedBytes bytes;
      hurray::Descriptor descriptor;
    };
    const io::File* one = file.place(i).first;
    const std::size_t entry = file.place(i).second;
    if (one->format() == "hrry" || one->mapping() == nullptr) return nb::none();
    auto found = unwrap_waited(without_gil([&]() -> io::Result<std::optional<Elements>> {
      auto descriptor = one->descriptor(entry);
      if (!descriptor) return std::move(descriptor).error();
      if (!std::holds_alternative<RowMajor>(descriptor->layout) || descriptor->byte_offset != 0 ||
          descriptor->quantization() != nullptr || is_sub_byte(descriptor->dtype))
        return std::optional<Elements>();
      auto bytes = one->mapped_bytes(entry);
      if (!bytes) return std::move(bytes).error();
      if (!*bytes) return std::optional<Elements>();
      return std::optional(Elements{**std::move(bytes), *std::move(descriptor)});
    }));
    if (!found) return nb::none();
    const Buffer& memory = found->bytes.memory;
    hurray::Descriptor plain;
    plain.dtype = DType::uint8;
    plain.shape = Shape{memory.size()};
    plain.buffers = BufferTable{BufferHandle{.byte_size = memory.size()}};
    std::vector<Buffer> buffers;
    buffers.push_back(Buffer::borrow(memory.data(), memory.size(), hold_of(i, one->mapping()),
                                     memory.readonly()));
    return nb::make_tuple(wrap_tensor(unwrap(bind(std::move(plain), std::move(buffers)))),
                          found->bytes.start, dtype_object(found->descriptor.dtype),
                          wrap_shape(found->descriptor.shape));
  }

  /// The names of items at the top, or of what they bind, in the file's order.
  nb::tuple names(const io::FileSet& file, bool members) {
    const auto listing = unwrap_waited(without_gil([&] { return this->listing(file); }));
    const auto& entries = members ? listing->members : listing->top;
    nb::object names = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(entries.size())));
    if (!names.is_valid()) nb::raise_python_error();
    for (std::size_t k = 0; k < entries.size(); ++k)
      PyTuple_SET_ITEM(names.ptr(), static_cast<Py_ssize_t>(k),
                       wrap_utf8(file.name(entries[k])).release().ptr());
    return nb::borrow<nb::tuple>(names);
  }
  /// Entries at the top.
  std::size_t size(const io::FileSet& file) {
    return unwrap_waited(without_gil([&] { return listing(file); }))->top.size();
  }

  std::string html() {
    const io::FileSet file = this->file();
    const auto listing = unwrap_waited(without_gil([&] { return this->listing(file); }));
    const std::size_t count = std::min(listing->top.size(), html::max_rows);
    std::vector<std::optional<hurray::Descriptor>> descriptors(count);
    std::vector<html::Row> rows;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = listing->top[k];
      auto stored = without_gil([&] { return file.descriptor(i); });
      if (stored) descriptors[k] = *std::move(stored);
      PyErr_Clear();
      rows.push_back({std::string(file.name(i)), descriptors[k] ? &*descriptors[k] : nullptr,
                      descriptors[k] && !descriptors[k]->buffers.empty()
                          ? declared_device(*descriptors[k])
                          : PyDevice{}});
    }
    return html::table("hurray.file.File " + path_, rows, listing->top.size()) +
           html::bars("bytes of each tensor", rows);
  }

  nb::tuple close(bool strict) {
    std::optional<io::FileSet> open;
    std::vector<std::size_t> held;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [i, hold] : holds_)
        if (!hold.expired()) held.push_back(i);
      open = file_;
      if (!strict || held.empty()) {
        file_.reset();
        expected_.reset();
        holds_.clear();
      }
    }
    std::ranges::sort(held);
    nb::list names;
    for (const std::size_t i : held) names.append(wrap_utf8(open->name(i)));
    if (strict && !held.empty()) {
      fail(PyExc_BufferError, path_ + ": tensors or arrays still hold the mapping of " +
                                  nb::cast<std::string>(nb::repr(names)) +
                                  "; release them first, or close() without strict=True");
    }
    return nb::tuple(names);
  }

 private:
  PyFile(Opened opened, Limits limits)
      : file_(std::move(opened.file)),
        object_(std::move(opened.object)),
        path_(file_->path()),
        mode_(file_->mode()),
        limits_(std::move(limits)) {}

  /// Entries in index order.
  struct Listing {
    std::vector<std::size_t> top, members;
  };

  /// Found at the first call; one thread looks, the others wait without the GIL.
  io::Result<std::shared_ptr<const Listing>> listing(const io::FileSet& file) {
    const std::lock_guard lock(listing_mutex_);
    if (!listing_) {
      auto owners = file.owners();
      if (!owners) return std::move(owners).error();
      const auto made = std::make_shared<Listing>();
      made->top.reserve(owners->size());
      for (std::size_t i = 0; i < owners->size(); ++i)
        if ((*owners)[i] != i) ((*owners)[i] ? made->members : made->top).push_back(i);
      listing_ = made;
    }
    return listing_;
  }

  io::Result<Item> held_item(const io::FileSet& file, std::size_t i) {
    auto item = file.item(i);
    const std::shared_ptr<Owner> mapping = file.mapping(i);
    if (!item || !mapping) return item;
    return contain(Origin::file, [&]() -> io::Result<Item> {
      if (auto held = hold(*item, mapping, hold_of(i, mapping)); !held)
        return io::Error(held.error(), path_);
      return item;
    });
  }

  /// Puts `owner` in the mapping's place; what is a copy keeps its own.
  static hurray::Result<void> hold(Item& item, const std::shared_ptr<Owner>& mapping,
                                   const std::shared_ptr<Owner>& owner) {
    hurray::Tensor& tensor = item.tensor;
    std::vector<Buffer> buffers;
    for (const Buffer& buffer : tensor.buffers())
      buffers.push_back(buffer.owner() != mapping ? buffer
                                                  : Buffer::borrow(buffer.data(), buffer.size(),
                                                                   owner, buffer.readonly()));
    // What has a wait in it is relayed as it was declared.
    auto bound = bind(tensor.unsynced_buffer() ? tensor.wire_descriptor() : tensor.descriptor(),
                      std::move(buffers), tensor.binding());
    if (!bound) return bound.error();
    tensor = *std::move(bound);
    for (Item& member : item.members)
      if (auto held = hold(member, mapping, owner); !held) return held;
    return {};
  }

  std::shared_ptr<Owner> hold_of(std::size_t i, const std::shared_ptr<Owner>& mapping) {
    const std::lock_guard lock(mutex_);
    if (!file_) return std::make_shared<Hold>(mapping);  // closed meanwhile: nobody asks any more
    std::weak_ptr<Owner>& known = holds_[i];
    std::shared_ptr<Owner> hold = known.lock();
    if (!hold) known = hold = std::make_shared<Hold>(mapping);
    return hold;
  }

  io::FileSet reopened(const Identity& expected) const {
    const io::OpenOptions options = limits_.options(mode_);
    const io::FileSet again = open_path(path_, [&](const std::string&) { return options; });
    if (const Identity found = identity_of(again); found != expected)
      fail(Exc::file, path_ + ": this is not the file that was pickled: expected " +
                          std::to_string(expected.size) + " bytes with index checksum " +
                          std::to_string(expected.index_crc32c) + ", found " +
                          std::to_string(found.size) + " bytes with " +
                          std::to_string(found.index_crc32c) + "; open it anew with hurray.open");
    const std::lock_guard lock(mutex_);
    if (expected_ && !file_) {
      file_ = again;
      expected_.reset();
    }
    return again;
  }

  mutable std::mutex mutex_;  // no Python code runs under it: that could wait for another thread
  mutable std::optional<io::FileSet> file_;
  mutable std::optional<Identity> expected_;  ///< Until it is opened.
  std::unordered_map<std::size_t, std::weak_ptr<Owner>> holds_;
  std::mutex listing_mutex_;  // never taken with the GIL
  std::shared_ptr<const Listing> listing_;
  const std::optional<PositionedObject> object_;
  const std::string path_;
  const io::Mode mode_;
  const Limits limits_;
};

/// The entry of `name`; `KeyError` where there is none.
std::size_t entry_argument(const io::FileSet& file, nb::handle name) {
  if (!PyUnicode_Check(name.ptr())) fail(PyExc_TypeError, "a tensor's name is a str");
  if (const auto entry = find(file, name)) return *entry;
  PyErr_SetObject(PyExc_KeyError, name.ptr());
  nb::raise_python_error();
}

nb::tuple names(PyFile& self) { return self.names(self.file(), false); }

nb::object descriptor(const io::FileSet& file, std::size_t i) {
  return wrap_descriptor(unwrap_waited(without_gil([&] { return file.descriptor(i); })));
}

nb::object getitem(PyFile& self, nb::handle name) {
  const io::FileSet file = self.file();
  return self.item(file, entry_argument(file, name));
}

nb::object read(PyFile& self, nb::handle name, nb::handle index, nb::handle out, nb::handle copy,
                nb::handle verify) {
  const io::FileSet file = self.file();
  return self.read(file, entry_argument(file, name), index, out, copy_argument(copy),
                   verify_argument(verify));
}

std::uint64_t prefetch(const PyFile& self, nb::handle plan, nb::handle max_bytes) {
  const io::FileSet file = self.file();
  const std::uint64_t limit = unsigned_argument(max_bytes, "max_bytes", UINT64_MAX);
  std::vector<io::File::Wanted> wanted;
  if (plan.is_none()) {
    for (std::size_t i = 0; i < file.size(); ++i) wanted.push_back({i, {}});
  } else if (const nb::object items = mapping_items(plan); items.is_valid()) {
    for (nb::handle item : items) {
      const std::size_t i = entry_argument(file, item[0]);
      const auto stored = unwrap_waited(without_gil([&] { return file.descriptor(i); }));
      wanted.push_back({i, selection_argument(nb::object(item[1]), stored.shape)});
    }
  } else {
    names_argument(plan,
                   [&](nb::handle name) { wanted.push_back({entry_argument(file, name), {}}); });
  }
  return unwrap_waited(without_gil([&] { return file.prefetch(wanted, limit); }));
}

/// `progress`: None, or called a few times a second with the bytes done and all bytes.
void convert(const PyFile& self, nb::handle target, bool checksums, bool sync,
             nb::handle progress) {
  const io::FileSet file = self.file();
  const std::string path = path_argument(target);
  std::uint64_t total = 0, done = 0;
  std::chrono::steady_clock::time_point next{};
  bool failed = false;
  const auto tell = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (progress.is_none() || failed || (now < next && done != total)) return;
    next = now + std::chrono::milliseconds(200);
    const WithGil gil;
    try {
      progress(done, total);
    } catch (nb::python_error& error) {
      error.restore();
      failed = true;
    }
  };
  const formats::ConvertOptions options{.checksums = checksums,
                                        .sync = sync,
                                        .interrupted = [&] { return failed || signal_raised(); },
                                        .total =
                                            [&](std::uint64_t bytes) {
                                              total = bytes;
                                              tell();
                                            },
                                        .progress =
                                            [&](std::uint64_t bytes) {
                                              done += bytes;
                                              tell();
                                            }};
  unwrap_waited(without_gil([&] { return formats::convert(file, path, options); }));
}

nb::object descriptor_of(const PyFile& self, nb::handle name) {
  const io::FileSet file = self.file();
  return descriptor(file, entry_argument(file, name));
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
         nb::arg("max_descriptor_bytes") = nb::none(), nb::arg("max_tensor_bytes") = nb::none(),
         nb::arg("max_composite_depth") = nb::none(), nb::arg("max_spool_bytes") = nb::none());
}

#define HURRAY_MODE_SIG "mode: typing.Literal['map', 'copy_on_write', 'memory'] | None = None, "
#define HURRAY_LIMITS_SIG                                                         \
  "verify: bool | None = None, "                                                  \
  "max_index_bytes: int | None = None, max_tensors: int | None = None, "          \
  "max_kv_bytes: int | None = None, max_descriptor_bytes: int | None = None, "    \
  "max_tensor_bytes: int | None = None, max_composite_depth: int | None = None, " \
  "max_spool_bytes: int | None = None"

}  // namespace

void bind_file(nb::module_& m) {
  // The class lives where users find it; that module is empty until now.
  nb::module_ home = nb::module_::import_("hurray.file");
  nb::class_<io::ReadCounts>(home, "ReadCounts",
                             "What reading data has cost since a file was opened.")
      .def_ro("bytes_wanted", &io::ReadCounts::bytes_wanted, "Bytes of the tensors and parts read.")
      .def_ro("bytes_read", &io::ReadCounts::bytes_read,
              "Bytes taken from the file for them: more where gaps or whole chunks are read.")
      .def_ro("requests", &io::ReadCounts::requests, "Positioned reads.")
      .def("__repr__", [](const io::ReadCounts& self) {
        return "ReadCounts(bytes_wanted=" + std::to_string(self.bytes_wanted) +
               ", bytes_read=" + std::to_string(self.bytes_read) +
               ", requests=" + std::to_string(self.requests) + ")";
      });
  nb::class_<PyFile> file(
      home, "File",
      nb::sig("class File(collections.abc.Mapping[str, hurray.Tensor | hurray.Composite])"),
      "An open `.hrry` file: a read-only mapping of names to tensors and composites, in the "
      "file's\n"
      "order.\n\n"
      "Made by `hurray.open`. Opening reads header, index and kv; a tensor's descriptor is read "
      "when\n"
      "it is asked for, its data when they are touched. Tensors stay valid after `close`. Safe "
      "for\n"
      "concurrent use.");
  file.def("__getitem__", getitem, nb::arg("name"),
           nb::sig("def __getitem__(self, name: str, /) -> hurray.Tensor | hurray.Composite"),
           "The tensor or composite of that name; a member's (\"head.0\") gives the member. Raises "
           "KeyError; FileError, InvalidDescriptorError or\n"
           "UnsupportedError where this entry is damaged or needs what is not built.")
      .def(
          "get",
          [](PyFile& self, nb::handle name, nb::object otherwise) {
            const io::FileSet open = self.file();
            const auto entry = find(open, name);
            return entry ? self.item(open, *entry) : otherwise;
          },
          nb::arg("name"), nb::arg("default") = nb::none(),
          nb::sig("def get(self, name: str, default: typing.Any = None) -> typing.Any"),
          "The tensor of that name, or `default` where there is none.")
      .def(
          "__contains__",
          [](const PyFile& self, nb::handle name) { return find(self.file(), name).has_value(); },
          nb::arg("name").none(), nb::sig("def __contains__(self, name: object, /) -> bool"))
      .def("__len__", [](PyFile& self) { return self.size(self.file()); })
      .def(
          "__iter__", [](PyFile& self) { return nb::iter(names(self)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "keys", [](nb::handle self) { return mapping_view("KeysView", self); },
          nb::sig("def keys(self) -> collections.abc.KeysView[str]"), "The names, as a view.")
      .def(
          "values", [](nb::handle self) { return mapping_view("ValuesView", self); },
          nb::sig(
              "def values(self) -> collections.abc.ValuesView[hurray.Tensor | hurray.Composite]"),
          "The tensors and composites, made while they are iterated.")
      .def(
          "items", [](nb::handle self) { return mapping_view("ItemsView", self); },
          nb::sig("def items(self) -> collections.abc.ItemsView[str, hurray.Tensor | "
                  "hurray.Composite]"),
          "Pairs of name and tensor or composite, made while they are iterated.")
      .def_prop_ro("names", names, nb::sig("def names(self) -> tuple[str, ...]"),
                   "The names of tensors and composites in the file's order, without members.")
      .def_prop_ro(
          "member_names", [](PyFile& self) { return self.names(self.file(), true); },
          nb::sig("def member_names(self) -> tuple[str, ...]"),
          "The names of what composites bind, nested heads included, in the file's order. They can "
          "be\n"
          "asked for like all others, and are not listed elsewhere.")
      .def_prop_ro(
          "kv", [](const PyFile& self) { return wrap_key_values(unwrap(self.file().kv())); },
          nb::sig("def kv(self) -> dict[str, typing.Any]"), "The typed metadata, as `load_kv`.")
      .def(
          "read", read, nb::arg("name"), nb::arg("index").none() = nb::ellipsis(), nb::kw_only(),
          nb::arg("out") = nb::none(), nb::arg("copy") = nb::none(), nb::arg("verify") = nb::none(),
          nb::sig("def read(self, name: str, index: typing.Any = ..., *, out: typing.Any = None, "
                  "copy: bool | None = None, verify: bool | None = None) -> typing.Any"),
          "A part of a tensor as a row-major tensor of its own; only its bytes are read.\n\n"
          "`index`: ints, slices with a step of at least 1 and `...`, one or a tuple of them, as\n"
          "for arrays. Every dense layout and element type, with per-tensor quantization;\n"
          "UnsupportedError names another layout or scheme. Bytes are read by position, never\n"
          "through the mapping, several threads at a time where there are many; gaps of up to\n"
          "64 KiB are read over (`io` tells the cost).\n\n"
          "`out`: a writable contiguous array, `Tensor` or torch tensor of the selected shape and\n"
          "the tensor's type; it is filled and returned, and holds anything after an error.\n\n"
          "`copy`: None shares the mapping where the selection is one range of the file that\n"
          "starts on 64 bytes, and reads otherwise; False demands the former\n"
          "(CopyRequiredError), True the latter.\n\n"
          "`verify`: True reads whole chunks and compares their checksums (FileError); None does\n"
          "so where the file was opened with verify=True.\n\n"
          "Raises KeyError, IndexError, TypeError, ValueError, FileError,\n"
          "InvalidDescriptorError, UnsupportedError, CopyRequiredError.")
      .def(
          "prefetch",
          [](const PyFile& self, nb::handle plan, nb::handle max_bytes) {
            prefetch(self, plan, max_bytes);
          },
          nb::arg("plan") = nb::none(), nb::kw_only(),
          nb::arg("max_bytes") = io::File::default_prefetch_bytes,
          nb::sig("def prefetch(self, plan: collections.abc.Iterable[str] | "
                  "collections.abc.Mapping[str, typing.Any] | None = None, *, "
                  "max_bytes: int = 268435456) -> None"),
          "Let the system read ahead, in the background, what will be asked for soon.\n\n"
          "`plan`: names, or a mapping of names to indexes as `read` takes them; None is "
          "everything.\n"
          "Ranges near each other are merged and read in the file's order, `max_bytes` of them at\n"
          "most. Raises KeyError, IndexError, FileError, UnsupportedError as `read`.")
      .def_prop_ro(
          "io", [](const PyFile& self) { return self.file().read_counts(); },
          nb::sig("def io(self) -> ReadCounts"),
          "What reading data of tensors has cost so far, mapped ones left out.")
      .def(
          "_mapped_elements",
          [](PyFile& self, nb::handle name) {
            const io::FileSet open = self.file();
            return self.mapped_elements(open, entry_argument(open, name));
          },
          nb::arg("name"),
          nb::sig(
              "def _mapped_elements(self, name: str) -> tuple[hurray.Tensor, int, hurray.Dtype, "
              "tuple[int, ...]] | None"),
          "Plain elements of a file of another format where they are mapped: bytes from 64 before\n"
          "them on, where they start, type and shape.")
      .def("_convert", convert, nb::arg("target"), nb::kw_only(), nb::arg("checksums") = true,
           nb::arg("sync") = true, nb::arg("progress").none() = nb::none(),
           nb::sig("def _convert(self, target: str | os.PathLike[str], *, checksums: bool = True, "
                   "sync: bool = True, progress: typing.Any = None) -> None"),
           "Make one file of this one.")
      .def("descriptor", descriptor_of, nb::arg("name"),
           nb::sig("def descriptor(self, name: str) -> hurray.Descriptor"),
           "The stored descriptor, declared alignment included; no data are touched. Raises "
           "KeyError,\n"
           "FileError, InvalidDescriptorError.")
      .def(
          "descriptors",
          [](const PyFile& self) {
            const io::FileSet open = self.file();
            nb::dict all;
            for (std::size_t i = 0; i < open.size(); ++i)
              all[wrap_utf8(open.name(i))] = descriptor(open, i);
            return all;
          },
          nb::sig("def descriptors(self) -> dict[str, hurray.Descriptor]"),
          "All of them by name, heads and "
          "members included.")
      .def_prop_ro(
          "has_checksums",
          [](const PyFile& self) {
            const io::FileSet open = self.file();
            const bool has = without_gil([&] { return open.has_checksums(); });
            if (PyErr_Occurred() != nullptr) nb::raise_python_error();
            return has;
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
      .def_prop_ro(
          "format",
          [](const PyFile& self) { return wrap_utf8(self.file().files().front().format()); },
          nb::sig("def format(self) -> str"),
          "What its bytes are: \"hrry\", or the other format that is seen through it: "
          "\"safetensors\",\n"
          "\"gguf\", \"npy\".")
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
  file.def(
          "_repr_html_", [](PyFile& self) { return html::shown([&] { return self.html(); }); },
          nb::sig("def _repr_html_(self) -> str | None"),
          "A table and a picture for notebooks, from descriptors alone; at most 100 rows.")
      .def("__reduce__", &PyFile::reduced,
           nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"),
           "Pickles as path, mode, limits, size and index checksum; opened again on first use, and "
           "a\n"
           "FileError where that is another file.");
  nb::module_::import_("collections.abc").attr("Mapping").attr("register")(file);

  with_limits([&](const auto&... limits) {
    m.def(
        "_reopen",
        [](nb::handle path, nb::handle mode, nb::handle size, nb::handle index_crc32c,
           nb::object checked, nb::object index_bytes, nb::object tensors, nb::object kv_bytes,
           nb::object descriptor_bytes, nb::object tensor_bytes, nb::object composite_depth,
           nb::object spool_bytes) {
          return std::make_unique<PyFile>(
              path_argument(path), mode_argument(mode, [] { return io::Mode::map; }),
              Limits{checked, index_bytes, tensors, kv_bytes, descriptor_bytes, tensor_bytes,
                     composite_depth, spool_bytes},
              Identity{unsigned_argument(size, "size", UINT64_MAX),
                       number_argument<std::uint32_t>(index_crc32c, "index_crc32c")});
        },
        nb::arg("path"), nb::arg("mode"), nb::arg("size"), nb::arg("index_crc32c"), nb::kw_only(),
        limits...,
        nb::sig("def _reopen(path: str, mode: typing.Literal['map', 'copy_on_write', 'memory'], "
                "size: int, index_crc32c: int, *, " HURRAY_LIMITS_SIG ") -> hurray.file.File"),
        "A File that opens on first use.");
    m.def(
        "open",
        [](nb::handle path, nb::handle mode, nb::object checked, nb::object index_bytes,
           nb::object tensors, nb::object kv_bytes, nb::object descriptor_bytes,
           nb::object tensor_bytes, nb::object composite_depth, nb::object spool_bytes) {
          return std::make_unique<PyFile>(
              path, mode,
              Limits{checked, index_bytes, tensors, kv_bytes, descriptor_bytes, tensor_bytes,
                     composite_depth, spool_bytes});
        },
        nb::arg("path"), nb::kw_only(), nb::arg("mode") = nb::none(), limits...,
        nb::sig("def open(path: str | os.PathLike[str] | int | typing.IO[bytes], "
                "*, " HURRAY_MODE_SIG HURRAY_LIMITS_SIG ") -> hurray.file.File"),
        "Open a `.hrry` file as a read-only mapping of names to tensors and composites.\n\n"
        "`path` may be the number of an open descriptor, of a regular file or of what `share` "
        "made; "
        "it is\n"
        "duplicated. Shared memory is mapped only where it is sealed, and read otherwise. Or a\n"
        "seekable binary object, such as a file of fsspec: its end and header are read, and what "
        "is\n"
        "asked for, in as few requests as that takes (`File.io` counts them); always in mode\n"
        "\"memory\".\n\n"
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
           nb::object descriptor_bytes, nb::object tensor_bytes, nb::object composite_depth,
           nb::object spool_bytes) {
          return load(path, names, mode,
                      Limits{checked, index_bytes, tensors, kv_bytes, descriptor_bytes,
                             tensor_bytes, composite_depth, spool_bytes});
        },
        nb::arg("path"), nb::kw_only(), nb::arg("names") = nb::none(), nb::arg("mode") = nb::none(),
        limits...,
        nb::sig(
            "def load(path: str | os.PathLike[str] | int | typing.IO[bytes], *, "
            "names: collections.abc.Iterable[str] | None = None, " HURRAY_MODE_SIG HURRAY_LIMITS_SIG
            ") -> dict[str, Tensor | Composite]"),
        "The tensors and composites of a `.hrry` file, all of them or those in `names` (in that "
        "order). A\n"
        "composite is there once, under its head; `names` can ask for members, too.\n\n"
        "As `open`, but the default is \"copy_on_write\": tensors are writable, and writes stay in "
        "this\n"
        "process. One tensor that cannot be given fails the whole call; `names` and `open` reach "
        "the\n"
        "others. `verify=True` compares every byte with its checksum before it returns.\n\n"
        "Raises FileError (also for an unknown name), InvalidDescriptorError, UnsupportedError,\n"
        "ValueError.");
  });
  m.def(
      "_open_writable",
      [](nb::handle path, nb::handle mode) {
        return std::make_unique<PyFile>(path, mode, Limits{}, io::Mode::copy_on_write);
      },
      nb::arg("path"), nb::arg("mode").none() = nb::none(),
      nb::sig("def _open_writable(path: typing.Any, mode: str | None = None) -> hurray.file.File"),
      "As `open`, but tensors are writable by default, as those of `load`.");
  m.def("load_kv", load_kv, nb::arg("path"),
        nb::sig("def load_kv(path: str | os.PathLike[str] | int | typing.IO[bytes]) -> dict[str, "
                "typing.Any]"),
        "The typed metadata of a `.hrry` file; reads nothing else. Raises FileError.");
}

}  // namespace hurray::python
