#include "elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>
#include <vector>

#include "hurray/dequantize.hpp"
#include "hurray/printer.hpp"
#include "members.hpp"

namespace hurray::cli {
namespace {

io::Error wrong_index(std::string_view what, std::string_view part) {
  return io::Error({.code = Errc::invalid_value,
                    .origin = Origin::file,
                    .expect = Expect::as_said,
                    .field = "INDEX",
                    .what = what},
                   {}, {}, fmt::format("this part is \"{}\"", io::printable(part)));
}

/// A whole number with a sign; none for anything else.
std::optional<std::int64_t> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Where a slice of a dimension of `size` begins or ends, cut to it.
std::uint64_t bound(std::int64_t value, std::uint64_t size) {
  if (value >= 0) return std::min(static_cast<std::uint64_t>(value), size);
  const std::uint64_t back = 0 - static_cast<std::uint64_t>(value);
  return back > size ? 0 : size - back;
}

io::Result<Along> read_part(std::string_view part, std::uint64_t size) {
  constexpr std::string_view form = "numbers such as 3, -1, 0:5, ::2";
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0;;) {
    const std::size_t colon = part.find(':', at);
    pieces.push_back(part.substr(at, colon - at));
    if (colon == std::string_view::npos) break;
    at = colon + 1;
  }
  if (pieces.size() > 3) return wrong_index(form, part);
  std::vector<std::optional<std::int64_t>> numbers;
  for (const std::string_view piece : pieces) {
    numbers.push_back(number(piece));
    if (!numbers.back() && (!piece.empty() || pieces.size() == 1)) return wrong_index(form, part);
  }
  if (pieces.size() == 1) {
    const std::int64_t given = *numbers[0];
    const std::uint64_t i = given >= 0 ? static_cast<std::uint64_t>(given)
                                       : size - (0 - static_cast<std::uint64_t>(given));
    if (i >= size)
      return io::Error({.code = Errc::out_of_bounds,
                        .origin = Origin::file,
                        .expect = Expect::signed_as_said,
                        .field = "INDEX",
                        .what = "an index inside the dimension",
                        .found = static_cast<std::uint64_t>(given)},
                       {}, {}, fmt::format("its size is {}", size));
    return Along::index(i);
  }
  Along along;
  if (pieces.size() == 3 && numbers[2]) {
    if (*numbers[2] < 1) return wrong_index("a step of at least 1", part);
    along.step = static_cast<std::uint64_t>(*numbers[2]);
  }
  along.start = numbers[0] ? bound(*numbers[0], size) : 0;
  along.stop = std::max(along.start, numbers[1] ? bound(*numbers[1], size) : size);
  return along;
}

std::uint64_t count_of(const Along& along) {
  return along.stop <= along.start ? 0 : (along.stop - along.start - 1) / along.step + 1;
}

/// The narrowest decimal that `encode_float` takes back to `code`.
std::string narrow_text(DType dtype, std::uint32_t code) {
  const float value = decode_float(dtype, code);
  for (int digits = 1; digits < 9; ++digits) {
    const std::string text = fmt::format("{:.{}g}", value, digits);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (encode_float(dtype, back) == code) return to_text(back);
  }
  return to_text(value);
}

std::string real_text(DType dtype, unsigned width, Code code) {
  switch (classify(dtype, code)) {
    case FloatClass::nan:
      return "nan";
    case FloatClass::infinite:
      return to_double(dtype, code) < 0 ? "-inf" : "inf";
    case FloatClass::finite:
      break;
  }
  if (width < 32) return narrow_text(dtype, static_cast<std::uint32_t>(code.low));
  if (width == 32) return to_text(decode_float(dtype, static_cast<std::uint32_t>(code.low)));
  return to_text(to_double(dtype, code));
}

std::string code_text(Code code) {
  return code.high == 0 ? to_hex(code.low) : fmt::format("0x{:X}{:016X}", code.high, code.low);
}

}  // namespace

io::Result<Selection> read_selection(std::string_view text, const Shape& shape) {
  std::string bare(text);
  std::erase(bare, ' ');
  if (shape.is_dynamic())
    return io::Error({.code = Errc::unsupported,
                      .origin = Origin::file,
                      .field = "shape",
                      .what = "a dynamic size is not known"});
  Selection selection;
  if (!bare.empty()) {
    std::vector<std::string_view> parts;
    for (std::size_t at = 0;;) {
      const std::size_t comma = bare.find(',', at);
      parts.push_back(std::string_view(bare).substr(at, comma - at));
      if (comma == std::string::npos) break;
      at = comma + 1;
    }
    const auto dots = static_cast<std::size_t>(std::ranges::count(parts, "..."));
    if (dots > 1) return wrong_index("one \"...\"", text);
    if (parts.size() - dots > shape.rank())
      return io::Error({.code = Errc::inconsistent,
                        .origin = Origin::file,
                        .expect = Expect::at_most,
                        .field = "INDEX",
                        .what = "parts, one for each dimension",
                        .expected = shape.rank(),
                        .found = parts.size() - dots});
    for (const std::string_view part : parts) {
      if (part == "...") {
        for (std::size_t k = parts.size() - dots; k < shape.rank(); ++k)
          selection.push_back({.stop = shape[selection.size()]});
        continue;
      }
      auto along = read_part(part, shape[selection.size()]);
      if (!along) return std::move(along).error();
      selection.push_back(*along);
    }
  }
  while (selection.size() < shape.rank()) selection.push_back({.stop = shape[selection.size()]});
  return selection;
}

Blocks Blocks::of(const Shape& shape, std::uint64_t elements) {
  Blocks blocks;
  std::uint64_t behind = 1;
  for (std::size_t k = shape.rank(); k-- > 0;) {
    blocks.divided = k;
    blocks.length = std::max<std::uint64_t>(elements / behind, 1);
    if (shape[k] >= blocks.length) break;
    behind *= std::max<std::uint64_t>(shape[k], 1);
  }
  return blocks;
}

Result<std::optional<Code>> code_at(const Elements& elements,
                                    std::span<const std::uint64_t> index) {
  if (elements.tensor().descriptor().quantization() != nullptr) {
    const auto value = dequantize(elements, index);
    if (!value) return value.error();
    return std::optional(Code{.low = std::bit_cast<std::uint32_t>(*value)});
  }
  const auto slot = elements.slot(index);
  if (!slot) return slot.error();
  if (!*slot) return std::optional<Code>();
  const auto code = elements.load(**slot);
  if (!code) return code.error();
  return std::optional(*code);
}

DType value_type(const Descriptor& descriptor) {
  return descriptor.quantization() != nullptr ? DType::float32 : descriptor.dtype;
}

bool is_read_in_blocks(const Descriptor& descriptor) {
  const Quantization* quantization = descriptor.quantization();
  return is_dense(descriptor.layout) &&
         (quantization == nullptr || tag(quantization->scheme) == SchemeTag::per_tensor_affine);
}

struct SelectedElements::State {
  io::FileSet set;
  std::size_t entry;
  Selection selection;
  Descriptor descriptor;
  Shape shape;
  std::vector<std::size_t> dimensions;  ///< Of the tensor, for each of `shape`.

  bool in_blocks = false;
  Blocks blocks;
  std::vector<std::uint64_t>
      block;  ///< Which one is held: indices, then the first along `divided`.
  std::optional<Elements> elements;

  io::Result<std::optional<Code>> code_at(std::span<const std::uint64_t> index) const {
    const auto code = cli::code_at(*elements, index);
    if (!code) return io::Error(code.error(), set.path(), std::string(set.name(entry)));
    return *code;
  }

  io::Result<void> hold(const io::Result<Tensor>& tensor) {
    if (!tensor) return tensor.error();
    auto over = Elements::over(*tensor);
    if (!over) return io::Error(over.error(), set.path(), std::string(set.name(entry)));
    elements = *std::move(over);
    return {};
  }

  io::Result<void> read_block(std::vector<std::uint64_t> wanted) {
    Selection part = selection;
    for (std::size_t k = 0; k <= blocks.divided; ++k) {
      Along& along = part[dimensions[k]];
      const std::uint64_t first = along.start + wanted[k] * along.step;
      if (k < blocks.divided) {
        along = Along::index(first);
      } else {
        const std::uint64_t count = std::min(blocks.length, shape[k] - wanted[k]);
        along = {.start = first, .stop = first + (count - 1) * along.step + 1, .step = along.step};
      }
    }
    block.clear();
    const auto slice = set.slice(entry, part);
    if (!slice) return slice.error();
    if (auto held = hold(slice->read()); !held) return held;
    block = std::move(wanted);
    return {};
  }
};

io::Result<SelectedElements> SelectedElements::over(const io::FileSet& set, std::size_t entry,
                                                    const Selection& selection,
                                                    std::uint64_t block_elements) {
  auto descriptor = set.descriptor(entry);
  if (!descriptor) return std::move(descriptor).error();
  const auto state = std::make_shared<State>(State{.set = set,
                                                   .entry = entry,
                                                   .selection = selection,
                                                   .descriptor = *std::move(descriptor),
                                                   .shape = {},
                                                   .dimensions = {},
                                                   .blocks = {},
                                                   .block = {},
                                                   .elements = {}});
  const Descriptor& d = state->descriptor;
  if (std::holds_alternative<BlockPaged>(d.layout))
    return io::Error({.code = Errc::unsupported,
                      .origin = Origin::file,
                      .field = "layout_tag",
                      .what = "the tokens of a paged cache's sequences are not in the file"},
                     set.path(), std::string(set.name(entry)), "--raw writes its bytes");
  for (std::size_t k = 0; k < selection.size(); ++k) {
    if (selection[k].drops) continue;
    state->shape.push_back(count_of(selection[k]));
    state->dimensions.push_back(k);
  }
  state->in_blocks = is_read_in_blocks(d);
  if (!state->in_blocks) {
    const auto [file, i] = set.place(entry);
    if (auto held = state->hold(file->tensor(i)); !held) return std::move(held).error();
    return SelectedElements(state);
  }
  const Shape& shape = state->shape;
  state->blocks = Blocks::of(shape, block_elements);
  if (shape.rank() == 0) {
    const auto slice = set.slice(entry, selection);
    if (!slice) return slice.error();
    if (auto held = state->hold(slice->read()); !held) return std::move(held).error();
  } else if (shape.is_empty()) {
    if (auto slice = set.slice(entry, selection); !slice) return slice.error();
  }
  return SelectedElements(state);
}

DType SelectedElements::dtype() const noexcept { return value_type(state_->descriptor); }

const Shape& SelectedElements::shape() const noexcept { return state_->shape; }

io::Result<std::optional<Code>> SelectedElements::at(std::span<const std::uint64_t> index) const {
  State& state = *state_;
  std::vector<std::uint64_t> inside;
  if (!state.in_blocks) {
    std::size_t next = 0;
    for (const Along& along : state.selection)
      inside.push_back(along.drops ? along.start : along.start + index[next++] * along.step);
    return state.code_at(inside);
  }
  if (!index.empty()) {
    const std::size_t divided = state.blocks.divided;
    std::vector<std::uint64_t> wanted(index.begin(),
                                      index.begin() + static_cast<std::ptrdiff_t>(divided + 1));
    wanted.back() -= wanted.back() % state.blocks.length;
    if (wanted != state.block)
      if (auto read = state.read_block(std::move(wanted)); !read) return std::move(read).error();
    inside.assign(index.begin() + static_cast<std::ptrdiff_t>(divided), index.end());
    inside.front() -= state.block.back();
  }
  return state.code_at(inside);
}

std::string element_text(DType dtype, const std::optional<Code>& code) {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr) return code ? code_text(*code) : "0";
  switch (row->kind) {
    case Kind::boolean:
      return code && code->low != 0 ? "True" : "False";
    case Kind::integer:
      return std::to_string(code ? to_integer(dtype, *code) : 0);
    case Kind::unsigned_integer:
      return std::to_string(code ? code->low : 0);
    case Kind::floating:
    case Kind::exponent:
      return code ? real_text(dtype, row->bits, *code) : "0";
    case Kind::complex:
      break;
  }
  const auto halves = complex_halves(dtype, code.value_or(Code{}));
  const DType half = dtype == DType::complex64 ? DType::float32 : DType::float64;
  std::string imaginary = real_text(half, bits(half), halves[1]);
  if (!imaginary.starts_with('-')) imaginary.insert(0, 1, '+');
  return real_text(half, bits(half), halves[0]) + imaginary + 'j';
}

void element_value(Json& json, DType dtype, const std::optional<Code>& code) {
  const DTypeInfo* row = info(dtype);
  const Code held = code.value_or(Code{});
  if (row == nullptr) return json.value(code_text(held));
  switch (row->kind) {
    case Kind::boolean:
      return json.value(held.low != 0);
    case Kind::integer:
      return json.value(to_integer(dtype, held));
    case Kind::unsigned_integer:
      return json.value(held.low);
    case Kind::floating:
    case Kind::exponent:
      return json.value(code ? to_double(dtype, held) : 0.0);
    case Kind::complex:
      break;
  }
  json.begin_array();
  for (const Code half : complex_halves(dtype, held)) json.value(to_double(dtype, half));
  json.end_array();
}

}  // namespace hurray::cli
