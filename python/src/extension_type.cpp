// ExtensionType: what a private element type is made of.

#include "value_object.hpp"

namespace hurray::python {
namespace {

void construct(PyExtensionType* self, nb::handle bit_width, nb::handle is_float,
               nb::handle is_signed, nb::handle sign_bits, nb::handle exponent_bits,
               nb::handle mantissa_bits, nb::handle exponent_bias, nb::handle has_nan,
               nb::handle has_inf) {
  const auto width = number_argument<std::uint32_t>(bit_width, "bit_width");
  const ExtensionType type{
      .bit_width = width,
      .packing_factor = ExtensionType::packing_factor_of(width),
      .is_float = bool_argument(is_float, "is_float"),
      .is_signed = bool_argument(is_signed, "is_signed"),
      .sign_bits = number_argument<std::uint8_t>(sign_bits, "sign_bits"),
      .exponent_bits = number_argument<std::uint8_t>(exponent_bits, "exponent_bits"),
      .mantissa_bits = number_argument<std::uint8_t>(mantissa_bits, "mantissa_bits"),
      .has_nan = bool_argument(has_nan, "has_nan"),
      .has_inf = bool_argument(has_inf, "has_inf"),
      .exponent_bias = number_argument<std::uint32_t>(exponent_bias, "exponent_bias")};
  Sizer io;
  ExtensionType::fields(type, io);
  if (!io.ok()) {
    Error error = io.error();
    error.offset = Error::no_offset;
    throw_error(error);
  }
  new (self) PyExtensionType{type};
}

nb::int_ buffer_size_bytes(const PyExtensionType& self, nb::handle element_count) {
  const auto count = number_argument<std::uint64_t>(element_count, "element_count");
  const auto bytes = packed_bytes(self.value.bit_width, count);
  if (!bytes) fail(PyExc_OverflowError, "the size of the elements exceeds 2**64 - 1 bytes");
  return nb::int_(*bytes);
}

}  // namespace

Call call_of(const PyExtensionType& self) {
  const ExtensionType& type = self.value;
  Call call{"ExtensionType", {{"bit_width", nb::int_(type.bit_width)}}};
  const auto yes = [&](const char* name, std::uint8_t value) {
    if (value != 0) call.arguments.push_back({name, nb::bool_(true)});
  };
  const auto number = [&](const char* name, std::uint32_t value) {
    if (value != 0) call.arguments.push_back({name, nb::int_(value)});
  };
  yes("is_float", type.is_float);
  yes("is_signed", type.is_signed);
  number("sign_bits", type.sign_bits);
  number("exponent_bits", type.exponent_bits);
  number("mantissa_bits", type.mantissa_bits);
  number("exponent_bias", type.exponent_bias);
  yes("has_nan", type.has_nan);
  yes("has_inf", type.has_inf);
  return call;
}

nb::object wrap_extension_type(const Descriptor& descriptor) {
  const ExtensionType* type = descriptor.extension_type();
  return type == nullptr ? nb::none() : nb::cast(PyExtensionType{*type});
}

void bind_extension_type(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyExtensionType> type(
      m, "ExtensionType", nb::is_final(), nb::is_weak_referenceable(),
      nb::type_slots(value_slots<PyExtensionType>),
      "What a private element type is made of: an immutable value, compared by value. `bit_width` "
      "is 1, 2, 4\n"
      "or a multiple of 8. A float's sign is `sign_bits` (0 or 1); `is_signed` belongs to "
      "integers, which\n"
      "set no field of floats. The bits of a float need not add up to `bit_width`. Raises\n"
      "`InvalidDescriptorError` naming the field.");
  type.def("__init__", &construct, "bit_width"_a, nb::kw_only(), "is_float"_a = false,
           "is_signed"_a = false, "sign_bits"_a = 0, "exponent_bits"_a = 0, "mantissa_bits"_a = 0,
           "exponent_bias"_a = 0, "has_nan"_a = false, "has_inf"_a = false,
           nb::sig("def __init__(self, bit_width: int, *, is_float: bool = False, is_signed: bool "
                   "= False, sign_bits: int = 0, exponent_bits: int = 0, mantissa_bits: int = 0, "
                   "exponent_bias: int = 0, has_nan: bool = False, has_inf: bool = False) -> None"))
      .def_prop_ro(
          "bit_width", [](const PyExtensionType& self) { return self.value.bit_width; },
          "Stored bits of one element.")
      .def_prop_ro(
          "packing_factor",
          [](const PyExtensionType& self) { return unsigned{self.value.packing_factor}; },
          "Elements per byte: 8, 4, 2 for 1, 2, 4 bits, else 1.")
      .def_prop_ro(
          "is_float", [](const PyExtensionType& self) { return self.value.is_float != 0; },
          "Floating point; an integer otherwise.")
      .def_prop_ro(
          "is_signed", [](const PyExtensionType& self) { return self.value.is_signed != 0; },
          "An integer in two's complement.")
      .def_prop_ro(
          "sign_bits", [](const PyExtensionType& self) { return unsigned{self.value.sign_bits}; },
          "Sign bits of a float, 0 or 1.")
      .def_prop_ro(
          "exponent_bits",
          [](const PyExtensionType& self) { return unsigned{self.value.exponent_bits}; },
          "Exponent bits of a float.")
      .def_prop_ro(
          "mantissa_bits",
          [](const PyExtensionType& self) { return unsigned{self.value.mantissa_bits}; },
          "Mantissa bits of a float, without the implied one.")
      .def_prop_ro(
          "exponent_bias", [](const PyExtensionType& self) { return self.value.exponent_bias; },
          "Bias of a float's exponent.")
      .def_prop_ro(
          "has_nan", [](const PyExtensionType& self) { return self.value.has_nan != 0; },
          "Some codes of the float are NaN.")
      .def_prop_ro(
          "has_inf", [](const PyExtensionType& self) { return self.value.has_inf != 0; },
          "Some codes of the float are infinite.")
      .def("buffer_size_bytes", &buffer_size_bytes, "element_count"_a,
           nb::sig("def buffer_size_bytes(self, element_count: int) -> int"),
           "Bytes that so many packed elements occupy. Raises `OverflowError` beyond 2**64 - 1.");
  def_value(type, "ExtensionType");
}

}  // namespace hurray::python
