#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "exports.hpp"
#include "numpy.hpp"

namespace hurray::python {

bool finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

namespace {

class HeldObject final : public Owner {
 public:
  explicit HeldObject(nb::object object) noexcept : object_(object.release().ptr()) {}
  ~HeldObject() override { drop_reference(object_); }

 private:
  PyObject* object_;
};

/// A buffer-protocol export, held until nobody needs the memory.
class HeldView final : public Owner {
 public:
  Py_buffer view{};

  ~HeldView() override {
    if (view.obj == nullptr || finalizing()) return;
    const WithGil gil;
    PyBuffer_Release(&view);
  }
};

// ---- the copy rule
// --------------------------------------------------------------------------------

enum class Order : std::uint8_t { row_major, column_major, other };

/// Dimensions of size 1 say nothing about the order; without elements everything is row-major.
Order order_of(const HostArray& array) noexcept {
  const ArraySource& s = array.source;
  if (array.packed || s.shape.is_empty()) return Order::row_major;
  const auto follows = [&](bool fortran) {
    auto expected = static_cast<std::int64_t>(s.item_bytes);
    for (std::size_t i = 0; i < s.shape.rank(); ++i) {
      const std::size_t k = fortran ? i : s.shape.rank() - 1 - i;
      if (s.shape[k] == 1) continue;
      if (s.strides[k] != expected) return false;
      expected *= static_cast<std::int64_t>(s.shape[k]);
    }
    return true;
  };
  if (follows(false)) return Order::row_major;
  return follows(true) ? Order::column_major : Order::other;
}

bool converted(const HostArray& array) noexcept {
  return array.source.transcode != Transcode::copy;
}

/// Bytes that the elements have in the source; 6-bit elements come without the rest of their group.
std::uint64_t stored_bytes(const HostArray& array) noexcept {
  const std::uint64_t count = array.source.shape.count();
  if (array.packed) return (count * bits(array.source.dtype) + 7) / 8;
  return count * array.source.item_bytes;
}

std::uint64_t packed_size(const HostArray& array) noexcept {
  if (!array.packed) return array.source.packed_size();
  return *packed_bytes(bits(array.source.dtype), array.source.shape.count());
}

/// The same array read with its first dimension fastest, so that packing keeps Fortran order.
ArraySource in_order(const ArraySource& source, Order order) {
  ArraySource result = source;
  if (order == Order::column_major) {
    std::ranges::reverse(result.shape);
    std::ranges::reverse(result.strides);
  }
  return result;
}

Layout layout_of(Order order) {
  if (order == Order::column_major) return ColumnMajor{};
  return RowMajor{};
}

nb::object finish(const HostArray& array, Layout layout, std::uint64_t byte_offset, Buffer buffer,
                  nb::object device, Device memory = Device::cpu) {
  Descriptor d;
  d.dtype = array.source.dtype;
  d.shape = array.source.shape;
  d.layout = std::move(layout);
  d.byte_offset = byte_offset;
  BindOptions options;
  options.memory_device = memory;
  if (device.is_valid()) {
    const PyDevice& declared = *nb::inst_ptr<PyDevice>(device);
    d.buffers = BufferTable{BufferHandle{.alignment = min_buffer_alignment,
                                         .device = declared.kind,
                                         .memory_class = declared.memory_class}};
  }
  std::vector<Buffer> buffers;
  buffers.push_back(std::move(buffer));
  return wrap_tensor(bind(std::move(d), std::move(buffers), options), std::move(device));
}

/// Bits behind the last element (docs/adr/0029) of memory that is laid out here.
void clear_behind_last(const HostArray& array, std::span<std::byte> stored) noexcept {
  const std::uint64_t used = array.source.shape.count() % 8 * bits(array.source.dtype) % 8;
  if (used == 0) return;
  std::byte& last = stored[static_cast<std::size_t>(stored_bytes(array) - 1)];
  last &= static_cast<std::byte>((1u << used) - 1);
}

/// A copy of the elements in that order, row-major for `Order::other`.
Buffer copied_buffer(const HostArray& array, Order order) {
  const std::uint64_t size = packed_size(array);
  Buffer buffer = unwrap(Buffer::allocate(size));
  const auto copy = [&] {
    const std::uint64_t stored = stored_bytes(array);
    if (array.packed || (!converted(array) && order == order_of(array) && order != Order::other)) {
      if (stored != 0)
        std::memcpy(buffer.data(), array.source.origin, static_cast<std::size_t>(stored));
      if (size != stored)
        std::memset(buffer.data() + stored, 0, static_cast<std::size_t>(size - stored));
      if (array.packed) clear_behind_last(array, buffer.bytes());
    } else {
      gather(in_order(array.source, order), 0, buffer.bytes());
    }
  };
  if (size >= worth_releasing_bytes)
    without_gil(copy);
  else if (size != 0)
    copy();
  return buffer;
}

nb::object copied(const HostArray& array, nb::object device) {
  const Order order = order_of(array);
  return finish(array, layout_of(order), 0, copied_buffer(array, order), std::move(device));
}

std::string alignment_text(const std::byte* address) {
  return "the memory is " + std::to_string(measure_alignment(address, 1)) +
         "-byte aligned, and a buffer needs 64; allow a copy (copy=None), or allocate the array "
         "inside"
         " hurray.aligned_allocator()";
}

/// Exact strides in elements, and where the lowest and the byte after the highest element are.
struct Extent {
  Strides strides;
  const std::byte* lowest;
  std::uint64_t size;
};
std::optional<Extent> exact_extent(const ArraySource& source) {
  Extent extent;
  extent.strides.resize(source.shape.rank());
  const auto item = static_cast<std::int64_t>(source.item_bytes);
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  for (std::size_t k = 0; k < source.shape.rank(); ++k) {
    if (source.shape[k] <= 1) continue;  // its stride means nothing
    if (source.strides[k] % item != 0) return std::nullopt;
    extent.strides[k] = source.strides[k] / item;
    const auto span =
        checked_mul(source.strides[k], static_cast<std::int64_t>(source.shape[k] - 1));
    if (!span) return std::nullopt;
    const auto sum = checked_add(*span < 0 ? lo : hi, *span);
    if (!sum) return std::nullopt;
    (*span < 0 ? lo : hi) = *sum;
  }
  extent.lowest = source.origin + lo;
  extent.size = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + source.item_bytes;
  return extent;
}

std::byte* mutable_address(const std::byte* address) { return const_cast<std::byte*>(address); }

bool on_64(const std::byte* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % min_buffer_alignment == 0;
}

nb::object share_strided(const HostArray& array, nb::object device) {
  const auto extent = exact_extent(array.source);
  if (!extent)
    copy_required(array, "a byte stride is not a multiple of the item size (" +
                             std::to_string(array.source.item_bytes) +
                             "), so a copy is needed (copy=None)");
  if (!on_64(extent->lowest)) copy_required(array, alignment_text(extent->lowest));
  Strided layout{extent->strides};
  return finish(
      array, std::move(layout), static_cast<std::uint64_t>(array.source.origin - extent->lowest),
      Buffer::borrow(mutable_address(extent->lowest), extent->size, array.owner, array.readonly),
      std::move(device));
}

/// The elements are stored here as they lie there.
bool as_it_is(const HostArray& array) noexcept {
  return !converted(array) && (!array.packed || packed_size(array) == stored_bytes(array));
}
void require_as_it_is(const HostArray& array) {
  if (as_it_is(array)) return;
  if (array.source.transcode == Transcode::swap)
    copy_required(array,
                  "the elements are in another byte order and have to be converted (copy=None)");
  copy_required(
      array, std::string(name(array.source.dtype)) +
                 " elements are stored in another way here and have to be converted (copy=None)");
}

Buffer borrowed(const HostArray& array) {
  return Buffer::borrow(mutable_address(array.source.origin), stored_bytes(array), array.owner,
                        array.readonly);
}

// ---- the buffer protocol as a source
// --------------------------------------------------------------

struct FormatRow {
  char letter;
  char kind;  ///< 'i', 'u', 'f', 'c', 'b'
  std::uint8_t native_size;
  std::uint8_t standard_size;
};
constexpr auto formats = std::to_array<FormatRow>({
    {'?', 'b', 1, 1},
    {'b', 'i', 1, 1},
    {'B', 'u', 1, 1},
    {'h', 'i', sizeof(short), 2},
    {'H', 'u', sizeof(short), 2},
    {'i', 'i', sizeof(int), 4},
    {'I', 'u', sizeof(int), 4},
    {'l', 'i', sizeof(long), 4},
    {'L', 'u', sizeof(long), 4},
    {'q', 'i', sizeof(long long), 8},
    {'Q', 'u', sizeof(long long), 8},
    {'n', 'i', sizeof(Py_ssize_t), 0},
    {'N', 'u', sizeof(std::size_t), 0},
    {'e', 'f', 2, 2},
    {'f', 'f', 4, 4},
    {'d', 'f', 8, 8},
});

/// The element type of a format of `struct` (and NumPy's "Zf", "Zd"); none for anything else.
std::optional<DType> format_dtype(std::string_view format, bool& big_endian) {
  constexpr std::string_view prefixes = "@=<>!^";
  big_endian = std::endian::native == std::endian::big;
  bool native = true;
  if (!format.empty() && prefixes.find(format[0]) != std::string_view::npos) {
    native = format[0] == '@' || format[0] == '^';
    if (format[0] == '<') big_endian = false;
    if (format[0] == '>' || format[0] == '!') big_endian = true;
    format.remove_prefix(1);
  }
  const bool complex = format.starts_with('Z');
  if (complex) format.remove_prefix(1);
  if (format.size() != 1) return std::nullopt;
  const auto* row = std::ranges::find(formats, format[0], &FormatRow::letter);
  if (row == formats.end()) return std::nullopt;
  const unsigned size = native ? row->native_size : row->standard_size;
  if (complex && (row->kind != 'f' || size < 4)) return std::nullopt;
  const char kind = complex ? 'c' : row->kind;
  for (const DTypeInfo& type : dtypes) {
    const unsigned width = kind == 'b' ? 1 : size * (complex ? 16 : 8);
    const bool fits = kind == 'b'   ? type.kind == Kind::boolean
                      : kind == 'i' ? type.kind == Kind::integer
                      : kind == 'u' ? type.kind == Kind::unsigned_integer
                      : kind == 'c' ? type.kind == Kind::complex
                                    : type.kind == Kind::floating;
    if (fits && type.bits == width && type.tag != DType::bfloat16) return type.tag;
  }
  return std::nullopt;
}

HostArray host_array_from_buffer(nb::handle object) {
  auto held = std::make_shared<HeldView>();
  Py_buffer& view = held->view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) throw nb::python_error();
  const std::string_view format = view.format == nullptr ? "B" : view.format;
  bool big_endian = false;
  const auto dtype = format_dtype(format, big_endian);
  const unsigned width = dtype ? bits(*dtype) : 0;
  if (!dtype || view.itemsize != static_cast<Py_ssize_t>(width < 8 ? 1 : width / 8))
    fail(Exc::unsupported, "buffer format '" + std::string(format) + "' of " +
                               python::type_name(object) + " has no counterpart here");
  if (view.suboffsets != nullptr)
    for (int k = 0; k < view.ndim; ++k)
      if (view.suboffsets[k] >= 0)
        fail(Exc::unsupported,
             "buffers with suboffsets (pointers to rows) have no counterpart here");

  HostArray array;
  ArraySource& source = array.source;
  source.dtype = *dtype;
  source.origin = static_cast<const std::byte*>(view.buf);
  source.item_bytes = static_cast<std::size_t>(view.itemsize);
  source.unit_bytes =
      info(*dtype)->kind == Kind::complex ? source.item_bytes / 2 : source.item_bytes;
  if (width < 8)
    source.transcode = Transcode::pack_bool;
  else if (big_endian && source.unit_bytes > 1)
    source.transcode = Transcode::swap;
  const auto rank = static_cast<std::size_t>(view.ndim);
  source.shape.resize(rank);
  source.strides.resize(rank);
  Py_ssize_t expected = view.itemsize;
  for (std::size_t k = rank; k-- > 0;) {
    const Py_ssize_t size = view.shape != nullptr ? view.shape[k] : view.len / view.itemsize;
    source.shape[k] = static_cast<std::uint64_t>(size);
    source.strides[k] = view.strides != nullptr ? view.strides[k] : expected;
    expected *= size;
  }
  array.readonly = view.readonly != 0;
  array.owner = std::move(held);
  return array;
}

bool has_dlpack(nb::handle object) {
  // The type is asked: a class object has the attribute as well and is no tensor.
  return !PyType_Check(object.ptr()) && foreign_attribute(object, "__dlpack__").is_valid();
}

// ---- asarray
// --------------------------------------------------------------------------------------

std::string no_memory_text(nb::handle object) {
  return "a " + python::type_name(object) +
         " has no memory that could be shared; allow a copy (copy=None)";
}

[[noreturn]] void must_copy(nb::handle object) { copy_required({}, no_memory_text(object)); }

nb::object from_ndarray(nb::handle array, Copy copy) {
  return tensor_from(host_array(array), copy);
}

/// Runs `take`, or `by_array` where the object's `__dlpack__` failed and it has `__array__`.
template <class Take, class ByArray>
auto by_dlpack_or_array(nb::handle object, Take&& take, ByArray&& by_array) {
  try {
    return take();
  } catch (nb::python_error& error) {
    // A cause is what the object's own code raised; refusals of the content have none.
    const bool failed = error.matches(exception_class(Exc::unsupported)) &&
                        nb::steal(PyException_GetCause(error.value().ptr())).is_valid();
    if (!failed || !foreign_attribute(object, "__array__").is_valid()) throw;
  }
  return by_array();
}

/// NumPy takes the values of masked arrays out of a list, and leaves their masks there.
void refuse_masks_inside(nb::handle object, int depth = 0) {
  const bool list = PyList_Check(object.ptr()), tuple = PyTuple_Check(object.ptr());
  if ((!list && !tuple) || depth > static_cast<int>(max_rank)) return;
  const nb::object items = nb::steal(PySequence_Tuple(object.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  for (nb::handle item : nb::borrow<nb::tuple>(items)) {
    if (PyLong_CheckExact(item.ptr()) || PyFloat_CheckExact(item.ptr())) continue;
    refuse_masked(item);
    refuse_masks_inside(item, depth + 1);
  }
}

void refuse_sparse(nb::handle object) {
  const nb::object module = nb::getattr(object.type(), "__module__", nb::none());
  if (PyUnicode_Check(module.ptr()) &&
      nb::cast<std::string_view>(module).starts_with("scipy.sparse"))
    fail(Exc::unsupported, python::type_name(object) +
                               " is sparse; hurray.from_scipy takes CSR and CSC matrices, "
                               "hurray.sparse_coo coordinates, and .toarray() makes an array");
}

nb::object through_numpy(nb::handle object, Copy copy) {
  const nb::module_ numpy = import_optional("numpy", "numpy");
  numpy_api();
  refuse_sparse(object);
  refuse_masks_inside(object);
  const bool has_array = foreign_attribute(object, "__array__").is_valid() ||
                         foreign_attribute(object, "__array_interface__").is_valid() ||
                         foreign_attribute(object, "__array_struct__").is_valid();
  if (copy == Copy::never && (!has_array || is_numpy_scalar(object))) must_copy(object);
  using namespace nb::literals;
  nb::object array;
  if (copy == Copy::never) {
    try {
      array = numpy.attr("array")(object, "copy"_a = false, "subok"_a = true);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ValueError)) raise_foreign(error, object, "__array__");
      nb::raise_from(error, exception_class(Exc::copy_required),
                     "copy=False: NumPy cannot take the object's memory without a copy");
    }
  } else if (has_array) {
    array = foreign(object, "__array__",
                    [&]() -> nb::object { return numpy.attr("asanyarray")(object); });
  } else {
    array = numpy.attr("asanyarray")(object);
  }
  return from_ndarray(array, copy);
}

nb::object from_numpy(nb::handle array, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  if (is_ndarray(array)) return from_ndarray(array, rule);
  if (is_numpy_scalar(array)) {
    if (rule == Copy::never) must_copy(array);
    return from_ndarray(nb::module_::import_("numpy").attr("asarray")(array), rule);
  }
  import_optional("numpy", "numpy");
  fail(PyExc_TypeError, "expected a numpy.ndarray, got " + python::type_name(array) +
                            "; hurray.asarray takes other objects");
}

nb::object from_dlpack(nb::handle object, nb::handle device, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  if (!is_ndarray(object)) return tensor_from_dlpack(object, device, rule);
  if (!device.is_none()) {
    if (value_of<PyDevice>(device) == nullptr)
      fail(PyExc_TypeError, "device must be a hurray.Device, got " + python::type_name(device));
    if (*nb::inst_ptr<PyDevice>(device) != PyDevice{})
      fail(Exc::unsupported,
           "the array is on the CPU and is not moved to " + repr(*nb::inst_ptr<PyDevice>(device)));
  }
  return from_ndarray(object, rule);
}

nb::object from_torch(nb::handle tensor, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  if (!is_torch_tensor(tensor)) {
    import_optional("torch", "torch");
    fail(PyExc_TypeError, "expected a torch.Tensor, got " + python::type_name(tensor));
  }
  return tensor_from_dlpack(tensor, nb::none(), rule);
}

/// The tensor under another declaration of host memory.
nb::object declared_on(nb::object tensor, const nb::object& device) {
  const PyTensor& t = *unwrap_tensor(tensor);
  const PyDevice& wanted = *nb::inst_ptr<PyDevice>(device);
  if (t.placement() == wanted) return tensor;
  hurray::Tensor moved = unwrap(to_cpu(t.tensor));
  Descriptor d = moved.descriptor();
  for (BufferHandle& handle : d.buffers) handle.memory_class = wanted.memory_class;
  return wrap_tensor(bind(std::move(d), moved.buffers(), {moved.provenance()}), device);
}

bool converts_to(DType dtype) noexcept {
  return numpy_type(dtype) != nullptr || dtype == DType::bfloat16;
}

nb::object asarray(nb::handle object, nb::handle dtype, nb::handle device, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  if (!dtype.is_none() && value_of<PyDtype>(dtype) == nullptr)
    fail(PyExc_TypeError, "dtype must be a hurray.Dtype, got " + python::type_name(dtype));
  if (!device.is_none()) {
    if (value_of<PyDevice>(device) == nullptr)
      fail(PyExc_TypeError, "device must be a hurray.Device, got " + python::type_name(device));
    if (nb::inst_ptr<PyDevice>(device)->kind != Device::cpu)
      fail(Exc::unsupported,
           "asarray makes tensors on the CPU, not on " + repr(*nb::inst_ptr<PyDevice>(device)));
  }
  const auto placed = [&](nb::object tensor) {
    return device.is_none() ? tensor : declared_on(std::move(tensor), nb::borrow(device));
  };
  if (dtype.is_none()) return placed(ingest(object, rule));

  const DType wanted = nb::inst_ptr<PyDtype>(dtype)->tag;
  const bool is_array = unwrap_tensor(object) != nullptr || is_ndarray(object) ||
                        has_dlpack(object) || PyObject_CheckBuffer(object.ptr()) != 0 ||
                        foreign_attribute(object, "__array__").is_valid();
  if (unwrap_tensor(object) != nullptr && unwrap_tensor(object)->descriptor().dtype == wanted)
    return placed(ingest(object, rule));
  if (!converts_to(wanted))
    fail(Exc::unsupported, "NumPy cannot convert to " + std::string(name(wanted)) +
                               ", which is a Tier 2 type; make a tensor of its packed bytes: "
                               "hurray.Tensor(buffer, dtype, shape)");
  const nb::object target = numpy_dtype(wanted);
  nb::object array;
  if (!is_array) {
    if (rule == Copy::never) must_copy(object);
    refuse_sparse(object);
    refuse_masks_inside(object);
    array = nb::module_::import_("numpy").attr("asarray")(object, target);
  } else {
    const nb::object tensor = ingest(object, rule == Copy::always ? Copy::if_needed : rule);
    const PyTensor& t = *unwrap_tensor(tensor);
    if (t.descriptor().dtype == wanted)
      return placed(rule == Copy::always ? copy_tensor(t) : tensor);
    if (rule == Copy::never)
      copy_required({}, "converting " + std::string(name(t.descriptor().dtype)) + " to " +
                            std::string(name(wanted)) + " needs a copy (copy=None)");
    array = look(tensor, t).attr("astype")(target);
  }
  return placed(from_ndarray(array, rule));
}

}  // namespace

void drop_reference(PyObject* object) noexcept {
  if (object == nullptr || finalizing()) return;
  const WithGil gil;
  Py_DECREF(object);
}

void raise_foreign(nb::python_error& error, nb::handle object, const char* what) {
  if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError) ||
      error.matches(exception_class(Exc::unsupported)) ||
      error.matches(exception_class(Exc::copy_required)))
    throw;
  nb::object words = nb::steal(PyObject_Str(error.value().ptr()));
  if (!words.is_valid()) {
    PyErr_Clear();
    words = nb::str("");
  }
  // JAX and PyTorch explain at length after the first line; the cause has it all.
  const nb::object lines = words.attr("splitlines")();
  nb::object first = nb::str("");
  if (nb::len(lines) != 0) first = nb::str(": ") + lines[0];
  nb::raise_from(error, exception_class(Exc::unsupported),
                 "a %s cannot be taken: its %s raised %s%U", python::type_name(object).c_str(),
                 what, python::type_name(error.value()).c_str(), first.ptr());
}

void copy_required(const HostArray& array, const std::string& why) {
  fail(Exc::copy_required,
       "copy=False: " + (array.component.empty() ? "" : std::string(array.component) + ": ") + why);
}

std::shared_ptr<Owner> hold(nb::object object) {
  return std::make_shared<HeldObject>(std::move(object));
}

nb::object tensor_from(const HostArray& array, Copy copy, nb::object device) {
  if (array.source.shape.is_empty()) return copied(array, std::move(device));
  const Order order = order_of(array);
  if (copy != Copy::always && order != Order::other && as_it_is(array) &&
      on_64(array.source.origin))
    return finish(array, layout_of(order), 0, borrowed(array), std::move(device));
  if (copy != Copy::never) return copied(array, std::move(device));

  require_as_it_is(array);
  if (order != Order::other) copy_required(array, alignment_text(array.source.origin));
  return share_strided(array, std::move(device));
}

Buffer row_major_buffer(const HostArray& array, Copy copy) {
  if (array.source.shape.is_empty()) return {};
  const bool in_order = order_of(array) == Order::row_major;
  if (copy != Copy::always && in_order && as_it_is(array) && on_64(array.source.origin))
    return borrowed(array);
  if (copy != Copy::never) return copied_buffer(array, in_order ? Order::row_major : Order::other);

  require_as_it_is(array);
  if (!in_order)
    copy_required(array,
                  "the elements do not lie one after another in C order, so a copy is needed"
                  " (copy=None)");
  copy_required(array, alignment_text(array.source.origin));
}

namespace {

/// Elements narrower than a byte: as they are stored where they are in C order, else one by one.
HostArray packed_array(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  if (ambiguous_bool(t)) refuse_ambiguous_bool(t);
  HostArray array;
  if (std::holds_alternative<RowMajor>(d.layout)) {
    array.source.origin = first_element(t);
    array.source.shape = d.shape;
    array.source.strides.resize(d.shape.rank());
    array.owner = t.tensor.buffer(0).owner();
    array.readonly = t.tensor.readonly();
    array.packed = true;
  } else {
    const nb::object bytes = unpack_tensor(t);
    array = host_array(*unwrap_tensor(bytes));
    array.source.transcode = Transcode::pack_low;
  }
  array.source.dtype = d.dtype;
  return array;
}

}  // namespace

HostArray host_array_of(nb::handle object, Copy copy, std::string_view component) {
  const auto of = [&](HostArray&& array) {
    array.component = component;
    return std::move(array);
  };
  const auto by_numpy = [&] {
    const nb::module_ numpy = import_optional("numpy", "numpy");
    numpy_api();
    if (copy == Copy::never) {
      HostArray none;
      none.component = component;
      copy_required(none, no_memory_text(object));
    }
    return of(host_array(foreign(
        object, "__array__", [&]() -> nb::object { return numpy.attr("asanyarray")(object); })));
  };
  if (const PyTensor* t = unwrap_tensor(object)) {
    require_elements(*t, Way::array);
    return of(is_sub_byte(t->descriptor().dtype) ? packed_array(*t) : host_array(*t));
  }
  if (is_ndarray(object)) return of(host_array(object));
  if (is_numpy_scalar(object)) return by_numpy();
  if (is_torch_tensor(object) || has_dlpack(object))
    return by_dlpack_or_array(
        object,
        [&] {
          auto taken = host_array_from_dlpack(object, copy);
          if (!taken)
            fail(Exc::unsupported, "the " + std::string(component) + " of a " +
                                       python::type_name(object) +
                                       " are on a device; copy them to the host first");
          return of(*std::move(taken));
        },
        by_numpy);
  if (PyObject_CheckBuffer(object.ptr()) != 0) return of(host_array_from_buffer(object));
  return by_numpy();
}

nb::object shared_tensor(const HostArray& array, const PyDevice& placement) {
  const std::string kind(name(placement.kind));
  nb::object device = device_object(placement);
  if (array.source.shape.is_empty())
    return finish(array, RowMajor{}, 0, Buffer(), std::move(device), placement.kind);
  if (converted(array) || packed_size(array) != stored_bytes(array) || array.packed)
    fail(Exc::unsupported, std::string(name(array.source.dtype)) +
                               " elements are stored in another way here, and memory of " + kind +
                               " cannot be converted");
  const auto extent = exact_extent(array.source);
  if (!extent || !on_64(extent->lowest))
    fail(Exc::unsupported, "memory of " + kind +
                               " is never copied, and this cannot be shared: the"
                               " address must be a multiple of 64");
  const Order order = order_of(array);
  Layout layout = order == Order::other ? Layout(Strided{extent->strides}) : layout_of(order);
  return finish(
      array, std::move(layout), static_cast<std::uint64_t>(array.source.origin - extent->lowest),
      Buffer::borrow(mutable_address(extent->lowest), extent->size, array.owner, array.readonly),
      std::move(device), placement.kind);
}

nb::object ingest(nb::handle object, Copy copy) {
  if (const PyTensor* t = unwrap_tensor(object))
    return copy == Copy::always ? copy_tensor(*t) : nb::borrow(object);
  if (is_ndarray(object)) return from_ndarray(object, copy);
  if (is_torch_tensor(object)) return tensor_from_dlpack(object, nb::none(), copy);
  if (!is_numpy_scalar(object)) {
    if (has_dlpack(object))
      return by_dlpack_or_array(
          object, [&] { return tensor_from_dlpack(object, nb::none(), copy); },
          [&] { return through_numpy(object, copy); });
    if (PyObject_CheckBuffer(object.ptr()) != 0)
      return tensor_from(host_array_from_buffer(object), copy);
  }
  return through_numpy(object, copy);
}

std::optional<WritableSource> writable_source(nb::handle object) {
  WritableSource result;
  result.object = nb::borrow(object);
  if (unwrap_tensor(object) == nullptr && has_hurray(object))
    result.object = tensor_from_hurray(object);
  if (const PyTensor* t = unwrap_tensor(result.object)) {
    if (t->tensor.memory_device() != Device::cpu)
      fail(Exc::unsupported, "the memory is that of device " +
                                 std::string(name(t->tensor.memory_device())) +
                                 ", and only memory of the CPU can be written");
    result.descriptor = t->tensor.wire_descriptor();
    for (const Buffer& buffer : t->tensor.buffers())
      result.buffers.emplace_back(std::span<const std::byte>(buffer.bytes()));
    return result;
  }
  HostArray array;
  if (is_ndarray(object)) {
    array = host_array(object);
  } else if (is_torch_tensor(object)) {
    nb::object plain = plain_torch_tensor(object, Copy::if_needed);
    if (!nb::cast<bool>(plain.attr("is_cpu"))) {
      plain = foreign(object, "cpu()", [&]() -> nb::object { return plain.attr("cpu")(); });
      result.transient = true;
    }
    auto taken = host_array_from_dlpack(plain, Copy::if_needed);
    if (!taken) fail(Exc::unsupported, "PyTorch did not bring the tensor to the host");
    array = *std::move(taken);
  } else if (is_numpy_scalar(object)) {
    result.object = nb::module_::import_("numpy").attr("asarray")(object);
    array = host_array(result.object);
  } else if (has_dlpack(object)) {
    auto taken = by_dlpack_or_array(
        object, [&] { return host_array_from_dlpack(object, Copy::if_needed); },
        [&]() -> std::optional<HostArray> {
          const nb::module_ numpy = import_optional("numpy", "numpy");
          result.object = foreign(object, "__array__",
                                  [&]() -> nb::object { return numpy.attr("asanyarray")(object); });
          result.transient = true;
          return host_array(result.object);
        });
    if (!taken)
      fail(Exc::unsupported,
           "a " + python::type_name(object) +
               " on a device can be written only after its runtime has brought it to"
               " the host; copy it there first");
    array = *std::move(taken);
  } else if (PyObject_CheckBuffer(object.ptr()) != 0) {
    array = host_array_from_buffer(object);
  } else {
    return std::nullopt;
  }

  const Order order = order_of(array);
  const std::uint64_t size = array.source.shape.is_empty() ? 0 : packed_size(array);
  Descriptor& d = result.descriptor;
  d.dtype = array.source.dtype;
  d.shape = array.source.shape;
  d.layout = layout_of(order);
  d.buffers = BufferTable{BufferHandle{.byte_size = size}};
  d = canonical(std::move(d));
  result.owner = array.owner;
  if (size == 0) {
    result.buffers.emplace_back(std::span<const std::byte>());
  } else if (array.packed && stored_bytes(array) != size) {
    // The last group of 6-bit elements has to be filled up: the elements are few or the copy is
    // cheap beside them.
    const nb::object own = copied(array, {});
    const PyTensor& t = *unwrap_tensor(own);
    result.buffers.emplace_back(std::span<const std::byte>(t.tensor.buffer(0).bytes()));
    result.owner = t.tensor.buffer(0).owner();
    result.transient = true;
  } else if (!converted(array) && order != Order::other) {
    result.buffers.emplace_back(
        std::span<const std::byte>(array.source.origin, static_cast<std::size_t>(size)));
  } else {
    result.buffers.emplace_back(in_order(array.source, order));
  }
  return result;
}

void bind_ingest(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "from_numpy", &from_numpy, "array"_a, nb::kw_only(), "copy"_a = nb::none(),
      nb::sig("def from_numpy(array: object, *, copy: bool | None = None) -> Tensor"),
      "A tensor of the array's exact values; any strides, byte order and NumPy type that has a\n"
      "counterpart. `copy=None` shares memory that lies on a multiple of 64 bytes in C or Fortran\n"
      "order and copies the rest into memory on 64; `True` always copies; `False` shares or "
      "raises\n"
      "`CopyRequiredError`. A shared array is kept alive. Raises `UnsupportedError` naming a dtype "
      "or\n"
      "mask that cannot be represented.");
  m.def("from_dlpack", &from_dlpack, "x"_a, nb::kw_only(), "device"_a = nb::none(),
        "copy"_a = nb::none(),
        nb::sig(
            "def from_dlpack(x: object, *, device: Device | None = None, copy: bool | None = None) "
            "-> Tensor"),
        "A tensor over what `x.__dlpack__()` gives, by the copy rule of `from_numpy`. `device` may "
        "name\n"
        "the source's own device; nothing is moved.");
  m.def("from_torch", &from_torch, "tensor"_a, nb::kw_only(), "copy"_a = nb::none(),
        nb::sig("def from_torch(tensor: object, *, copy: bool | None = None) -> Tensor"),
        "A tensor over a `torch.Tensor`, by the copy rule of `from_numpy`. Gradients are detached; "
        "a\n"
        "pending conjugation or negation is carried out, which is a copy. Raises "
        "`UnsupportedError` for\n"
        "tensors without plain memory of their own.");
  m.def(
      "asarray", &asarray, "obj"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "copy"_a = nb::none(),
      nb::sig(
          "def asarray(obj: object, *, dtype: Dtype | None = None, device: Device | None = None, "
          "copy: bool | None = None) -> Tensor"),
      "A tensor of anything that has elements: a tensor (the same object when nothing else is "
      "asked\n"
      "for), an array, an object with `__dlpack__`, the buffer protocol or `__array__`, lists and\n"
      "numbers. `dtype` converts, by NumPy; `copy` is that of `from_numpy`.");
}

}  // namespace hurray::python
