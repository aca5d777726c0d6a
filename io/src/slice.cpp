#include "hurray/io/slice.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "file_state.hpp"
#include "hurray/io/crc32c.hpp"
#include "parallel.hpp"
#include "patience.hpp"

namespace hurray::io {

namespace {

/// What one thread reads at a time.
constexpr std::uint64_t part_bytes = std::uint64_t{8} << 20;
/// Ranges that are read ahead at once.
constexpr std::size_t most_ranges = std::size_t{1} << 16;

/// Hands out the pieces of a plan, those that are read into the result in parts.
class Queue {
 public:
  explicit Queue(SelectionPlan::Pieces pieces) noexcept : pieces_(std::move(pieces)) {}

  /// The next one into `piece`; false when there is none, or the end has been declared.
  hurray::Result<bool> next(ReadPiece& piece) {
    const std::scoped_lock lock(mutex_);
    if (over_) return false;
    if (left_.size == 0) {
      auto more = pieces_.next(piece);
      if (!more || !*more) over_ = true;
      if (!more || !*more || !piece.target || piece.size <= part_bytes) return more;
      left_.offset = piece.offset;
      left_.size = piece.size;
      left_.target = piece.target;
    }
    piece.runs.clear();
    piece.offset = left_.offset;
    piece.size = std::min(left_.size, part_bytes);
    piece.target = left_.target;
    left_.offset += piece.size;
    left_.size -= piece.size;
    *left_.target += piece.size;
    return true;
  }
  void end() {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }

 private:
  std::mutex mutex_;
  SelectionPlan::Pieces pieces_;
  ReadPiece left_;
  bool over_ = false;
};

}  // namespace

struct Slice::State {
  /// Calls `each` with offset in the file and size of what would be read; false ends it.
  template <class Each>
  Result<void> for_each_range(Each&& each) const {
    auto pieces = plan.pieces(file->source.piece_options());
    if (!pieces) return file->about(pieces.error(), entry);
    for (ReadPiece piece;;) {
      const auto more = pieces->next(piece);
      if (!more) return file->about(more.error(), entry);
      if (!*more || !each(entry.data_offset + piece.offset, piece.size)) return {};
    }
  }

  std::shared_ptr<const File::State> file;
  std::size_t index;
  Entry entry;
  File::State::Described whole;
  SelectionPlan plan;

  /// Whole bytes of `out` where there are any; without, sums are compared and that is all.
  Result<void> read(std::span<std::byte> out, const ChecksumTable* table) const;
  Result<const ChecksumTable*> sums(const SliceOptions& options) const {
    const bool demanded = options.verify.value_or(file->options.verify.value_or(false));
    if (!demanded) return nullptr;
    auto table = file->sums(true);
    if (!table || *table == nullptr) return table;
    // The descriptor says where all the rest lies.
    if (auto bytes = file->descriptor_bytes(index, *table); !bytes) return bytes.error();
    return table;
  }
  std::optional<std::span<std::byte>> mapped() const noexcept {
    const auto start = plan.contiguous();
    if (!file->mapping || !start) return std::nullopt;
    return file->in_mapping(entry.data_offset + *start, plan.size_bytes());
  }
};

Result<void> Slice::State::read(std::span<std::byte> out, const ChecksumTable* table) const {
  PieceOptions options = file->source.piece_options();
  if (table != nullptr) {
    options.chunk_bytes = table->chunk_bytes();
    options.piece_bytes = std::max(options.piece_bytes, options.chunk_bytes);
  }
  auto pieces = plan.pieces(options);
  if (!pieces) return file->about(pieces.error(), entry);
  Queue queue(*std::move(pieces));
  if (!out.empty() && plan.packed()) {  // bits behind the last element
    const std::uint64_t bits = plan.descriptor().shape.count() * element_bits(plan.descriptor());
    std::ranges::fill(out.subspan(static_cast<std::size_t>(bits / 8)), std::byte{0});
  }
  if (!out.empty()) file->lazy->bytes_wanted.fetch_add(out.size(), std::memory_order_relaxed);

  std::optional<RegionSums> region;
  if (table != nullptr)
    region.emplace(*table, file->index.place(index), entry, &whole.descriptor, &whole.placement);
  std::mutex scattering;  // elements of two pieces may share a byte
  Patience patience(file->options.interrupted);
  const auto caller = std::this_thread::get_id();
  const std::size_t threads = file->source.threads_for(plan.size_bytes());

  const auto make_work = [&] {
    return [&, scratch = Buffer(), piece = ReadPiece()](std::size_t) mutable -> Result<void> {
      /// Own memory with the bytes of the file's data from `start` on.
      const auto fetch = [&](std::uint64_t start,
                             std::uint64_t size) -> Result<std::span<std::byte>> {
        if (scratch.size() < size) {
          auto memory = Buffer::allocate(size);
          if (!memory) return file->about(memory.error(), entry);
          scratch = *std::move(memory);
        }
        const auto bytes = scratch.bytes().first(static_cast<std::size_t>(size));
        if (auto ok = file->read_data(entry, bytes, entry.data_offset + start); !ok)
          return ok.error();
        return bytes;
      };
      const auto move = [&](std::span<const std::byte> bytes) {
        std::unique_lock lock(scattering, std::defer_lock);
        if (plan.packed() && threads > 1) lock.lock();
        plan.scatter(piece, bytes, out);
      };
      const auto take = [&]() -> Result<void> {
        if (piece.target && !region)
          return file->read_data(entry,
                                 out.subspan(static_cast<std::size_t>(*piece.target),
                                             static_cast<std::size_t>(piece.size)),
                                 entry.data_offset + piece.offset);
        if (!region) {
          const auto bytes = fetch(piece.offset, piece.size);
          if (!bytes) return bytes.error();
          move(*bytes);
          return {};
        }
        const std::uint64_t chunk = table->chunk_bytes();
        const std::uint64_t first = piece.offset / chunk;
        const std::uint64_t behind =
            std::min(entry.data_length, ((piece.offset + piece.size - 1) / chunk + 1) * chunk);
        const auto bytes = fetch(first * chunk, behind - first * chunk);
        if (!bytes) return bytes.error();
        for (std::size_t at = 0, k = 0; at < bytes->size(); at += chunk, ++k) {
          const auto part = bytes->subspan(at, std::min<std::size_t>(bytes->size() - at, chunk));
          if (auto wrong = region->compare(file->source, first + k, crc32c(part)))
            return std::move(wrong->error);
        }
        if (!out.empty())
          move(bytes->subspan(static_cast<std::size_t>(piece.offset - first * chunk)));
        return {};
      };
      for (;;) {
        const auto more = queue.next(piece);
        if (!more) return file->about(more.error(), entry);
        if (!*more) return {};
        Result<void> done = take();
        if (done && std::this_thread::get_id() == caller && patience.ended())
          done = system::to_error(system::stopped(), Origin::file, file->source.path());
        if (done) continue;
        queue.end();
        return done;
      }
    };
  };
  return in_parallel(threads, threads, patience, file->source.path(), make_work);
}

const Descriptor& Slice::descriptor() const noexcept { return state_->plan.descriptor(); }
std::uint64_t Slice::size_bytes() const noexcept { return state_->plan.size_bytes(); }
bool Slice::shareable() const noexcept { return state_->mapped().has_value(); }

Result<Tensor> Slice::read(const SliceOptions& options) const {
  return contain(Origin::file, [&]() -> Result<Tensor> {
    const State& state = *state_;
    const auto table = state.sums(options);
    if (!table) return table.error();
    if (auto ok = state.file->check_tensor_limit(state.entry, size_bytes()); !ok) return ok.error();
    Buffer buffer;
    if (const auto mapped = options.share ? state.mapped() : std::nullopt) {
      if (*table != nullptr)
        if (auto ok = state.read({}, *table); !ok) return ok.error();
      buffer = Buffer::borrow(mapped->data(), mapped->size(), state.file->mapping,
                              state.file->options.mode == Mode::map);
    } else {
      auto memory = Buffer::allocate(size_bytes());
      if (!memory) return state.file->about(memory.error(), state.entry);
      if (auto ok = state.read(memory->bytes(), *table); !ok) return ok.error();
      buffer = *std::move(memory);
    }
    auto tensor = bind(descriptor(), {std::move(buffer)});
    if (!tensor) return state.file->about(tensor.error(), state.entry);
    return *std::move(tensor);
  });
}

Result<void> Slice::read_into(std::span<std::byte> out, const SliceOptions& options) const {
  return contain(Origin::file, [&]() -> Result<void> {
    if (out.size() != size_bytes())
      return state_->file->about({.code = Errc::length_mismatch,
                                  .origin = Origin::buffer,
                                  .expect = Expect::exactly,
                                  .field = "out",
                                  .what = "bytes, as the selection has",
                                  .expected = size_bytes(),
                                  .found = out.size()},
                                 state_->entry);
    const auto table = state_->sums(options);
    if (!table) return table.error();
    return state_->read(out, *table);
  });
}

Result<std::uint64_t> File::prefetch(std::span<const Wanted> wanted,
                                     std::uint64_t max_bytes) const {
  return contain(Origin::file, [&]() -> Result<std::uint64_t> {
    const Source& source = state_->source;
    if (source.image()) return std::uint64_t{0};
    std::vector<ByteRange> ranges;
    auto add = [&, left = max_bytes](std::uint64_t offset, std::uint64_t size) mutable {
      size = std::min(size, left);
      left -= size;
      if (size != 0) ranges.push_back({offset, size});
      return left != 0 && ranges.size() < most_ranges;
    };
    for (const Wanted& one : wanted) {
      const auto entry = state_->listed(one.entry);
      if (!entry) return entry.error();
      // Without it nobody knows what the data are; local ones cost nothing.
      if (source.remote() != nullptr && !add(entry->descriptor_offset, entry->descriptor_length))
        break;
      if (!one.selection) {
        if (!add(entry->data_offset, entry->data_length)) break;
        continue;
      }
      const auto part = slice(one.entry, *one.selection);
      if (!part) return part.error();
      bool room = true;
      if (auto ok = part->state_->for_each_range(
              [&](std::uint64_t offset, std::uint64_t size) { return room = add(offset, size); });
          !ok)
        return ok.error();
      if (!room) break;
    }
    std::ranges::sort(ranges, {}, &ByteRange::offset);
    std::uint64_t total = 0;
    const std::uint64_t gap = source.piece_options().max_gap_bytes;
    std::vector<ByteRange> merged;
    for (std::size_t k = 0; k < ranges.size();) {
      const std::uint64_t start = ranges[k].offset;
      std::uint64_t end = start;
      for (; k < ranges.size() && ranges[k].offset <= end + gap; ++k)
        end = std::max(end, ranges[k].offset + ranges[k].size);
      total += end - start;
      merged.push_back({start, end - start});
    }
    std::vector<ByteRange> stored;
    for (const auto& [start, size] : merged)
      source.for_each_stored(start, start + size, [&](std::uint64_t at, std::uint64_t bytes) {
        stored.push_back({at, bytes});
      });
    if (source.remote() != nullptr) {
      source.remote()->prefetch(stored);
      return total;
    }
    for (const auto& [start, size] : stored) {
      if (state_->options.mode == Mode::memory) state_->note_pages(start, start + size);
      system::will_need(source.descriptor(), start, size);
    }
    return total;
  });
}

void File::will_read_all() const noexcept {
  if (state_->source.is_file()) system::will_read_all(state_->source.descriptor());
}

Result<Slice> File::slice(std::size_t i, std::span<const Along> selection) const {
  return contain(Origin::file, [&]() -> Result<Slice> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    auto described = state_->describe(i);
    if (!described) return std::move(described).error();
    auto plan = SelectionPlan::of(described->descriptor, selection, Provenance::outside);
    if (!plan)
      return state_->about(plan.error(), *entry,
                           plan.error().code == Errc::unsupported
                               ? "parts of it cannot be read; take the whole tensor, by its name"
                               : "");
    return Slice(std::make_shared<const Slice::State>(
        Slice::State{state_, i, *entry, *std::move(described), *std::move(plan)}));
  });
}

Result<Slice> File::slice(std::string_view name, std::span<const Along> selection) const {
  return contain(Origin::file, [&]() -> Result<Slice> {
    const auto i = state_->named(name);
    if (!i) return i.error();
    return slice(*i, selection);
  });
}

}  // namespace hurray::io
