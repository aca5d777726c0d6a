// Shard: the place of a tensor in a larger one.

#include "value_object.hpp"

namespace hurray::python {
namespace {

std::vector<std::uint64_t> numbers(nb::handle value, const char* name) {
  std::vector<std::uint64_t> result;
  for (const nb::object& item : sequence_argument(value, name))
    result.push_back(unsigned_argument(item, name, dynamic - 1));
  return result;
}

void construct(PyShard* self, nb::handle parent_shape, nb::handle shard_offset) {
  const auto sizes = numbers(parent_shape, "parent_shape");
  const auto starts = numbers(shard_offset, "shard_offset");
  if (sizes.size() != starts.size())
    fail(Exc::invalid_descriptor,
         "parent_shape has " + std::to_string(sizes.size()) + " entries and shard_offset has " +
             std::to_string(starts.size()) + "; a shard has one of each per dimension");
  if (sizes.size() > max_rank)
    fail(Exc::invalid_descriptor,
         "a shard has at most " + std::to_string(max_rank) + " dimensions");
  new (self) PyShard{Shard(sizes, starts)};
}

std::string list_text(const nb::tuple& numbers) { return nb::repr(nb::list(numbers)).c_str(); }

}  // namespace

Call call_of(const PyShard& self) {
  const nb::tuple sizes = tuple_of(self.value.parent_shape());
  const nb::tuple starts = tuple_of(self.value.shard_offset());
  return {"Shard",
          {{"parent_shape", sizes, list_text(sizes)}, {"shard_offset", starts, list_text(starts)}}};
}

nb::object wrap_shard(const Descriptor& descriptor) {
  const Shard* shard = descriptor.shard();
  return shard == nullptr ? nb::none() : nb::cast(PyShard{*shard});
}

void bind_shard(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PyShard> type(
      m, "Shard", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(value_slots<PyShard>),
      "The place of a tensor in a larger one: the parent's sizes and where this box starts, in "
      "logical\n"
      "elements. An immutable value. Raises `InvalidDescriptorError` for different lengths.");
  type.def("__init__", &construct, "parent_shape"_a, "shard_offset"_a,
           nb::sig("def __init__(self, parent_shape: collections.abc.Sequence[int], shard_offset: "
                   "collections.abc.Sequence[int]) "
                   "-> None"))
      .def_prop_ro(
          "parent_shape", [](const PyShard& self) { return tuple_of(self.value.parent_shape()); },
          nb::sig("def parent_shape(self) -> tuple[int, ...]"), "Sizes of the parent.")
      .def_prop_ro(
          "shard_offset", [](const PyShard& self) { return tuple_of(self.value.shard_offset()); },
          nb::sig("def shard_offset(self) -> tuple[int, ...]"),
          "Where this box starts in the parent.");
  def_value(type, "Shard");
}

}  // namespace hurray::python
