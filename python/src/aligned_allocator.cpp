#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "bindings.hpp"
#include "hurray/memory.hpp"

namespace hurray::python {
namespace {

/// `PyDataMemAllocator` and `PyDataMem_Handler` of NumPy's `ndarraytypes.h`, and two slots of its
/// `__multiarray_api.h`: the same in the headers of 1.26.4 and 2.4.6.
struct NumpyAllocator {
  void* context;
  void* (*malloc)(void* context, std::size_t size);
  void* (*calloc)(void* context, std::size_t count, std::size_t size);
  void* (*realloc)(void* context, void* block, std::size_t size);
  void (*free)(void* context, void* block, std::size_t size);
};
struct NumpyHandler {
  std::array<char, 127> name;
  std::uint8_t version;
  NumpyAllocator allocator;
};
constexpr const char* handler_capsule = "mem_handler";
constexpr std::size_t slot_set_handler =
    304;  // PyDataMem_SetHandler: installs, gives what was there
constexpr std::size_t slot_get_handler = 305;  // PyDataMem_GetHandler: a new reference
constexpr long first_major = 1;                // NumPy 1.22
constexpr long first_minor = 22;

/// In front of every block; NumPy tells `realloc` only the new size, and `free` a size that is not
/// to be trusted.
struct alignas(min_buffer_alignment) BlockHeader {
  std::size_t size;  ///< Bytes behind the header.
};
static_assert(sizeof(BlockHeader) == min_buffer_alignment);

BlockHeader* header(void* block) noexcept { return static_cast<BlockHeader*>(block) - 1; }

void* allocate_block(std::size_t size, bool zeroed) noexcept {
  if (size > std::numeric_limits<std::size_t>::max() - sizeof(BlockHeader)) return nullptr;
  void* start = hurray::allocate(size + sizeof(BlockHeader), min_buffer_alignment, zeroed);
  return start == nullptr ? nullptr : ::new (start) BlockHeader{size} + 1;
}

void free_block(void*, void* block, std::size_t) {
  if (block == nullptr) return;
  BlockHeader* start = header(block);
  hurray::deallocate(start, start->size + sizeof(BlockHeader), min_buffer_alignment);
}

void* malloc_block(void*, std::size_t size) { return allocate_block(size, false); }

void* calloc_block(void*, std::size_t count, std::size_t size) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size) return nullptr;
  return allocate_block(count * size, true);
}

void* realloc_block(void* context, void* block, std::size_t size) {
  void* moved = allocate_block(size, false);
  if (moved == nullptr || block == nullptr) return moved;
  std::memcpy(moved, block, std::min(size, header(block)->size));
  free_block(context, block, 0);
  return moved;
}

/// Static: arrays point to it for as long as they live.
NumpyHandler aligned_handler = {
    {"hurray_aligned"}, 1, {nullptr, malloc_block, calloc_block, realloc_block, free_block}};

/// Installs and restores memory handlers. Both functions touch a context variable: call them with
/// the GIL held (free-threaded: with a thread state) only.
class NumpyHandlers {
 public:
  static NumpyHandlers load() {
    nb::object numpy = import_optional("numpy", "numpy");
    const auto version = nb::cast<std::string>(numpy.attr("__version__"));
    const auto [major, minor] = leading_numbers(version);
    if (major < first_major || (major == first_major && minor < first_minor)) {
      fail(Exc::unsupported,
           "hurray.aligned_allocator() needs NumPy 1.22 or newer, whose allocator can be replaced; "
           "found NumPy " +
               version + "; update it with: pip install -U numpy");
    }
    void** table = numpy_api();
    NumpyHandlers handlers;
    handlers.set_ = reinterpret_cast<Set>(table[slot_set_handler]);
    handlers.get_ = reinterpret_cast<Get>(table[slot_get_handler]);
    return handlers;
  }

  nb::object current() const { return checked(get_()); }
  /// Returns the handler that was displaced.
  nb::object set(nb::handle handler) const { return checked(set_(handler.ptr())); }

 private:
  using Set = PyObject* (*)(PyObject*);
  using Get = PyObject* (*)();

  static nb::object checked(PyObject* object) {
    if (object == nullptr) nb::raise_python_error();
    return nb::steal(object);
  }

  /// 1 and 22 of "1.22.4"; 0 where there is no number.
  static std::array<long, 2> leading_numbers(const std::string& version) {
    std::array<long, 2> numbers{};
    const char* at = version.data();
    const char* end = at + version.size();
    for (long& number : numbers) {
      at = std::from_chars(at, end, number).ptr;
      if (at == end || *at++ != '.') break;
    }
    return numbers;
  }

  Set set_ = nullptr;
  Get get_ = nullptr;
};

/// One use of the allocator. `own_` is this object's own capsule over the static handler, so that
/// leaving in the wrong order, thread or context is noticed. Methods run under the object's lock.
class AlignedAllocatorCtx {
 public:
  void enter() {
    if (own_.is_valid()) {
      fail(PyExc_RuntimeError,
           "this aligned_allocator() is already active; make another one to nest");
    }
    const NumpyHandlers handlers = NumpyHandlers::load();
    nb::object own = nb::steal(PyCapsule_New(&aligned_handler, handler_capsule, nullptr));
    if (!own.is_valid()) nb::raise_python_error();
    displaced_ = handlers.set(own);
    own_ = std::move(own);
  }

  void exit() {
    if (!own_.is_valid()) fail(PyExc_RuntimeError, "this aligned_allocator() is not active");
    const NumpyHandlers handlers = NumpyHandlers::load();
    if (!handlers.current().is(own_)) {
      fail(
          PyExc_RuntimeError,
          "this aligned_allocator() is not the current handler in this thread or context; leave it "
          "where it was entered, and blocks inside it first; nothing was changed");
    }
    handlers.set(displaced_);
    displaced_.reset();
    own_.reset();
  }

 private:
  nb::object own_;
  nb::object displaced_;
};

}  // namespace

void bind_aligned_allocator(nb::module_& m) {
  nb::class_<AlignedAllocatorCtx>(m, "AlignedAllocatorCtx",
                                  "Context manager of `aligned_allocator()`. It keeps the handler "
                                  "that it displaced: one object\n"
                                  "serves one block at a time.")
      .def(nb::init<>())
      .def("__enter__", &AlignedAllocatorCtx::enter, nb::lock_self(),
           "Install the allocator for this thread and context.\n\n"
           "Raises RuntimeError when this object is already active, ImportError without NumPy,\n"
           "UnsupportedError for a NumPy older than 1.22.")
      .def(
          "__exit__",
          [](AlignedAllocatorCtx& self, nb::handle, nb::handle, nb::handle) { self.exit(); },
          nb::arg("exc_type").none(), nb::arg("exc_value").none(), nb::arg("traceback").none(),
          nb::lock_self(),
          "Restore the handler that was displaced; never swallows an exception.\n\n"
          "Raises RuntimeError, and changes nothing, in a thread or context where this object's\n"
          "handler is not the current one.");
  m.def(
      "aligned_allocator", [] { return AlignedAllocatorCtx(); },
      "Context manager: NumPy arrays allocated inside start on a multiple of 64 bytes, so that\n"
      "`from_numpy(a, copy=False)` can share them.\n\n"
      "The policy belongs to the thread and context that enters the block; a thread started "
      "inside\n"
      "does not have it. Arrays outlive the block. Do not hold it open across a `yield`.");
}

}  // namespace hurray::python
