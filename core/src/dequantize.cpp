#include "hurray/dequantize.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "hurray/checked.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/quantization_checks.hpp"
#include "result_limit.hpp"
#include "row_dequantizer.hpp"

namespace hurray {
namespace {

/// What is written from this size on, in bytes, bypasses the caches: it would push out everything
/// else.
constexpr std::uint64_t streamed_bytes = std::uint64_t{8} << 20;

/// Floats that are computed in a cache before they are streamed.
constexpr std::size_t staged = 4096;

Result<void> is_quantized(const Tensor& tensor) {
  if (tensor.descriptor().quantization() != nullptr) return {};
  if (std::holds_alternative<CompositeHead>(tensor.descriptor().layout))
    return Error{.code = Errc::unsupported,
                 .field = "layout_tag",
                 .what = "a composite head stores no codes: materialize it"};
  return Error{.code = Errc::unsupported,
               .field = "quantization",
               .what = "not there: the elements are values already"};
}

Result<std::uint64_t> result_bytes(const Shape& shape) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto bytes = checked_mul<std::uint64_t>(shape.count(), sizeof(float));
  if (bytes && *bytes <= most) return *bytes;
  return Error{.code = Errc::overflow,
               .expect = Expect::at_most,
               .field = "shape",
               .what = "bytes of float32 elements",
               .expected = most,
               .found = bytes.value_or(std::numeric_limits<std::uint64_t>::max())};
}

/// Where the result goes. The pages of fresh memory are cleared as they are first touched, and are
/// in the caches then.
enum class Target : std::uint8_t { fresh, used };

void dequantize_rows(const RowDequantizer& rows, std::span<float> out, Target target) {
  if (target == Target::fresh || out.size_bytes() < streamed_bytes) return rows.fill(0, out);
  alignas(64) std::array<float, staged> stage;
  for (std::size_t done = 0; done < out.size(); done += stage.size()) {
    const auto piece = std::span(stage).first(std::min(stage.size(), out.size() - done));
    rows.fill(done, piece);
    rows.path().copy(out.data() + done, piece.data(), piece.size());
  }
}

/// Element by element, in storage order. `out` holds zeros where nothing is stored.
Result<void> dequantize_each(const Elements& elements, std::span<float> out) {
  const Descriptor& d = elements.tensor().descriptor();
  const Quantized quantized(elements.tensor());
  const bool paged = std::holds_alternative<BlockPaged>(d.layout);
  std::size_t next = 0;  // the tokens of all sequences follow each other
  std::optional<Error> failed;
  const auto visited =
      elements.for_each([&](std::span<const std::uint64_t> index, std::int64_t slot) {
        std::uint64_t to = 0;
        if (paged)
          to = next++;
        else
          for (std::size_t k = 0; k < index.size(); ++k) to = to * d.shape[k] + index[k];
        const std::uint64_t entry = quantized.entry(index, slot);
        const auto code = elements.load(slot);
        // Index buffers in shared memory may have changed after they were checked.
        if (!code || to >= out.size() || entry >= quantized.entries()) {
          failed = code ? index_buffers_changed() : code.error();
          return false;
        }
        out[static_cast<std::size_t>(to)] = quantized.value(*code, entry);
        return true;
      });
  if (!visited) return visited.error();
  if (failed) return *failed;
  return {};
}

/// Elements whose bounds are checked and whose parameters may be used.
Result<Elements> checked_elements(const Tensor& tensor, const ElementOptions& options) {
  if (auto there = is_quantized(tensor); !there) return there.error();
  auto elements = Elements::over(tensor, {.sequence_tokens = options.sequence_tokens});
  if (!elements) return elements;
  if (std::holds_alternative<BlockPaged>(tensor.descriptor().layout))
    if (auto tokens = elements->sequence_tokens(); !tokens) return tokens.error();
  if (options.canonical)
    if (auto error = check_canonical(tensor)) return *error;
  if (auto ok = check_parameters(tensor, options.sequence_tokens); !ok) return ok.error();
  return elements;
}

/// `out` holds zeros where the layout is not dense.
Result<void> dequantize_all(const Elements& elements, std::span<float> out, Target target) {
  const Tensor& tensor = elements.tensor();
  const Descriptor& d = tensor.descriptor();
  if (d.shape.is_empty()) return {};
  if (!is_dense(d.layout) || !is_row_major(d)) return dequantize_each(elements, out);
  const auto rows = RowDequantizer::over(tensor);
  if (!rows) return rows.error();
  dequantize_rows(*rows, out, target);
  return {};
}

/// Statistics speak of real values; counts of a sparse tensor take stored zeros for elements.
std::optional<Statistics> kept_statistics(const Descriptor& d) {
  if (d.statistics() == nullptr) return std::nullopt;
  Statistics kept = d.statistics()->sound();
  if (info(d.layout).layout_class != LayoutClass::sparse) return kept;
  kept.computed_mask &= ~(static_cast<std::uint32_t>(StatisticsBit::nnz) |
                          static_cast<std::uint32_t>(StatisticsBit::sparsity));
  kept.nnz = 0;
  kept.sparsity_ratio = 0;
  return kept;
}

/// The value in the slot of `index`, whose parameters are judged first.
Result<float> value_at(const Elements& elements, const Quantized& quantized,
                       std::span<const std::uint64_t> index) {
  const auto slot = elements.slot(index);
  if (!slot) return slot.error();
  if (!*slot) return 0.0f;
  return quantized.value_at(elements, index, **slot);
}

}  // namespace

Result<float> dequantize(const Elements& elements, std::span<const std::uint64_t> index) {
  if (auto there = is_quantized(elements.tensor()); !there) return there.error();
  return value_at(elements, Quantized(elements.tensor()), index);
}

Result<std::size_t> dequantize_block(const Elements& elements, std::uint64_t block,
                                     std::span<float> out) {
  const Descriptor& d = elements.tensor().descriptor();
  if (auto there = is_quantized(elements.tensor()); !there) return there.error();
  const Quantized quantized(elements.tensor());
  const std::uint64_t size = quantized.parameters().block_size;
  if (size == 0 || std::holds_alternative<BlockPaged>(d.layout))
    return Error{.code = Errc::unsupported,
                 .field = "quantization.scheme_tag",
                 .what = "no blocks along an axis; dequantize single elements or the tensor"};
  if (block >= quantized.entries())
    return Error{.code = Errc::out_of_bounds,
                 .expect = Expect::as_said,
                 .field = "block",
                 .what = "the number of a block of this tensor",
                 .found = block};
  const std::uint32_t axis = *quantized.parameters().axis;
  const std::uint64_t blocks = d.shape[axis] / size + (d.shape[axis] % size != 0);
  std::array<std::uint64_t, max_rank> index{};
  std::uint64_t line = block / blocks;
  for (std::size_t k = d.shape.rank(); k-- > 0;)
    if (k != axis) {
      index[k] = line % d.shape[k];
      line /= d.shape[k];
    }
  index[axis] = block % blocks * size;
  const auto length = static_cast<std::size_t>(std::min(size, d.shape[axis] - index[axis]));
  if (out.size() < length)
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::at_least,
                 .field = "out",
                 .what = "elements of this block",
                 .expected = length,
                 .found = out.size()};
  for (std::size_t i = 0; i < length; ++i, ++index[axis]) {
    const auto value = value_at(elements, quantized, std::span(index).first(d.shape.rank()));
    if (!value) return value.error();
    out[i] = *value;
  }
  return length;
}

Result<Tensor> dequantize(const Tensor& tensor, const ElementOptions& options) {
  return contain(Origin::buffer, [&]() -> Result<Tensor> {
    const auto elements = checked_elements(tensor, options);
    if (!elements) return elements.error();
    const Descriptor& d = tensor.descriptor();
    const auto bytes = result_bytes(d.shape);
    if (!bytes) return bytes.error();
    if (auto fits = within_limit(*bytes, options.max_bytes); !fits) return fits.error();
    auto memory = Buffer::allocate(*bytes, !is_dense(d.layout));
    if (!memory) return memory.error();
    const std::span out(reinterpret_cast<float*>(memory->data()), *to_size(*bytes / sizeof(float)));
    if (auto done = dequantize_all(*elements, out, Target::fresh); !done) return done.error();
    if constexpr (std::endian::native == std::endian::big)
      for (std::size_t i = 0; i < out.size(); ++i)
        detail::store(memory->data() + i * sizeof(float), std::bit_cast<std::uint32_t>(out[i]));
    Descriptor values;
    values.shape = d.shape;
    if (const Shard* shard = d.shard()) values.set_shard(*shard);
    values.set_statistics(kept_statistics(d));
    return bind(std::move(values), {std::move(*memory)});
  });
}

Result<void> dequantize_into(const Tensor& tensor, std::span<float> out,
                             const ElementOptions& options) {
  return contain(Origin::buffer, [&]() -> Result<void> {
    const auto elements = checked_elements(tensor, options);
    if (!elements) return elements.error();
    const std::uint64_t count = tensor.descriptor().shape.count();
    if (out.size() != count)
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "out",
                   .what = "elements, as in the shape",
                   .expected = count,
                   .found = out.size()};
    if (!is_dense(tensor.descriptor().layout)) std::ranges::fill(out, 0.0f);
    return dequantize_all(*elements, out, Target::used);
  });
}

}  // namespace hurray
