// Statistics: advisory numbers about a tensor's elements.

#include <array>
#include <bit>
#include <cmath>

#include "value_object.hpp"

namespace hurray::python {
namespace {

/// A byte of the wire that is 0 or 1.
struct YesNo {
  std::uint8_t& byte;
};

void read(nb::handle value, const char* name, std::uint64_t& out) {
  out = number_argument<std::uint64_t>(value, name);
}
void read(nb::handle value, const char* name, double& out) { out = float_argument(value, name); }
void read(nb::handle value, const char* name, std::uint8_t& out) {
  out = number_argument<std::uint8_t>(value, name);
}
void read(nb::handle value, const char* name, YesNo out) {
  out.byte = bool_argument(value, name) ? 1 : 0;
}

nb::object shown(std::uint64_t value) { return nb::int_(value); }
nb::object shown(double value) { return nb::float_(value); }
nb::object shown(std::uint8_t value) { return nb::int_(static_cast<unsigned>(value)); }
nb::object shown(YesNo value) { return nb::bool_(value.byte != 0); }

/// One number for equal values: all NaNs are the same.
std::uint64_t word(std::uint64_t value) { return value; }
std::uint64_t word(double value) {
  return std::bit_cast<std::uint64_t>(std::isnan(value) ? std::nan("") : value);
}
std::uint64_t word(std::uint8_t value) { return value; }
std::uint64_t word(YesNo value) { return value.byte; }

/// How a float prints that Python has no literal for.
std::string literal(const nb::object& value) {
  if (!nb::isinstance<nb::float_>(value) || std::isfinite(nb::cast<double>(value))) return {};
  return std::string("float('") + nb::repr(value).c_str() + "')";
}

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
  visit("has_nan", Bit::nan_inf, YesNo{s.has_nan});
  visit("has_inf", Bit::nan_inf, YesNo{s.has_inf});
}

void construct(PyStatistics* self, nb::kwargs given) {
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
  Sizer rules;
  Statistics::fields(statistics, rules, std::nullopt);
  if (!rules.ok()) throw_error(rules.error());
  new (self) PyStatistics{statistics};
}

nb::object field_of(const PyStatistics& self, const char* wanted) {
  Statistics statistics = self.value;
  nb::object result = nb::none();
  for_each_field(statistics, [&](const char* name, StatisticsBit bit, auto&& place) {
    if (std::string_view(name) == wanted && statistics.has(bit)) result = shown(place);
  });
  return result;
}

/// What is claimed, field by field: what stands under a clear bit means nothing.
std::array<std::uint64_t, 12> meaning(const PyStatistics& self) {
  Statistics statistics = self.value;
  std::array<std::uint64_t, 12> words{statistics.sound().computed_mask};
  std::size_t i = 0;
  for_each_field(statistics, [&](const char*, StatisticsBit bit, auto&& place) {
    words[++i] = statistics.has(bit) ? word(place) : 0;
  });
  return words;
}

}  // namespace

bool same(const PyStatistics& a, const PyStatistics& b) { return meaning(a) == meaning(b); }

Call call_of(const PyStatistics& self) {
  Statistics statistics = self.value;
  Call call{"Statistics", {}};
  for_each_field(statistics, [&](const char* name, StatisticsBit bit, auto&& place) {
    if (!statistics.has(bit)) return;
    nb::object value = shown(place);
    std::string text = literal(value);
    call.arguments.push_back({name, std::move(value), std::move(text)});
  });
  return call;
}

nb::object wrap_statistics(const Descriptor& descriptor) {
  const Statistics* statistics = descriptor.statistics();
  return statistics == nullptr ? nb::none() : nb::cast(PyStatistics{*statistics});
}

void bind_statistics(nb::module_& m) {
  auto statistics =
      nb::class_<PyStatistics>(
          m, "Statistics", nb::is_final(), nb::is_weak_referenceable(),
          nb::type_slots(unhashable_slots<PyStatistics>),
          "Advisory numbers about a tensor's elements: an immutable value, compared by value. A "
          "field\n"
          "that is not claimed is `None`. Fields that share a validity bit come together or not at "
          "all\n"
          "(min, max and abs max; mean and stddev; n and m; nan and inf), else\n"
          "`InvalidDescriptorError`.")
          .def("__init__", &construct,
               nb::sig(
                   "def __init__(self, *, nnz: int | None = None, sparsity_ratio: float | None = "
                   "None, value_min: float | None = None, value_max: float | None = None, "
                   "value_abs_max: float | None = None, value_mean: float | None = None, "
                   "value_stddev: float | None = None, nm_n: int | None = None, nm_m: int | None "
                   "= None, has_nan: bool | None = None, has_inf: bool | None = None) -> None"))
          .def_prop_ro(
              "computed_mask",
              [](const PyStatistics& self) { return self.value.sound().computed_mask; },
              "The wire mask: one bit per group of fields that is claimed.");
  def_value(statistics, "Statistics");
#define HURRAY_FIELD(name, type, doc)                                        \
  statistics.def_prop_ro(                                                    \
      #name, [](const PyStatistics& self) { return field_of(self, #name); }, \
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
}

}  // namespace hurray::python
