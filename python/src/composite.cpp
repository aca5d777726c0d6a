// Composite: a head and the tensors that it binds.

#include <algorithm>
#include <string>

#include "exports.hpp"
#include "html.hpp"
#include "hurray/materialize.hpp"
#include "layouts.hpp"

namespace hurray::python {
namespace {

const CompositeHead& head_of(const PyComposite& self) noexcept {
  return std::get<CompositeHead>(self.item.tensor.descriptor().layout);
}

// ---- construction
// ---------------------------------------------------------------------------------

Shape shape_of_view(nb::handle value) {
  const auto sizes = sequence_argument(value, "shape");
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if (sizes[k].is_none())
      fail(Exc::invalid_descriptor,
           "hurray.Composite(): shape has a dynamic dimension (None) at index " +
               std::to_string(k) + "; the view of a composite has a known size");
  return shape_argument(value, false, "hurray.Composite()");
}

nb::tuple members_argument(nb::handle value) {
  const bool text = PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
  if (text || (Py_TYPE(value.ptr())->tp_iter == nullptr && PySequence_Check(value.ptr()) == 0))
    fail(PyExc_TypeError, "members must be a sequence of hurray.Tensor or hurray.Composite, got " +
                              python::type_name(value));
  nb::object members = nb::steal(PySequence_Tuple(value.ptr()));
  if (!members.is_valid()) nb::raise_python_error();
  return nb::borrow<nb::tuple>(members);
}

Item item_of(nb::handle member, std::size_t i) {
  if (const PyTensor* t = unwrap_tensor(member)) return {t->tensor};
  if (const PyComposite* c = unwrap_composite(member)) return c->item;
  fail(PyExc_TypeError, "members[" + std::to_string(i) +
                            "] must be a hurray.Tensor or a hurray.Composite, got " +
                            python::type_name(member));
}

PyComposite composed(Descriptor head, nb::tuple members) {
  std::vector<Item> items;
  items.reserve(nb::len(members));
  for (nb::handle member : members) items.push_back(item_of(member, items.size()));
  return {std::make_shared<const Item>(unwrap(compose(std::move(head), std::move(items)))),
          std::move(members)};
}

void construct(PyComposite* self, nb::handle rule, nb::handle shape, nb::handle dtype,
               nb::handle members, nb::handle combine_op) {
  Descriptor head;
  head.layout = composite_head_argument(rule, combine_op);
  head.shape = shape_of_view(shape);
  if (value_of<PyDtype>(dtype) == nullptr)
    fail(PyExc_TypeError, "dtype must be a hurray.Dtype, got " + python::type_name(dtype));
  head.dtype = nb::inst_ptr<PyDtype>(dtype)->tag;
  new (self) PyComposite(composed(std::move(head), members_argument(members)));
}

// ---- members
// --------------------------------------------------------------------------------------

nb::tuple member_roles_of(const PyComposite& self) {
  const bool overlay = head_of(self).rule == CompositionRule::overlay;
  const std::size_t count = self.item.members.size();
  nb::object roles = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!roles.is_valid()) nb::raise_python_error();
  for (std::size_t i = 0; i < count; ++i) {
    const MemberRole each = i == 0 ? MemberRole::base : MemberRole::correction;
    nb::object role = overlay ? nb::object(text_of(name(each))) : nb::none();
    PyTuple_SET_ITEM(roles.ptr(), static_cast<Py_ssize_t>(i), role.release().ptr());
  }
  return nb::borrow<nb::tuple>(roles);
}

/// What of a tensor counts in a comparison (Y20).
Descriptor compared(const Item& item) {
  Descriptor descriptor = item.tensor.wire_descriptor();
  for (BufferHandle& handle : descriptor.buffers) handle.alignment = 1;
  return descriptor;
}

bool equal(const Item& a, const Item& b) {
  std::vector<std::pair<const Item*, const Item*>> left = {{&a, &b}};
  while (!left.empty()) {
    const auto [mine, theirs] = left.back();
    left.pop_back();
    if (mine == theirs) continue;
    if (mine->members.size() != theirs->members.size() || compared(*mine) != compared(*theirs))
      return false;
    for (std::size_t i = mine->members.size(); i-- > 0;)
      left.emplace_back(&mine->members[i], &theirs->members[i]);
  }
  return true;
}

PyObject* compare(PyObject* self, PyObject* other, int operation) noexcept {
  const PyComposite* a = unwrap_composite(self);
  const PyComposite* b = unwrap_composite(other);
  if ((operation != Py_EQ && operation != Py_NE) || a == nullptr || b == nullptr)
    Py_RETURN_NOTIMPLEMENTED;
  try {
    return PyBool_FromLong(equal(a->item, b->item) == (operation == Py_EQ));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

/// Two levels with their members, a third without.
std::string printed(const Item& item, int levels) {
  const Descriptor& d = item.tensor.descriptor();
  std::string text = "hurray.Composite(rule='";
  text.append(name(std::get<CompositeHead>(d.layout).rule));
  text.append("', shape=").append(nb::repr(wrap_shape(d.shape)).c_str()).append(", members=[");
  if (levels == 0) return text + "...])";
  for (std::size_t i = 0; i < item.members.size(); ++i) {
    const Item& member = item.members[i];
    if (i != 0) text += ", ";
    text += member.is_composite() ? printed(member, levels - 1) : "Tensor";
  }
  return text + "])";
}

nb::object materialized(const PyComposite& self) {
  std::string where;
  auto tensor = without_gil([&] { return materialize(self.item, &where); });
  if (!tensor) throw_data_error(tensor.error(), where);
  return wrap_tensor(*std::move(tensor));
}

nb::object wrap_shared(const std::shared_ptr<const Item>& item) {
  if (!item->is_composite()) return wrap_tensor(unwrap(with_role(item->tensor, std::nullopt)));
  nb::object members = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(item->members.size())));
  if (!members.is_valid()) nb::raise_python_error();
  for (std::size_t i = 0; i < item->members.size(); ++i)
    PyTuple_SET_ITEM(members.ptr(), static_cast<Py_ssize_t>(i),
                     wrap_shared({item, &item->members[i]}).release().ptr());
  return nb::cast(PyComposite{item, nb::borrow<nb::tuple>(members)});
}

const PyType_Slot slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                             {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                             {0, nullptr}};

}  // namespace

nb::object wrap_item(Item&& item) {
  return wrap_shared(std::make_shared<const Item>(std::move(item)));
}

nb::object wrap_composite(Descriptor head, nb::tuple members) {
  return nb::cast(composed(std::move(head), std::move(members)));
}

const PyComposite* unwrap_composite(nb::handle object) noexcept {
  return nb::isinstance<PyComposite>(object) && nb::inst_ready(object)
             ? nb::inst_ptr<PyComposite>(object)
             : nullptr;
}

std::optional<std::uint32_t> composite_depth_argument(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  const std::uint64_t depth = unsigned_argument(value, "max_composite_depth", UINT64_MAX);
  if (depth == 0 || depth > most_composite_depth)
    fail(PyExc_ValueError, "max_composite_depth: expected 1 to " +
                               std::to_string(most_composite_depth) + ", found " +
                               std::to_string(depth));
  return static_cast<std::uint32_t>(depth);
}

void bind_composite(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyComposite>(
      m, "Composite", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      "A view of `shape` and `dtype` that is put together from other tensors: it has members, and "
      "no\n"
      "bytes of its own. Immutable; compared by what would be written, bytes aside; not "
      "hashable.\n\n"
      "`composition_rule`: \"partition\" (members tile the view), \"overlay\" (a base and "
      "corrections, with\n"
      "`combine_op` \"replace\" or \"add\") or \"group\" (members are separate). Members of the "
      "first "
      "two say by\n"
      "their `Shard` where they lie. `members` are `Tensor` or `Composite` objects, which stay as "
      "they are.\n"
      "The head is stated, never derived. It travels by file and stream; up to 64 composites can "
      "be in each\n"
      "other, and 8 can be written.\n\n"
      "Raises TypeError for other members, ValueError for an unknown rule or a `combine_op` that "
      "does not\n"
      "go with it, InvalidDescriptorError for members that do not make up the view.")
      .def("__init__", &construct, "composition_rule"_a, nb::kw_only(), "shape"_a.none(),
           "dtype"_a.none(), "members"_a.none(), "combine_op"_a = nb::none(),
           nb::sig("def __init__(self, composition_rule: typing.Literal['partition', 'overlay', "
                   "'group'], *, shape: collections.abc.Sequence[int], dtype: Dtype, members: "
                   "collections.abc.Iterable[Tensor | Composite], combine_op: "
                   "typing.Literal['replace', 'add'] | None = None) -> None"))
      .def_prop_ro(
          "members", [](const PyComposite& self) { return self.members; },
          nb::sig("def members(self) -> tuple[Tensor | Composite, ...]"),
          "The objects that it was made of, in order.")
      .def_prop_ro(
          "member_count", [](const PyComposite& self) { return self.item.members.size(); },
          "Number of members.")
      .def_prop_ro(
          "member_roles", &member_roles_of,
          nb::sig("def member_roles(self) -> tuple[typing.Literal['base', 'correction'] | None, "
                  "...]"),
          "What each member is in an overlay: \"base\" first, then \"correction\"; `None` under "
          "other\n"
          "rules.")
      .def_prop_ro(
          "layout",
          [](const PyComposite& self) { return wrap_layout(self.item.tensor.descriptor().layout); },
          nb::sig("def layout(self) -> Layout"),
          "Rule, operation and number of members, a fresh object per access.")
      .def_prop_ro(
          "shape",
          [](const PyComposite& self) { return wrap_shape(self.item.tensor.descriptor().shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"),
          "Sizes of the view in logical elements; `None` for one of a group that was read and is "
          "not known.")
      .def_prop_ro(
          "ndim",
          [](const PyComposite& self) { return self.item.tensor.descriptor().shape.rank(); },
          "Number of dimensions of the view.")
      .def_prop_ro(
          "dtype",
          [](const PyComposite& self) { return dtype_object(self.item.tensor.descriptor().dtype); },
          nb::sig("def dtype(self) -> Dtype"), "The element type of the view.")
      .def_prop_ro(
          "descriptor",
          [](const PyComposite& self) { return wrap_descriptor(self.item.tensor.descriptor()); },
          nb::sig("def descriptor(self) -> Descriptor"),
          "The head as the value that travels: no buffers, no device.")
      .def("materialize", &materialized, nb::sig("def materialize(self) -> Tensor"),
           "The view as an own row-major tensor of the head's type. Members are taken as "
           "`to_dense` and\n"
           "`dequantize` give them, corrections in order, rounded to the head's type at each "
           "step.\n\n"
           "Raises UnsupportedError for a group, for `add` on types without addition and for "
           "members without\n"
           "values, InvalidDescriptorError for index and parameter buffers that break a rule.")
      .def(
          "_repr_html_",
          [](const PyComposite& self) {
            return html::shown([&] {
              std::uint64_t count = 0;
              for_each_item(self.item, [&](const Item&, std::span<const std::size_t>) {
                ++count;
                return true;
              });
              return html::table("hurray.Composite", html::rows_of("", self.item), count) +
                     html::picture(self.item);
            });
          },
          nb::sig("def _repr_html_(self) -> str | None"),
          "A table and a picture for notebooks, from metadata alone.")
      .def("__repr__", [](const PyComposite& self) { return printed(self.item, 2); });
}

}  // namespace hurray::python
