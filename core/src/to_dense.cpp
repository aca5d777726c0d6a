#include "hurray/to_dense.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "hurray/checked.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/gather.hpp"
#include "move_elements.hpp"
#include "result_limit.hpp"
#include "stored_entries.hpp"

namespace hurray {
namespace {

constexpr auto max_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// Bytes of the elements once they are packed row by row.
Result<std::uint64_t> dense_bytes(const Shape& shape, unsigned width) {
  const std::uint64_t count = shape.count();
  const auto bytes = packed_bytes(width, count);
  if (count <= max_bytes && bytes && *bytes <= max_bytes) return *bytes;
  return Error{.code = Errc::overflow,
               .expect = Expect::at_most,
               .field = "shape",
               .what = "bytes of elements row by row",
               .expected = max_bytes,
               .found = bytes.value_or(std::numeric_limits<std::uint64_t>::max())};
}

/// Moves elements from buffer 0 to row-major places: one, or several at equal distances. Those that
/// are not wholly inside both memories are left out and remembered.
class Mover {
 public:
  Mover(const Elements& from, std::span<std::byte> to) noexcept
      : width_(from.width()), before_(from.tensor().descriptor().byte_offset), to_(to.data()) {
    const Buffer& buffer = from.tensor().buffer(0);
    from_ = buffer.data();
    lowest_ = -elements_in(before_);
    end_ = elements_in(buffer.size() - before_);
    target_end_ = elements_in(to.size());
  }

  void one(std::uint64_t target, std::int64_t slot) noexcept {
    steps(static_cast<std::int64_t>(target), 1, slot, 1, 1);
  }

  /// `count` elements (at least 1) from `slot` on, `slot_step` apart, become row-major elements
  /// from `target` on, `target_step` apart.
  void run(std::uint64_t target, std::uint64_t target_step, std::int64_t slot,
           std::int64_t slot_step, std::uint64_t count) noexcept {
    const auto to = static_cast<std::int64_t>(target);
    if (target_step != 1 || slot_step != 1 || count == 1)
      return steps(to, static_cast<std::int64_t>(target_step), slot, slot_step, count);
    if (!inside(to, 1, slot, 1, count)) return;
    const auto source = place(width_, before_, slot);
    const auto there = place(width_, 0, to);
    if (source && there) detail::copy_run(width_, to_, *there, from_, *source, count);
  }

  /// False where some element was left out.
  bool moved_all() const noexcept { return whole_; }

 private:
  /// Elements that fit in `bytes` bytes, which are in memory.
  std::int64_t elements_in(std::uint64_t bytes) const noexcept {
    return static_cast<std::int64_t>(width_ >= 8 ? bytes / (width_ / 8) : bytes * 8 / width_);
  }

  /// `count` numbers from `first` on, `step` apart, are all in `[low, high)`.
  static bool spans(std::int64_t first, std::int64_t step, std::uint64_t count, std::int64_t low,
                    std::int64_t high) noexcept {
    if (first < low || first >= high) return false;
    if (count == 1) return true;
    const auto way = checked_mul(step, static_cast<std::int64_t>(count - 1));
    const auto last = way ? checked_add(first, *way) : std::nullopt;
    return last && *last >= low && *last < high;
  }

  bool inside(std::int64_t to, std::int64_t to_step, std::int64_t slot, std::int64_t slot_step,
              std::uint64_t count) noexcept {
    const bool held =
        spans(to, to_step, count, 0, target_end_) && spans(slot, slot_step, count, lowest_, end_);
    whole_ &= held;
    return held;
  }

  void steps(std::int64_t to, std::int64_t to_step, std::int64_t slot, std::int64_t slot_step,
             std::uint64_t count) noexcept {
    if (!inside(to, to_step, slot, slot_step, count)) return;
    if (width_ < 8) {
      const auto width = static_cast<std::int64_t>(width_);
      return move_packed(width_, to_, to * width, to_step * width, from_,
                         static_cast<std::int64_t>(before_) * 8 + slot * width, slot_step * width,
                         count);
    }
    const auto bytes = static_cast<std::int64_t>(width_ / 8);
    move_items(width_ / 8, to_ + to * bytes, to_step * bytes,
               from_ + (static_cast<std::int64_t>(before_) + slot * bytes), slot_step * bytes,
               count);
  }

  unsigned width_;
  std::uint64_t before_;
  const std::byte* from_;
  std::byte* to_;
  std::int64_t lowest_;
  std::int64_t end_;
  std::int64_t target_end_;
  bool whole_ = true;
};

/// One at a time, or by runs where the layout has them, in storage order.
Result<void> move_each(const Elements& elements, Mover& mover) {
  const Tensor& tensor = elements.tensor();
  const Shape& shape = tensor.descriptor().shape;
  const auto place_of = [&](std::span<const std::uint64_t> index) {
    std::uint64_t target = 0;
    for (std::size_t k = 0; k < index.size(); ++k) target = target * shape[k] + index[k];
    return target;
  };
  const auto one = [&](std::span<const std::uint64_t> index, auto slot) {
    mover.one(place_of(index), static_cast<std::int64_t>(slot));
    return true;
  };
  const auto by_runs = [&](const DigitCodec& codec) {
    std::array<std::uint64_t, max_rank> pitch;  // row-major elements from one index to the next
    std::uint64_t product = 1;
    for (std::size_t k = shape.rank(); k-- > 0; product *= shape[k]) pitch[k] = product;
    codec.for_each_run([&](const DigitRun& run) {
      const std::uint64_t step = shape.rank() == 0 ? 1 : run.unit * pitch[run.dimension];
      mover.run(place_of(run.index), step, run.offset, run.stride, run.steps);
      return true;
    });
  };
  return std::visit(
      [&]<class T>(const T& layout) -> Result<void> {
        if constexpr (DenseLayout<T>) {
          if constexpr (std::is_same_v<decltype(layout.codec(shape)), DigitCodec>)
            by_runs(layout.codec(shape));
          else
            layout.for_each(shape, one);
        } else if constexpr (SparseLayout<T>) {
          if (auto done = for_each_stored(layout, shape, index_buffers(tensor), one); !done)
            return done.error();
        }
        return {};
      },
      tensor.descriptor().layout);
}

/// Elements of whole bytes under strides.
void gather_strided(const Elements& elements, const Strides& strides, std::span<std::byte> out) {
  const Tensor& tensor = elements.tensor();
  const Shape& shape = tensor.descriptor().shape;
  ArraySource source;
  source.origin = tensor.buffer(0).data() + *to_size(tensor.descriptor().byte_offset);
  source.shape = shape;
  source.item_bytes = elements.width() / 8;
  source.strides.resize(shape.rank());
  for (std::size_t k = 0; k < shape.rank(); ++k)  // one step is a stride that nobody takes
    source.strides[k] =
        shape[k] == 1 ? 0 : strides[k] * static_cast<std::int64_t>(source.item_bytes);
  gather(source, 0, out);
}

/// The lines of a sparse matrix with elements of 1, 2, 4, 8 or 16 bytes, at least one of them: the
/// coordinates are judged as they are moved, since to read them once more costs as much.
bool moved_by_lines(const Tensor& tensor) noexcept {
  const Descriptor& d = tensor.descriptor();
  if (!std::holds_alternative<Csr>(d.layout) && !std::holds_alternative<Csc>(d.layout))
    return false;
  const unsigned width = element_bits(d);
  return width >= 8 && width <= 128 && std::has_single_bit(width) && d.quantization() == nullptr &&
         !d.shape.is_empty();
}

/// Moves the lines. Whatever the index buffers say, nothing outside the memories is read or
/// written, and what is wrong with them is found, though not named: fails as
/// `index_buffers_changed`.
template <std::size_t Bytes, class Lines>
Result<void> scatter(const Lines& layout, const Elements& elements, bool canonical,
                     std::span<std::byte> out) {
  const Shape& shape = elements.tensor().descriptor().shape;
  const IndexBuffers buffers = index_buffers(elements.tensor());
  if (layout.check_pointers(buffers, shape)) return index_buffers_changed();
  const IndexArray coordinates = buffers[1];
  const IndexArray pointers = buffers[2];
  const std::byte* from = elements.tensor().buffer(0).data();
  constexpr bool by_rows = Lines::major == 0;
  const std::size_t line_bytes = (by_rows ? *to_size(shape[1]) : 1) * Bytes;
  const std::size_t step = (by_rows ? 1 : *to_size(shape[1])) * Bytes;
  const std::uint64_t size = shape[Lines::minor];
  const std::uint64_t stored = std::min(layout.nnz, coordinates.size());
  std::uint64_t walked = 0;
  std::uint64_t moved = 0;
  std::byte* line_start = out.data();
  for (std::uint64_t line = 0; line < shape[Lines::major]; ++line, line_start += line_bytes) {
    const IndexSlice in = pointers.slice(line, stored).after(walked);
    std::uint64_t least = 0;  // what the next coordinate may be
    for (std::uint64_t slot = in.first; slot < in.last; ++slot) {
      const std::uint64_t coordinate = coordinates[slot];
      if (coordinate - least >= size - least) return index_buffers_changed();
      if (canonical) least = coordinate + 1;
      std::memcpy(line_start + static_cast<std::size_t>(coordinate) * step,
                  from + static_cast<std::size_t>(slot) * Bytes, Bytes);
    }
    moved += in.last - in.first;
  }
  if (moved != layout.nnz) return index_buffers_changed();
  return {};
}

/// Precondition: `moved_by_lines`.
Result<void> move_lines(const Elements& elements, bool canonical, std::span<std::byte> out) {
  return std::visit(
      [&]<class T>(const T& layout) -> Result<void> {
        if constexpr (std::is_same_v<T, Csr> || std::is_same_v<T, Csc>) {
          switch (elements.width()) {
            case 8:
              return scatter<1>(layout, elements, canonical, out);
            case 16:
              return scatter<2>(layout, elements, canonical, out);
            case 32:
              return scatter<4>(layout, elements, canonical, out);
            case 64:
              return scatter<8>(layout, elements, canonical, out);
            default:
              return scatter<16>(layout, elements, canonical, out);
          }
        }
        return {};
      },
      elements.tensor().descriptor().layout);
}

/// Page by page. The tokens of all sequences follow each other in dimension 0.
Result<void> move_pages(const Elements& elements, const BlockPaged& layout, Mover& mover) {
  const Shape& shape = elements.tensor().descriptor().shape;
  const auto tokens = elements.sequence_tokens();
  if (!tokens) return tokens.error();
  const std::uint64_t token_elements = shape[1] * shape[2];
  const IndexBuffers buffers = index_buffers(elements.tensor());
  std::uint64_t target = 0;
  std::array<std::uint64_t, 4> index{};
  for (index[0] = 0; index[0] < tokens->size(); ++index[0]) {
    const std::uint64_t count = (*tokens)[static_cast<std::size_t>(index[0])];
    for (index[1] = 0; index[1] < count; index[1] += layout.page_size) {
      const auto slot = layout.find(index, shape, buffers);
      if (!slot) break;
      const std::uint64_t run =
          std::min<std::uint64_t>(layout.page_size, count - index[1]) * token_elements;
      mover.run(target, 1, static_cast<std::int64_t>(*slot), 1, run);
      target += run;
    }
  }
  if (target != shape.count()) return index_buffers_changed();
  return {};
}

/// A stored element has the value 0.
bool stores_zeros(const Elements& elements, std::uint64_t nnz) {
  const DType dtype = elements.tensor().descriptor().dtype;
  if (info(dtype) == nullptr) return true;  // only its owner knows
  for (std::uint64_t slot = 0; slot < nnz; ++slot) {
    const auto code = elements.load(static_cast<std::int64_t>(slot));
    if (!code) return true;
    const auto halves = complex_halves(dtype, *code);
    if (to_double(dtype, halves[0]) == 0 &&
        (info(dtype)->kind != Kind::complex || to_double(dtype, halves[1]) == 0))
      return true;
  }
  return false;
}

/// Counts of a sparse tensor take stored zeros for elements; those of a dense one do not.
std::optional<Statistics> statistics_of(const Elements& elements) {
  const Descriptor& d = elements.tensor().descriptor();
  if (d.statistics() == nullptr) return std::nullopt;
  Statistics kept = d.statistics()->sound();
  const auto nnz = nnz_of(d.layout);
  constexpr std::uint32_t counts = static_cast<std::uint32_t>(StatisticsBit::nnz) |
                                   static_cast<std::uint32_t>(StatisticsBit::sparsity);
  if (nnz && (kept.computed_mask & counts) != 0 && stores_zeros(elements, *nnz)) {
    kept.computed_mask &= ~counts;
    kept.nnz = 0;
    kept.sparsity_ratio = 0;
  }
  return kept;
}

Error refused(std::string_view field, std::string_view what) noexcept {
  return {.code = Errc::unsupported, .field = field, .what = what};
}

Result<void> copy_elements(const Elements& elements, std::span<std::byte> out) {
  const Descriptor& d = elements.tensor().descriptor();
  const auto strides = strides_of(d.layout, d.shape);
  if (strides && elements.width() >= 8) {
    gather_strided(elements, *strides, out);
    return {};
  }
  Mover mover(elements, out);
  if (const auto* paged = std::get_if<BlockPaged>(&d.layout)) {
    if (auto done = move_pages(elements, *paged, mover); !done) return done;
  } else if (auto done = move_each(elements, mover); !done) {
    return done;
  }
  if (mover.moved_all()) return {};
  return Error{.code = Errc::out_of_bounds,
               .origin = Origin::buffer,
               .index = 0,
               .field = "buffers[]",
               .what = "an element does not lie in the buffer"};
}

/// What comes after the checks of `elements`; of a tensor that is `moved_by_lines`, with them.
Result<Tensor> dense_copy(const Elements& elements, const ElementOptions& options) {
  const Tensor& tensor = elements.tensor();
  const Descriptor& d = tensor.descriptor();
  const bool by_lines = moved_by_lines(tensor);
  if (d.quantization() != nullptr)
    return refused("quantization", "stored codes are not the elements; dequantize them");
  if (ambiguous_bool(tensor))
    return refused("buffers[]",
                   "a bool tensor with one byte for each element: either that, or packed bits "
                   "with room to spare, and the bytes do not say which");
  if (options.canonical && !by_lines)
    if (auto error = check_canonical(tensor)) return *error;
  if (std::holds_alternative<BlockPaged>(d.layout))
    if (auto tokens = elements.sequence_tokens(); !tokens) return tokens.error();
  const auto nnz = nnz_of(d.layout);
  if (nnz && d.dtype == DType::float8_e8m0 && *nnz != d.shape.count())
    return refused("type_tag", "float8_e8m0 has no zero for the elements that are not stored");
  const auto bytes = dense_bytes(d.shape, elements.width());
  if (!bytes) return bytes.error();
  if (std::holds_alternative<RowMajor>(d.layout) && d.byte_offset == 0 &&
      tensor.buffer(0).size() == *bytes)
    return tensor;
  if (auto fits = within_limit(*bytes, options.max_bytes); !fits) return fits.error();
  auto memory = Buffer::allocate(*bytes, true);
  if (!memory) return memory.error();
  if (!d.shape.is_empty()) {
    const auto done = by_lines ? move_lines(elements, options.canonical, memory->bytes())
                               : copy_elements(elements, memory->bytes());
    if (!done) return done.error();
  }
  Descriptor dense;
  dense.dtype = d.dtype;
  dense.shape = d.shape;
  if (const Shard* shard = d.shard()) dense.set_shard(*shard);
  if (const ExtensionType* type = d.extension_type()) dense.set_extension_type(*type);
  dense.set_statistics(statistics_of(elements));
  return bind(std::move(dense), {std::move(*memory)});
}

}  // namespace

Result<Tensor> to_dense(const Tensor& tensor, const ElementOptions& options) {
  return contain(Origin::buffer, [&]() -> Result<Tensor> {
    const ElementOptions access{.sequence_tokens = options.sequence_tokens};
    const bool by_lines = moved_by_lines(tensor);
    const auto elements =
        by_lines ? Elements::unjudged(tensor, access) : Elements::over(tensor, access);
    if (!elements) return elements.error();
    auto result = dense_copy(*elements, options);
    if (!result && by_lines) {  // what is wrong with the index buffers comes first
      if (auto error = check_bounds(tensor)) return *error;
      if (options.canonical)
        if (auto error = check_canonical(tensor)) return *error;
    }
    return result;
  });
}

}  // namespace hurray
