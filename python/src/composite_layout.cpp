// CompositeLayout: the head of a composite.

#include <span>

#include "layouts.hpp"

namespace hurray::python {
namespace {

using Self = LayoutOf<CompositeHead>;

/// "none" is what the wire says for rules without an operation; here that is `None`.
constexpr std::span<const CombineOpInfo> operations =
    std::span<const CombineOpInfo>(combine_ops).subspan(1);
static_assert(combine_ops[0].tag == CombineOp::none);

void construct(Self* self, nb::handle composition_rule, nb::handle member_count,
               nb::handle combine_op) {
  CompositeHead head = composite_head_argument(composition_rule, combine_op);
  head.member_count = number_argument<std::uint32_t>(member_count, "member_count");
  check_fields(head, 0);
  new (self) Self(head);
}

nb::object operation_or_none(const CompositeHead& head) {
  return head.combine_op == CombineOp::none ? nb::none()
                                            : nb::object(text_of(name(head.combine_op)));
}

}  // namespace

CompositeHead composite_head_argument(nb::handle composition_rule, nb::handle combine_op) {
  CompositeHead head;
  head.rule = name_argument(composition_rule, composition_rules, "composition_rule");
  if (!combine_op.is_none()) head.combine_op = name_argument(combine_op, operations, "combine_op");
  const auto op = static_cast<std::uint8_t>(head.combine_op);
  const CompositionRuleInfo& row = *find_row(composition_rules, head.rule);
  if (op < row.first_op || op > row.last_op)
    fail(PyExc_ValueError,
         std::string("composition_rule '").append(row.name) +
             (row.last_op == 0 ? "' takes no combine_op" : "' needs a combine_op"));
  return head;
}

Call call_of(const CompositeHead& head) {
  Call call{"CompositeLayout",
            {{"composition_rule", text_of(name(head.rule))},
             {"member_count", nb::int_(head.member_count)}}};
  if (head.combine_op != CombineOp::none)
    call.arguments.push_back({"combine_op", operation_or_none(head)});
  return call;
}

void bind_composite_layout(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Self, PyLayout>(
      m, "CompositeLayout", nb::is_final(),
      "The head of a composite: a view over the `member_count` tensors that follow it; it owns no "
      "buffers.\n"
      "`combine_op` says how an overlay's corrections act, and belongs to overlays alone. Raises\n"
      "`ValueError` for an unknown rule or operation and for one that does not go with the rule,\n"
      "`InvalidDescriptorError` for a count that a head cannot have.")
      .def("__init__", &construct, "composition_rule"_a, "member_count"_a,
           "combine_op"_a = nb::none(),
           nb::sig("def __init__(self, composition_rule: typing.Literal['partition', 'overlay', "
                   "'group'], member_count: int, combine_op: typing.Literal['replace', 'add'] | "
                   "None = None) -> None"))
      .def_prop_ro(
          "composition_rule", [](const Self& self) { return text_of(name(self.get().rule)); },
          nb::sig("def composition_rule(self) -> typing.Literal['partition', 'overlay', 'group']"),
          "How the view is made of the members.")
      .def_prop_ro(
          "member_count", [](const Self& self) { return self.get().member_count; },
          "Members of this head; a nested composite counts as one.")
      .def_prop_ro(
          "combine_op", [](const Self& self) { return operation_or_none(self.get()); },
          nb::sig("def combine_op(self) -> typing.Literal['replace', 'add'] | None"),
          "How corrections act; `None` for a rule that has none.");
}

}  // namespace hurray::python
