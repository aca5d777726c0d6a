#include "dlpack.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>
#include <type_traits>

#include "exports.hpp"

namespace hurray::python {
namespace {

/// How DLPack writes an element type, from which version on.
struct TypeRow {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
  bool needs_1_1;
};
constexpr auto types = std::to_array<TypeRow>({
    {DType::int8, 0, 8, false},        {DType::int16, 0, 16, false},
    {DType::int32, 0, 32, false},      {DType::int64, 0, 64, false},
    {DType::uint8, 1, 8, false},       {DType::uint16, 1, 16, false},
    {DType::uint32, 1, 32, false},     {DType::uint64, 1, 64, false},
    {DType::float16, 2, 16, false},    {DType::float32, 2, 32, false},
    {DType::float64, 2, 64, false},    {DType::bfloat16, 4, 16, false},
    {DType::complex64, 5, 64, false},  {DType::complex128, 5, 128, false},
    {DType::float8_e4m3, 10, 8, true}, {DType::float8_e5m2, 12, 8, true},
    {DType::float8_e8m0, 14, 8, true}, {DType::float6_e2m3, 15, 6, true},
    {DType::float6_e3m2, 16, 6, true}, {DType::float4_e2m1, 17, 4, true},
});
/// Taken, never given: DLPack's bool is one byte, and its packed integers are not in its public
/// types.
constexpr auto taken_types = std::to_array<TypeRow>({
    {DType::bool_, 6, 8, false},
    {DType::int4, 0, 4, false},
    {DType::int2, 0, 2, false},
    {DType::uint4, 1, 4, false},
    {DType::uint2, 1, 2, false},
});

std::string device_text(std::int32_t type, std::int32_t id) {
  std::string text = "(";
  text += std::to_string(type) + ", " + std::to_string(id) + ")";
  return text;
}

/// DLPack's device type of a declared placement (section 14.4).
std::int32_t device_type(const PyDevice& device) {
  const DeviceInfo* row = info(device.kind);
  const auto at = static_cast<std::size_t>(device.memory_class);
  const std::uint8_t type = row != nullptr && at < row->dlpack.size() ? row->dlpack[at] : 0;
  if (type == 0)
    refuse(Way::dlpack, "DLPack has no device type for " + repr(device) +
                            "; __hurray__ carries every placement");
  return type;
}

/// The placement that a DLPack device type means: the first pair that has it.
std::optional<PyDevice> placement_of(dlpack::Device device) {
  for (std::size_t memory_class = 0; memory_class < 4; ++memory_class)
    for (const DeviceInfo& row : devices)
      if (device.type != 0 && row.dlpack[memory_class] == device.type)
        return PyDevice{row.tag, static_cast<MemoryClass>(memory_class), device.id};
  return std::nullopt;
}

// ---- giving
// ---------------------------------------------------------------------------------------

/// One exported tensor: a share in the Python object whose memory the structure points to.
template <class Managed>
struct Export {
  Managed managed{};
  PyObject* owner = nullptr;
};
template <class Managed>
using ExportBlock = dlpack::WithArrays<Export<Managed>>;

/// From any thread; does nothing once the interpreter goes away.
template <class Managed>
void delete_export(Managed* managed) {
  if (managed == nullptr) return;
  auto* block = static_cast<ExportBlock<Managed>*>(managed->manager);
  drop_reference(block->owner);
  block->destroy();
}

template <class Managed>
void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::capsule_name<Managed>) == 0) return;  // somebody took it
  auto* managed =
      static_cast<Managed*>(PyCapsule_GetPointer(capsule, dlpack::capsule_name<Managed>));
  // What goes with the tensor may run code, and an exception may be on its way.
  nb::error_scope pending;
  managed->deleter(managed);
}

/// How one tensor is written: what can be refused is behind it.
struct Form {
  dlpack::DataType dtype;
  dlpack::Device device;
};

dlpack::Tensor structure(const PyTensor& t, const Form& form, std::int64_t* shape,
                         std::int64_t* strides) {
  dlpack::Tensor tensor{};
  const Descriptor& d = t.descriptor();
  tensor.data = d.shape.is_empty() ? nullptr : first_element(t);
  tensor.device = form.device;
  tensor.ndim = static_cast<std::int32_t>(d.shape.rank());
  tensor.dtype = form.dtype;
  tensor.shape = shape;
  tensor.strides = strides;
  return tensor;
}

template <class Managed>
Managed* make_export(nb::handle self, const PyTensor& t, const Form& form, dlpack::Version version,
                     std::uint64_t flags) {
  const Shape& shape = t.descriptor().shape;
  const std::size_t rank = shape.rank();
  auto* block = ExportBlock<Managed>::make(rank);
  std::ranges::copy(shape, block->shape());
  std::ranges::copy(t.strides, block->strides(rank));
  Managed& managed = block->managed;
  managed.tensor = structure(t, form, block->shape(), block->strides(rank));
  managed.manager = block;
  managed.deleter = delete_export<Managed>;
  if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) {
    managed.version = version;
    managed.flags = flags;
  }
  block->owner = Py_NewRef(self.ptr());
  return &managed;
}

template <class Managed>
nb::object make_capsule(Managed* managed) {
  nb::object capsule =
      nb::steal(PyCapsule_New(managed, dlpack::capsule_name<Managed>, destroy_capsule<Managed>));
  if (!capsule.is_valid()) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return capsule;
}

/// `max_version`: none for the unversioned capsule, else what both sides know.
std::optional<dlpack::Version> agreed_version(nb::handle max_version) {
  if (max_version.is_none()) return std::nullopt;
  if (!PyTuple_Check(max_version.ptr()) || PyTuple_GET_SIZE(max_version.ptr()) != 2)
    fail(PyExc_TypeError, "max_version must be None or a tuple (major, minor), got " +
                              python::type_name(max_version));
  const auto part = [&](Py_ssize_t i) {
    constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    PyObject* number = PyTuple_GET_ITEM(max_version.ptr(), i);
    if (PyLong_CheckExact(number)) {  // what everybody passes, without a call for it
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
      if (overflow == 0 && value >= 0 && value <= most) return static_cast<std::uint32_t>(value);
    }
    return static_cast<std::uint32_t>(unsigned_argument(number, "max_version", most));
  };
  const std::uint32_t major = part(0);
  const std::uint32_t minor = part(1);
  if (major == 0) return std::nullopt;
  if (major > dlpack::newest.major) return dlpack::newest;
  return dlpack::Version{major, std::min(minor, dlpack::newest.minor)};
}

/// Y34: the data is complete, so only what the protocol forbids is refused.
void check_stream(nb::handle stream, Device kind) {
  if (stream.is_none()) return;
  if (!PyLong_Check(stream.ptr()) || PyBool_Check(stream.ptr()))
    fail(PyExc_TypeError, "stream must be None or an int, got " + python::type_name(stream));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(stream.ptr(), &overflow);
  if (value == -1 && overflow == 0) return;
  const bool forbidden = overflow < 0 || (overflow == 0 && value < -1) || kind == Device::cpu ||
                         (kind == Device::cuda && overflow == 0 && value == 0) ||
                         (kind == Device::rocm && overflow == 0 && (value == 1 || value == 2));
  if (forbidden)
    fail(PyExc_BufferError, std::string("stream ") + nb::str(stream).c_str() +
                                " is not allowed for a tensor on " + std::string(name(kind)) +
                                "; pass None or -1");
}

void check_dl_device(nb::handle dl_device, dlpack::Device own) {
  if (dl_device.is_none()) return;
  bool same = false;
  if (PyTuple_Check(dl_device.ptr()) && nb::len(dl_device) == 2) {
    // The type may be an enumeration of the consumer's.
    const nb::object type = nb::steal(PyNumber_Index(nb::object(dl_device[0]).ptr()));
    const nb::object id = nb::steal(PyNumber_Index(nb::object(dl_device[1]).ptr()));
    if (!type.is_valid() || !id.is_valid()) throw nb::python_error();
    same = type.equal(nb::int_(own.type)) && id.equal(nb::int_(own.id));
  } else {
    fail(PyExc_TypeError,
         "dl_device must be None or a tuple (type, id), got " + python::type_name(dl_device));
  }
  if (!same)
    fail(PyExc_BufferError, std::string("the tensor is on DLPack device ") +
                                device_text(own.type, own.id) + " and cannot be given on " +
                                nb::str(dl_device).c_str());
}

/// Rows of `types` by tag, counted from 1; 0: none.
constexpr auto rows_of_types = [] {
  std::array<std::uint8_t, 256> rows{};
  for (std::uint8_t i = 0; i < types.size(); ++i)
    rows[static_cast<std::uint8_t>(types[i].dtype)] = static_cast<std::uint8_t>(i + 1);
  return rows;
}();

const TypeRow& given_type(DType dtype, const std::optional<dlpack::Version>& version) {
  const std::uint8_t row_number = rows_of_types[static_cast<std::uint8_t>(dtype)];
  if (row_number == 0) {
    const std::string ways = dtype == DType::bool_ ? "; use to_numpy(), np.array(t) or"
                                                     " to_torch(copy=True)"
                                                   : "; take the stored bytes with t.buffer(0)";
    refuse(Way::dlpack,
           "DLPack has no " + std::string(name(dtype)) + " as it is stored here" + ways);
  }
  const TypeRow* row = &types[row_number - std::size_t{1}];
  const bool enough = version && (version->major > 1 || version->minor >= 1);
  if (row->needs_1_1 && !enough)
    refuse(Way::dlpack, std::string(name(dtype)) +
                            " is known to DLPack from version 1.1 on, and the"
                            " consumer asked for an older one (max_version)");
  return *row;
}

/// What is refused whatever the caller asks for, in the order of Y14.
Form form_of(const PyTensor& t, const std::optional<dlpack::Version>& version) {
  require_elements(t, Way::dlpack);
  const Descriptor& d = t.descriptor();
  const TypeRow& type = given_type(d.dtype, version);
  if constexpr (std::endian::native == std::endian::big)
    if (type.bits > 8)
      refuse(Way::dlpack, "DLPack has the byte order of the machine, and here it is another");
  require_countable(d, Way::dlpack);
  return {{type.code, type.bits, 1}, {device_type(t.placement()), t.placement().device_id}};
}

/// What only a copy can satisfy; `says_readonly`: whether the structure can say that it is.
void require_shareable(const PyTensor& t, bool says_readonly, Copy copy) {
  const auto refuse_sharing = [&](const std::string& why) {
    if (copy == Copy::never) fail(Exc::copy_required_buffer, "copy=False: " + why + " (copy=True)");
    refuse(Way::dlpack, why + "; use copy=True");
  };
  if (t.tensor.readonly() && !says_readonly)
    refuse_sharing(
        "this tensor is read-only, which an unversioned capsule and a borrowed structure cannot"
        " say; ask with max_version=(1, 0) or newer, or for a copy");
  const Descriptor& d = t.descriptor();
  const unsigned alignment = info(d.dtype)->alignment;
  if (t.tensor.memory_device() == Device::cpu && !d.shape.is_empty() &&
      reinterpret_cast<std::uintptr_t>(first_element(t)) % alignment != 0)
    refuse_sharing("element [0, ...] does not lie on a multiple of " + std::to_string(alignment) +
                   " bytes, which consumers rely on");
  open_for_writing(t, Way::dlpack);
}

// ---- taking
// ---------------------------------------------------------------------------------------

/// Keeps a taken structure; calls its deleter exactly once.
template <class Managed>
class Taken final : public Owner {
 public:
  explicit Taken(Managed* managed) noexcept : managed_(managed) {}
  ~Taken() override {
    if (managed_->deleter != nullptr) managed_->deleter(managed_);
  }

 private:
  Managed* managed_;
};

struct Imported {
  dlpack::Tensor tensor;
  std::uint64_t flags = 0;
  std::shared_ptr<Owner> owner;
};

[[noreturn]] void malformed(const std::string& what) {
  fail(PyExc_BufferError, "malformed DLPack capsule: " + what);
}

/// Owns `managed` from here on.
template <class Managed>
Imported adopt(Managed* managed) {
  Imported result;
  try {
    result.owner = std::make_shared<Taken<Managed>>(managed);
  } catch (const std::bad_alloc&) {
    if (managed->deleter != nullptr) managed->deleter(managed);
    throw;
  }
  if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) {
    // Only the version and the deleter stay where they are in another major version.
    if (managed->version.major != dlpack::newest.major)
      fail(PyExc_BufferError,
           "the capsule has DLPack version " + std::to_string(managed->version.major) + "." +
               std::to_string(managed->version.minor) + ", and version 1 is understood here");
    result.flags = managed->flags;
  }
  result.tensor = managed->tensor;
  return result;
}

/// The content of a capsule that nobody has taken; whoever renames it has it. Null otherwise.
template <class Managed>
Managed* take(nb::handle capsule) {
  nb::ft_object_guard guard(capsule);
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::capsule_name<Managed>) == 0) return nullptr;
  auto* managed =
      static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::capsule_name<Managed>));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), dlpack::used_name<Managed>) != 0)
    throw nb::python_error();
  return managed;
}

Imported take_by_protocol(nb::handle object) {
  const nb::object method = foreign_attribute(object, "__dlpack__");
  if (!method.is_valid() || method.is_none())
    fail(PyExc_TypeError,
         "expected an object with __dlpack__, got " + python::type_name(object) +
             (PyCapsule_CheckExact(object.ptr()) != 0 ? "; pass the object that made the capsule"
                                                      : ""));
  using namespace nb::literals;
  const nb::object capsule = foreign(object, "__dlpack__", [&]() -> nb::object {
    try {
      return method("max_version"_a = nb::make_tuple(dlpack::newest.major, dlpack::newest.minor));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_TypeError)) throw;
    }
    return method();
  });
  if (auto* managed = take<dlpack::ManagedTensorVersioned>(capsule)) return adopt(managed);
  if (auto* managed = take<dlpack::ManagedTensor>(capsule)) return adopt(managed);
  malformed("__dlpack__ returned " + std::string(nb::repr(capsule).c_str()) +
            ", not a capsule named dltensor or dltensor_versioned that is still to be taken");
}

/// None where the table refuses, for whatever reason, and for memory that is not the host's: the
/// Python protocol says why, and waits for streams.
std::optional<Imported> take_by_table(const dlpack::ExchangeApi& api, nb::handle object) {
  dlpack::ManagedTensorVersioned* managed = nullptr;
  if (api.managed_tensor_from_py_object_no_sync(object.ptr(), &managed) != 0) {
    nb::python_error refusal;
    if (!refusal.matches(PyExc_Exception) || refusal.matches(PyExc_MemoryError)) throw refusal;
    return std::nullopt;
  }
  if (managed == nullptr) return std::nullopt;
  Imported taken = adopt(managed);
  if (taken.tensor.device.type != dlpack::cpu_type) return std::nullopt;
  return taken;
}

Imported take_from(nb::handle object, const dlpack::ExchangeApi* api) {
  if (api != nullptr)
    if (auto taken = take_by_table(*api, object)) return *std::move(taken);
  return take_by_protocol(object);
}

/// Any object with `__dlpack__`; of PyTorch what Y26 says.
Imported take_from(nb::handle object, Copy copy) {
  const SourceClass known = source_class(Py_TYPE(object.ptr()));
  if (!known.torch) return take_from(object, known.api);
  if (known.plain_torch && known.api != nullptr)
    if (auto taken = take_by_table(*known.api, object))
      if (has_plain_values(object, taken->tensor)) return *std::move(taken);
  return take_from(plain_torch_tensor(object, copy), known.api);
}

DType taken_type(dlpack::DataType type) {
  if (const auto dtype = dtype_of(type)) return *dtype;
  fail(Exc::unsupported, "DLPack type with code " + std::to_string(type.code) + ", " +
                             std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) +
                             " lanes has no counterpart here");
}

/// JAX relies on its arrays never changing, and its capsules do not say so.
bool never_changes(nb::handle object) {
  const nb::object module = nb::getattr(object.type(), "__module__", nb::none());
  if (!PyUnicode_Check(module.ptr())) return false;
  const auto name = nb::cast<std::string>(module);
  const std::string package = name.substr(0, name.find('.'));
  return package == "jax" || package == "jaxlib";
}

/// Where element [0, …, 0] is. All elements must fit into the address space, and the way to them
/// into a pointer difference: nothing else that an exporter says about its memory can be judged.
const std::byte* first_element(const dlpack::Tensor& tensor, const ArraySource& source) {
  if (source.shape.is_empty()) return static_cast<const std::byte*>(tensor.data);
  const auto outside = [&]() -> const std::byte* {
    malformed("byte_offset " + std::to_string(tensor.byte_offset) +
              " and the strides lead out of the address space");
  };
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto first = checked_add<std::uint64_t>(address, tensor.byte_offset);
  auto low = first, high = first ? checked_add<std::uint64_t>(*first, source.item_bytes) : first;
  for (std::size_t k = 0; k < source.shape.rank() && low && high; ++k) {
    const std::int64_t stride = source.strides[k];
    const std::uint64_t step =
        stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
    const auto reach = checked_mul<std::uint64_t>(step, source.shape[k] - 1);
    if (!reach) return outside();
    if (stride >= 0)
      high = checked_add(*high, *reach);
    else
      low = *reach < *low ? std::optional(*low - *reach) : std::nullopt;
  }
  constexpr std::uint64_t longest = std::numeric_limits<std::ptrdiff_t>::max();
  if (!low || !high || *high > std::numeric_limits<std::uintptr_t>::max() ||
      tensor.byte_offset > longest || *high - *low > longest)
    return outside();
  return static_cast<const std::byte*>(tensor.data) + static_cast<std::size_t>(tensor.byte_offset);
}

/// Address, sizes and byte strides, for any memory.
HostArray array_of(Imported&& imported) {
  const dlpack::Tensor& tensor = imported.tensor;
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    malformed("ndim " + std::to_string(tensor.ndim) + " without sizes");
  if (tensor.ndim > static_cast<std::int32_t>(max_rank))
    fail(Exc::unsupported, "the tensor has " + std::to_string(tensor.ndim) +
                               " dimensions, and at most 64 are possible");
  HostArray array;
  ArraySource& source = array.source;
  source.dtype = taken_type(tensor.dtype);
  array.owner = std::move(imported.owner);
  array.readonly = (imported.flags & dlpack::flag_read_only) != 0;

  const auto rank = static_cast<std::size_t>(tensor.ndim);
  source.shape.resize(rank);
  source.strides.resize(rank);
  for (std::size_t k = 0; k < rank; ++k) {
    if (tensor.shape[k] < 0) malformed("size " + std::to_string(tensor.shape[k]));
    source.shape[k] = static_cast<std::uint64_t>(tensor.shape[k]);
  }
  const unsigned width = bits(source.dtype);
  const bool padded = (imported.flags & dlpack::flag_subbyte_padded) != 0;
  source.item_bytes = width < 8 ? 1 : width / 8;
  source.unit_bytes =
      info(source.dtype)->kind == Kind::complex ? source.item_bytes / 2 : source.item_bytes;
  if (source.dtype == DType::bool_)
    source.transcode = Transcode::pack_bool;
  else if (width < 8 && padded)
    source.transcode = Transcode::pack_low;
  else
    array.packed = width < 8;
  if (!array.packed && std::endian::native == std::endian::big && source.unit_bytes > 1)
    source.transcode = Transcode::swap;

  // Strides of dimensions of size 0 and 1 mean nothing; null strides are C order.
  std::int64_t expected = 1;
  bool c_order = true;
  for (std::size_t k = rank; k-- > 0;) {
    const std::uint64_t size = source.shape[k];
    std::int64_t stride = tensor.strides == nullptr || size <= 1 ? expected : tensor.strides[k];
    if (source.shape.is_empty()) stride = 0;
    c_order = c_order && stride == expected;
    const auto bytes =
        checked_mul<std::int64_t>(stride, static_cast<std::int64_t>(source.item_bytes));
    const auto next = checked_mul<std::int64_t>(
        expected, static_cast<std::int64_t>(std::max<std::uint64_t>(size, 1)));
    if (!bytes || (!next && !source.shape.is_empty()))
      malformed("sizes and strides exceed 2**63 bytes");
    source.strides[k] = *bytes;
    expected = next.value_or(expected);
  }
  if (array.packed && !c_order && !source.shape.is_empty())
    fail(Exc::unsupported,
         "packed " + std::string(name(source.dtype)) + " elements can be taken in C order only");
  if (!source.shape.is_empty() &&
      source.packed_size() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    malformed("the elements exceed 2**63 bytes");

  source.origin = static_cast<const std::byte*>(tensor.data);
  if (source.origin == nullptr && !source.shape.is_empty())
    fail(Exc::unsupported,
         "the exporter gives no address for " + std::to_string(source.shape.count()) + " elements");
  source.origin = first_element(tensor, source);
  return array;
}

/// Memory of a device: shared as it is, never copied.
nb::object device_tensor(const HostArray& array, const PyDevice& placement, Copy copy) {
  // Y25: producer-synced is declared only when it is true. CUDA and ROCm have streams, and waiting
  // for them takes their runtimes.
  if (placement.kind == Device::cuda || placement.kind == Device::rocm)
    fail(Exc::unsupported, "memory of " + std::string(name(placement.kind)) +
                               " can be taken only after a wait for its stream, which needs the"
                               " device's runtime; copy it to the host first");
  if (copy == Copy::always)
    fail(Exc::unsupported,
         "memory of " + std::string(name(placement.kind)) + " cannot be copied here");
  return shared_tensor(array, placement);
}

/// `from_dlpack` of what has been taken.
nb::object tensor_of(Imported&& taken, nb::handle device, Copy copy, bool readonly) {
  const dlpack::Device from = taken.tensor.device;
  const auto placement = placement_of(from);
  if (!placement)
    fail(Exc::unsupported,
         "DLPack device type " + std::to_string(from.type) + " has no counterpart here");
  if (!device.is_none() && *nb::inst_ptr<PyDevice>(device) != *placement)
    fail(Exc::unsupported, "the tensor is on " + repr(*placement) + " and is not moved to " +
                               repr(*nb::inst_ptr<PyDevice>(device)));
  HostArray array = array_of(std::move(taken));
  if (readonly) array.readonly = true;
  if (from.type != dlpack::cpu_type) return device_tensor(array, *placement, copy);
  return tensor_from(array, copy, device_object(*placement));
}

}  // namespace

std::optional<DType> dtype_of(dlpack::DataType type) noexcept {
  if (type.lanes != 1) return std::nullopt;
  const auto writes = [&](const TypeRow& row) {
    return row.code == type.code && row.bits == type.bits;
  };
  if (const auto* row = std::ranges::find_if(types, writes); row != types.end()) return row->dtype;
  if (const auto* row = std::ranges::find_if(taken_types, writes); row != taken_types.end())
    return row->dtype;
  return std::nullopt;
}

nb::tuple dlpack_device(const PyTensor& t) {
  return nb::make_tuple(device_type(t.placement()), t.placement().device_id);
}

nb::object to_dlpack(nb::handle self, const PyTensor& t, const DlpackRequest& request) {
  const Copy copy = copy_argument(request.copy);
  const auto version = agreed_version(request.max_version);
  const Form form = form_of(t, version);
  check_stream(request.stream, t.placement().kind);
  check_dl_device(request.dl_device, form.device);
  const auto capsule = [&](nb::handle owner, const PyTensor& of, std::uint64_t flags) {
    return version ? make_capsule(make_export<dlpack::ManagedTensorVersioned>(owner, of, form,
                                                                              *version, flags))
                   : make_capsule(make_export<dlpack::ManagedTensor>(owner, of, form, {}, 0));
  };
  if (copy == Copy::always) {
    if (t.tensor.memory_device() != Device::cpu)
      refuse(Way::dlpack, "memory of device " + std::string(name(t.tensor.memory_device())) +
                              " cannot be copied here");
    const nb::object fresh = copy_elements(t);
    return capsule(fresh, *unwrap_tensor(fresh), dlpack::flag_is_copied);
  }
  require_shareable(t, version.has_value(), copy);
  return capsule(self, t, t.tensor.readonly() ? dlpack::flag_read_only : 0);
}

nb::object copy_elements(const PyTensor& t) {
  if (is_sub_byte(t.descriptor().dtype)) return copy_tensor(t);
  return tensor_from(host_array(t), Copy::always, t.device);
}

dlpack::ManagedTensorVersioned* export_managed(nb::handle self, const PyTensor& t) {
  const Form form = form_of(t, dlpack::newest);
  require_shareable(t, true, Copy::if_needed);
  return make_export<dlpack::ManagedTensorVersioned>(
      self, t, form, dlpack::newest, t.tensor.readonly() ? dlpack::flag_read_only : 0);
}

dlpack::Tensor export_borrowed(const PyTensor& t) {
  const Form form = form_of(t, dlpack::newest);
  require_shareable(t, false, Copy::if_needed);
  // DLPack counts in signed integers; whoever borrows does not write to them.
  const auto* shape = reinterpret_cast<const std::int64_t*>(t.descriptor().shape.data());
  return structure(t, form, const_cast<std::int64_t*>(shape),
                   const_cast<std::int64_t*>(t.strides.data()));
}

nb::object tensor_from_dlpack(nb::handle object, nb::handle device, Copy copy) {
  if (!device.is_none() && value_of<PyDevice>(device) == nullptr)
    fail(PyExc_TypeError, "device must be a hurray.Device, got " + python::type_name(device));
  return tensor_of(take_from(object, copy), device, copy, never_changes(object));
}

nb::object import_managed(dlpack::ManagedTensorVersioned* managed) {
  return tensor_of(adopt(managed), nb::none(), Copy::if_needed, false);
}
std::optional<HostArray> host_array_from_dlpack(nb::handle object, Copy copy) {
  Imported taken = take_from(object, copy);
  const std::int32_t type = taken.tensor.device.type;
  if (type != dlpack::cpu_type && type != dlpack::cuda_host_type) return std::nullopt;
  return array_of(std::move(taken));
}

namespace {

struct Keyword {
  PyObject* name;  ///< Interned, as the names in a call mostly are; never given back.
  nb::handle DlpackRequest::* value;
};

/// The keyword called `name`, or null.
const Keyword* find_keyword(PyObject* name) {
  static const auto keywords = [] {
    const auto keyword = [](const char* text, nb::handle DlpackRequest::* value) {
      PyObject* interned = PyUnicode_InternFromString(text);
      if (interned == nullptr) throw nb::python_error();
      return Keyword{interned, value};
    };
    return std::array{keyword("max_version", &DlpackRequest::max_version),
                      keyword("dl_device", &DlpackRequest::dl_device),
                      keyword("copy", &DlpackRequest::copy),
                      keyword("stream", &DlpackRequest::stream)};
  }();
  for (const Keyword& keyword : keywords)
    if (keyword.name == name) return &keyword;
  for (const Keyword& keyword : keywords)
    if (PyUnicode_Compare(keyword.name, name) == 0) return &keyword;
  return nullptr;
}

/// The keywords of a call, each `None` where it was not given.
DlpackRequest request_of(PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  if (positional != 0)
    fail(PyExc_TypeError, "__dlpack__() takes no positional arguments, all are keywords");
  DlpackRequest request;
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    const Keyword* keyword = find_keyword(name);
    if (keyword == nullptr) {
      PyErr_Format(PyExc_TypeError,
                   "__dlpack__() has no keyword '%U', but stream, max_version, dl_device and copy",
                   name);
      throw nb::python_error();
    }
    request.*keyword->value = arguments[i];
  }
  return request;
}

/// Called by consumers for every array: without what a general call does.
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t positional,
                        PyObject* names) {
  return contained_object(
      [&] { return to_dlpack(self, self_of(self), request_of(arguments, positional, names)); });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  return contained_object([&] { return dlpack_device(self_of(self)); });
}

}  // namespace

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack_method)),
     METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "DLPack, up to version 1.1: a capsule that keeps the tensor alive. What cannot be given is a\n"
     "built-in `BufferError`."},
    {"__dlpack_device__", dlpack_device_method, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n"
     "DLPack's device type and the device id of the declared placement."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace hurray::python
