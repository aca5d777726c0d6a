#include "hurray/materialize.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "hurray/cursor.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/elements.hpp"
#include "hurray/to_dense.hpp"
#include "hurray/values.hpp"
#include "quantized.hpp"
#include "result_limit.hpp"

namespace hurray {
namespace {

Error refused(std::string_view field, std::string_view what) noexcept {
  return {.code = Errc::unsupported, .field = field, .what = what};
}

/// Values of the type can be added (L23).
bool is_addable(DType dtype) noexcept {
  const DTypeInfo* row = info(dtype);
  if (row == nullptr || dtype == DType::float128) return false;
  return row->kind != Kind::boolean && row->kind != Kind::exponent;
}

/// The sum of two floats (or halves of complex numbers), rounded once: a double has more than twice
/// the digits of every narrower type that comes here.
Code sum_of_floats(DType dtype, Code a, Code b) noexcept {
  const double sum = to_double(dtype, a) + to_double(dtype, b);
  const double value = std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum;
  return from_double(dtype, value).value_or(Code{});
}

/// Precondition: `is_addable(dtype)`.
Code sum(DType dtype, Code a, Code b) noexcept {
  const DTypeInfo& row = *info(dtype);
  if (row.kind == Kind::complex) {
    const auto x = complex_halves(dtype, a);
    const auto y = complex_halves(dtype, b);
    const Code real = sum_of_floats(dtype, x[0], y[0]);
    const Code imaginary = sum_of_floats(dtype, x[1], y[1]);
    if (row.bits == 128) return {.low = real.low, .high = imaginary.low};
    return {.low = real.low | imaginary.low << 32};
  }
  if (row.kind == Kind::floating) return sum_of_floats(dtype, a, b);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - row.bits);
  return {.low = (a.low + b.low) & mask};
}

/// Code of a dequantized value in a type that quantized members may have (L19).
Code rounded(DType head, float value) noexcept {
  if (head == DType::float32) return {.low = std::bit_cast<std::uint32_t>(value)};
  return from_double(head, double{value}).value_or(Code{});
}

float float_at(const std::byte* elements, std::int64_t i) noexcept {
  return std::bit_cast<float>(detail::load<std::uint32_t>(elements + 4 * i));
}

/// The elements of a view on their way to be all there, row by row.
class View {
 public:
  View(const Descriptor& head, std::span<std::byte> memory) noexcept
      : shape_(head.shape),
        memory_(memory.data()),
        dtype_(head.dtype),
        width_(element_bits(head)) {}

  /// A member whose box starts at `origin`. `covers_box`: what it does not store counts as 0.
  Result<void> put(const Tensor& member, std::span<const std::uint64_t> origin, CombineOp op,
                   bool covers_box) {
    const bool quantized = member.descriptor().quantization() != nullptr;
    const bool sparse = info(member.descriptor().layout).layout_class == LayoutClass::sparse;
    if (sparse && !covers_box) return put_stored(member, origin, op, quantized);
    const auto dense = quantized ? dequantize(member) : to_dense(member);
    if (!dense) return dense.error();
    if (!dense->descriptor().shape.is_empty()) put_dense(*dense, origin, op, quantized);
    return {};
  }

 private:
  /// Where the member's element `index` goes: its number in row-major order.
  std::int64_t place_of(std::span<const std::uint64_t> origin,
                        std::span<const std::uint64_t> index) const noexcept {
    std::uint64_t at = 0;
    for (std::size_t k = 0; k < index.size(); ++k) at = at * shape_[k] + origin[k] + index[k];
    return static_cast<std::int64_t>(at);
  }

  void set(std::int64_t at, Code code, CombineOp op) noexcept {
    if (op == CombineOp::add) code = sum(dtype_, detail::load_code(memory_, width_, at), code);
    std::array<std::byte, sizeof(Code)> bytes;
    detail::store(bytes.data(), code.low);
    detail::store(bytes.data() + sizeof code.low, code.high);
    detail::copy_run(width_, memory_, *place(width_, 0, at), bytes.data(), {}, 1);
  }

  /// `dense`: row-major, nothing before its first element, and not empty.
  void put_dense(const Tensor& dense, std::span<const std::uint64_t> origin, CombineOp op,
                 bool quantized) noexcept {
    const Shape& shape = dense.descriptor().shape;
    const std::size_t rank = shape.rank();
    const std::uint64_t row = rank != 0 ? shape[rank - 1] : 1;
    const std::byte* from = dense.buffer(0).data();
    std::array<std::uint64_t, max_rank> index{};
    std::int64_t source = 0;
    for (;;) {
      const std::int64_t at = place_of(origin, std::span(index).first(rank));
      if (!quantized && op != CombineOp::add) {
        detail::copy_run(width_, memory_, *place(width_, 0, at), from, *place(width_, 0, source),
                         row);
      } else {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(row); ++i)
          set(at + i,
              quantized ? rounded(dtype_, float_at(from, source + i))
                        : detail::load_code(from, width_, source + i),
              op);
      }
      source += static_cast<std::int64_t>(row);
      std::size_t k = rank != 0 ? rank - 1 : 0;
      while (k > 0 && ++index[k - 1] == shape[k - 1]) index[--k] = 0;
      if (k == 0) return;
    }
  }

  /// Of a sparse correction, what it stores.
  Result<void> put_stored(const Tensor& member, std::span<const std::uint64_t> origin, CombineOp op,
                          bool quantized) {
    const auto elements = Elements::over(member);
    if (!elements) return elements.error();
    if (ambiguous_bool(member))
      return refused("buffers[]",
                     "one byte for each element of a bool tensor: the bytes do not "
                     "say whether they are packed bits");
    if (auto error = check_canonical(member)) return *error;
    std::optional<Quantized> codes;
    if (quantized) codes.emplace(member);
    std::optional<Error> error;
    const std::byte* stored = member.buffer(0).data();
    const auto one = [&](std::span<const std::uint64_t> index, std::int64_t slot) -> bool {
      const std::int64_t at = place_of(origin, index);
      if (codes) {
        const auto value = codes->value_at(*elements, index, slot);
        if (!value) return error = value.error(), false;
        set(at, rounded(dtype_, *value), op);
      } else if (op == CombineOp::add) {
        const auto code = elements->load(slot);
        if (!code) return error = code.error(), false;
        set(at, *code, op);
      } else {
        const auto from = elements->place(slot);
        if (!from) return error = index_buffers_changed(), false;
        detail::copy_run(width_, memory_, *place(width_, 0, at), stored, *from, 1);
      }
      return true;
    };
    const auto done = elements->for_each(one);
    if (error) return *error;
    if (!done) return done.error();
    return {};
  }

  const Shape& shape_;
  std::byte* memory_;
  DType dtype_;
  unsigned width_;
};

/// Why the values that `head` gives its members are not defined, or not by this library.
std::optional<Error> undefined(const Descriptor& head) noexcept {
  const auto& layout = std::get<CompositeHead>(head.layout);
  if (!layout.has_boxes())
    return refused("layout.composition_rule",
                   layout.rule == CompositionRule::group
                       ? "the members of a group are separate tensors"
                       : "only those who agreed on a private rule know its values");
  if (layout.combine_op == CombineOp::add && !is_addable(head.dtype))
    return refused("layout.combine_op", "values of this type cannot be added");
  return std::nullopt;
}

std::string text_of(std::span<const std::size_t> path) {
  std::string text;
  for (const std::size_t i : path)
    text += (text.empty() ? "members[" : ".members[") + std::to_string(i) + "]";
  return text;
}

}  // namespace

Result<Tensor> materialize(const Item& item, std::string* where,
                           const MaterializeOptions& options) {
  return contain(Origin::descriptor, [&]() -> Result<Tensor> {
    if (where != nullptr) where->clear();
    const Descriptor& top = item.tensor.descriptor();
    if (!item.is_composite())
      return refused("layout_tag", "not a composite; convert the tensor itself");
    if (auto valid = check_composite(item, {.max_depth = most_composite_depth}, where); !valid)
      return valid.error();
    if (element_bits(top) == 0) return refused("type_tag", "the width of this type is not known");
    if (auto error = undefined(top)) return *error;

    Descriptor result;
    result.dtype = top.dtype;
    result.shape = top.shape;
    if (const Shard* shard = top.shard()) result.set_shard(*shard);
    if (const ExtensionType* type = top.extension_type()) result.set_extension_type(*type);
    if (const Statistics* statistics = top.statistics()) result.set_statistics(statistics->sound());
    const auto bytes = required_bytes(result, 0);
    if (!bytes) return bytes.error();
    if (auto fits = within_limit(*bytes, options.max_bytes); !fits) return fits.error();
    auto memory = Buffer::allocate(*bytes, true);
    if (!memory) return memory.error();

    View view(top, memory->bytes());
    /// Of the heads on the path: how they compose, and where their boxes start in the view.
    struct Level {
      CompositeHead layout;
      std::vector<std::uint64_t> origin;
    };
    std::vector<Level> levels;
    Result<void> done;
    const auto put = [&](const Item& part, std::span<const std::size_t> path) -> Result<void> {
      const Descriptor& d = part.tensor.descriptor();
      levels.resize(path.size());
      std::vector<std::uint64_t> origin(top.shape.rank());
      for (std::size_t k = 0; k < origin.size() && !path.empty(); ++k)
        origin[k] = levels.back().origin[k] + d.shard()->shard_offset()[k];
      if (part.is_composite()) {
        if (auto error = undefined(d)) return *error;
        levels.push_back({std::get<CompositeHead>(d.layout), std::move(origin)});
        return {};
      }
      const bool correction =
          levels.back().layout.rule == CompositionRule::overlay && path.back() != 0;
      return view.put(part.tensor, origin,
                      correction ? levels.back().layout.combine_op : CombineOp::replace,
                      !correction);
    };
    for_each_item(item, [&](const Item& part, std::span<const std::size_t> path) {
      done = put(part, path);
      if (!done && where != nullptr) *where = text_of(path);
      return done.has_value();
    });
    if (!done) return done.error();
    return bind(std::move(result), {*std::move(memory)});
  });
}

}  // namespace hurray
