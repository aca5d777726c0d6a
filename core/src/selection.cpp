#include "hurray/selection.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "element_runs.hpp"
#include "hurray/checked.hpp"
#include "hurray/elements.hpp"
#include "move_elements.hpp"

namespace hurray {
namespace {

constexpr auto max_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
/// Runs of one piece, which are kept until its bytes are there.
constexpr std::size_t max_runs = 16384;
/// From so many bytes on, bytes that lie in the result as they do in the buffer are read by
/// themselves.
constexpr std::uint64_t direct_bytes = std::uint64_t{256} << 10;

/// Smaller tiles are read over like all else.
constexpr std::uint64_t least_tile_bytes = 4096;

Error refused(std::string_view field, std::string_view what) noexcept {
  return {.code = Errc::unsupported, .field = field, .what = what};
}

/// Whether elements of this tensor can be read on their own at all.
Result<void> is_readable(const Descriptor& d, Provenance provenance) {
  if (auto why = opaque(d)) return *why;
  for (std::size_t i = 0; i < d.buffers.size(); ++i)
    if (d.buffers[i].sync_mode != SyncMode::producer_synced)
      return Error{.code = Errc::unsupported,
                   .origin = Origin::buffer,
                   .index = i,
                   .field = "buffers[].sync_mode",
                   .what = "the bytes of a buffer that is not producer_synced are not read",
                   .found = static_cast<std::uint64_t>(d.buffers[i].sync_mode)};
  if (!is_dense(d.layout)) return refused("layout_tag", name(d.layout));
  for (std::size_t k = 0; k < d.shape.rank(); ++k)
    if (d.shape[k] == dynamic) {
      Error error = refused("shape[]", "elements have no address while a size is dynamic");
      error.index = k;
      return error;
    }
  if (const Quantization* q = d.quantization();
      q != nullptr && !std::holds_alternative<PerTensorAffine>(q->scheme))
    return refused("quantization", name(q->scheme));
  if (provenance == Provenance::outside && ambiguous_bool(d))
    return refused("buffers[]",
                   "a bool tensor with one byte for each element: either that, or packed bits "
                   "with room to spare, and the bytes do not say which");
  return {};
}

/// What `along` takes of a dimension of `size` elements.
Result<Taken> take(const Along& along, std::uint64_t size, std::size_t k) {
  const auto wrong = [&](Errc code, Expect expect, std::string_view what, std::uint64_t expected,
                         std::uint64_t found) {
    return Error{.code = code,
                 .expect = expect,
                 .index = k,
                 .field = "selection[]",
                 .what = what,
                 .expected = expected,
                 .found = found};
  };
  if (along.drops) {
    if (along.start < size) return Taken{.start = along.start, .count = 1};
    return wrong(Errc::out_of_bounds, Expect::as_said, "an index below the size of the dimension",
                 size, along.start);
  }
  if (along.step == 0)
    return wrong(Errc::invalid_value, Expect::at_least, "as step", 1, along.step);
  const std::uint64_t stop = along.stop == Along::end ? size : along.stop;
  if (stop > size)
    return wrong(Errc::out_of_bounds, Expect::at_most, "as stop, the size of the dimension", size,
                 stop);
  if (along.start >= stop) return Taken{};
  Taken taken{.start = along.start, .count = 1 + (stop - 1 - along.start) / along.step};
  if (taken.count > 1) taken.step = along.step;
  return taken;
}

}  // namespace

struct SelectionPlan::State {
  Layout layout;
  Shape shape;
  std::uint64_t byte_offset = 0;
  std::uint64_t buffer_bytes = 0;
  unsigned width = 0;
  std::vector<Taken> taken;  ///< One for each dimension of the tensor.
  std::vector<std::int64_t> offsets;
  std::optional<std::uint64_t> tile_bytes;
  Descriptor result;
  std::uint64_t count = 0;
  std::uint64_t size_bytes = 0;
  bool whole = true;
  std::optional<std::uint64_t> contiguous;

  /// Where `count` elements from `slot` on lie, `step` (not negative) apart.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t behind = 0;
    unsigned shift = 0;  ///< Of the first.
  };
  std::optional<Range> range(std::int64_t slot, std::int64_t step,
                             std::uint64_t elements) const noexcept {
    const auto way = checked_mul(step, static_cast<std::int64_t>(elements - 1));
    const auto last = way ? checked_add(slot, *way) : std::nullopt;
    const auto from = place(width, byte_offset, slot);
    const auto to = last ? place(width, byte_offset, *last) : std::nullopt;
    if (!from || !to || to->byte > buffer_bytes ||
        touched_bytes(width, to->shift) > buffer_bytes - to->byte)
      return std::nullopt;
    return Range{from->byte, to->byte + touched_bytes(width, to->shift), from->shift};
  }

  /// Where the result lies in the buffer as it is.
  std::optional<std::uint64_t> find_contiguous() const {
    ElementRun run;
    if (count == 0 || !runs_of(layout, shape, taken, {})->next(run) || run.count != count ||
        (run.count != 1 && (run.slot_step != 1 || run.target_step != 1)))
      return std::nullopt;
    const auto there = range(run.slot, 1, run.count);
    if (!there || there->shift != 0 || size_bytes > buffer_bytes - there->first)
      return std::nullopt;
    // Bits behind the last element would be those of others.
    if (width < 8 && count * width % 8 != 0 && !whole) return std::nullopt;
    return there->first;
  }

  /// Bits of the result that element `target` starts above the lowest of its byte.
  unsigned target_shift(std::int64_t target) const noexcept {
    return width >= 8 ? 0 : static_cast<unsigned>((target & 7) * static_cast<int>(width)) & 7;
  }
  std::uint64_t target_byte(std::int64_t target) const noexcept {
    return place(width, 0, target).value_or(Place{}).byte;
  }
};

Result<SelectionPlan> SelectionPlan::of(const Descriptor& d, std::span<const Along> selection,
                                        Provenance provenance) {
  return contain(Origin::descriptor, [&]() -> Result<SelectionPlan> {
    if (auto ready = is_readable(d, provenance); !ready) return ready.error();
    if (selection.size() > d.shape.rank())
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::at_most,
                   .field = "selection",
                   .what = "parts, as many as dimensions",
                   .expected = d.shape.rank(),
                   .found = selection.size()};
    State state;
    state.layout = d.layout;
    state.shape = d.shape;
    state.byte_offset = d.byte_offset;
    state.buffer_bytes = d.buffers.empty() ? 0 : d.buffers[0].byte_size;
    state.width = element_bits(d);
    state.result.dtype = d.dtype;
    for (std::size_t k = 0; k < d.shape.rank(); ++k) {
      const Along along = k < selection.size() ? selection[k] : Along{};
      const auto taken = take(along, d.shape[k], k);
      if (!taken) return taken.error();
      state.whole &= taken->all(d.shape[k]) && !along.drops;
      state.taken.push_back(*taken);
      // The pitch of what is kept follows below.
      state.taken.back().pitch = along.drops ? 0 : 1;
      if (!along.drops) state.result.shape.push_back(taken->count);
    }
    state.count = state.result.shape.count();
    const auto bytes = packed_bytes(state.width, state.count);
    if (state.count > max_bytes || !bytes || *bytes > max_bytes)
      return Error{.code = Errc::overflow,
                   .expect = Expect::at_most,
                   .field = "selection",
                   .what = "bytes of selected elements",
                   .expected = max_bytes,
                   .found = bytes.value_or(std::numeric_limits<std::uint64_t>::max())};
    state.size_bytes = *bytes;
    std::uint64_t pitch = 1;
    for (std::size_t k = state.taken.size(); k-- > 0 && state.count != 0;) {
      if (state.taken[k].pitch == 0) continue;
      state.taken[k].pitch = static_cast<std::int64_t>(pitch);
      pitch *= state.taken[k].count;
    }
    if (const Quantization* q = d.quantization()) state.result.set_quantization(*q);
    if (const ExtensionType* type = d.extension_type()) state.result.set_extension_type(*type);
    BufferHandle handle = d.buffers.empty() ? BufferHandle{} : d.buffers[0];
    handle.byte_size = state.size_bytes;
    state.result.buffers.push_back(handle);
    if (const auto* tiled = std::get_if<Tiled>(&d.layout)) {
      Shape tile(tiled->level(0, d.shape.rank()).tile_shape);
      state.tile_bytes = packed_bytes(state.width, tile.count());
    }
    if (state.count != 0) state.offsets = block_offsets(d.layout, d.shape, state.taken);
    state.contiguous = state.find_contiguous();
    return SelectionPlan(std::make_shared<const State>(std::move(state)));
  });
}

SelectionPlan::SelectionPlan(std::shared_ptr<const State> state) noexcept
    : state_(std::move(state)) {}
const Descriptor& SelectionPlan::descriptor() const noexcept { return state_->result; }
std::uint64_t SelectionPlan::size_bytes() const noexcept { return state_->size_bytes; }
bool SelectionPlan::whole() const noexcept { return state_->whole; }
bool SelectionPlan::packed() const noexcept { return state_->width < 8; }

std::optional<std::uint64_t> SelectionPlan::contiguous() const noexcept {
  return state_->contiguous;
}

struct SelectionPlan::Pieces::State {
  std::shared_ptr<const SelectionPlan::State> plan;
  PieceOptions options;
  std::unique_ptr<ElementRuns> runs;
  ElementRun run;  ///< What is left of the last one.

  /// Elements of `run` that lie in the result as in the buffer, and may be read into it.
  std::uint64_t direct(const SelectionPlan::State::Range& first) const noexcept {
    if (run.offsets != nullptr || options.chunk_bytes != 0) return 0;
    if (run.count != 1 && (run.slot_step != 1 || run.target_step != 1)) return 0;
    if (plan->width >= 8) return run.count;
    if (first.shift != 0 || plan->target_shift(run.target) != 0) return 0;
    return run.count & ~std::uint64_t{7};  // eight elements end on a byte
  }

  void drop(std::uint64_t elements) noexcept {
    run.count -= elements;
    run.slot += static_cast<std::int64_t>(elements) * run.slot_step;
    if (run.offsets != nullptr)
      run.offsets += elements;
    else
      run.target += static_cast<std::int64_t>(elements) * run.target_step;
  }

  /// What one piece may reach over.
  struct Window {
    std::uint64_t first = 0;
    std::uint64_t behind = 0;

    bool holds(const SelectionPlan::State::Range& range) const noexcept {
      return range.first >= first && range.behind <= behind;
    }
  };
  /// That of a piece that begins with `range`.
  Window window(const SelectionPlan::State::Range& range) const noexcept {
    const std::uint64_t bytes = options.piece_bytes;
    if (options.chunk_bytes == 0) return {range.first, std::max(range.behind, range.first + bytes)};
    return {range.first / bytes * bytes, ((range.behind - 1) / bytes + 1) * bytes};
  }
};

SelectionPlan::Pieces::Pieces(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SelectionPlan::Pieces::Pieces(Pieces&&) noexcept = default;
SelectionPlan::Pieces& SelectionPlan::Pieces::operator=(Pieces&&) noexcept = default;
SelectionPlan::Pieces::~Pieces() = default;

Result<SelectionPlan::Pieces> SelectionPlan::pieces(const PieceOptions& options) const {
  return contain(Origin::buffer, [&]() -> Result<Pieces> {
    auto state = std::make_unique<Pieces::State>();
    state->plan = state_;
    state->options = options;
    if (options.chunk_bytes != 0)
      state->options.max_gap_bytes = std::max(options.max_gap_bytes, options.chunk_bytes);
    else if (state_->tile_bytes)  // whole tiles are skipped, if they are worth it
      state->options.max_gap_bytes =
          std::min(options.max_gap_bytes, std::max(*state_->tile_bytes, least_tile_bytes) - 1);
    if (state_->count != 0)
      state->runs = runs_of(state_->layout, state_->shape, state_->taken, state_->offsets);
    return Pieces(std::move(state));
  });
}

Result<bool> SelectionPlan::Pieces::next(ReadPiece& piece) {
  return contain(Origin::buffer, [&]() -> Result<bool> {
    State& state = *state_;
    const SelectionPlan::State& plan = *state.plan;
    const std::uint64_t gap = state.options.max_gap_bytes;
    ElementRun& run = state.run;
    piece.offset = 0;
    piece.size = 0;
    piece.target.reset();
    piece.runs.clear();
    std::uint64_t behind = 0;  // of the piece
    State::Window window;
    for (; state.runs != nullptr; state.drop(piece.runs.back().count)) {
      if (run.count == 0) {
        if (!state.runs->next(run)) {
          state.runs.reset();
          break;
        }
        if (run.slot_step < 0) {  // from its other end
          const auto last = static_cast<std::int64_t>(run.count - 1);
          run.slot += last * run.slot_step;
          run.target += last * run.target_step;
          run.slot_step = -run.slot_step;
          run.target_step = -run.target_step;
        }
      }
      const auto one = plan.range(run.slot, 0, 1);
      const auto all = plan.range(run.slot, run.slot_step, run.count);
      if (!one || !all)
        return Error{.code = Errc::out_of_bounds,
                     .origin = Origin::buffer,
                     .index = 0,
                     .field = "buffers[]",
                     .what = "an element does not lie in the buffer"};
      if (const std::uint64_t count = state.direct(*one); count != 0) {
        const std::uint64_t bytes =
            plan.width >= 8 ? count * (plan.width / 8) : count / 8 * plan.width;
        if (bytes >= direct_bytes) {
          if (!piece.runs.empty()) break;
          piece.offset = one->first;
          piece.size = bytes;
          piece.target = plan.target_byte(run.target);
          state.drop(count);
          return true;
        }
      }
      if (piece.runs.empty()) {
        piece.offset = one->first;
        behind = one->behind;
        window = state.window(*one);
      } else {
        const bool near = one->first <= behind || one->first - behind <= gap;
        const bool near_before = piece.offset <= one->behind || piece.offset - one->behind <= gap;
        if (state.options.chunk_bytes == 0 && one->first < window.first &&
            behind - one->first <= state.options.piece_bytes)
          window = {one->first, one->first + state.options.piece_bytes};
        if (!near || !near_before || !window.holds(*one) || piece.runs.size() == max_runs) break;
      }
      // As many elements of the run as end in the window, if they are near each other.
      std::uint64_t count = 1;
      const std::uint64_t step_bits =
          checked_mul(static_cast<std::uint64_t>(run.slot_step), std::uint64_t{plan.width})
              .value_or(std::numeric_limits<std::uint64_t>::max());
      if (run.count > 1 && step_bits / 8 <= gap + plan.width / 8)
        count = all->behind <= window.behind
                    ? run.count
                    : 1 + std::min(run.count - 1, (window.behind - one->behind) * 8 / step_bits);
      const auto part = count == 1 ? one : plan.range(run.slot, run.slot_step, count);
      piece.offset = std::min(piece.offset, part->first);
      behind = std::max(behind, part->behind);
      piece.runs.push_back(run);
      piece.runs.back().count = count;
    }
    if (piece.runs.empty()) return false;
    piece.size = behind - piece.offset;
    if (piece.runs.size() == 1) {
      // Alone, it needs no other memory.
      const ElementRun& only = piece.runs.front();
      if (plan.width >= 8 && only.offsets == nullptr && state.options.chunk_bytes == 0 &&
          (only.count == 1 || (only.slot_step == 1 && only.target_step == 1)))
        piece.target = plan.target_byte(only.target);
    }
    return true;
  });
}

void SelectionPlan::scatter(const ReadPiece& piece, std::span<const std::byte> bytes,
                            std::span<std::byte> out) const noexcept {
  const State& state = *state_;
  const unsigned width = state.width;
  const auto item = static_cast<std::int64_t>(width / 8);
  for (const ElementRun& run : piece.runs) {
    const Place from = *place(width, state.byte_offset, run.slot);
    const std::byte* source = bytes.data() + *to_size(from.byte - piece.offset);
    if (run.offsets != nullptr) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const std::int64_t target = run.target + run.offsets[i];
        if (width >= 8) {
          move_items(width / 8, out.data() + target * item, 0,
                     source + static_cast<std::int64_t>(i) * item, 0, 1);
        } else {
          const Place to = *place(width, 0, target);
          move_packed(width, out.data() + *to_size(to.byte), to.shift, 0, source,
                      static_cast<std::int64_t>(from.shift + i * width), 0, 1);
        }
      }
    } else if (run.slot_step == 1 && run.target_step == 1) {
      detail::copy_run(width, out.data(), *place(width, 0, run.target), source, {0, from.shift},
                       run.count);
    } else if (width >= 8) {
      move_items(width / 8, out.data() + run.target * item, run.target_step * item, source,
                 run.slot_step * item, run.count);
    } else {
      const Place to = *place(width, 0, run.target);
      const auto bits = static_cast<std::int64_t>(width);
      move_packed(width, out.data() + *to_size(to.byte), to.shift, run.target_step * bits, source,
                  from.shift, run.slot_step * bits, run.count);
    }
  }
}

}  // namespace hurray
