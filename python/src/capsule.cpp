// The native capsule (07-c-abi.md section 9).

#include <cstring>

#include "exports.hpp"
#include "hurray/c/pair.hpp"

namespace hurray::python {
namespace {

constexpr const char* fresh_name = "hurray_tensor";
constexpr const char* used_name = "used_hurray_tensor";

/// Ends both handles, each by the library that it is from. From any thread.
void end(c::HandedOver pair) noexcept {
  hurray_buffer_list_destroy(&pair.list);
  hurray_tensor_context_destroy(&pair.context);
}

// ---- giving
// ---------------------------------------------------------------------------------------

/// A context's owner is the Python object of the tensor.
void release_tensor(void* tensor) noexcept { drop_reference(static_cast<PyObject*>(tensor)); }

void destroy_unread(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, fresh_name) == 0) return;  // somebody took it
  const nb::error_scope scope;
  end({static_cast<HurrayBufferList*>(PyCapsule_GetPointer(capsule, fresh_name)),
       static_cast<HurrayTensorContext*>(PyCapsule_GetContext(capsule))});
}

nb::object to_capsule(const nb::object& self, const PyTensor& t) {
  const BufferTable& table = t.descriptor().buffers;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (!table[i].is_empty() && table[i].alignment < min_buffer_alignment)
      fail(Exc::buffer, "buffer " + std::to_string(i) + " is only " +
                            std::to_string(table[i].alignment) +
                            "-byte aligned and a handle needs 64; __hurray__(copy=True) hands over "
                            "an aligned copy");
  // Whoever has a pointer may write through it where the mode lets writes be (Y45).
  if (!t.tensor.readonly()) open_for_writing(t, Way::array);

  const c::HandedOver pair = unwrap(c::hand_over(t.tensor, {self.ptr(), release_tensor}));
  Py_INCREF(self.ptr());
  nb::object capsule = nb::steal(PyCapsule_New(pair.list, fresh_name, destroy_unread));
  if (!capsule.is_valid()) {
    end(pair);
    nb::raise_python_error();
  }
  PyCapsule_SetContext(capsule.ptr(), pair.context);
  return capsule;
}

// ---- taking
// ---------------------------------------------------------------------------------------

/// A consumed pair, for as long as somebody uses its memory.
class PairOwner final : public Owner {
 public:
  ~PairOwner() override { end(pair_); }
  void take(c::HandedOver pair) noexcept { pair_ = pair; }

 private:
  c::HandedOver pair_;
};

/// What the functions of the C interface refused, with their words.
[[noreturn]] void refuse_pair(HurrayStatus status) {
  const std::string words = std::string("capsule: ") + hurray_last_error();
  switch (status) {
    case HURRAY_ERR_FOREIGN_HANDLE:
    case HURRAY_ERR_UNSUPPORTED:
      fail(Exc::unsupported, words);
    case HURRAY_ERR_NULL_POINTER:
    case HURRAY_ERR_INTERNAL:
      fail(Exc::buffer, words);
    case HURRAY_ERR_INTERNAL_PANIC:
      fail(Exc::internal, "internal error: " + words);
    case HURRAY_ERR_OUT_OF_MEMORY:
      fail(PyExc_MemoryError, words);
    default:
      fail(Exc::invalid_descriptor, words);
  }
}

[[noreturn]] void refuse_name(const char* name) {
  if (name != nullptr && std::strcmp(name, used_name) == 0)
    fail(Exc::buffer,
         "the capsule has already been consumed; call __hurray__() again for a fresh one");
  fail(Exc::buffer, std::string("expected a capsule named ") + fresh_name + ", found " +
                        (name != nullptr ? "one named " + std::string(name) : "an unnamed one"));
}

/// The tensor of a capsule, which is renamed when nothing can fail any more and left as it is when
/// something does.
hurray::Tensor consumed(nb::handle capsule) {
  const auto owner = std::make_shared<PairOwner>();  // ends unused handles after the guard
  const nb::ft_object_guard guard(capsule);
  if (PyCapsule_IsValid(capsule.ptr(), fresh_name) == 0)
    refuse_name(PyCapsule_GetName(capsule.ptr()));
  const c::HandedOver pair{
      static_cast<HurrayBufferList*>(PyCapsule_GetPointer(capsule.ptr(), fresh_name)),
      static_cast<HurrayTensorContext*>(PyCapsule_GetContext(capsule.ptr()))};
  if (pair.context == nullptr) {
    PyErr_Clear();
    fail(Exc::buffer, "the capsule's context is null; it must be a HurrayTensorContext");
  }
  HurrayStatus status = c::recognize(pair.list, pair.context);
  if (status != HURRAY_OK) refuse_pair(status);
  auto tensor = c::tensor_of(pair.list, pair.context, {owner, Provenance::outside}, status);
  if (!tensor) refuse_pair(status);
  if (std::holds_alternative<CompositeHead>(tensor->descriptor().layout))
    fail(Exc::unsupported,
         "the capsule holds the head of a composite, whose members no capsule can carry; hand it "
         "over as a file or stream");
  // Whatever the foreign functions did meanwhile: there is one consumer.
  if (PyCapsule_IsValid(capsule.ptr(), fresh_name) == 0)
    refuse_name(PyCapsule_GetName(capsule.ptr()));
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) nb::raise_python_error();
  owner->take(pair);
  return *std::move(tensor);
}

}  // namespace

bool has_hurray(nb::handle object) {
  // A class object has the attribute as well and is no tensor.
  return PyType_Check(object.ptr()) == 0 && foreign_attribute(object, "__hurray__").is_valid();
}

nb::object tensor_from_hurray(nb::handle object) {
  if (const PyTensor* t = unwrap_tensor(object))
    return wrap_tensor(consumed(to_capsule(nb::borrow(object), *t)), t->device);
  const nb::object method =
      PyType_Check(object.ptr()) == 0 ? foreign_attribute(object, "__hurray__") : nb::object();
  if (!method.is_valid())
    fail(PyExc_TypeError,
         "expected an object with __hurray__, got " + python::type_name(object) +
             (PyCapsule_CheckExact(object.ptr()) != 0 ? "; pass the object whose capsule it is"
                                                      : ""));
  const nb::object capsule = method();
  if (PyCapsule_CheckExact(capsule.ptr()) == 0)
    fail(Exc::buffer, "__hurray__ of a " + python::type_name(object) + " returned a " +
                          python::type_name(capsule) + ", not a capsule named " + fresh_name);
  return wrap_tensor(consumed(capsule));
}

void bind_capsule(nb::module_& m) {
  m.def("from_hurray", tensor_from_hurray, nb::arg("obj").none(),
        nb::sig("def from_hurray(obj: typing.Any) -> Tensor"),
        "The tensor that `obj.__hurray__()` hands over: its memory is shared and kept alive, its "
        "descriptor\n"
        "checked against the buffers, its alignment measured. A `Tensor` passes its `Device` on; "
        "from\n"
        "elsewhere `device_id` is 0, and the memory is read-only.\n\n"
        "Raises TypeError without `__hurray__`; BufferError for a capsule that is null, malformed "
        "or has\n"
        "been consumed; UnsupportedError for another ABI version and for handles that do not "
        "explain\n"
        "themselves; InvalidDescriptorError for a descriptor that does not decode or does not fit "
        "the\n"
        "buffers.");
}

void def_capsule(nb::class_<PyTensor>& type) {
  type.def(
      "__hurray__",
      [](nb::handle self, nb::handle stream, bool copy) {
        if (!stream.is_none() && PyLong_Check(stream.ptr()) == 0)
          fail(PyExc_TypeError, "stream must be an int or None, got " + python::type_name(stream));
        const PyTensor& t = self_of(self);
        if (!copy) return to_capsule(nb::borrow(self), t);
        const nb::object copied = copy_tensor(t);
        return to_capsule(copied, *unwrap_tensor(copied));
      },
      nb::arg("stream") = nb::none(), nb::kw_only(), nb::arg("copy") = false,
      nb::sig("def __hurray__(self, stream: int | None = None, *, copy: bool = False) -> "
              "typing.Any"),
      "A fresh capsule `hurray_tensor` with one handle per buffer and the encoded descriptor, for\n"
      "`from_hurray` and for C: every type and layout, declarations unchanged. It keeps the tensor "
      "alive.\n"
      "`stream` is accepted: nothing has to be waited for here, and what others have to wait for "
      "is\n"
      "declared. `copy=True` hands over own memory.\n\n"
      "Raises InvalidDescriptorError where the descriptor cannot be encoded.");
}

}  // namespace hurray::python
