#include <cstdint>

#include "exports.hpp"

namespace hurray::python {
namespace {

[[noreturn]] void refuse_torch(nb::handle tensor, const std::string& kind) {
  fail(Exc::unsupported, "a " + python::type_name(tensor) + " " + kind +
                             " has no plain memory of its own; make a plain tensor of it first"
                             " (full_tensor(), to_local(), dequantize(), to_dense() or the like)");
}

/// Tensors that wrap others, whose own memory is not their value: they intercept every operation.
bool wraps_others(nb::handle tensor, const nb::object& torch) {
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr())));
  const nb::object functorch = nb::getattr(torch.attr("_C"), "_functorch", nb::none());
  const nb::object is_wrapped =
      functorch.is_none() ? nb::none()
                          : nb::getattr(functorch, "is_functorch_wrapped_tensor", nb::none());
  if (!is_wrapped.is_none() && nb::cast<bool>(is_wrapped(tensor))) return true;
  if (type.is(torch.attr("Tensor"))) return false;
  const auto module = nb::cast<std::string>(type.attr("__module__"));
  if (module.starts_with("bitsandbytes")) return true;
  const nb::object own = nb::getattr(type, "__torch_dispatch__", nb::none());
  const nb::object plain = nb::getattr(torch.attr("Tensor"), "__torch_dispatch__", nb::none());
  return !own.is_none() && !own.equal(plain);
}

bool any_negative(const Shape& shape, const Strides& strides) noexcept {
  for (std::size_t k = 0; k < shape.rank(); ++k)
    if (strides[k] < 0 && shape[k] > 1) return true;
  return false;
}

}  // namespace

bool is_torch_tensor(nb::handle object) {
  const nb::object torch = imported("torch");
  if (!torch.is_valid()) return false;
  const nb::object type = nb::getattr(torch, "Tensor", nb::none());
  return !type.is_none() && nb::isinstance(object, type);
}

nb::object plain_torch_tensor(nb::handle object, Copy copy) {
  const nb::object torch = imported("torch");
  if (wraps_others(object, torch)) refuse_torch(object, "that wraps other tensors");
  nb::object tensor = nb::borrow(object);
  const auto is = [&](const char* property) { return nb::cast<bool>(tensor.attr(property)); };
  if (is("is_meta")) refuse_torch(object, "on the meta device");
  if (is("is_nested")) refuse_torch(object, "that is nested");
  if (is("is_quantized")) refuse_torch(object, "that is quantized");
  const nb::object layout = tensor.attr("layout");
  if (!layout.is(torch.attr("strided")))
    refuse_torch(object, std::string("with layout ") + nb::str(layout).c_str());
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

nb::object to_torch(nb::handle self, const PyTensor& t, Copy copy, nb::handle device) {
  const nb::module_ torch = import_optional("torch", "torch");
  require_elements(t, Way::dlpack);
  const Descriptor& d = t.descriptor();
  nb::object source = nb::borrow(self);
  const bool truth = d.dtype == DType::bool_ && copy == Copy::always;
  if (truth) {
    source = unpack_tensor(t);
    if (std::holds_alternative<Strided>(d.layout)) source = copy_tensor(*unwrap_tensor(source));
  } else if (!is_sub_byte(d.dtype)) {
    const Elements view = elements(t);
    const DTypeInfo& row = *info(d.dtype);
    const char* why = nullptr;
    if (t.tensor.readonly())
      why = "the tensor is read-only, which PyTorch cannot honour";
    else if (any_negative(d.shape, view.strides))
      why = "PyTorch has no negative strides";
    else if (t.tensor.memory_device() == Device::cpu && !d.shape.is_empty() &&
             reinterpret_cast<std::uintptr_t>(view.address) % row.alignment != 0)
      why = "the elements do not lie on multiples of their size";
    if (why != nullptr && copy == Copy::never)
      fail(Exc::copy_required_buffer,
           std::string("copy=False: ") + why + "; allow a copy (copy=None or True)");
    if (why != nullptr || copy == Copy::always) source = copy_tensor(t);
  }
  nb::object result;
  try {
    result = torch.attr("from_dlpack")(source);
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_BufferError) || !error.matches(PyExc_Exception) ||
        error.matches(PyExc_MemoryError))
      throw;
    nb::raise_from(error, exception_class(Exc::unsupported_buffer),
                   "PyTorch cannot take a tensor of %s and this layout", name(d.dtype).data());
  }
  if (truth) result = result.attr("view")(torch.attr("bool"));
  return device.is_none() ? result : nb::object(result.attr("to")(device));
}

}  // namespace hurray::python
