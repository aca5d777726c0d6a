#include "numpy.hpp"

#include <array>
#include <bit>
#include <limits>

namespace hurray::python {
namespace {

/// The first members of `PyArray_Descr` and `PyArrayObject`, the same in NumPy 1 and 2
/// (`ndarraytypes.h`).
struct NumpyDescr {
  PyObject_HEAD PyTypeObject* typeobj;
  char kind;
  char type;
  char byteorder;
  char former_flags;
  int type_num;
};
struct NumpyArray {
  PyObject_HEAD char* data;
  int nd;
  Py_ssize_t* dimensions;
  Py_ssize_t* strides;
  PyObject* base;
  NumpyDescr* descr;
  int flags;
};
constexpr int writeable_flag = 0x0400;  // NPY_ARRAY_WRITEABLE

/// Indices into the C API table (`__multiarray_api.h` of NumPy 1.26.4 and 2.4.6).
enum Slot : std::size_t {
  get_version = 0,        // PyArray_GetNDArrayCVersion
  array_type = 2,         // PyArray_Type
  generic_type = 10,      // PyGenericArrType_Type
  descr_from_type = 45,   // PyArray_DescrFromType
  new_from_descr = 94,    // PyArray_NewFromDescr
  set_base_object = 282,  // PyArray_SetBaseObject
};

/// Type numbers (`enum NPY_TYPES`).
constexpr int npy_longdouble = 13;
constexpr int npy_first_user_type = 256;
constexpr int npy_int32 = sizeof(int) == 4 ? 5 : 7;
constexpr int npy_int64 = sizeof(long) == 8 ? 7 : 9;

constexpr auto numpy_types = std::to_array<NumpyType>({
    {DType::bool_, 0, "?", 'b'},
    {DType::int8, 1, "b", 'i'},
    {DType::uint8, 2, "B", 'u'},
    {DType::int16, 3, "h", 'i'},
    {DType::uint16, 4, "H", 'u'},
    {DType::int32, npy_int32, "i", 'i'},
    {DType::uint32, npy_int32 + 1, "I", 'u'},
    {DType::int64, npy_int64, sizeof(long) == 8 ? "l" : "q", 'i'},
    {DType::uint64, npy_int64 + 1, sizeof(long) == 8 ? "L" : "Q", 'u'},
    {DType::float16, 23, "e", 'f'},
    {DType::float32, 11, "f", 'f'},
    {DType::float64, 12, "d", 'f'},
    {DType::complex64, 14, "Zf", 'c'},
    {DType::complex128, 15, "Zd", 'c'},
});

struct MlType {
  DType dtype;
  const char* name;
};
constexpr auto ml_types = std::to_array<MlType>({
    {DType::bfloat16, "bfloat16"},
    {DType::float8_e4m3, "float8_e4m3fn"},
    {DType::float8_e5m2, "float8_e5m2"},
    {DType::float8_e8m0, "float8_e8m0fnu"},
    {DType::float4_e2m1, "float4_e2m1fn"},
    {DType::float6_e2m3, "float6_e2m3fn"},
    {DType::float6_e3m2, "float6_e3m2fn"},
    {DType::int4, "int4"},
    {DType::uint4, "uint4"},
    {DType::int2, "int2"},
    {DType::uint2, "uint2"},
});

void** table = nullptr;

void** load_table() {
  // NumPy 2 moved the module; asking NumPy 2 for the old name warns.
  nb::object module = imported("numpy._core._multiarray_umath");
  if (!module.is_valid()) module = imported("numpy.core._multiarray_umath");
  if (!module.is_valid()) return nullptr;
  const nb::object capsule = nb::getattr(module, "_ARRAY_API", nb::none());
  if (capsule.is_none()) return nullptr;
  auto** api = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (api == nullptr) throw nb::python_error();
  const unsigned version = reinterpret_cast<unsigned (*)()>(api[get_version])();
  if (version >> 24 != 1 && version >> 24 != 2)
    fail(Exc::unsupported, "this NumPy has an unknown binary interface (" +
                               std::to_string(version) + "); versions 1 and 2 are known");
  return api;
}

/// The type of an `ml_dtypes` array, or none.
std::optional<DType> ml_dtype(const NumpyDescr& descr) {
  const nb::object module = imported("ml_dtypes");
  if (!module.is_valid()) return std::nullopt;
  for (const MlType& row : ml_types) {
    const nb::object type = nb::getattr(module, row.name, nb::none());
    if (type.ptr() == reinterpret_cast<PyObject*>(descr.typeobj)) return row.dtype;
  }
  return std::nullopt;
}

/// NumPy's types as ours, beside `numpy_types`: several C types of one width, and longdouble.
std::optional<DType> builtin_dtype(const NumpyDescr& descr) noexcept {
  for (const NumpyType& row : numpy_types)
    if (row.number == descr.type_num) return row.dtype;
  switch (descr.type_num) {
    case 5:
      return DType::int32;  // NPY_INT
    case 6:
      return DType::uint32;  // NPY_UINT
    case 7:
      return sizeof(long) == 8 ? DType::int64 : DType::int32;  // NPY_LONG
    case 8:
      return sizeof(long) == 8 ? DType::uint64 : DType::uint32;  // NPY_ULONG
    case 9:
      return DType::int64;  // NPY_LONGLONG
    case 10:
      return DType::uint64;  // NPY_ULONGLONG
    case npy_longdouble:
      if (std::numeric_limits<long double>::digits == 113) return DType::float128;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void refuse_dtype(const NumpyArray& array) {
  fail(Exc::unsupported,
       std::string("NumPy dtype ") +
           nb::repr(nb::handle(reinterpret_cast<PyObject*>(array.descr))).c_str() +
           " has no counterpart here; " +
           (array.descr->kind == 'O' ? "these are Python objects: make an array of numbers of them"
                                     : "convert it with .astype() first"));
}

}  // namespace

void** loaded_numpy_api() noexcept {
  if (table == nullptr) {
    try {
      table = load_table();
    } catch (nb::python_error& error) {
      error.restore();
      PyErr_Clear();
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  return table;
}

void** numpy_api() {
  if (table == nullptr) {
    import_optional("numpy", "numpy");
    table = load_table();
    if (table == nullptr)
      fail(PyExc_ImportError, "this numpy has no C interface; install it with: pip install numpy");
  }
  return table;
}

const NumpyType* numpy_type(DType dtype) noexcept {
  for (const NumpyType& row : numpy_types)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

const char* ml_dtypes_name(DType dtype) noexcept {
  for (const MlType& row : ml_types)
    if (row.dtype == dtype) return row.name;
  return nullptr;
}

nb::object numpy_dtype(DType dtype) {
  void** api = numpy_api();
  nb::object found;
  if (const NumpyType* row = numpy_type(dtype)) {
    found = nb::steal(reinterpret_cast<PyObject* (*)(int)>(api[descr_from_type])(row->number));
    if (!found.is_valid()) throw nb::python_error();
  } else if (const char* ml_name = ml_dtypes_name(dtype)) {
    PyObject* module = PyImport_ImportModule("ml_dtypes");
    if (module == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError) == 0) throw nb::python_error();
      PyErr_Clear();
      fail(Exc::unsupported, "NumPy has no " + std::string(name(dtype)) +
                                 "; install ml_dtypes (pip install ml_dtypes), or take the stored"
                                 " bytes with t.buffer(0)");
    }
    const nb::object type = nb::getattr(nb::steal(module), ml_name, nb::none());
    if (type.is_none())
      fail(Exc::unsupported, std::string("the installed ml_dtypes has no ") + ml_name +
                                 "; a newer one is needed (pip install -U ml_dtypes)");
    found = nb::module_::import_("numpy").attr("dtype")(type);
  } else {
    fail(Exc::unsupported,
         "NumPy has no " + std::string(name(dtype)) + "; take the stored bytes with t.buffer(0)");
  }
  if constexpr (std::endian::native == std::endian::big) found = found.attr("newbyteorder")("<");
  return found;
}

bool is_ndarray(nb::handle object) noexcept {
  void** api = loaded_numpy_api();
  return api != nullptr &&
         PyObject_TypeCheck(object.ptr(), static_cast<PyTypeObject*>(api[array_type])) != 0;
}

bool is_numpy_scalar(nb::handle object) noexcept {
  void** api = loaded_numpy_api();
  return api != nullptr &&
         PyObject_TypeCheck(object.ptr(), static_cast<PyTypeObject*>(api[generic_type])) != 0;
}

void refuse_masked(nb::handle object) {
  const nb::object ma = imported("numpy.ma");
  if (ma.is_valid() && nb::isinstance(object, nb::getattr(ma, "MaskedArray")))
    fail(Exc::unsupported,
         "this is a masked array, and its mask would be lost; pass a.filled(value),"
         " or data and mask as two tensors");
}

HostArray host_array(nb::handle ndarray) {
  const auto& array = *reinterpret_cast<const NumpyArray*>(ndarray.ptr());
  if (Py_TYPE(ndarray.ptr()) != static_cast<PyTypeObject*>(table[array_type]))
    refuse_masked(ndarray);
  const NumpyDescr& descr = *array.descr;
  const bool user = descr.type_num >= npy_first_user_type;
  const auto dtype = user ? ml_dtype(descr) : builtin_dtype(descr);
  if (!dtype) refuse_dtype(array);

  HostArray result;
  ArraySource& source = result.source;
  source.dtype = *dtype;
  source.origin = reinterpret_cast<const std::byte*>(array.data);
  const unsigned width = bits(*dtype);
  source.item_bytes = width < 8 ? 1 : width / 8;
  source.unit_bytes =
      info(*dtype)->kind == Kind::complex ? source.item_bytes / 2 : source.item_bytes;
  if (width < 8) {
    source.transcode = *dtype == DType::bool_ ? Transcode::pack_bool : Transcode::pack_low;
  } else if (source.unit_bytes > 1) {
    const bool native_is_big = std::endian::native == std::endian::big;
    const bool big = descr.byteorder == '>' || (descr.byteorder != '<' && native_is_big);
    if (big) source.transcode = Transcode::swap;
  }
  const auto rank = static_cast<std::size_t>(array.nd);
  source.shape.resize(rank);
  source.strides.resize(rank);
  for (std::size_t k = 0; k < rank; ++k) {
    source.shape[k] = static_cast<std::uint64_t>(array.dimensions[k]);
    source.strides[k] = array.strides[k];
  }
  result.readonly = (array.flags & writeable_flag) == 0;
  result.owner = hold(nb::borrow(ndarray));
  return result;
}

nb::object make_ndarray(nb::object dtype, const Shape& shape, const Strides& strides, void* data,
                        bool writable, nb::object base) {
  void** api = numpy_api();
  std::array<Py_ssize_t, max_rank> dimensions{};
  std::array<Py_ssize_t, max_rank> steps{};
  for (std::size_t k = 0; k < shape.rank(); ++k) {
    if (shape[k] > static_cast<std::uint64_t>(PY_SSIZE_T_MAX) ||
        strides[k] != static_cast<Py_ssize_t>(strides[k]))
      fail(Exc::unsupported,
           "NumPy cannot address a dimension of " + std::to_string(shape[k]) + " elements");
    dimensions[k] = static_cast<Py_ssize_t>(shape[k]);
    steps[k] = static_cast<Py_ssize_t>(strides[k]);
  }
  using NewFromDescr = PyObject* (*)(PyTypeObject*, PyObject*, int, const Py_ssize_t*,
                                     const Py_ssize_t*, void*, int, PyObject*);
  using SetBaseObject = int (*)(PyObject*, PyObject*);
  nb::object array = nb::steal(reinterpret_cast<NewFromDescr>(api[new_from_descr])(
      static_cast<PyTypeObject*>(api[array_type]), dtype.release().ptr(),
      static_cast<int>(shape.rank()), dimensions.data(), steps.data(), data,
      writable ? writeable_flag : 0, nullptr));
  if (!array.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
    nb::python_error cause;  // more dimensions or bytes than NumPy can have
    nb::raise_from(cause, exception_class(Exc::unsupported),
                   "NumPy cannot have an array of this shape");
  }
  if (base.is_valid() &&
      reinterpret_cast<SetBaseObject>(api[set_base_object])(array.ptr(), base.release().ptr()) != 0)
    throw nb::python_error();
  return array;
}

}  // namespace hurray::python
