#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "bindings.hpp"

namespace hurray::python {
namespace {

constexpr std::uint64_t max_requested_alignment = 2u << 20;

/// The types that can be made here: tier 1 and the complex ones.
bool is_standard(DType dtype) noexcept {
  const DTypeInfo* row = info(dtype);
  return row != nullptr && (tier(dtype) == 1 || row->kind == Kind::complex);
}

/// One element as it is stored, little-endian.
struct Element {
  std::array<std::byte, 16> bytes{};
  std::size_t size = 0;

  void append(std::uint64_t pattern, std::size_t width) noexcept {
    for (std::size_t i = 0; i < width; ++i)
      bytes[size++] = static_cast<std::byte>(pattern >> (8 * i));
  }
};

[[noreturn]] void out_of_range(nb::handle value, DType dtype) {
  fail(PyExc_OverflowError, std::string("fill_value ") + nb::repr(value).c_str() +
                                " does not fit in " + std::string(name(dtype)));
}
[[noreturn]] void wrong_kind(nb::handle value, DType dtype) {
  fail(PyExc_TypeError, "fill_value of a " + std::string(name(dtype)) + " tensor cannot be a " +
                            python::type_name(value));
}

/// `value` rounded to the nearest float of `significand` bits (the hidden one included) and
/// exponents up to `max_exponent`, ties to even, as its bit pattern; none where a finite value
/// overflows.
std::optional<std::uint64_t> round_float(double value, int significand, int max_exponent) {
  const int stored = significand - 1;
  const int exponent_bits = max_exponent == 15 ? 5 : max_exponent == 127 ? 8 : 11;
  const auto sign = std::uint64_t{std::signbit(value)} << (stored + exponent_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << stored;
  if (std::isnan(value)) return sign | infinity | (std::uint64_t{1} << (stored - 1));
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int min_exponent = 1 - max_exponent;
  const int unit = std::max(exponent - 1, min_exponent) - stored;  // weight of the last bit
  const double units = std::nearbyint(std::ldexp(std::fabs(value), -unit));  // exact scaling
  const auto pattern = static_cast<std::uint64_t>(units);
  // The hidden bit carries into the exponent by itself, in subnormals too.
  const auto biased = static_cast<std::uint64_t>(unit + stored - min_exponent);
  const std::uint64_t result = (biased << stored) + pattern;
  if (result >= infinity) return std::nullopt;
  return sign | result;
}

void append_float(Element& element, double value, std::size_t width, DType dtype,
                  nb::handle shown) {
  if (width == 8) return element.append(std::bit_cast<std::uint64_t>(value), 8);
  const bool brain = dtype == DType::bfloat16;
  const int significand = brain ? 8 : width == 2 ? 11 : 24;
  const auto pattern = round_float(value, significand, width == 2 && !brain ? 15 : 127);
  if (!pattern) out_of_range(shown, dtype);
  element.append(*pattern, width);
}

double real_value(nb::handle value, DType dtype) {
  if (!PyFloat_Check(value.ptr()) && !PyLong_Check(value.ptr())) wrong_kind(value, dtype);
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

Element encode(nb::handle value, DType dtype) {
  Element element;
  const DTypeInfo& row = *info(dtype);
  const std::size_t width = row.bits < 8 ? 1 : row.bits / 8;
  switch (row.kind) {
    case Kind::boolean:
      if (!PyBool_Check(value.ptr())) wrong_kind(value, dtype);
      element.append(value.ptr() == Py_True ? 0xFF : 0, 1);
      return element;
    case Kind::integer:
    case Kind::unsigned_integer: {
      if (PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) == 0) wrong_kind(value, dtype);
      const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
      if (!number.is_valid()) throw nb::python_error();
      if (row.kind == Kind::unsigned_integer) {
        const unsigned long long n = PyLong_AsUnsignedLongLong(number.ptr());
        if (PyErr_Occurred() != nullptr) {
          PyErr_Clear();
          out_of_range(value, dtype);
        }
        if (width < 8 && n >> (8 * width) != 0) out_of_range(value, dtype);
        element.append(n, width);
        return element;
      }
      int overflow = 0;
      const long long n = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
      const long long limit = std::numeric_limits<long long>::max() >> (64 - 8 * width);
      if (overflow != 0 || n > limit || n < -limit - 1) out_of_range(value, dtype);
      element.append(static_cast<std::uint64_t>(n), width);
      return element;
    }
    case Kind::floating:
    case Kind::exponent:
      append_float(element, real_value(value, dtype), width, dtype, value);
      return element;
    case Kind::complex:
      if (PyComplex_Check(value.ptr())) {
        append_float(element, PyComplex_RealAsDouble(value.ptr()), width / 2, dtype, value);
        append_float(element, PyComplex_ImagAsDouble(value.ptr()), width / 2, dtype, value);
      } else {
        append_float(element, real_value(value, dtype), width / 2, dtype, value);
        append_float(element, 0.0, width / 2, dtype, value);
      }
      return element;
  }
  wrong_kind(value, dtype);
}

void fill(const Buffer& buffer, const Element& element, std::uint64_t count, DType dtype) {
  const std::span<std::byte> out = buffer.bytes();
  if (element.size == 1) {
    std::ranges::fill(out, element.bytes[0]);
  } else if (!out.empty()) {
    std::memcpy(out.data(), element.bytes.data(), element.size);
    for (std::size_t done = element.size; done < out.size();) {
      const std::size_t more = std::min(done, out.size() - done);
      std::memcpy(out.data() + done, out.data(), more);
      done += more;
    }
  }
  // Unused bits of the last byte are 0.
  if (dtype == DType::bool_ && count % 8 != 0)
    out.back() &= static_cast<std::byte>((1u << (count % 8)) - 1);
}

/// What all of these calls take: type, shape, device.
struct Request {
  DType dtype;
  Shape shape;
  nb::object device;
  std::uint64_t size;
};

Request request(const char* call, nb::handle shape, nb::handle dtype, nb::handle device,
                DType default_dtype) {
  Request result{default_dtype, {}, device_object({}), 0};
  if (!dtype.is_none()) {
    if (!nb::isinstance<PyDtype>(dtype))
      fail(Exc::invalid_descriptor,
           std::string(call) + ": dtype must be a hurray.Dtype, got " + python::type_name(dtype));
    result.dtype = nb::inst_ptr<PyDtype>(dtype)->tag;
  }
  if (!device.is_none()) {
    if (!nb::isinstance<PyDevice>(device))
      fail(Exc::invalid_descriptor, std::string(call) + ": device must be a hurray.Device, got " +
                                        python::type_name(device));
    result.device = nb::borrow(device);
  }
  if (!is_standard(result.dtype))
    fail(Exc::unsupported, std::string(call) + " does not make " + std::string(name(result.dtype)) +
                               " tensors, which is a Tier 2 type");
  result.shape = shape_argument(shape, false, call);
  const auto size = packed_bytes(bits(result.dtype), result.shape.count());
  if (!size || (!result.shape.is_empty() &&
                result.shape.count() == std::numeric_limits<std::uint64_t>::max()))
    fail(PyExc_OverflowError, std::string(call) + ": the elements exceed 2**64 - 1 bytes");
  result.size = *size;
  return result;
}

nb::object zeroed(const char* call, nb::handle shape, nb::handle dtype, nb::handle device,
                  std::uint32_t alignment) {
  Request wanted = request(call, shape, dtype, device, DType::float64);
  Buffer buffer = unwrap(Buffer::allocate(wanted.size, true, alignment));
  return new_tensor(wanted.dtype, std::move(wanted.shape), std::move(buffer),
                    std::move(wanted.device));
}

nb::object filled(const char* call, nb::handle shape, nb::handle value, nb::handle dtype,
                  nb::handle device, DType default_dtype) {
  Request wanted = request(call, shape, dtype, device, default_dtype);
  nb::object given = nb::borrow(value);
  if (!given.is_valid()) given = nb::bool_(true);
  const bool one = !value.is_valid();
  if (one && wanted.dtype != DType::bool_) given = nb::int_(1);
  const Element element = encode(given, wanted.dtype);
  Buffer buffer = unwrap(Buffer::allocate(wanted.size));
  const auto write = [&] { fill(buffer, element, wanted.shape.count(), wanted.dtype); };
  if (wanted.size >= worth_releasing_bytes)
    without_gil(write);
  else
    write();
  return new_tensor(wanted.dtype, std::move(wanted.shape), std::move(buffer),
                    std::move(wanted.device));
}

DType dtype_of_value(nb::handle value) {
  if (PyBool_Check(value.ptr())) return DType::bool_;
  if (PyComplex_Check(value.ptr())) return DType::complex128;
  if (PyFloat_Check(value.ptr())) return DType::float64;
  if (PyLong_Check(value.ptr())) return DType::int64;
  fail(Exc::invalid_descriptor,
       "hurray.full(): fill_value must be a bool, int, float or complex where"
       " no dtype is given, got " +
           python::type_name(value));
}

nb::object empty(nb::handle shape, nb::handle dtype, nb::handle device, nb::handle alignment) {
  std::uint64_t wanted = min_buffer_alignment;
  if (!alignment.is_none()) {
    if (!PyIndex_Check(alignment.ptr()))
      fail(PyExc_TypeError, "alignment must be an int, got " + python::type_name(alignment));
    const nb::object number = nb::steal(PyNumber_Index(alignment.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    wanted = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      wanted = 0;
    }
    if (!std::has_single_bit(wanted) || wanted < min_buffer_alignment ||
        wanted > max_requested_alignment)
      fail(PyExc_ValueError,
           std::string("alignment must be a power of two from 64 to 2 MiB, got ") +
               nb::str(number).c_str());
  }
  return zeroed("hurray.empty()", shape, dtype, device, static_cast<std::uint32_t>(wanted));
}

}  // namespace

void bind_create(nb::module_& m) {
  using namespace nb::literals;
  m.def("empty", &empty, "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
        "alignment"_a = nb::none(),
        nb::sig("def empty(shape: collections.abc.Sequence[int], *, dtype: Dtype | None = None, "
                "device: Device | None "
                "= None, alignment: int | None = None) -> Tensor"),
        "A row-major tensor in own memory, whose content is not promised. `alignment` (bytes, a "
        "power of\n"
        "two from 64 to 2 MiB; default 64) is what is allocated and, up to 4096, declared. "
        "`device` is\n"
        "declared as given; the memory is the host's. Default type: float64.");
  m.def(
      "zeros",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        return zeroed("hurray.zeros()", shape, dtype, device, min_buffer_alignment);
      },
      "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def zeros(shape: collections.abc.Sequence[int], *, dtype: Dtype | None = None, "
              "device: Device | None "
              "= None) -> Tensor"),
      "A row-major tensor of zeros in own memory. A large one costs nothing until it is touched.");
  m.def(
      "ones",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        return filled("hurray.ones()", shape, {}, dtype, device, DType::float64);
      },
      "shape"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def ones(shape: collections.abc.Sequence[int], *, dtype: Dtype | None = None, "
              "device: Device | None "
              "= None) -> Tensor"),
      "A row-major tensor of ones in own memory.");
  m.def(
      "full",
      [](nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device) {
        const DType natural = dtype.is_none() ? dtype_of_value(value) : DType::float64;
        return filled("hurray.full()", shape, value, dtype, device, natural);
      },
      "shape"_a, "fill_value"_a.none(), nb::kw_only(), "dtype"_a = nb::none(),
      "device"_a = nb::none(),
      nb::sig("def full(shape: collections.abc.Sequence[int], fill_value: complex, *, dtype: Dtype "
              "| None = None, "
              "device: Device | None = None) -> Tensor"),
      "A row-major tensor of one value in own memory. Without `dtype` the value decides: bool, "
      "int64,\n"
      "float64 or complex128. Raises `OverflowError` for a value out of range and `TypeError` for "
      "one\n"
      "of another kind.");
}

}  // namespace hurray::python
