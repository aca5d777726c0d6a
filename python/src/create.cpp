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
  fail(PyExc_OverflowError, std::string("the value ") + nb::repr(value).c_str() +
                                " does not fit in " + std::string(name(dtype)));
}
[[noreturn]] void wrong_kind(nb::handle value, DType dtype) {
  fail(PyExc_TypeError, "a tensor of " + std::string(name(dtype)) + " has no values of type " +
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
    if (value_of<PyDtype>(dtype) == nullptr)
      fail(Exc::invalid_descriptor,
           std::string(call) + ": dtype must be a hurray.Dtype, got " + python::type_name(dtype));
    result.dtype = nb::inst_ptr<PyDtype>(dtype)->tag;
  }
  if (!device.is_none()) {
    if (value_of<PyDevice>(device) == nullptr)
      fail(Exc::invalid_descriptor, std::string(call) + ": device must be a hurray.Device, got " +
                                        python::type_name(device));
    result.device = nb::borrow(device);
  }
  if (!is_standard(result.dtype))
    fail(Exc::unsupported, std::string(call) + " does not make " + std::string(name(result.dtype)) +
                               " tensors, which is a Tier 2 type; make one of its packed bytes: "
                               "hurray.Tensor(buffer, dtype, shape)");
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

// ---- like another tensor
// -----------------------------------------------------------------------------------

/// What a call takes from `x` where the caller does not say otherwise.
struct Like {
  nb::tuple shape;
  nb::object dtype;
  nb::object device;
};

Like like(const char* call, nb::handle x, nb::handle dtype, nb::handle device) {
  const PyTensor* t = unwrap_tensor(x);
  if (t == nullptr)
    fail(PyExc_TypeError,
         std::string(call) + ": x must be a hurray.Tensor, got " + python::type_name(x));
  return {wrap_shape(t->descriptor().shape), dtype.is_none() ? t->dtype : nb::borrow(dtype),
          device.is_none() ? t->device : nb::borrow(device)};
}

// ---- numbers in a row
// --------------------------------------------------------------------------------------

/// A number as it was given: an int, exactly, or a float.
struct Number {
  nb::object integer;  ///< not valid for a float
  double real = 0;

  bool is_float() const noexcept { return !integer.is_valid(); }
};

Number number_argument(nb::handle value, const char* argument) {
  const PyNumberMethods* methods = Py_TYPE(value.ptr())->tp_as_number;
  if (PyFloat_Check(value.ptr()) == 0 && PyIndex_Check(value.ptr()) != 0) {
    Number number{nb::steal(PyNumber_Index(value.ptr()))};
    if (!number.integer.is_valid()) throw nb::python_error();
    return number;
  }
  if (methods == nullptr || methods->nb_float == nullptr)
    fail(PyExc_TypeError,
         std::string(argument) + " must be an int or a float, got " + python::type_name(value));
  Number number{{}, PyFloat_AsDouble(value.ptr())};
  if (number.real == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!std::isfinite(number.real))
    fail(Exc::invalid_descriptor,
         std::string(argument) + " must be finite, got " + nb::repr(value).c_str());
  return number;
}

double to_double(const Number& number) {
  if (number.is_float()) return number.real;
  const double real = PyLong_AsDouble(number.integer.ptr());
  if (real == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return real;
}

/// `value` as an element of a standard type other than bool; false where it does not fit: out of
/// range, or not a whole number in an integer type.
bool store(std::byte* at, double value, DType dtype) noexcept {
  const DTypeInfo& row = *info(dtype);
  const std::size_t width = row.bits / 8;
  const auto put = [at](std::uint64_t pattern, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(pattern >> (8 * i));
  };
  switch (row.kind) {
    case Kind::integer: {
      const double limit = std::ldexp(1.0, static_cast<int>(row.bits) - 1);
      if (!(value >= -limit && value < limit) || value != std::trunc(value)) return false;
      put(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), width);
      return true;
    }
    case Kind::unsigned_integer:
      if (!(value >= 0 && value < std::ldexp(1.0, row.bits)) || value != std::trunc(value))
        return false;
      put(static_cast<std::uint64_t>(value), width);
      return true;
    case Kind::complex:
      std::memset(at, 0, width);
      return store(at, value, dtype == DType::complex64 ? DType::float32 : DType::float64);
    default:
      break;
  }
  if (width == 8) return put(std::bit_cast<std::uint64_t>(value), 8), true;
  const bool brain = dtype == DType::bfloat16;
  const auto pattern = round_float(value,
                                   brain        ? 8
                                   : width == 2 ? 11
                                                : 24,
                                   width == 2 && !brain ? 15 : 127);
  if (pattern) put(*pattern, width);
  return pattern.has_value();
}

[[noreturn]] void not_in_type(const char* call, double value, std::uint64_t i, DType dtype) {
  fail(PyExc_OverflowError, std::string(call) + ": the value " +
                                nb::repr(nb::float_(value)).c_str() + " at index " +
                                std::to_string(i) + " does not fit in " + std::string(name(dtype)));
}

/// `make(bytes)` writes the elements; without the GIL where they are many.
template <class Make>
nb::object made(Request wanted, bool zeroed, Make&& make) {
  Buffer buffer = unwrap(Buffer::allocate(wanted.size, zeroed));
  if (wanted.size >= worth_releasing_bytes)
    without_gil([&] { make(buffer.bytes()); });
  else
    make(buffer.bytes());
  return new_tensor(wanted.dtype, std::move(wanted.shape), std::move(buffer),
                    std::move(wanted.device));
}

/// A tensor of rank 1 whose element i is `value(i)`.
template <class Value>
nb::object computed(const char* call, Request wanted, Value&& value) {
  const DType dtype = wanted.dtype;
  const std::size_t width = bits(dtype) / 8;
  std::optional<std::uint64_t> bad;
  nb::object result = made(std::move(wanted), false, [&](std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size() / width && !bad; ++i)
      if (!store(out.data() + i * width, value(std::uint64_t{i}), dtype)) bad = i;
  });
  if (bad) not_in_type(call, value(*bad), *bad, dtype);
  return result;
}

/// The same of integers, exactly: element i is `first + i * step`, the last one `last`.
nb::object counted(const char* call, Request wanted, const nb::object& first,
                   const nb::object& step, const nb::object& last) {
  const DType dtype = wanted.dtype;
  const DTypeInfo& row = *info(dtype);
  if (wanted.size == 0) return made(std::move(wanted), false, [](std::span<std::byte>) {});
  const bool whole = row.kind == Kind::integer || row.kind == Kind::unsigned_integer;
  if (!whole) {
    int overflow[2];
    const long long from = PyLong_AsLongLongAndOverflow(first.ptr(), &overflow[0]);
    PyLong_AsLongLongAndOverflow(last.ptr(), &overflow[1]);
    const unsigned long long by = PyLong_AsUnsignedLongLongMask(step.ptr());
    if (overflow[0] == 0 && overflow[1] == 0)
      return computed(call, std::move(wanted), [=](std::uint64_t i) {
        return static_cast<double>(
            static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + i * by));
      });
    const double base = to_double({first});
    const double stride = to_double({step});
    const double end = to_double({last});
    const std::uint64_t final = wanted.shape[0] - 1;
    return computed(call, std::move(wanted), [=](std::uint64_t i) {
      return i == final ? end : base + static_cast<double>(i) * stride;
    });
  }
  // In between all fit when both ends do; modulo 2^64 their sums are exact.
  encode(first, dtype);
  encode(last, dtype);
  const std::uint64_t by = PyLong_AsUnsignedLongLongMask(step.ptr());
  std::uint64_t next = PyLong_AsUnsignedLongLongMask(first.ptr());
  const std::size_t width = row.bits / 8;
  return made(std::move(wanted), false, [&](std::span<std::byte> out) {
    for (std::size_t at = 0; at < out.size(); at += width, next += by)
      for (std::size_t i = 0; i < width; ++i) out[at + i] = static_cast<std::byte>(next >> (8 * i));
  });
}

void refuse_bool(const char* call, const Request& wanted) {
  if (wanted.dtype == DType::bool_)
    fail(Exc::unsupported, std::string(call) + " does not make bool tensors");
}

[[noreturn]] void too_many(const char* call) {
  fail(PyExc_OverflowError, std::string(call) + ": the elements exceed 2**63 - 1");
}

nb::object arange(nb::handle start_or_stop, nb::handle stop_or_none, nb::handle step_or_none,
                  nb::handle dtype, nb::handle device) {
  constexpr const char* call = "hurray.arange()";
  const bool one = stop_or_none.is_none();
  Number start{nb::int_(0)};
  if (!one) start = number_argument(start_or_stop, "start");
  const Number stop = number_argument(one ? start_or_stop : stop_or_none, "stop");
  Number step{nb::int_(1)};
  if (!step_or_none.is_none()) step = number_argument(step_or_none, "step");
  const bool floats = start.is_float() || stop.is_float() || step.is_float();
  if (step.is_float() ? step.real == 0 : step.integer.equal(nb::int_(0)))
    fail(Exc::invalid_descriptor, std::string(call) + ": step must not be 0");
  const auto sized = [&](nb::handle count) {
    Request wanted =
        request(call, nb::make_tuple(count), dtype, device, floats ? DType::float64 : DType::int64);
    refuse_bool(call, wanted);
    return wanted;
  };
  sized(nb::int_(0));  // type and device first

  if (!floats) {
    const nb::object zero = nb::int_(0);
    nb::object count = -((start.integer - stop.integer).floor_div(step.integer));
    if (count < zero) count = zero;
    const nb::object last = start.integer + (count - nb::object(nb::int_(1))) * step.integer;
    return counted(call, sized(count), start.integer, step.integer, last);
  }
  const double from = to_double(start);
  const double to = to_double(stop);
  const double by = to_double(step);
  double steps = (to - from) / by;
  if (!std::isfinite(to - from)) steps = to / by - from / by;
  if (!(steps < 0x1p63)) too_many(call);
  const auto count = steps > 0 ? static_cast<std::uint64_t>(std::ceil(steps)) : 0;
  return computed(call, sized(nb::int_(count)),
                  [=](std::uint64_t i) { return from + static_cast<double>(i) * by; });
}

/// Evenly spaced numbers: element i of `count` is `at(i)`.
struct Line {
  double start;
  double stop;
  std::uint64_t intervals;  ///< elements to `stop`
  bool endpoint;

  double at(std::uint64_t i) const noexcept {
    if (i == 0) return start;
    if (endpoint && i == intervals) return stop;
    const auto index = static_cast<double>(i);
    const auto all = static_cast<double>(intervals);
    const double length = stop - start;
    if (!std::isfinite(length)) return start * (1 - index / all) + stop * (index / all);
    const double step = length / all;
    return step != 0 ? start + index * step : start + index / all * length;
  }
};

nb::object linspace(nb::handle start, nb::handle stop, nb::handle num, nb::handle dtype,
                    nb::handle device, bool endpoint) {
  constexpr const char* call = "hurray.linspace()";
  if (PyIndex_Check(num.ptr()) == 0)
    fail(PyExc_TypeError, "num must be an int, got " + python::type_name(num));
  Request wanted = request(call, nb::make_tuple(num), dtype, device, DType::float64);
  refuse_bool(call, wanted);
  const std::uint64_t count = wanted.shape[0];
  if (count >= std::uint64_t{1} << 63) too_many(call);
  const std::uint64_t intervals = endpoint && count > 1 ? count - 1 : count;
  const DTypeInfo& row = *info(wanted.dtype);

  if (row.kind == Kind::complex && (PyComplex_Check(start.ptr()) || PyComplex_Check(stop.ptr()))) {
    const auto part = [&](nb::handle number, const char* which, const char* argument) {
      return PyComplex_Check(number.ptr())
                 ? to_double(number_argument(number.attr(which), argument))
             : which[0] == 'i' ? 0.0
                               : to_double(number_argument(number, argument));
    };
    const Line real{part(start, "real", "start"), part(stop, "real", "stop"), intervals, endpoint};
    const Line imaginary{part(start, "imag", "start"), part(stop, "imag", "stop"), intervals,
                         endpoint};
    wanted.shape[0] = 2 * count;
    const DType whole = wanted.dtype;
    wanted.dtype = whole == DType::complex64 ? DType::float32 : DType::float64;
    const nb::object halves = computed(call, std::move(wanted), [&](std::uint64_t i) {
      return (i % 2 == 0 ? real : imaginary).at(i / 2);
    });
    const PyTensor& pairs = *unwrap_tensor(halves);
    return new_tensor(whole, Shape{count}, pairs.tensor.buffer(0), pairs.device);
  }

  const Number from = number_argument(start, "start");
  const Number to = number_argument(stop, "stop");
  const bool whole = row.kind == Kind::integer || row.kind == Kind::unsigned_integer;
  if (whole && count > 1 && !from.is_float() && !to.is_float()) {
    const nb::object length = to.integer - from.integer;
    const nb::object parts = nb::int_(intervals);
    const nb::object step = length.floor_div(parts);
    if (!(step * parts).equal(length))
      not_in_type(call, to_double(from) + to_double({length}) / static_cast<double>(intervals), 1,
                  wanted.dtype);
    const nb::object last = from.integer + step * nb::object(nb::int_(count - 1));
    return counted(call, std::move(wanted), from.integer, step, last);
  }
  if (whole && count == 1 && !from.is_float())
    return counted(call, std::move(wanted), from.integer, nb::int_(0), from.integer);
  const Line line{to_double(from), to_double(to), intervals, endpoint && count > 1};
  return computed(call, std::move(wanted), [=](std::uint64_t i) { return line.at(i); });
}

nb::object eye(nb::handle n_rows, nb::handle n_cols, nb::handle k, nb::handle dtype,
               nb::handle device) {
  constexpr const char* call = "hurray.eye()";
  Request wanted = request(call, nb::make_tuple(n_rows, n_cols.is_none() ? n_rows : n_cols), dtype,
                           device, DType::float64);
  if (PyIndex_Check(k.ptr()) == 0)
    fail(PyExc_TypeError, "k must be an int, got " + python::type_name(k));
  const nb::object index = nb::steal(PyNumber_Index(k.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long diagonal = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  const std::uint64_t rows = wanted.shape[0];
  const std::uint64_t columns = wanted.shape[1];
  std::uint64_t row = diagonal < 0 ? 0 - static_cast<std::uint64_t>(diagonal) : 0;
  std::uint64_t column = diagonal > 0 ? static_cast<std::uint64_t>(diagonal) : 0;
  if (overflow != 0) row = rows;  // beyond both ends
  const bool packed = wanted.dtype == DType::bool_;
  const Element one =
      encode(packed ? nb::object(nb::bool_(true)) : nb::object(nb::int_(1)), wanted.dtype);
  return made(std::move(wanted), true, [&](std::span<std::byte> out) {
    for (; row < rows && column < columns; ++row, ++column) {
      const auto at = static_cast<std::size_t>(row * columns + column);
      if (packed)
        out[at / 8] |= static_cast<std::byte>(1u << (at % 8));
      else
        std::memcpy(out.data() + at * one.size, one.bytes.data(), one.size);
    }
  });
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

  m.def(
      "zeros_like",
      [](nb::handle x, nb::handle dtype, nb::handle device) {
        const Like of = like("hurray.zeros_like()", x, dtype, device);
        return zeroed("hurray.zeros_like()", of.shape, of.dtype, of.device, min_buffer_alignment);
      },
      "x"_a.none(), nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def zeros_like(x: Tensor, *, dtype: Dtype | None = None, device: Device | None = "
              "None) -> Tensor"),
      "`zeros` with the shape of `x`, whatever its layout, and its type and device where these are "
      "not\ngiven.");
  m.def(
      "ones_like",
      [](nb::handle x, nb::handle dtype, nb::handle device) {
        const Like of = like("hurray.ones_like()", x, dtype, device);
        return filled("hurray.ones_like()", of.shape, {}, of.dtype, of.device, DType::float64);
      },
      "x"_a.none(), nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def ones_like(x: Tensor, *, dtype: Dtype | None = None, device: Device | None = "
              "None) -> Tensor"),
      "`ones` with the shape of `x`, whatever its layout, and its type and device where these are "
      "not\ngiven.");
  m.def(
      "empty_like",
      [](nb::handle x, nb::handle dtype, nb::handle device) {
        const Like of = like("hurray.empty_like()", x, dtype, device);
        return zeroed("hurray.empty_like()", of.shape, of.dtype, of.device, min_buffer_alignment);
      },
      "x"_a.none(), nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def empty_like(x: Tensor, *, dtype: Dtype | None = None, device: Device | None = "
              "None) -> Tensor"),
      "`empty` with the shape of `x`, whatever its layout, and its type and device where these are "
      "not\ngiven.");
  m.def(
      "full_like",
      [](nb::handle x, nb::handle value, nb::handle dtype, nb::handle device) {
        const Like of = like("hurray.full_like()", x, dtype, device);
        return filled("hurray.full_like()", of.shape, value, of.dtype, of.device, DType::float64);
      },
      "x"_a.none(), "fill_value"_a.none(), nb::kw_only(), "dtype"_a = nb::none(),
      "device"_a = nb::none(),
      nb::sig(
          "def full_like(x: Tensor, fill_value: complex, *, dtype: Dtype | None = None, device: "
          "Device | None = None) -> Tensor"),
      "`full` with the shape of `x`, whatever its layout, and its type and device where these are "
      "not\ngiven; the value must fit that type.");
  m.def("arange", &arange, "start"_a.none(), "stop"_a = nb::none(), "step"_a = nb::none(),
        nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
        nb::sig("def arange(start: float, stop: float | None = None, step: float | None = None, *, "
                "dtype: Dtype | None = None, device: Device | None = None) -> Tensor"),
        "The numbers from `start` to `stop`, without it, in steps of `step`; one argument is "
        "`stop`.\n"
        "Integers are exact. Default type: int64, float64 where an argument is a float. Raises\n"
        "`InvalidDescriptorError` for a step of 0, `OverflowError` for a value that the type does "
        "not hold,\n"
        "`UnsupportedError` for bool.");
  m.def("linspace", &linspace, "start"_a.none(), "stop"_a.none(), "num"_a.none(), nb::kw_only(),
        "dtype"_a = nb::none(), "device"_a = nb::none(), "endpoint"_a = true,
        nb::sig("def linspace(start: complex, stop: complex, num: int, *, dtype: Dtype | None = "
                "None, device: Device | None = None, endpoint: bool = True) -> Tensor"),
        "`num` evenly spaced numbers from `start` to `stop`, which is the last one with "
        "`endpoint`.\n"
        "Default type: float64. Raises `OverflowError` for a value that the type does not hold, "
        "such as 2.5\nin an integer type, and `UnsupportedError` for bool.");
  m.def(
      "eye", &eye, "n_rows"_a.none(), "n_cols"_a = nb::none(), nb::kw_only(), "k"_a = 0,
      "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def eye(n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: Dtype | None "
              "= None, device: Device | None = None) -> Tensor"),
      "Ones on diagonal `k` (0: the main one, positive above it), zeros elsewhere; `n_cols` "
      "defaults to\n`n_rows`. Default type: float64.");
}

}  // namespace hurray::python
