#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "command.hpp"
#include "hurray/statistics_of.hpp"
#include "members.hpp"
#include "opened.hpp"
#include "system.hpp"
#include "text.hpp"
#include "written.hpp"

namespace hurray::cli {
namespace {

/// Elements that are looked at in one tensor: zero strides make many of few bytes.
constexpr std::uint64_t most_elements = std::uint64_t{1} << 36;

bool is_head(const Descriptor& descriptor) {
  return std::holds_alternative<CompositeHead>(descriptor.layout);
}

io::Result<Statistics> statistics(const io::FileSet& set, std::size_t entry, const Tensor& tensor) {
  const auto found = statistics_of(tensor, {.max_elements = most_elements});
  if (!found) return io::Error(found.error(), set.path(), std::string(set.name(entry)));
  return *found;
}

/// The number under a bit of the mask; empty where it is not claimed.
std::string claimed(const Statistics& statistics, StatisticsBit bit, double value) {
  return statistics.has(bit) ? fmt::format("{:.6g}", value) : "";
}

std::string specials(const Statistics& s) {
  if (!s.has(StatisticsBit::nan_inf)) return "";
  if (s.has_nan != 0) return s.has_inf != 0 ? "nan, inf" : "nan";
  return s.has_inf != 0 ? "inf" : "";
}

void statistics_members(Json& json, const Statistics& s) {
  const auto member = [&](std::string_view name, StatisticsBit bit, const auto& value) {
    if (s.has(bit)) json.member(name, value);
  };
  json.key("statistics");
  json.begin_object();
  member("nnz", StatisticsBit::nnz, s.nnz);
  member("sparsity_ratio", StatisticsBit::sparsity, s.sparsity_ratio);
  member("value_min", StatisticsBit::value_range, s.value_min);
  member("value_max", StatisticsBit::value_range, s.value_max);
  member("value_abs_max", StatisticsBit::value_range, s.value_abs_max);
  member("value_mean", StatisticsBit::value_stats, s.value_mean);
  member("value_stddev", StatisticsBit::value_stats, s.value_stddev);
  member("has_nan", StatisticsBit::nan_inf, s.has_nan != 0);
  member("has_inf", StatisticsBit::nan_inf, s.has_inf != 0);
  json.end_object();
}

/// Computes and shows one tensor after the other.
class Shown {
 public:
  Shown(const io::FileSet& set, const StatsRequest& request, Session& session)
      : set_(set), session_(session), json_(session.output) {
    if (!session.json) return;
    json_.begin_document("stats");
    json_.member("path", set.path());
    if (!request.target.empty()) json_.member("target", request.target);
    json_.key("tensors");
    json_.begin_array();
  }

  void add(std::size_t entry, const Descriptor& descriptor,
           const io::Result<Statistics>& statistics) {
    const std::string_view name = set_.name(entry);
    // What has no values is said in the list; what is broken on standard error as well.
    if (!statistics && statistics.error().code != Errc::unsupported) {
      code_ = std::max(code_, exit_code(statistics.error()));
      complain(to_string(statistics.error()));
    }
    if (session_.json) {
      json_.begin_object();
      json_.member("name", name);
      json_.member("dtype", dtype_text(descriptor.dtype));
      if (statistics) {
        statistics_members(json_, *statistics);
      } else {
        json_.key("error");
        json_.begin_object();
        error_members(json_, statistics.error());
        json_.end_object();
      }
      return json_.end_object();
    }
    if (!statistics)
      return table_.add({io::printable(name), dtype_text(descriptor.dtype),
                         shape_text(descriptor.shape), "", "", "", "", "", "", "",
                         reason(statistics.error())});
    const Statistics& s = *statistics;
    table_.add(
        {io::printable(name), dtype_text(descriptor.dtype), shape_text(descriptor.shape),
         s.has(StatisticsBit::nnz) ? std::to_string(s.nnz) : "",
         s.has(StatisticsBit::sparsity) ? fmt::format("{:.2f}%", s.sparsity_ratio * 100) : "",
         claimed(s, StatisticsBit::value_range, s.value_min),
         claimed(s, StatisticsBit::value_range, s.value_max),
         claimed(s, StatisticsBit::value_stats, s.value_mean),
         claimed(s, StatisticsBit::value_stats, s.value_stddev), specials(s), ""});
  }

  int finish(const std::optional<io::Error>& error = std::nullopt) {
    if (session_.json) {
      json_.end_array();
      if (error) {
        json_.key("error");
        json_.begin_object();
        error_members(json_, *error);
        json_.end_object();
      }
      json_.end_document();
    } else if (!error) {
      session_.output.write(table_.text({.width = session_.columns}));
    }
    if (!error) return code_;
    complain(to_string(*error));
    return exit_code(*error);
  }

 private:
  const io::FileSet& set_;
  Session& session_;
  Json json_;
  Table table_{{{"NAME"},
                {"DTYPE"},
                {"SHAPE"},
                {"NONZERO", true},
                {"ZEROS", true},
                {"MIN", true},
                {"MAX", true},
                {"MEAN", true},
                {"STDDEV", true},
                {"HOLDS"},
                {"PROBLEM"}}};
  int code_ = 0;
};

int show(const io::FileSet& set, const std::vector<std::size_t>& entries,
         const StatsRequest& request, Session& session) {
  Shown shown(set, request, session);
  for (const std::size_t i : entries) {
    const auto descriptor = set.descriptor(i);
    if (!descriptor) {
      shown.add(i, {}, descriptor.error());
      continue;
    }
    if (is_head(*descriptor)) continue;
    const auto [file, entry] = set.place(i);
    const auto tensor = file->tensor(entry);
    shown.add(i, *descriptor,
              tensor ? statistics(set, i, *tensor) : io::Result<Statistics>(tensor.error()));
  }
  return shown.finish();
}

/// The whole file anew, in which those of `entries` that have values carry their statistics.
int write(const io::FileSet& set, const std::vector<std::size_t>& entries,
          const StatsRequest& request, Session& session) {
  std::vector<bool> wanted(set.size());
  for (const std::size_t i : entries) wanted[i] = true;
  remember_signals();
  const bool target_is_output = is_standard_output(request.target);
  std::optional<Shown> shown;
  if (!target_is_output) shown.emplace(set, request, session);
  const auto written =
      write_file(set, request.target,
                 {.describe = [&](std::size_t i, const Tensor& tensor) -> io::Result<Descriptor> {
                   Descriptor descriptor = tensor.wire_descriptor();
                   if (!wanted[i] || is_head(descriptor)) return descriptor;
                   const auto found = statistics(set, i, tensor);
                   if (shown) shown->add(i, descriptor, found);
                   if (!found) {
                     if (found.error().code != Errc::unsupported) return found.error();
                     return descriptor;
                   }
                   descriptor.set_statistics(*found);
                   return descriptor;
                 }});
  if (!written && signalled()) end_by_signal();
  if (shown) return shown->finish(written ? std::nullopt : std::optional(written.error()));
  return written ? 0 : session.fail(written.error());
}

}  // namespace

int stats(const StatsRequest& request, Session& session) {
  const auto set = open_any(request.path);
  if (!set) return session.fail(set.error());
  const auto entries = chosen(*set, request.patterns);
  if (!entries) return session.fail(entries.error());
  return request.target.empty() ? show(*set, *entries, request, session)
                                : write(*set, *entries, request, session);
}

}  // namespace hurray::cli
