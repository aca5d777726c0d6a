#include "html.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace hurray::python {
namespace html {
namespace {

std::string number(double value) {
  char text[32];  // whatever the locale
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 1).ptr;
  return {text, end};
}

std::string hex(const char* format, unsigned value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Bytes of the UTF-8 character that `text` begins with, and its number; 1 byte and none where it
/// is not one.
std::pair<std::size_t, std::optional<unsigned>> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {1, std::nullopt};
  unsigned value = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {1, std::nullopt};
    value = value << 6 | (byte(i) & 0x3F);
  }
  return {length, value};
}

/// Controls, and characters that are not seen or reorder what is.
bool is_unseen(unsigned c) noexcept {
  struct Range {
    unsigned first;
    unsigned last;
  };
  constexpr auto ranges = std::to_array<Range>({{0x00, 0x1F},
                                                {0x7F, 0x9F},
                                                {0xAD, 0xAD},
                                                {0x061C, 0x061C},
                                                {0x200B, 0x200F},
                                                {0x2028, 0x202E},
                                                {0x2060, 0x206F},
                                                {0xD800, 0xDFFF},
                                                {0xFEFF, 0xFEFF},
                                                {0xFFF9, 0xFFFB},
                                                {0xE0000, 0xE0FFF}});
  return std::ranges::any_of(ranges, [c](Range r) { return c >= r.first && c <= r.last; });
}

std::string shape_text(const Shape& shape) { return nb::repr(wrap_shape(shape)).c_str(); }

std::string device_text(const PyDevice& device) {
  const auto named = [](std::string_view name, std::uint8_t tag) {
    return is_private(tag) ? std::string(name) + " (" + hex("0x%02X", tag) + ")"
                           : std::string(name);
  };
  std::string text = named(name(device.kind), static_cast<std::uint8_t>(device.kind));
  if (device.device_id != 0) text += ":" + std::to_string(device.device_id);
  if (device.memory_class != MemoryClass::standard)
    text += ", " + named(name(device.memory_class), static_cast<std::uint8_t>(device.memory_class));
  return text;
}

std::uint64_t bytes_of(const Descriptor& d) noexcept {
  std::uint64_t sum = 0;
  for (const BufferHandle& handle : d.buffers) sum += handle.byte_size;
  return sum;
}

// ---- pictures
// --------------------------------------------------------------------------------------

constexpr double side = 96;      // of the square for the layout
constexpr std::size_t most = 8;  // cells along a side, pages, buffers
constexpr double line_height = 16;

struct Box {
  double x;
  double y;
  double width;
  double height;
};

std::string rectangle(Box box, double opacity) {
  return "<rect x=\"" + number(box.x) + "\" y=\"" + number(box.y) + "\" width=\"" +
         number(box.width) + "\" height=\"" + number(box.height) +
         "\" fill=\"currentColor\" fill-opacity=\"" + number(opacity) +
         "\" stroke=\"currentColor\" stroke-width=\"0.5\"/>";
}

std::string label(double x, double y, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) +
         "\" font-size=\"10\" fill=\"currentColor\">" + escaped(text) + "</text>";
}

/// The corner of the last two dimensions with a line through its elements as they follow each other
/// in memory.
std::string dense_sketch(const Descriptor& d) {
  if (d.shape.is_dynamic() || d.shape.is_empty()) return rectangle({0, 0, side, side}, 0);
  const std::size_t rank = d.shape.rank();
  const auto cells = [&](std::size_t from_end) {
    return rank >= from_end
               ? static_cast<std::size_t>(std::min<std::uint64_t>(d.shape[rank - from_end], most))
               : std::size_t{1};
  };
  const std::size_t rows = cells(2);
  const std::size_t columns = cells(1);
  const double cell = side / static_cast<double>(std::max(rows, columns));
  struct Place {
    std::int64_t offset;
    std::size_t row;
    std::size_t column;
  };
  std::vector<Place> places;
  std::visit(
      [&]<class T>(const T& layout) {
        if constexpr (DenseLayout<T>) {
          const auto codec = layout.codec(d.shape);
          std::array<std::uint64_t, max_rank> index{};
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < columns; ++c) {
              if (rank >= 2) index[rank - 2] = r;
              if (rank >= 1) index[rank - 1] = c;
              places.push_back({codec.offset(std::span(index).first(rank)), r, c});
            }
        }
      },
      d.layout);
  std::ranges::stable_sort(places, {}, &Place::offset);
  std::string text;
  std::string points;
  for (const Place& place : places) {
    const double x = static_cast<double>(place.column) * cell;
    const double y = static_cast<double>(place.row) * cell;
    text += rectangle({x, y, cell, cell}, 0.1);
    points += number(x + cell / 2) + "," + number(y + cell / 2) + " ";
  }
  return text + "<polyline points=\"" + points +
         "\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/>";
}

/// How much of the index space is stored.
std::string sparse_sketch(const Descriptor& d, std::uint64_t nnz) {
  double share = 0;
  if (!d.shape.is_dynamic() && !d.shape.is_empty()) {
    share = static_cast<double>(nnz);
    for (const std::uint64_t n : d.shape) share /= static_cast<double>(n);
  }
  const double filled = std::clamp(share, 0.0, 1.0) * side;
  return rectangle({0, 0, side, side}, 0) + rectangle({0, side - filled, side, filled}, 0.4) +
         label(4, 14, "nnz " + std::to_string(nnz));
}

std::string paged_sketch(const BlockPaged& paged) {
  std::string text;
  const auto pages = static_cast<std::size_t>(std::min<std::uint64_t>(paged.num_pages, most));
  for (std::size_t i = 0; i < pages; ++i)
    text +=
        rectangle({static_cast<double>(i % 4) * 24, static_cast<double>(i / 4) * 24, 20, 20}, 0.2);
  return text + label(0, 66, std::to_string(paged.num_pages) + " pages") +
         label(0, 82, "of " + std::to_string(paged.page_size) + " tokens");
}

std::string sketch(const Descriptor& d) {
  if (is_dense(d.layout)) return dense_sketch(d);
  if (const auto nnz = nnz_of(d.layout)) return sparse_sketch(d, *nnz);
  if (const auto* paged = std::get_if<BlockPaged>(&d.layout)) return paged_sketch(*paged);
  if (const auto* head = std::get_if<CompositeHead>(&d.layout))
    return rectangle({0, 0, side, side}, 0) +
           label(4, 14, std::to_string(head->member_count) + " members");
  return rectangle({0, 0, side, side}, 0) + label(44, 52, "?");
}

/// A bar with words beside it.
struct Bar {
  std::uint64_t bytes;
  std::string text;
};

/// As long as they are large, at `x`; `count` in all.
std::string bar_chart(double x, std::span<const Bar> bars, std::size_t count) {
  std::uint64_t largest = 1;
  for (const Bar& bar : bars) largest = std::max(largest, bar.bytes);
  std::string text;
  double y = 0;
  for (const Bar& bar : bars) {
    const double share = static_cast<double>(bar.bytes) / static_cast<double>(largest);
    text += rectangle({x, y + 2, share * 80, line_height - 6}, 0.4) +
            label(x + 88, y + 11, bar.text + ": " + std::to_string(bar.bytes) + " bytes");
    y += line_height;
  }
  if (count > bars.size())
    text += label(x + 88, y + 11, "… " + std::to_string(count - bars.size()) + " more");
  return text;
}

std::string buffer_bars(const Descriptor& d) {
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < std::min(d.buffers.size(), most); ++i) {
    std::string role(hurray::role(d.layout, i));
    if (!role.empty()) role = " " + role;
    bars.push_back({d.buffers[i].byte_size, std::to_string(i) + role});
  }
  return bar_chart(side + 16, bars, d.buffers.size());
}

std::string drawing(std::string_view what, std::size_t lines, const std::string& content) {
  const double height = std::max(side, static_cast<double>(lines) * line_height) + 2;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"" + escaped(what) +
         "\" width=\"400\" height=\"" + number(height) + "\" viewBox=\"-1 -1 400 " +
         number(height) + "\">" + content + "</svg>";
}

/// Where the members of a partition or overlay lie in the last two dimensions of the head.
std::string member_boxes(const Item& item) {
  const Shape& whole = item.tensor.descriptor().shape;
  std::string text = rectangle({0, 0, side, side}, 0);
  for (std::size_t i = 0; i < std::min(item.members.size(), max_rows); ++i) {
    const Descriptor& member = item.members[i].tensor.descriptor();
    const Shard* shard = member.shard();
    if (member.shape.rank() != whole.rank()) continue;
    const auto along = [&](std::size_t from_end) -> std::pair<double, double> {
      if (whole.rank() < from_end) return {0, side};
      const std::size_t k = whole.rank() - from_end;
      const double all = std::max(1.0, static_cast<double>(whole[k]));
      const double start = shard != nullptr ? static_cast<double>(shard->shard_offset()[k]) : 0.0;
      return {start / all * side, static_cast<double>(member.shape[k]) / all * side};
    };
    const auto [y, height] = along(2);
    const auto [x, width] = along(1);
    text += rectangle({x, y, width, height}, 0.2) + label(x + 3, y + 12, std::to_string(i));
  }
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto [length, character] = first_character(text);
    const unsigned c = character.value_or(static_cast<unsigned char>(text[0]));
    if (!character || (is_unseen(c) && c < 0x100)) {
      result += hex("\\x%02x", c);
    } else if (is_unseen(c)) {
      result += hex(c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

namespace {

std::array<std::string, 7> cells_of(const Row& row) {
  if (row.descriptor == nullptr) return {row.name, "cannot be read", "", "", "", "", ""};
  const Descriptor& d = *row.descriptor;
  const Quantization* quantization = d.quantization();
  return {row.name,
          shape_text(d.shape),
          std::string(name(d.dtype)),
          std::string(name(d.layout)),
          d.buffers.empty() ? std::string() : device_text(row.device),
          std::to_string(bytes_of(d)),
          quantization != nullptr ? std::string(name(quantization->scheme)) : std::string()};
}

}  // namespace

std::string table(std::string_view title, std::span<const Row> rows, std::uint64_t total) {
  std::string text = "<div><strong>" + escaped(title) + "</strong><table><thead><tr>";
  for (const char* column : {"name", "shape", "dtype", "layout", "device", "bytes", "scheme"})
    text += std::string("<th>") + column + "</th>";
  text += "</tr></thead><tbody>";
  const std::size_t count = std::min(rows.size(), max_rows);
  for (const Row& row : rows.first(count)) {
    text += "<tr>";
    for (const std::string& cell : cells_of(row)) text += "<td>" + escaped(cell) + "</td>";
    text += "</tr>";
  }
  text += "</tbody></table>";
  if (total > count) text += "<p>… " + std::to_string(total - count) + " more</p>";
  return text + "</div>";
}

std::string picture(const Descriptor& descriptor) {
  return drawing(name(descriptor.layout), std::min(descriptor.buffers.size(), most + 1),
                 sketch(descriptor) + buffer_bars(descriptor));
}

std::string picture(const Item& item) {
  const Descriptor& top = item.tensor.descriptor();
  const auto* head = std::get_if<CompositeHead>(&top.layout);
  if (head == nullptr || !head->has_boxes()) return picture(top);
  return drawing(name(head->rule), 0, member_boxes(item));
}

std::string bars(std::string_view what, std::span<const Row> rows) {
  std::vector<Bar> bars;
  for (const Row& row : rows.first(std::min(rows.size(), most)))
    bars.push_back({row.descriptor != nullptr ? bytes_of(*row.descriptor) : 0, row.name});
  return drawing(what, std::min(rows.size(), most + 1), bar_chart(0, bars, rows.size()));
}

std::vector<Row> rows_of(const std::string& name, const Item& item) {
  std::vector<Row> rows;
  for_each_item(item, [&](const Item& part, std::span<const std::size_t> path) {
    std::string own = name;
    for (const std::size_t i : path) own += (own.empty() ? "" : ".") + std::to_string(i);
    const Descriptor& d = part.tensor.descriptor();
    rows.push_back({std::move(own), &d, d.buffers.empty() ? PyDevice{} : declared_device(d)});
    return rows.size() < max_rows;
  });
  return rows;
}

}  // namespace html

void def_html(nb::class_<PyTensor>& type) {
  type.def(
      "_repr_html_",
      [](const PyTensor& t) {
        return html::shown([&] {
          const html::Row row{"", &t.descriptor(), t.placement()};
          return html::table("hurray.Tensor", {&row, 1}, 1) + html::picture(t.descriptor());
        });
      },
      nb::sig("def _repr_html_(self) -> str | None"),
      "A table and a picture for notebooks, from metadata alone.");
}

}  // namespace hurray::python
