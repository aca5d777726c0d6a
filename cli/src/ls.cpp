#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "command.hpp"
#include "hurray/io/file_set.hpp"
#include "members.hpp"
#include "opened.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

/// A tensor of the list, or with `--group` several that differ by numbers in their names.
struct Row {
  std::size_t entry = 0;  ///< Of the first.
  std::size_t depth = 0;  ///< Heads of the list that it belongs to.
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;  ///< Of all.
  std::string title;        ///< The name, "{0..3}" for numbers.
};

struct Sum {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

/// Everything that is listed, before it is shown.
struct Listing {
  std::vector<std::optional<std::size_t>> owners;
  std::vector<io::Result<Descriptor>> descriptors;  ///< Of `entries`.
  std::vector<std::size_t> entries;
  std::vector<Row> rows;
  std::map<std::string, Sum> dtypes;
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
  std::size_t unknown = 0;  ///< Tensors whose number of parameters cannot be told.
  std::size_t broken = 0;
};

std::uint64_t stored_bytes(const io::FileSet& set, std::size_t i,
                           const io::Result<Descriptor>& descriptor) {
  const auto own = descriptor ? buffer_bytes(*descriptor) : std::nullopt;
  const auto [file, entry] = set.place(i);
  return own.value_or(file->entry(entry).data_length);
}

bool is_group(const Descriptor& descriptor) {
  const auto* head = std::get_if<CompositeHead>(&descriptor.layout);
  return head != nullptr && head->rule == CompositionRule::group;
}

io::Result<Listing> list(const io::FileSet& set, const LsRequest& request) {
  Listing all;
  auto entries = chosen(set, request.patterns);
  if (!entries) return std::move(entries).error();
  all.entries = *std::move(entries);
  auto owners = set.owners();
  if (!owners) return std::move(owners).error();
  all.owners = *std::move(owners);

  std::vector<std::optional<std::size_t>> place(set.size());
  for (std::size_t k = 0; k < all.entries.size(); ++k) place[all.entries[k]] = k;
  std::vector<bool> is_group_head(all.entries.size());
  for (std::size_t k = 0; k < all.entries.size(); ++k) {
    all.descriptors.push_back(set.descriptor(all.entries[k]));
    is_group_head[k] = all.descriptors.back() && is_group(*all.descriptors.back());
  }
  for (std::size_t k = 0; k < all.entries.size(); ++k) {
    const std::size_t i = all.entries[k];
    const auto& descriptor = all.descriptors[k];
    Row row{
        .entry = i, .bytes = stored_bytes(set, i, descriptor), .title = std::string(set.name(i))};
    // Whoever belongs to a head that is listed and counts for all of it is not counted again.
    bool counted_above = false;
    for (auto owner = all.owners[i]; owner; owner = all.owners[*owner]) {
      const auto at = place[*owner];
      if (!at) continue;
      ++row.depth;
      counted_above = counted_above || !is_group_head[*at];
    }
    all.bytes = add(all.bytes, row.bytes);
    if (!descriptor) {
      ++all.broken;
      ++all.unknown;
    } else {
      Sum& sum = all.dtypes[dtype_text(descriptor->dtype)];
      const bool is_head = std::holds_alternative<CompositeHead>(descriptor->layout);
      sum.tensors += is_head ? 0 : 1;
      sum.bytes = add(sum.bytes, row.bytes);
      if (!counted_above && !is_group_head[k]) {
        if (descriptor->shape.is_dynamic())
          ++all.unknown;
        else
          all.parameters = add(all.parameters, descriptor->shape.count());
      }
    }
    all.rows.push_back(std::move(row));
  }
  std::erase_if(all.dtypes, [](const auto& sum) { return sum.second.tensors == 0; });
  return all;
}

// --- Groups ---

/// A name in pieces: text, and numbers that stand alone between dots or slashes.
struct Pieces {
  struct Piece {
    std::string text;
    std::optional<std::uint64_t> number = {};
    std::uint64_t last = 0;  ///< Of a range that begins with `number`.
  };
  std::vector<Piece> pieces;
  std::vector<std::size_t> numbers;  ///< Which pieces are.

  explicit Pieces(std::string_view name) {
    std::size_t at = 0;
    while (at <= name.size()) {
      const std::size_t end = std::min(name.find_first_of("./", at), name.size());
      const std::string_view part = name.substr(at, end - at);
      std::uint64_t number = 0;
      const auto [stop, code] = std::from_chars(part.data(), part.data() + part.size(), number);
      // "007" is a name, not the number 7.
      if (code == std::errc{} && stop == part.data() + part.size() &&
          (part.size() == 1 || part.front() != '0')) {
        numbers.push_back(pieces.size());
        pieces.push_back({.text = {}, .number = number, .last = number});
      } else if (!part.empty()) {
        pieces.push_back({.text = std::string(part)});
      }
      if (end < name.size()) pieces.push_back({.text = std::string(1, name[end])});
      at = end + 1;
    }
  }

  std::string text(const Piece* open = nullptr) const {
    std::string all;
    for (const Piece& piece : pieces) {
      if (!piece.number)
        all += piece.text;
      else if (&piece == open)
        all += "{}";
      else if (piece.number == piece.last)
        all += std::to_string(*piece.number);
      else
        all += fmt::format("{{{}..{}}}", *piece.number, piece.last);
    }
    return all;
  }
};

/// Rows that differ by one number and are otherwise alike become one, the last number of a name
/// first.
void fold(Listing& all) {
  constexpr std::size_t most_numbers = 4;
  struct Folded {
    Row row;
    Pieces name;
    std::string kind;
  };
  std::vector<Folded> rows;
  for (std::size_t k = 0; k < all.rows.size(); ++k) {
    const auto& d = all.descriptors[k];
    std::string kind = std::to_string(all.rows[k].depth) + '|';
    if (d)
      kind += dtype_text(d->dtype) + '|' + shape_text(d->shape) + '|' + layout_text(d->layout) +
              '|' + remarks(*d);
    else
      kind += "broken";
    rows.push_back({all.rows[k], Pieces(all.rows[k].title), std::move(kind)});
  }
  for (std::size_t back = 1; back <= most_numbers; ++back) {
    std::map<std::string, std::vector<std::size_t>> alike;
    std::vector<bool> gone(rows.size());
    const auto number_of = [&](std::size_t r) -> Pieces::Piece& {
      Pieces& name = rows[r].name;
      return name.pieces[name.numbers[name.numbers.size() - back]];
    };
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (rows[r].name.numbers.size() >= back)
        alike[rows[r].kind + '|' + std::to_string(rows[r].row.count) + '|' +
              rows[r].name.text(&number_of(r))]
            .push_back(r);
    for (auto& [key, members] : alike) {
      std::ranges::sort(members, {}, [&](std::size_t r) { return *number_of(r).number; });
      for (std::size_t first = 0; first < members.size();) {
        std::size_t end = first + 1;
        while (end < members.size() &&
               *number_of(members[end]).number == *number_of(members[end - 1]).number + 1)
          ++end;
        // Where the run stands in the list is where its first tensor does.
        const auto run = std::span(members).subspan(first, end - first);
        const std::size_t stays = *std::ranges::min_element(run);
        const std::uint64_t low = *number_of(run.front()).number;
        const std::uint64_t high = *number_of(run.back()).number;
        for (const std::size_t r : run) {
          if (r == stays) continue;
          gone[r] = true;
          rows[stays].row.count += rows[r].row.count;
          rows[stays].row.bytes = add(rows[stays].row.bytes, rows[r].row.bytes);
        }
        number_of(stays).number = low;
        number_of(stays).last = high;
        first = end;
      }
    }
    std::vector<Folded> left;
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (!gone[r]) left.push_back(std::move(rows[r]));
    rows = std::move(left);
  }
  all.rows.clear();
  for (Folded& folded : rows) {
    folded.row.title = folded.name.text();
    all.rows.push_back(std::move(folded.row));
  }
}

// --- What is shown ---

/// "124.4 M"
std::string short_count(std::uint64_t n) {
  static constexpr auto units = std::to_array<std::string_view>({"k", "M", "G", "T", "P", "E"});
  double value = static_cast<double>(n) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

void show_json(const io::FileSet& set, const Listing& all, const LsRequest& request,
               Session& session) {
  Json json(session.output);
  json.begin_document("ls");
  json.member("path", set.path());
  std::map<std::size_t, std::size_t> place;
  for (std::size_t k = 0; k < all.entries.size(); ++k) place[all.entries[k]] = k;
  json.key(request.group ? "groups" : "tensors");
  json.begin_array();
  for (const Row& row : all.rows) {
    const auto& descriptor = all.descriptors[place[row.entry]];
    json.begin_object();
    json.member("name", row.title);
    if (request.group) {
      json.member("count", row.count);
    } else {
      json.key("member_of");
      if (all.owners[row.entry])
        json.value(set.name(*all.owners[row.entry]));
      else
        json.null();
    }
    if (descriptor) {
      descriptor_members(json, *descriptor, row.bytes);
    } else {
      json.key("error");
      json.begin_object();
      error_members(json, descriptor.error());
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
  json.member("count", all.entries.size());
  json.member("parameters", all.parameters);
  json.member("unknown_parameters", all.unknown);
  json.member("bytes", all.bytes);
  json.key("dtypes");
  json.begin_array();
  for (const auto& [dtype, sum] : all.dtypes) {
    json.begin_object();
    json.member("dtype", dtype);
    json.member("tensors", sum.tensors);
    json.member("bytes", sum.bytes);
    json.end_object();
  }
  json.end_array();
  json.key("files");
  json.begin_array();
  for (const io::File& file : set.files()) {
    json.begin_object();
    json.member("path", file.path());
    json.member("size", file.size_bytes());
    json.member("tensors", file.size());
    json.end_object();
  }
  json.end_array();
  json.end_document();
}

void show_text(const io::FileSet& set, const Listing& all, Session& session) {
  std::map<std::size_t, std::size_t> place;
  for (std::size_t k = 0; k < all.entries.size(); ++k) place[all.entries[k]] = k;
  Table table(
      {{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"LAYOUT"}, {"BYTES", true}, {"REMARKS"}, {"PROBLEM"}});
  for (const Row& row : all.rows) {
    const auto& descriptor = all.descriptors[place[row.entry]];
    std::string title = std::string(2 * row.depth, ' ') + io::printable(row.title);
    if (row.count > 1) title += fmt::format("  ×{}", row.count);
    if (descriptor)
      table.add({std::move(title), dtype_text(descriptor->dtype), shape_text(descriptor->shape),
                 layout_text(descriptor->layout), human(row.bytes), remarks(*descriptor), ""});
    else
      table.add({std::move(title), "?", "?", "?", human(row.bytes), "",
                 "broken: " + reason(descriptor.error())});
  }
  std::string text = table.text({.width = session.columns});
  const std::size_t title_end = text.find('\n');
  if (title_end != std::string::npos)
    text = session.paint(Style::bold, std::string_view(text).substr(0, title_end)) +
           text.substr(title_end) + '\n';
  text += fmt::format(
      "{}, {} parameter{}{}{}, {}\n", plural(all.entries.size(), "tensor"), all.parameters,
      all.parameters == 1 ? "" : "s",
      all.parameters < 1000 ? "" : fmt::format(" ({})", short_count(all.parameters)),
      all.unknown == 0
          ? ""
          : fmt::format(" (and those of {} that does not say)", plural(all.unknown, "tensor")),
      human(all.bytes));
  if (all.dtypes.size() > 1)
    for (const auto& [dtype, sum] : all.dtypes)
      text +=
          fmt::format("  {}: {} in {}\n", dtype, human(sum.bytes), plural(sum.tensors, "tensor"));
  if (set.files().size() > 1) {
    text += fmt::format("{}, {}\n", plural(set.files().size(), "file"), human(set.size_bytes()));
    for (const io::File& file : set.files())
      text += fmt::format("  {}: {}, {}\n", io::printable(file.path()), human(file.size_bytes()),
                          plural(file.size(), "tensor"));
  } else {
    text += fmt::format("1 file, {}\n", human(set.size_bytes()));
  }
  session.output.write(text);
}

}  // namespace

int ls(const LsRequest& request, Session& session) {
  const auto set = open_any(request.path);
  if (!set) return session.fail(set.error());
  auto all = list(*set, request);
  if (!all) return session.fail(all.error());
  if (request.group) fold(*all);
  if (session.json)
    show_json(*set, *all, request, session);
  else
    show_text(*set, *all, session);
  if (all->broken == 0) return 0;
  complain(fmt::format("{}: {} cannot be read; see the list", io::printable(set->path()),
                       plural(all->broken, "tensor")));
  return 1;
}

}  // namespace hurray::cli
