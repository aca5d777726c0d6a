// Statistics and Shard: the sections of a descriptor that are values of their own.

#include <array>
#include <cmath>
#include <limits>

#include "bindings.hpp"

namespace hurray::python {
namespace {

PyObject* compare_statistics(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !nb::isinstance<PyStatistics>(other))
    Py_RETURN_NOTIMPLEMENTED;
  const bool equal =
      nb::inst_ptr<PyStatistics>(self)->value == nb::inst_ptr<PyStatistics>(other)->value;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

PyObject* compare_shard(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !nb::isinstance<PyShard>(other))
    Py_RETURN_NOTIMPLEMENTED;
  const bool equal = nb::inst_ptr<PyShard>(self)->value == nb::inst_ptr<PyShard>(other)->value;
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

Py_hash_t hash_shard(PyObject* self) {
  const Shard& shard = nb::inst_ptr<PyShard>(self)->value;
  Py_uhash_t mixed = shard.rank();
  for (const std::uint64_t size : shard.parent_shape())
    mixed = mixed * 1000003u + static_cast<Py_uhash_t>(size);
  for (const std::uint64_t start : shard.shard_offset())
    mixed = mixed * 1000003u + static_cast<Py_uhash_t>(start);
  const auto value = static_cast<Py_hash_t>(mixed);
  return value == -1 ? -2 : value;
}

const PyType_Slot statistics_slots[] = {
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_statistics)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {0, nullptr}};
const PyType_Slot shard_slots[] = {{Py_tp_richcompare, reinterpret_cast<void*>(compare_shard)},
                                   {Py_tp_hash, reinterpret_cast<void*>(hash_shard)},
                                   {0, nullptr}};

// ---- Statistics
// -----------------------------------------------------------------------------------

void read(nb::handle value, const char* name, std::uint64_t& out) {
  out = unsigned_argument(value, name, std::numeric_limits<std::uint64_t>::max());
}
void read(nb::handle value, const char* name, double& out) {
  out = PyFloat_AsDouble(value.ptr());
  if (out == -1.0 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    fail(PyExc_TypeError, std::string(name) + " must be a float, got " + python::type_name(value));
  }
}
struct Flag8 {
  std::uint8_t& byte;
};
void read(nb::handle value, const char* name, std::uint8_t& out) {
  out = static_cast<std::uint8_t>(unsigned_argument(value, name, 0xFF));
}
void read(nb::handle value, const char* name, Flag8 out) {
  if (!PyBool_Check(value.ptr()))
    fail(PyExc_TypeError, std::string(name) + " must be a bool, got " + python::type_name(value));
  out.byte = value.ptr() == Py_True ? 1 : 0;
}

nb::object shown(std::uint64_t value) { return nb::int_(value); }
nb::object shown(double value) { return nb::float_(value); }
nb::object shown(std::uint8_t value) { return nb::int_(static_cast<unsigned>(value)); }
nb::object shown(Flag8 value) { return nb::bool_(value.byte != 0); }

/// The fields in constructor order: each with its name, its bit and its place.
template <class Visit>
void for_each_field(Statistics& s, Visit visit) {
  using Bit = StatisticsBit;
  visit("nnz", Bit::nnz, s.nnz);
  visit("sparsity_ratio", Bit::sparsity, s.sparsity_ratio);
  visit("value_min", Bit::value_range, s.value_min);
  visit("value_max", Bit::value_range, s.value_max);
  visit("value_abs_max", Bit::value_range, s.value_abs_max);
  visit("value_mean", Bit::value_stats, s.value_mean);
  visit("value_stddev", Bit::value_stats, s.value_stddev);
  visit("nm_n", Bit::nm_sparsity, s.nm_n);
  visit("nm_m", Bit::nm_sparsity, s.nm_m);
  visit("has_nan", Bit::nan_inf, Flag8{s.has_nan});
  visit("has_inf", Bit::nan_inf, Flag8{s.has_inf});
}

void construct_statistics(PyStatistics* self, nb::kwargs given) {
  Statistics statistics;
  std::array<std::string, 32> missing;
  std::uint32_t claimed = 0;
  std::size_t used = 0;
  for_each_field(statistics, [&](const char* name, StatisticsBit bit, auto&& place) {
    const auto mask = static_cast<std::uint32_t>(bit);
    const nb::object value = given.contains(name) ? nb::object(given[name]) : nb::none();
    used += std::size_t{given.contains(name)};
    if (value.is_none()) {
      auto& names = missing[static_cast<std::size_t>(std::countr_zero(mask))];
      names.append(names.empty() ? "" : ", ").append(name);
      return;
    }
    read(value, name, place);
    claimed |= mask;
  });
  if (used != nb::len(given)) {
    for (const auto& [key, value] : given) {
      bool known = false;
      for_each_field(statistics, [&](const char* name, StatisticsBit, auto&&) {
        known |= nb::cast<std::string_view>(key) == name;
      });
      if (!known)
        fail(PyExc_TypeError, "Statistics has no field '" + nb::cast<std::string>(key) + "'");
    }
  }
  for (std::size_t bit = 0; bit < missing.size(); ++bit)
    if (((claimed >> bit) & 1) != 0 && !missing[bit].empty())
      fail(Exc::invalid_descriptor, missing[bit] +
                                        " must be given too: fields that share one validity"
                                        " bit come together or not at all");
  statistics.computed_mask = claimed;
  new (self) PyStatistics{statistics};
}

nb::object statistics_field(const PyStatistics& self, const char* wanted) {
  Statistics statistics = self.value;
  nb::object result = nb::none();
  for_each_field(statistics, [&](const char* name, StatisticsBit bit, auto&& place) {
    if (std::string_view(name) == wanted && statistics.has(bit)) result = shown(place);
  });
  return result;
}

std::string repr_statistics(const PyStatistics& self) {
  Statistics statistics = self.value;
  std::string text = "Statistics(";
  bool first = true;
  for_each_field(statistics, [&](const char* name, StatisticsBit bit, auto&& place) {
    if (!statistics.has(bit)) return;
    if (!first) text += ", ";
    first = false;
    const std::string value = nb::repr(shown(place)).c_str();
    const bool literal = value != "nan" && value != "inf" && value != "-inf";
    text.append(name).append("=");
    text += literal ? value : "float('" + value + "')";
  });
  return text + ")";
}

// ---- Shard
// ----------------------------------------------------------------------------------------

std::vector<std::uint64_t> numbers(nb::handle value, const char* name) {
  std::vector<std::uint64_t> result;
  for (const nb::object& item : sequence_argument(value, name))
    result.push_back(unsigned_argument(item, name, std::numeric_limits<std::uint64_t>::max()));
  return result;
}

void construct_shard(PyShard* self, nb::handle parent_shape, nb::handle shard_offset) {
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

nb::tuple tuple(std::span<const std::uint64_t> values) {
  nb::list list;
  for (const std::uint64_t value : values) list.append(value);
  return nb::tuple(list);
}

std::string bracketed(std::span<const std::uint64_t> values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

}  // namespace

void bind_sections(nb::module_& m) {
  using namespace nb::literals;
  auto statistics =
      nb::class_<PyStatistics>(
          m, "Statistics", nb::is_final(), nb::is_weak_referenceable(),
          nb::type_slots(statistics_slots),
          "Advisory numbers about a tensor's elements: an immutable value, compared by value. A "
          "field\n"
          "that is not claimed is `None`. Fields that share a validity bit come together or not at "
          "all\n"
          "(min, max and abs max; mean and stddev; n and m; nan and inf), else\n"
          "`InvalidDescriptorError`.")
          .def("__init__", &construct_statistics,
               nb::sig(
                   "def __init__(self, *, nnz: int | None = None, sparsity_ratio: float | None = "
                   "None, value_min: float | None = None, value_max: float | None = None, "
                   "value_abs_max: float | None = None, value_mean: float | None = None, "
                   "value_stddev: float | None = None, nm_n: int | None = None, nm_m: int | None "
                   "= None, has_nan: bool | None = None, has_inf: bool | None = None) -> None"))
          .def_prop_ro(
              "computed_mask", [](const PyStatistics& self) { return self.value.computed_mask; },
              "The wire mask: one bit per group of fields that is claimed.")
          .def("__repr__", &repr_statistics);
#define HURRAY_FIELD(name, type, doc)                                                \
  statistics.def_prop_ro(                                                            \
      #name, [](const PyStatistics& self) { return statistics_field(self, #name); }, \
      nb::sig("def " #name "(self) -> " type " | None"), doc)
  HURRAY_FIELD(nnz, "int", "Elements that are not zero.");
  HURRAY_FIELD(sparsity_ratio, "float", "Share of zeros, 0 to 1.");
  HURRAY_FIELD(value_min, "float", "Smallest value.");
  HURRAY_FIELD(value_max, "float", "Largest value.");
  HURRAY_FIELD(value_abs_max, "float", "Largest magnitude.");
  HURRAY_FIELD(value_mean, "float", "Arithmetic mean.");
  HURRAY_FIELD(value_stddev, "float", "Standard deviation.");
  HURRAY_FIELD(nm_n, "int", "At most n of every m elements are not zero.");
  HURRAY_FIELD(nm_m, "int", "At most n of every m elements are not zero.");
  HURRAY_FIELD(has_nan, "bool", "Some value is NaN.");
  HURRAY_FIELD(has_inf, "bool", "Some value is infinite.");
#undef HURRAY_FIELD

  nb::class_<PyShard>(
      m, "Shard", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(shard_slots),
      "The place of a tensor in a larger one: the parent's sizes and where this box starts, in "
      "logical\n"
      "elements. An immutable value. Raises `InvalidDescriptorError` for different lengths.")
      .def("__init__", &construct_shard, "parent_shape"_a, "shard_offset"_a,
           nb::sig("def __init__(self, parent_shape: collections.abc.Sequence[int], shard_offset: "
                   "collections.abc.Sequence[int]) "
                   "-> None"))
      .def_prop_ro(
          "parent_shape", [](const PyShard& self) { return tuple(self.value.parent_shape()); },
          nb::sig("def parent_shape(self) -> tuple[int, ...]"), "Sizes of the parent.")
      .def_prop_ro(
          "shard_offset", [](const PyShard& self) { return tuple(self.value.shard_offset()); },
          nb::sig("def shard_offset(self) -> tuple[int, ...]"),
          "Where this box starts in the parent.")
      .def("__repr__", [](const PyShard& self) {
        return "Shard(parent_shape=" + bracketed(self.value.parent_shape()) +
               ", shard_offset=" + bracketed(self.value.shard_offset()) + ")";
      });
}

}  // namespace hurray::python
