#include "exports.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "hurray/elements.hpp"
#include "hurray/to_dense.hpp"
#include "numpy.hpp"

namespace hurray::python {
namespace {

/// Somewhere to point at where there are no elements; never read or written.
alignas(64) std::byte nowhere[64];

std::string tag_name(Device device) { return std::string(name(device)); }

/// The letters and sizes of a type that buffer protocol and `__array_interface__` share as it is.
const NumpyType& shareable_type(const PyTensor& t, Way way) {
  const DType dtype = t.descriptor().dtype;
  if (dtype == DType::bool_)
    refuse(way,
           "bool elements are packed 8 to a byte, which neither NumPy nor DLPack can share; use"
           " to_numpy(), np.array(t) or to_torch(copy=True)");
  if (const NumpyType* row = numpy_type(dtype)) return *row;
  std::string ways;
  if (ml_dtypes_name(dtype) != nullptr) ways = "; use to_numpy(), which needs ml_dtypes";
  refuse(way, "NumPy has no " + std::string(name(dtype)) + " of its own" + ways);
}

std::size_t item_bytes(DType dtype) noexcept { return bits(dtype) / 8; }

}  // namespace

void require_countable(const Descriptor& d, Way way) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = (bits(d.dtype) + 7) / 8;
  for (const std::uint64_t n : d.shape) {
    const auto product = checked_mul(bytes, std::max<std::uint64_t>(n, 1));
    if (!product || *product > most)
      refuse(way,
             "the sizes, those that are 0 left out, multiply to more than 2**63 - 1 bytes, which"
             " consumers cannot count");
    bytes = *product;
  }
}

namespace {

Strides in_bytes(const Strides& strides, std::size_t item, bool empty, Way way) {
  Strides result;
  result.resize(strides.size());
  for (std::size_t k = 0; k < strides.size(); ++k) {
    const auto product = checked_mul<std::int64_t>(strides[k], static_cast<std::int64_t>(item));
    if (!product && !empty) refuse(way, "a stride exceeds 2**63 - 1 bytes");
    result[k] = product.value_or(0);
  }
  return result;
}

/// A fresh NumPy array with one element per item.
nb::object unpacked(const PyTensor& t) {
  nb::object dtype = numpy_dtype(t.descriptor().dtype);
  const nb::object bytes = unpack_tensor(t);
  const PyTensor& items = *unwrap_tensor(bytes);
  const Elements view = elements(items);
  const nb::object array = make_ndarray(std::move(dtype), items.descriptor().shape, view.strides,
                                        view.address, true, bytes);
  return std::holds_alternative<Strided>(t.descriptor().layout) ? array.attr("copy")() : array;
}

/// The same elements row by row, as a tensor of their own.
nb::object gathered(const PyTensor& t) {
  if (ambiguous_bool(t)) refuse_ambiguous_bool(t);
  auto dense = without_gil([&] { return to_dense(t.tensor); });
  if (!dense) throw_data_error(dense.error());
  return wrap_tensor(*std::move(dense));
}

/// A shared ndarray over the elements; with `look_only` a read-only one that opens no page.
nb::object shared(nb::handle self, const PyTensor& t, bool look_only) {
  const Descriptor& d = t.descriptor();
  const std::size_t item = item_bytes(d.dtype);
  nb::object dtype = numpy_dtype(d.dtype);
  const Elements view = elements(t);
  const bool writable = !t.tensor.readonly() && !look_only;
  if (writable) open_for_writing(t, Way::array);
  return make_ndarray(std::move(dtype), d.shape,
                      in_bytes(view.strides, item, d.shape.is_empty(), Way::array), view.address,
                      writable, nb::borrow(self));
}

bool contiguous(const Shape& shape, const Strides& strides, bool fortran) noexcept {
  if (shape.is_empty()) return true;
  std::int64_t expected = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const std::size_t k = fortran ? i : shape.rank() - 1 - i;
    if (shape[k] == 1) continue;
    if (strides[k] != expected) return false;
    expected *= static_cast<std::int64_t>(shape[k]);
  }
  return true;
}

/// What a `Py_buffer` points to.
struct ViewArrays {
  std::array<Py_ssize_t, max_rank> shape;
  std::array<Py_ssize_t, max_rank> strides;
};

void fill_view(PyObject* self, const PyTensor& t, Py_buffer& view, int flags) {
  require_elements(t, Way::buffer);
  const Descriptor& d = t.descriptor();
  require_countable(d, Way::buffer);
  const NumpyType& type = shareable_type(t, Way::buffer);
  if constexpr (std::endian::native == std::endian::big)
    if (item_bytes(d.dtype) > 1)
      refuse(Way::buffer, "the elements are little-endian and this machine is not; use to_numpy()");
  const bool readonly = t.tensor.readonly();
  if ((flags & PyBUF_WRITABLE) != 0 && readonly)
    refuse(Way::buffer, "this tensor is read-only, and a writable view was asked for");
  const Elements elements_of = elements(t);
  const std::size_t item = item_bytes(d.dtype);
  const Strides strides = in_bytes(elements_of.strides, item, d.shape.is_empty(), Way::buffer);
  const bool c_order = contiguous(d.shape, elements_of.strides, false);
  const bool f_order = contiguous(d.shape, elements_of.strides, true);
  const auto wants = [flags](int bits) { return (flags & bits) == bits; };
  if ((wants(PyBUF_C_CONTIGUOUS) && !c_order) || (wants(PyBUF_F_CONTIGUOUS) && !f_order) ||
      (wants(PyBUF_ANY_CONTIGUOUS) && !c_order && !f_order) || (!wants(PyBUF_STRIDES) && !c_order))
    refuse(Way::buffer,
           "the view that was asked for must be contiguous, and this tensor's layout is " +
               std::string(name(d.layout)));

  const std::uint64_t count = d.shape.count();
  const auto length = checked_mul<std::uint64_t>(count, item);
  if (!length || *length > static_cast<std::uint64_t>(PY_SSIZE_T_MAX))
    refuse(Way::buffer, "the elements exceed what the buffer protocol can count");
  auto arrays = std::make_unique_for_overwrite<ViewArrays>();
  for (std::size_t k = 0; k < d.shape.rank(); ++k) {
    if (d.shape[k] > static_cast<std::uint64_t>(PY_SSIZE_T_MAX))
      refuse(Way::buffer, "a dimension exceeds what the buffer protocol can count");
    arrays->shape[k] = static_cast<Py_ssize_t>(d.shape[k]);
    arrays->strides[k] = static_cast<Py_ssize_t>(strides[k]);
  }
  if (!readonly) open_for_writing(t, Way::buffer);

  view.buf = elements_of.address;
  view.len = static_cast<Py_ssize_t>(*length);
  view.itemsize = static_cast<Py_ssize_t>(item);
  view.readonly = readonly ? 1 : 0;
  view.ndim = static_cast<int>(d.shape.rank());
  view.format = wants(PyBUF_FORMAT) ? const_cast<char*>(type.format) : nullptr;
  view.shape = wants(PyBUF_ND) ? arrays->shape.data() : nullptr;
  view.strides = wants(PyBUF_STRIDES) ? arrays->strides.data() : nullptr;
  view.suboffsets = nullptr;
  view.internal = arrays.release();
  view.obj = Py_NewRef(self);
}

}  // namespace

void refuse(Way way, const std::string& message) {
  switch (way) {
    case Way::array:
      fail(Exc::unsupported, message);
    case Way::interface:
      fail(Exc::unsupported_attribute, message);
    case Way::buffer:
    case Way::dlpack:
      break;
  }
  fail(Exc::unsupported_buffer, message);
}

void require_host_bytes(const PyTensor& t, Way way) {
  const Descriptor& d = t.descriptor();
  const Device memory = t.tensor.memory_device();
  if (const auto access = readable(t.tensor); !access) {
    if (const auto i = t.tensor.unsynced_buffer())
      refuse(way,
             "buffer " + std::to_string(*i) + " has sync mode '" +
                 std::string(name(d.buffers[*i].sync_mode)) +
                 "', and its bytes may be touched only after a wait that cannot be done here; the"
                 " tensor can be passed on as it is");
    refuse(way, "the tensor is declared on " + repr(t.placement()) + ", but its memory is " +
                    (memory == Device::cpu ? "the host's (cpu); t.to_cpu() gives the same memory"
                                             " declared as what it is"
                                           : "that of device " + tag_name(memory)));
  }
  if (memory != Device::cpu && way != Way::dlpack)
    refuse(way, "the memory is that of device " + tag_name(memory) +
                    ", and this needs memory of the CPU");
}

void require_elements(const PyTensor& t, Way way, Allowed allowed) {
  const Descriptor& d = t.descriptor();
  require_host_bytes(t, way);
  if (!has_strides(d.layout)) {
    const std::string layout(name(d.layout));
    switch (info(d.layout).layout_class) {
      case LayoutClass::dense:
        if (allowed.any_dense) break;
        refuse(way, "a " + layout +
                        " tensor is not one array with strides; to_numpy(), np.array(t) and"
                        " to_dense() copy it in logical order");
      case LayoutClass::sparse:
        refuse(way, "a " + layout +
                        " tensor is not one array with strides; to_dense() gives its elements row"
                        " by row, buffer(i) the stored bytes");
      default:
        refuse(way, "a tensor of layout " + layout + " (tag " +
                        to_hex(static_cast<std::uint8_t>(tag(d.layout))) +
                        ") is not one array with strides; buffer(i) gives the stored bytes");
    }
  }
  if (d.shape.is_dynamic())
    refuse(way, "the shape has a dynamic dimension, so the elements cannot be addressed");
  if (d.quantization() != nullptr && !allowed.codes)
    refuse(way, "the tensor is quantized (" + std::string(name(d.quantization()->scheme)) +
                    "), and its stored codes are not its values; dequantize() gives the values,"
                    " to_numpy(storage=True) the codes");
  if (info(d.dtype) == nullptr)
    refuse(way, "the element type is private (" + std::string(name(d.dtype)) + ", tag " +
                    to_hex(static_cast<std::uint8_t>(d.dtype)) +
                    "), and only its owner knows its values; buffer(0) gives the stored bytes");
}

std::byte* first_element(const PyTensor& t) noexcept {
  const Descriptor& d = t.descriptor();
  std::byte* base = t.tensor.buffer(0).data();
  return base == nullptr || d.shape.is_empty() ? nowhere : base + d.byte_offset;
}

Elements elements(const PyTensor& t) { return {first_element(t), t.strides}; }

bool ambiguous_bool(const PyTensor& t) noexcept { return hurray::ambiguous_bool(t.tensor); }

void refuse_ambiguous_bool(const PyTensor& t) {
  fail(Exc::unsupported,
       "this bool tensor has " + std::to_string(t.descriptor().buffers[0].byte_size) +
           " bytes for as many elements: either one byte per element, or packed bits with room to"
           " spare, and the bytes do not say which; take them with to_numpy(storage=True) or"
           " buffer(0)");
}

void open_for_writing(const PyTensor& t, Way way) {
  for (const Buffer& buffer : t.tensor.buffers()) {
    const auto opened = buffer.make_writable();
    if (opened) continue;
    const std::string message = "the system refuses to make the tensor's pages writable (" +
                                to_string(opened.error()) + "); open the file with mode=\"map\"";
    if (way == Way::buffer || way == Way::dlpack) fail(PyExc_BufferError, message);
    fail(PyExc_MemoryError, message);
  }
}

HostArray host_array(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  const Elements view = elements(t);
  HostArray array;
  array.source.origin = view.address;
  array.source.shape = d.shape;
  array.source.item_bytes = item_bytes(d.dtype);
  array.source.strides =
      in_bytes(view.strides, array.source.item_bytes, d.shape.is_empty(), Way::array);
  array.source.unit_bytes = array.source.item_bytes;
  array.source.dtype = d.dtype;
  array.owner = t.tensor.buffer(0).owner();
  array.readonly = t.tensor.readonly();
  return array;
}

nb::object unpack_tensor(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  if (ambiguous_bool(t)) refuse_ambiguous_bool(t);
  Descriptor items;
  items.dtype = DType::uint8;
  items.shape = d.shape;
  items.layout = d.layout;
  if (d.shape.is_empty()) return wrap_tensor(bind(std::move(items), std::vector<Buffer>(1)));

  const ElementRange range = std::visit(
      [&](const auto& layout) {
        if constexpr (DenseLayout<std::decay_t<decltype(layout)>>)
          return *layout.range(d.shape);
        else
          return ElementRange{};
      },
      d.layout);
  // Eight elements end on a byte in every width, so the first one is found from a whole number of
  // them.
  const unsigned width = bits(d.dtype);
  const std::int64_t groups = range.lo / 8 - (range.lo % 8 != 0 ? 1 : 0);
  const std::byte* packed = elements(t).address + groups * static_cast<std::int64_t>(width);
  const auto first = static_cast<std::uint64_t>(range.lo - groups * 8);
  const auto count = static_cast<std::uint64_t>(range.hi - range.lo) + 1;
  Buffer buffer = unwrap(Buffer::allocate(count));
  without_gil([&] { unpack(packed, width, first, buffer.bytes()); });
  items.byte_offset = static_cast<std::uint64_t>(-range.lo);
  std::vector<Buffer> buffers;
  buffers.push_back(std::move(buffer));
  return wrap_tensor(bind(std::move(items), std::move(buffers)));
}

Result<hurray::Tensor> stored_tensor(const PyTensor& t, DType dtype) {
  Descriptor stored;
  stored.dtype = dtype;
  stored.shape = t.descriptor().shape;
  stored.layout = t.descriptor().layout;
  stored.byte_offset = t.descriptor().byte_offset;
  return bind(std::move(stored), {t.tensor.buffer(0)});
}

nb::object storage_ndarray(nb::handle self, const PyTensor& t, Copy copy) {
  const Descriptor& d = t.descriptor();
  require_elements(t, Way::array, {.any_dense = true, .codes = true});
  if (d.quantization() != nullptr) {
    if (std::holds_alternative<OpaqueScheme>(d.quantization()->scheme))
      fail(Exc::unsupported,
           "the quantization scheme is private, and only its owner knows how its codes are stored;"
           " take the bytes with buffer(0)");
    const nb::object codes = wrap_tensor(stored_tensor(t, d.dtype));
    return to_ndarray(codes, *unwrap_tensor(codes), copy, true);
  }
  if (!ambiguous_bool(t)) return to_ndarray(self, t, copy, true);
  auto bytes = stored_tensor(t, DType::uint8);
  if (std::holds_alternative<Strided>(d.layout) || !bytes)
    fail(Exc::unsupported, "the stored bytes of this " + std::string(name(d.layout)) +
                               " bool tensor have no shape of their own; take them with buffer(0)");
  const nb::object items = wrap_tensor(*std::move(bytes));
  return to_ndarray(items, *unwrap_tensor(items), copy, true);
}

void require_copyable(const PyTensor& t) {
  if (t.tensor.unsynced_buffer()) require_host_bytes(t, Way::array);
  if (t.tensor.memory_device() != Device::cpu)
    fail(Exc::unsupported, "the memory is that of device " + tag_name(t.tensor.memory_device()) +
                               " and cannot be copied here");
}

nb::object copy_buffers(const PyTensor& t) {
  std::vector<Buffer> buffers;
  for (const Buffer& source : t.tensor.buffers()) {
    Buffer buffer = unwrap(Buffer::allocate(source.size()));
    if (source.size() >= worth_releasing_bytes)
      without_gil([&] { std::memcpy(buffer.data(), source.data(), source.bytes().size()); });
    else if (source.size() != 0)
      std::memcpy(buffer.data(), source.data(), source.bytes().size());
    buffers.push_back(std::move(buffer));
  }
  return wrap_tensor(bind(t.descriptor(), std::move(buffers), t.tensor.binding()), t.device);
}

nb::object copy_tensor(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  require_copyable(t);
  if (!std::holds_alternative<Strided>(d.layout) || item_bytes(d.dtype) == 0 ||
      d.quantization() != nullptr || d.shape.is_dynamic())
    return copy_buffers(t);
  const HostArray array = host_array(t);
  Buffer buffer = unwrap(Buffer::allocate(array.source.packed_size()));
  without_gil([&] { gather(array.source, 0, buffer.bytes()); });
  Descriptor copied = d;
  copied.layout = RowMajor{};
  copied.byte_offset = 0;
  return wrap_tensor(bind(std::move(copied), {std::move(buffer)}, t.tensor.binding()), t.device);
}

nb::object to_ndarray(nb::handle self, const PyTensor& t, Copy copy, bool may_unpack) {
  require_elements(t, Way::array, {.any_dense = true});
  const DType dtype = t.descriptor().dtype;
  const bool packed = is_sub_byte(dtype);
  if (packed && copy == Copy::never)
    fail(Exc::copy_required_buffer, std::string(name(dtype)) +
                                        " elements are packed, and NumPy has one element per item:"
                                        " a copy is needed (copy=None or True)");
  if (packed && copy == Copy::if_needed && !may_unpack) {
    const std::string message =
        std::string(name(dtype)) +
        " elements are packed, which neither NumPy nor DLPack can share; use"
        " to_numpy(), np.array(t) or to_torch(copy=True)";
    if (dtype == DType::bool_) fail(Exc::unsupported_buffer, message);
    fail(Exc::unsupported, message);
  }
  if (!has_strides(t.descriptor().layout)) {
    const std::string layout(name(t.descriptor().layout));
    if (copy == Copy::never)
      fail(Exc::copy_required, "the elements of a " + layout +
                                   " tensor are not one array with strides, and have to be copied"
                                   " in logical order (copy=None or True)");
    numpy_dtype(dtype);
    const nb::object rows = gathered(t);
    const PyTensor& dense = *unwrap_tensor(rows);
    return packed ? unpacked(dense) : shared(rows, dense, false);
  }
  if (packed) return unpacked(t);
  nb::object array = shared(self, t, copy == Copy::always);
  return copy == Copy::always ? array.attr("copy")("K") : array;
}

nb::object look(nb::handle self, const PyTensor& t) {
  require_elements(t, Way::array);
  return is_sub_byte(t.descriptor().dtype) ? unpacked(t) : shared(self, t, true);
}

nb::dict array_interface(const PyTensor& t) {
  require_elements(t, Way::interface);
  const Descriptor& d = t.descriptor();
  const NumpyType& type = shareable_type(t, Way::interface);
  require_countable(d, Way::interface);
  const std::size_t item = item_bytes(d.dtype);
  const Elements view = elements(t);
  const bool readonly = t.tensor.readonly();
  const Strides strides = in_bytes(view.strides, item, d.shape.is_empty(), Way::interface);
  if (!readonly) open_for_writing(t, Way::array);
  nb::dict interface;
  interface["version"] = 3;
  interface["shape"] = wrap_shape(d.shape);
  interface["typestr"] = std::string(item == 1 ? "|" : "<") + type.kind + std::to_string(item);
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.address), readonly);
  if (contiguous(d.shape, view.strides, false)) {
    interface["strides"] = nb::none();
  } else {
    nb::list list;
    for (const std::int64_t stride : strides) list.append(stride);
    interface["strides"] = nb::tuple(list);
  }
  return interface;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "no view was given");
    return -1;
  }
  view->obj = nullptr;
  const PyTensor* t = unwrap_tensor(self);
  if (t == nullptr) {
    PyErr_SetString(PyExc_BufferError, "the tensor was never initialised");
    return -1;
  }
  return contained([&] { fill_view(self, *t, *view, flags); }) ? 0 : -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<ViewArrays*>(view->internal);
}

}  // namespace hurray::python
