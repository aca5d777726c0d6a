#include <cstdint>

#include "dlpack.hpp"
#include "exports.hpp"

namespace hurray::python {
namespace {

[[noreturn]] void refuse_torch(nb::handle tensor, const std::string& why) {
  fail(Exc::unsupported, "a " + python::type_name(tensor) + " " + why);
}

/// Tensors that stand for several, or record what is done, inside a transformation.
void refuse_transformed(nb::handle tensor, const nb::object& torch) {
  const nb::object functorch = nb::getattr(torch.attr("_C"), "_functorch", nb::none());
  const auto is = [&](const char* question) {
    const nb::object ask =
        functorch.is_none() ? nb::none() : nb::getattr(functorch, question, nb::none());
    return !ask.is_none() && nb::cast<bool>(ask(tensor));
  };
  if (!is("is_functorch_wrapped_tensor")) return;
  refuse_torch(tensor, is("is_batchedtensor")
                           ? "inside torch.func.vmap stands for a whole batch and has no memory of "
                             "its own; call this outside of vmap"
                           : "inside a torch.func transformation has no memory of its own; call "
                             "this outside of it");
}

/// Tensors that wrap others, whose own memory is not their value: they intercept every operation.
bool wraps_others(nb::handle tensor, const nb::object& torch) {
  const nb::object type = nb::borrow(tensor.type());
  if (type.is(torch.attr("Tensor"))) return false;
  const auto module = nb::cast<std::string>(type.attr("__module__"));
  if (module.starts_with("bitsandbytes")) return true;
  const nb::object own = nb::getattr(type, "__torch_dispatch__", nb::none());
  const nb::object plain = nb::getattr(torch.attr("Tensor"), "__torch_dispatch__", nb::none());
  return !own.is_none() && !own.equal(plain);
}

[[noreturn]] void refuse_wrapper(nb::handle tensor) {
  const nb::handle type = tensor.type();
  if (nb::cast<std::string>(type.attr("__module__")) == "torch._subclasses.fake_tensor")
    refuse_torch(tensor, "has no memory and no values, only a shape; pass a real tensor");
  refuse_torch(tensor,
               std::string("wraps other tensors and has no plain memory of its own; take ") +
                   (nb::hasattr(type, "full_tensor")
                        ? "x.full_tensor(), or x.to_local() for the part held here"
                        : "what it wraps, or x.dequantize() where it is quantized"));
}

/// PyTorch stores these a byte each, gives no values for them, and calls them int8 in DLPack.
bool is_bits_only(std::string_view dtype) {
  constexpr std::string_view package = "torch.";
  if (dtype.starts_with(package)) dtype.remove_prefix(package.size());
  if (dtype.starts_with("bit")) return true;
  if (dtype.starts_with('u')) dtype.remove_prefix(1);
  return dtype.size() == 4 && dtype.starts_with("int") && dtype[3] >= '1' && dtype[3] <= '7';
}

bool any_negative(const Shape& shape, const Strides& strides) noexcept {
  for (std::size_t k = 0; k < shape.rank(); ++k)
    if (strides[k] < 0 && shape[k] > 1) return true;
  return false;
}

nb::object plain(nb::handle object, Copy copy) {
  const nb::object torch = imported("torch");
  refuse_transformed(object, torch);
  nb::object tensor = nb::borrow(object);
  const auto is = [&](const char* property) { return nb::cast<bool>(tensor.attr(property)); };
  if (is("is_nested"))
    refuse_torch(object,
                 "that is nested is several tensors of different sizes; take them one by "
                 "one (x.unbind()), or padded (torch.nested.to_padded_tensor)");
  if (wraps_others(object, torch)) refuse_wrapper(object);
  const nb::object lazy =
      nb::getattr(torch.attr("nn").attr("parameter"), "UninitializedTensorMixin", nb::none());
  if (!lazy.is_none() && nb::isinstance(object, lazy))
    refuse_torch(object, "has no shape and no values before its module has run once");
  if (is("is_meta"))
    refuse_torch(object, "on the meta device has no memory and no values; pass a real tensor");
  if (is("is_quantized"))
    refuse_torch(object,
                 "that is quantized has no counterpart here; take its values "
                 "(x.dequantize()) or its codes (x.int_repr())");
  const nb::object layout = tensor.attr("layout");
  if (!layout.is(torch.attr("strided")))
    refuse_torch(object, std::string("with layout ") + nb::str(layout).c_str() +
                             " is not dense; take x.to_dense()");
  const nb::object type = tensor.attr("dtype");
  const std::string dtype = nb::str(type).c_str();
  if (is_bits_only(dtype))
    refuse_torch(object, "of " + dtype +
                             " has no counterpart here, as PyTorch gives these elements no values; "
                             "take its bytes (x.view(torch.uint8))");
  tensor = tensor.attr("as_subclass")(torch.attr("Tensor"));
  if (is("requires_grad")) tensor = tensor.attr("detach")();
  const auto pending = [&](const char* question, const char* resolve, const char* what) {
    if (!nb::cast<bool>(tensor.attr(question)())) return;
    if (copy == Copy::never)
      fail(Exc::copy_required, std::string("copy=False: the tensor has a pending ") + what +
                                   ", and carrying it out is a copy (copy=None)");
    tensor = tensor.attr(resolve)();
  };
  pending("is_conj", "resolve_conj", "conjugation");
  pending("is_neg", "resolve_neg", "negation");
  return tensor;
}

}  // namespace

bool is_torch_tensor(nb::handle object) { return source_class(Py_TYPE(object.ptr())).torch; }

bool has_plain_values(nb::handle object, const dlpack::Tensor& tensor) {
  constexpr std::uint8_t unsigned_integer = 1;
  constexpr std::uint8_t complex = 5;
  const auto is = [&](const char* question) { return nb::cast<bool>(object.attr(question)()); };
  if (tensor.dtype.code == complex && is("is_conj")) return false;
  if (is("is_neg")) return false;
  if (tensor.dtype.bits != 8 || tensor.dtype.code > unsigned_integer) return true;
  const nb::object dtype = object.attr("dtype");
  return !is_bits_only(nb::str(dtype).c_str());
}

nb::object plain_torch_tensor(nb::handle object, Copy copy) {
  return foreign(object, "own code", [&] { return plain(object, copy); });
}

nb::object to_torch(nb::handle self, const PyTensor& t, Copy copy, nb::handle device) {
  nb::object torch = imported("torch");
  if (!torch.is_valid()) torch = import_optional("torch", "torch");
  require_elements(t, Way::dlpack);
  const Descriptor& d = t.descriptor();
  nb::object source = nb::borrow(self);
  const bool truth = d.dtype == DType::bool_ && copy == Copy::always;
  if (truth) {
    source = unpack_tensor(t);
    if (std::holds_alternative<Strided>(d.layout)) source = copy_tensor(*unwrap_tensor(source));
  } else if (!is_sub_byte(d.dtype)) {
    const Elements view = elements(t);
    const char* why = nullptr;
    if (t.tensor.readonly())
      why = "the tensor is read-only, which PyTorch cannot honour";
    else if (any_negative(d.shape, view.strides))
      why = "PyTorch has no negative strides";
    else if (t.tensor.memory_device() == Device::cpu && !d.shape.is_empty() &&
             reinterpret_cast<std::uintptr_t>(view.address) % info(d.dtype)->alignment != 0)
      why = "the elements do not lie on multiples of their size";
    if (why != nullptr && copy == Copy::never)
      fail(Exc::copy_required_buffer,
           std::string("copy=False: ") + why + "; allow a copy (copy=None or True)");
    if (why != nullptr || copy == Copy::always) source = copy_elements(t);
  }
  // PyTorch asks objects for an older version, which has no 8-bit floats; the rest goes
  // unversioned, as older releases take nothing else.
  const DTypeInfo* row = info(d.dtype);
  const bool newer = row != nullptr && row->bits <= 8 &&
                     (row->kind == Kind::floating || row->kind == Kind::exponent);
  const nb::object version = newer ? nb::object(nb::make_tuple(1, 1)) : nb::none();
  const nb::object capsule = to_dlpack(source, *unwrap_tensor(source), {.max_version = version});
  nb::object result;
  try {
    result = torch.attr("from_dlpack")(capsule);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    nb::raise_from(error, exception_class(Exc::unsupported_buffer),
                   "PyTorch cannot take a tensor of %s and this layout", name(d.dtype).data());
  }
  if (truth) result = result.attr("view")(torch.attr("bool"));
  return device.is_none() ? result : nb::object(result.attr("to")(device));
}

}  // namespace hurray::python
