// The five quantization schemes, one class each, and decode_quantization.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "value_object.hpp"

namespace hurray::python {
namespace {

/// The Python class of one scheme; it adds no member to its base.
template <class T>
struct SchemeOf : PyQuantization {
  explicit SchemeOf(T scheme)
      : PyQuantization{Quantization{.scheme = std::move(scheme), .rest = {}}} {}
  const T& get() const noexcept { return *std::get_if<T>(&value.scheme); }
};

// ---- the constructor call of each scheme
// ----------------------------------------------------------

Call call_of(const PerTensorAffine& scheme) {
  // The shortest decimal of the float32, as Python writes it; of the float64 it would be longer.
  std::array<char, 32> digits{};
  std::to_chars(digits.data(), digits.data() + digits.size(), scheme.scale,
                std::chars_format::scientific);
  const nb::object shortest = nb::float_(nb::str(digits.data()));
  return {"PerTensorAffine",
          {{"scale", nb::float_(double{scheme.scale}), nb::repr(shortest).c_str()},
           {"zero_point", nb::int_(scheme.zero_point)}}};
}

Call affine_call(const char* name, std::uint32_t zero_point_buffer_index) {
  return {std::string(name) + (zero_point_buffer_index == no_buffer ? ".symmetric" : ".asymmetric"),
          {}};
}

Call call_of(const PerChannelAffine& scheme) {
  Call call = affine_call("PerChannelAffine", scheme.zero_point_buffer_index);
  call.arguments = {{"axis", nb::int_(scheme.axis)},
                    {"scale_buffer_index", nb::int_(scheme.scale_buffer_index)}};
  if (scheme.zero_point_buffer_index != no_buffer)
    call.arguments.push_back({"zero_point_buffer_index", nb::int_(scheme.zero_point_buffer_index)});
  return call;
}

Call call_of(const PerBlockAffine& scheme) {
  Call call = affine_call("PerBlockAffine", scheme.zero_point_buffer_index);
  call.arguments = {{"axis", nb::int_(scheme.axis)},
                    {"block_size", nb::int_(scheme.block_size)},
                    {"scale_buffer_index", nb::int_(scheme.scale_buffer_index)}};
  if (scheme.zero_point_buffer_index != no_buffer)
    call.arguments.push_back({"zero_point_buffer_index", nb::int_(scheme.zero_point_buffer_index)});
  call.arguments.push_back({"scale_type", dtype_object(scheme.scale_type)});
  return call;
}

template <class T>
Call blocks_call(const char* name, const T& scheme) {
  return {name,
          {{"axis", nb::int_(scheme.axis)},
           {"block_size", nb::int_(scheme.block_size)},
           {"scale_buffer_index", nb::int_(scheme.scale_buffer_index)}}};
}
Call call_of(const Nf4& scheme) { return blocks_call("NF4", scheme); }
Call call_of(const Mxfp& scheme) { return blocks_call("MXFP", scheme); }

}  // namespace

Call call_of(const PyQuantization& self) {
  return std::visit(
      []<class T>(const T& scheme) -> Call {
        if constexpr (std::is_same_v<T, OpaqueScheme>)
          fail(Exc::internal, "internal error: a scheme without a class");
        else
          return call_of(scheme);
      },
      self.value.scheme);
}

bool same(const PyQuantization& a, const PyQuantization& b) {
  return a.value.scheme == b.value.scheme;  // padding of the payload means nothing
}

namespace {

// ---- construction
// ---------------------------------------------------------------------------------

/// The scheme when its fields hold; `InvalidDescriptorError` otherwise.
template <class T>
SchemeOf<T> checked(T scheme) {
  SchemeOf<T> made(std::move(scheme));
  unwrap(validate(made.value));
  return made;
}

std::uint32_t index_argument(nb::handle value, const char* name) {
  return number_argument<std::uint32_t>(value, name);
}

/// Buffer of the zero points of an asymmetric scheme.
std::uint32_t zero_points_argument(nb::handle value) {
  const std::uint32_t index = index_argument(value, "zero_point_buffer_index");
  if (index == no_buffer)
    fail(
        Exc::invalid_descriptor,
        "zero_point_buffer_index 4294967295 stands for no zero points; use .symmetric to say that");
  return index;
}

DType scale_type_argument(nb::handle value) {
  const auto* dtype = value_of<PyDtype>(value);
  if (dtype == nullptr)
    fail(PyExc_TypeError, "scale_type must be a hurray.Dtype, got " + python::type_name(value));
  return dtype->tag;
}

float scale_argument(nb::handle value) {
  const double number = float_argument(value, "scale");
  const auto scale = static_cast<float>(number);
  if (std::isfinite(number) && number != 0 && (!std::isfinite(scale) || scale == 0))
    fail(Exc::invalid_descriptor, std::string("scale ") + nb::repr(nb::float_(number)).c_str() +
                                      " is " + (scale == 0 ? "0" : "infinite") +
                                      " as a float32; a scale is a finite number other than 0");
  return scale;
}

void construct_per_tensor(SchemeOf<PerTensorAffine>* self, nb::handle scale,
                          nb::handle zero_point) {
  const std::int64_t zero = signed_argument(zero_point, "zero_point");
  if (zero != static_cast<std::int32_t>(zero))
    fail(PyExc_OverflowError,
         "zero_point: " + std::to_string(zero) + " is outside the range of a 32-bit integer");
  new (self) SchemeOf<PerTensorAffine>(
      checked(PerTensorAffine{scale_argument(scale), static_cast<std::int32_t>(zero)}));
}

template <class T>
void construct_blocks(SchemeOf<T>* self, nb::handle axis, nb::handle block_size,
                      nb::handle scale_buffer_index) {
  new (self)
      SchemeOf<T>(checked(T{index_argument(axis, "axis"), index_argument(block_size, "block_size"),
                            index_argument(scale_buffer_index, "scale_buffer_index")}));
}

// ---- the classes
// ----------------------------------------------------------------------------------

template <class T>
using SchemeClass = nb::class_<SchemeOf<T>, PyQuantization>;

template <class T>
void def_axis_and_scales(SchemeClass<T>& type) {
  type.def_prop_ro(
          "axis", [](const SchemeOf<T>& self) { return self.get().axis; },
          "The quantized dimension.")
      .def_prop_ro(
          "scale_buffer_index",
          [](const SchemeOf<T>& self) { return self.get().scale_buffer_index; },
          "Which of the tensor's buffers holds the scales.");
}

template <class T>
void def_block_size(SchemeClass<T>& type) {
  type.def_prop_ro(
      "block_size", [](const SchemeOf<T>& self) { return self.get().block_size; },
      "Logical elements along `axis` that share a scale.");
}

template <class T>
void def_zero_points(SchemeClass<T>& type) {
  type.def_prop_ro(
      "zero_point_buffer_index",
      [](const SchemeOf<T>& self) -> nb::object {
        const std::uint32_t index = self.get().zero_point_buffer_index;
        return index == no_buffer ? nb::none() : nb::object(nb::int_(index));
      },
      nb::sig("def zero_point_buffer_index(self) -> int | None"),
      "Which of the tensor's buffers holds the zero points; `None` when symmetric.");
}

template <class T>
void bind_blocks(nb::module_& m, const char* name, const char* doc) {
  using namespace nb::literals;
  SchemeClass<T> type(m, name, nb::is_final(), doc);
  type.def("__init__", &construct_blocks<T>, "axis"_a, "block_size"_a, "scale_buffer_index"_a,
           nb::sig("def __init__(self, axis: int, block_size: int, scale_buffer_index: int) -> "
                   "None"));
  def_axis_and_scales(type);
  def_block_size(type);
}

nb::object wrap(const Quantization& quantization) {
  return std::visit(
      [&]<class T>(const T& scheme) -> nb::object {
        if constexpr (std::is_same_v<T, OpaqueScheme>)
          return nb::none();
        else {
          SchemeOf<T> wrapped(scheme);
          wrapped.value.rest = quantization.rest;
          return nb::cast(std::move(wrapped));
        }
      },
      quantization.scheme);
}

nb::object decode(nb::handle data) {
  const BytesView view(data, "data");
  std::span<const std::byte> payload = view.bytes();
  // Bytes after the payload are ignored.
  if (!payload.empty())
    if (const SchemeInfo* row = info(static_cast<SchemeTag>(payload[0])))
      payload = payload.first(std::min<std::size_t>(payload.size(), row->payload_bytes));
  return wrap(unwrap(decode_quantization(payload)));
}

nb::bytes encode(const PyQuantization& self) {
  const auto payload =
      unwrap(hurray::encode(Quantization{.scheme = self.value.scheme, .rest = {}}));
  return nb::bytes(payload.data(), payload.size());
}

/// The names of the scheme classes.
std::string class_names() {
  std::string names;
  const auto add = [&]<class T>(const T&) {
    if constexpr (!std::is_same_v<T, OpaqueScheme>)
      names.append(names.empty() ? "" : ", ")
          .append(nb::cast<std::string>(nb::type<SchemeOf<T>>().attr("__name__")));
  };
  const auto each = [&]<class... T>(const std::variant<T...>*) { (add(T{}), ...); };
  each(static_cast<const Scheme*>(nullptr));
  return names;
}

}  // namespace

nb::object wrap_quantization(const Descriptor& descriptor) {
  const Quantization* quantization = descriptor.quantization();
  return quantization == nullptr ? nb::none() : wrap(*quantization);
}

const Quantization& quantization_argument(nb::handle value) {
  const auto* scheme = value_of<PyQuantization>(value);
  if (scheme == nullptr)
    fail(Exc::invalid_descriptor, "expected a quantization descriptor (" + class_names() +
                                      "), got " + python::type_name(value));
  return scheme->value;
}

void bind_quantization(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyQuantization> base(
      m, "_Quantization", nb::is_weak_referenceable(), nb::type_slots(value_slots<PyQuantization>),
      "How stored codes become real numbers: an immutable value that describes parameters which "
      "exist\n"
      "already.");
  base.def("encode", &encode, nb::sig("def encode(self) -> bytes"),
           "The payload of a quantization section, from the scheme's tag on.");
  def_value(base, "_Quantization");

  SchemeClass<PerTensorAffine>(
      m, "PerTensorAffine", nb::is_final(), nb::type_slots(unhashable_slots<PyQuantization>),
      "`x = scale * (q - zero_point)` for the whole tensor. Raises `InvalidDescriptorError` for a "
      "scale that\n"
      "is 0, infinite or NaN as a float32.")
      .def("__init__", &construct_per_tensor, "scale"_a, "zero_point"_a,
           nb::sig("def __init__(self, scale: float, zero_point: int) -> None"))
      .def_prop_ro(
          "scale", [](const SchemeOf<PerTensorAffine>& self) { return double{self.get().scale}; },
          "The float32 value.")
      .def_prop_ro(
          "zero_point", [](const SchemeOf<PerTensorAffine>& self) { return self.get().zero_point; },
          "The stored value that stands for 0.");

  SchemeClass<PerChannelAffine> channels(
      m, "PerChannelAffine", nb::is_final(),
      "`x = scale[c] * (q - zero_point[c])`, c being the index along `axis`. Made by `symmetric` "
      "and\n"
      "`asymmetric`. Buffers are named by their index in the tensor; scales are float32, zero "
      "points int32.");
  channels
      .def_static(
          "symmetric",
          [](nb::handle axis, nb::handle scales) {
            return checked(PerChannelAffine{index_argument(axis, "axis"),
                                            index_argument(scales, "scale_buffer_index")});
          },
          "axis"_a, "scale_buffer_index"_a,
          nb::sig("def symmetric(axis: int, scale_buffer_index: int) -> PerChannelAffine"),
          "Without zero points.")
      .def_static(
          "asymmetric",
          [](nb::handle axis, nb::handle scales, nb::handle zero_points) {
            return checked(PerChannelAffine{index_argument(axis, "axis"),
                                            index_argument(scales, "scale_buffer_index"),
                                            zero_points_argument(zero_points)});
          },
          "axis"_a, "scale_buffer_index"_a, "zero_point_buffer_index"_a,
          nb::sig("def asymmetric(axis: int, scale_buffer_index: int, zero_point_buffer_index: "
                  "int) -> PerChannelAffine"),
          "With zero points. Equal indices mean one buffer: scales, then zero points.");
  def_axis_and_scales(channels);
  def_zero_points(channels);

  SchemeClass<PerBlockAffine> blocks(
      m, "PerBlockAffine", nb::is_final(),
      "`x = scale[b] * (q - zero_point[b])`, b being the block of `block_size` elements along "
      "`axis`, a\n"
      "power of two from 2 up. Made by `symmetric` and `asymmetric`. Scales are float16, bfloat16 "
      "or\n"
      "float32, zero points int32.");
  blocks
      .def_static(
          "symmetric",
          [](nb::handle axis, nb::handle block_size, nb::handle scales, nb::handle scale_type) {
            return checked(
                PerBlockAffine{.axis = index_argument(axis, "axis"),
                               .block_size = index_argument(block_size, "block_size"),
                               .scale_buffer_index = index_argument(scales, "scale_buffer_index"),
                               .scale_type = scale_type_argument(scale_type)});
          },
          "axis"_a, "block_size"_a, "scale_buffer_index"_a, "scale_type"_a.none(),
          nb::sig("def symmetric(axis: int, block_size: int, scale_buffer_index: int, scale_type: "
                  "Dtype) -> PerBlockAffine"),
          "Without zero points.")
      .def_static(
          "asymmetric",
          [](nb::handle axis, nb::handle block_size, nb::handle scales, nb::handle zero_points,
             nb::handle scale_type) {
            return checked(
                PerBlockAffine{.axis = index_argument(axis, "axis"),
                               .block_size = index_argument(block_size, "block_size"),
                               .scale_buffer_index = index_argument(scales, "scale_buffer_index"),
                               .zero_point_buffer_index = zero_points_argument(zero_points),
                               .scale_type = scale_type_argument(scale_type)});
          },
          "axis"_a, "block_size"_a, "scale_buffer_index"_a, "zero_point_buffer_index"_a,
          "scale_type"_a.none(),
          nb::sig("def asymmetric(axis: int, block_size: int, scale_buffer_index: int, "
                  "zero_point_buffer_index: int, scale_type: Dtype) -> PerBlockAffine"),
          "With zero points. Equal indices mean one buffer: scales, then zero points.");
  def_axis_and_scales(blocks);
  def_block_size(blocks);
  def_zero_points(blocks);
  blocks.def_prop_ro(
      "scale_type",
      [](const SchemeOf<PerBlockAffine>& self) { return dtype_object(self.get().scale_type); },
      nb::sig("def scale_type(self) -> Dtype"), "Element type of the scales.");

  bind_blocks<Nf4>(m, "NF4",
                   "`x = scale[b] * nf4[q]` over uint4 codes: 16 fixed levels, one float32 scale "
                   "for each block of\n"
                   "`block_size` elements along `axis`, a power of two from 8 up.");
  bind_blocks<Mxfp>(m, "MXFP",
                    "Microscaling: one power of two (float8_e8m0) for each block of `block_size` "
                    "elements along\n"
                    "`axis`, a power of two from 16 to 2048.");

  m.def("decode_quantization", &decode, "data"_a,
        nb::sig("def decode_quantization(data: typing.Any) -> PerTensorAffine | PerChannelAffine | "
                "PerBlockAffine | NF4 | MXFP"),
        "The scheme of a payload that `encode` made; bytes after it are ignored. Raises\n"
        "`InvalidDescriptorError` for too few bytes and for the tag of another scheme.");
}

}  // namespace hurray::python
