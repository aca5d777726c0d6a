#include "hurray/io/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "file_state.hpp"
#include "hurray/checked.hpp"
#include "hurray/io/crc32c.hpp"
#include "items.hpp"
#include "parallel.hpp"
#include "patience.hpp"
#include "pieces.hpp"
#include "system.hpp"

namespace hurray::io {

namespace {

/// Of `layout_tag` in a descriptor (01-descriptor.md section 3.2), in bytes.
constexpr std::size_t layout_tag_offset = 15;

/// Bytes that are compared with their sums while they are in the cache.
constexpr std::size_t step_bytes = Pieces::piece_bytes;
/// What one thread reads at a time without sums.
constexpr std::uint64_t unsummed_piece_bytes = 4 * step_bytes;
/// Bytes of a file whose pages are looked at together, a multiple of every page size.
constexpr std::uint64_t noted_bytes = std::uint64_t{256} << 20;
/// What the system is told to forget at a time.
constexpr std::uint64_t forgotten_bytes = std::uint64_t{64} << 20;

/// One private mapping of a whole file, shared by its tensors.
class MappedFile final : public Owner {
 public:
  MappedFile(system::Mapping mapping, std::size_t tensors) noexcept
      : mapping_(std::move(mapping)), many_(tensors > max_ranges) {}

  std::span<std::byte> bytes() const noexcept { return mapping_.bytes(); }

  /// Safe from any thread. The system limits how many pieces a mapping may fall into: of a file
  /// with more than `max_ranges` tensors, and beyond so many different parts, all of it becomes
  /// writable at once.
  hurray::Result<void> make_writable(std::span<std::byte> part) override {
    return contain(Origin::buffer, [&]() -> hurray::Result<void> {
      const std::scoped_lock lock(mutex_);
      if (part.empty() || all_writable_) return {};
      const std::byte* start = part.data();
      const auto at = std::ranges::lower_bound(writable_, start, {}, &std::span<std::byte>::data);
      if (at != writable_.end() && at->data() == start && at->size() >= part.size()) return {};
      const bool all = many_ || writable_.size() >= max_ranges;
      const auto entry = all ? at : writable_.insert(at, part);
      const auto made = mapping_.make_writable(all ? bytes() : part);
      if (!made) {
        if (!all) writable_.erase(entry);
        return hurray::Error{
            .code = made.error().number == ENOMEM ? Errc::out_of_memory : Errc::system,
            .origin = Origin::buffer,
            .what =
                "the system refuses to make the pages of this tensor writable; "
                "mode=\"map\" does without"};
      }
      all_writable_ = all;
      return {};
    });
  }

 private:
  static constexpr std::size_t max_ranges = 4096;

  system::Mapping mapping_;
  const bool many_;
  std::mutex mutex_;
  std::vector<std::span<std::byte>> writable_;  ///< Sorted by address.
  bool all_writable_ = false;
};

/// A file's bytes that are somebody's memory.
class Image final : public Owner {
 public:
  explicit Image(Buffer bytes) noexcept : bytes_(std::move(bytes)) {}

 private:
  Buffer bytes_;
};

Result<std::shared_ptr<MappedFile>> map(const Source& source, std::size_t tensors) {
  const auto size = to_size(source.stored_size());
  if (!size)
    return source.about({.code = Errc::unsupported,
                         .origin = Origin::file,
                         .what = "larger than what this machine can map"},
                        {}, "open it with mode=\"memory\"");
  auto mapping = system::Mapping::map(source.descriptor(), *size);
  if (!mapping) {
    Error error = system::to_error(mapping.error(), Origin::file, source.path());
    error.detail = "open it with mode=\"memory\"";
    return error;
  }
  return std::make_shared<MappedFile>(*std::move(mapping), tensors);
}

}  // namespace

Result<Entry> File::State::listed(std::size_t i) const {
  if (i < index.size()) return index.entry(i);
  return source.about({.code = Errc::out_of_bounds,
                       .origin = Origin::file,
                       .expect = Expect::at_least,
                       .index = i,
                       .field = "index[]",
                       .what = "entries in this file",
                       .expected = std::uint64_t{i} + 1,
                       .found = index.size()},
                      {});
}

Result<std::size_t> File::State::named(std::string_view name) const {
  if (const auto i = index.find(name)) return *i;
  return source.about({.code = Errc::not_found,
                       .origin = Origin::file,
                       .what = "this file has no tensor of this name"},
                      name);
}

Result<const ChecksumTable*> File::State::checksums() const {
  const std::scoped_lock lock(lazy->mutex);
  if (!lazy->table) {
    Patience patience({});
    auto table = ChecksumTable::read(source, ends, &index, kv.checksums, patience);
    if (!table) return std::move(table).error();
    lazy->table = *std::move(table);
  }
  return &*lazy->table;
}

Result<const ChecksumTable*> File::State::sums(bool demanded) const {
  if (kv.checksums.entries == 0) return nullptr;
  auto table = checksums();
  if (!table) return table;
  const ChecksumState found = (*table)->state();
  if (found == ChecksumState::valid) return table;
  if (found == ChecksumState::damaged || demanded) return (*table)->findings().front().error;
  return nullptr;
}

Result<const ChecksumTable*> File::State::sums() const {
  if (!verifies()) return nullptr;
  return sums(options.verify.has_value());
}

Result<void> File::State::read_data(const Entry& entry, std::span<std::byte> into,
                                    std::uint64_t offset, std::uint64_t ahead) const {
  lazy->requests.fetch_add(1, std::memory_order_relaxed);
  lazy->bytes_read.fetch_add(into.size(), std::memory_order_relaxed);
  return read_of(entry, "data", into, offset, ahead);
}

Result<void> File::State::read_of(const Entry& entry, std::string_view part,
                                  std::span<std::byte> into, std::uint64_t offset,
                                  std::uint64_t ahead) const {
  auto done = source.read(part, into, offset, ahead);
  if (done) return {};
  Error error = std::move(done).error();
  error.tensor = entry.name;
  return error;
}

Result<void> File::State::check_descriptor_limit(const Entry& entry) const {
  if (entry.descriptor_length <= options.max_descriptor_bytes) return {};
  return about({.code = Errc::limit_exceeded,
                .origin = Origin::file,
                .expect = Expect::at_most,
                .field = "max_descriptor_bytes",
                .what = "bytes",
                .offset = entry.descriptor_offset,
                .expected = options.max_descriptor_bytes,
                .found = entry.descriptor_length},
               entry);
}

Result<void> File::State::check_tensor_limit(const Entry& entry, std::uint64_t bytes) const {
  const auto limit = options.max_tensor_bytes;
  if (!limit || bytes <= *limit) return {};
  return about({.code = Errc::limit_exceeded,
                .origin = Origin::file,
                .expect = Expect::at_most,
                .field = "max_tensor_bytes",
                .what = "bytes",
                .offset = entry.data_offset,
                .expected = *limit,
                .found = bytes},
               entry);
}

Result<void> File::State::check_descriptor_length(const Entry& entry,
                                                  std::span<const std::byte> start) const {
  const DecodeOptions limits{.max_descriptor_bytes = options.max_descriptor_bytes};
  const auto length = descriptor_length(start, limits);
  if (!length) return about(length.error(), entry);
  if (*length == entry.descriptor_length) return {};
  return about({.code = Errc::length_mismatch,
                .origin = Origin::file,
                .expect = Expect::exactly,
                .field = "index[].descriptor_length",
                .what = "bytes, as the descriptor says",
                .offset = entry.descriptor_offset + 6,
                .expected = *length,
                .found = entry.descriptor_length},
               entry);
}

Result<Bytes> File::State::descriptor_bytes(std::size_t i, const ChecksumTable* sums) const {
  const Entry entry = index.entry(i);
  if (auto ok = check_descriptor_limit(entry); !ok) return ok.error();
  // Two lengths must agree before a large one is believed.
  Bytes bytes(std::min<std::size_t>(entry.descriptor_length, 4096));
  const auto read = [&](std::span<std::byte> into, std::size_t at) {
    return read_of(entry, "descriptor", into, entry.descriptor_offset + at, Remote::tail_bytes);
  };
  const auto compare = [&]() -> Result<void> {
    if (sums == nullptr) return {};
    auto wrong = compare_descriptor(source, *sums, index.place(i), entry, crc32c(bytes));
    if (!wrong) return {};
    return std::move(wrong->error);
  };
  if (auto ok = read(bytes, 0); !ok) return ok.error();
  const bool whole = bytes.size() == entry.descriptor_length;
  if (whole)  // says more than what the damage broke
    if (auto equal = compare(); !equal) return equal.error();
  if (auto ok = check_descriptor_length(entry, bytes); !ok) return ok.error();
  if (!whole) {
    const std::size_t start = bytes.size();
    bytes.resize(entry.descriptor_length);
    if (auto ok = read(std::span(bytes).subspan(start), start); !ok) return ok.error();
    if (auto equal = compare(); !equal) return equal.error();
  }
  return bytes;
}

Result<Descriptor> File::State::decoded(const Entry& entry,
                                        std::span<const std::byte> bytes) const {
  auto descriptor = decode(bytes, {.max_descriptor_bytes = options.max_descriptor_bytes,
                                   .permissive = options.permissive,
                                   .agreed = options.agreed});
  if (!descriptor) return about(descriptor.error(), entry);
  return *std::move(descriptor);
}

Result<File::State::Described> File::State::describe(std::size_t i) const {
  const auto sums_of_file = sums();
  if (!sums_of_file) return sums_of_file.error();
  const auto bytes = descriptor_bytes(i, *sums_of_file);
  if (!bytes) return bytes.error();
  return describe(index.entry(i), *bytes);
}

Result<File::State::Described> File::State::describe(const Entry& entry,
                                                     std::span<const std::byte> bytes) const {
  auto descriptor = decoded(entry, bytes);
  if (!descriptor) return std::move(descriptor).error();
  if (std::holds_alternative<UnknownLayout>(descriptor->layout))
    return Described{*std::move(descriptor), {}};
  auto placement = place(descriptor->buffers, entry.data_offset, ends.header.data_buffer_alignment);
  if (!placement) return about(placement.error(), entry);
  if (placement->data_length != entry.data_length)
    return about({.code = Errc::length_mismatch,
                  .origin = Origin::file,
                  .expect = Expect::exactly,
                  .field = "index[].data_length",
                  .what = "bytes, as the buffer table gives",
                  .expected = placement->data_length,
                  .found = entry.data_length},
                 entry);
  return Described{*std::move(descriptor), *std::move(placement)};
}

Result<std::vector<Buffer>> File::State::buffers(std::size_t i, std::span<const ByteRange> ranges,
                                                 const Described* described) const {
  const Entry entry = index.entry(i);
  const auto sums_of_file = sums();
  if (!sums_of_file) return sums_of_file.error();
  const ChecksumTable* table = *sums_of_file;
  std::vector<Buffer> buffers;
  buffers.reserve(ranges.size());
  const bool maps = mapping != nullptr && std::ranges::all_of(ranges, [&](const ByteRange& range) {
                      return in_mapping(range.offset, range.size).has_value();
                    });
  for (const ByteRange& range : ranges) {
    if (maps) {
      const auto bytes = *in_mapping(range.offset, range.size);
      buffers.push_back(
          Buffer::borrow(bytes.data(), bytes.size(), mapping, options.mode == Mode::map));
      continue;
    }
    const auto memory = Buffer::allocate(range.size);
    if (!memory) return about(memory.error(), entry);
    buffers.push_back(memory->view(0, range.size));  // measured, like all that was loaded
  }
  if (ranges.empty() || (maps && table == nullptr)) return buffers;
  if (!maps)
    for (const ByteRange& range : ranges)
      lazy->bytes_wanted.fetch_add(range.size, std::memory_order_relaxed);

  const bool drops = !maps && options.mode == Mode::memory && source.is_file();
  /// Gives back what `start` to `end` of the data took in the system's cache.
  const auto drop = [&](std::uint64_t start, std::uint64_t end) {
    source.for_each_stored(
        start, end, [&](std::uint64_t at, std::uint64_t size) { drop_pages(at, at + size); });
  };
  if (drops)
    source.for_each_stored(
        entry.data_offset, entry.data_offset + entry.data_length,
        [&](std::uint64_t at, std::uint64_t size) { note_pages(at, at + size); });
  std::optional<RegionSums> region;
  if (table != nullptr)
    region.emplace(*table, index.place(i), entry,
                   described != nullptr ? &described->descriptor : nullptr,
                   described != nullptr ? &described->placement : nullptr);
  const std::uint64_t piece_bytes = table != nullptr ? table->chunk_bytes() : unsummed_piece_bytes;
  const std::uint64_t data_end = entry.data_offset + entry.data_length;
  const std::uint64_t count =
      entry.data_length / piece_bytes + (entry.data_length % piece_bytes != 0 ? 1 : 0);
  // The system keeps a file in pieces that may be larger than ours: it forgets whole ones alone.
  const std::uint64_t window_pieces = std::max<std::uint64_t>(1, forgotten_bytes / piece_bytes);
  std::vector<std::atomic<std::uint64_t>> read_pieces(
      drops ? static_cast<std::size_t>(count / window_pieces) : 0);
  Patience patience(options.interrupted);
  auto done = in_parallel(
      static_cast<std::size_t>(count), source.threads_for(entry.data_length), patience,
      source.path(), [&] {
        return [&, scratch = Buffer()](std::size_t k) mutable -> Result<void> {
          const std::uint64_t start = entry.data_offset + k * piece_bytes;
          const std::uint64_t end =
              start + std::min(entry.data_length - k * piece_bytes, piece_bytes);
          std::uint32_t crc = 0;
          std::uint64_t position = start;
          /// The bytes up to `stop`, which also go to `into` where there is one.
          const auto read_up_to = [&](std::uint64_t stop, std::byte* into) -> Result<void> {
            if (into == nullptr && table == nullptr) position = std::max(position, stop);
            while (position < stop) {
              const auto size =
                  static_cast<std::size_t>(std::min<std::uint64_t>(stop - position, step_bytes));
              if (into == nullptr && scratch.size() < size) {
                auto memory = Buffer::allocate(size);
                if (!memory) return about(memory.error(), entry);
                scratch = *std::move(memory);
              }
              const std::span<std::byte> bytes(into != nullptr ? into : scratch.data(), size);
              const std::uint64_t left = data_end - position - bytes.size();
              if (auto ok = read_data(entry, bytes, position, left); !ok) return ok;
              if (table != nullptr) crc = crc32c(bytes, crc);
              position += size;
              if (into != nullptr) into += size;
            }
            return {};
          };
          for (std::size_t r = 0; r < ranges.size() && !maps; ++r) {
            const ByteRange& range = ranges[r];
            if (range.offset + range.size <= position || range.offset >= end) continue;
            if (auto ok = read_up_to(range.offset, nullptr); !ok) return ok;
            std::byte* into = buffers[r].data() + (position - range.offset);
            if (auto ok = read_up_to(std::min(range.offset + range.size, end), into); !ok)
              return ok;
          }
          if (auto ok = read_up_to(end, nullptr); !ok) return ok;
          if (const std::size_t window = k / window_pieces;
              window < read_pieces.size() && ++read_pieces[window] == window_pieces) {
            const std::uint64_t first = entry.data_offset + window * window_pieces * piece_bytes;
            drop(first, std::min(first + window_pieces * piece_bytes,
                                 entry.data_offset + entry.data_length));
          }
          if (region)
            if (auto wrong = region->compare(source, k, crc)) return std::move(wrong->error);
          return {};
        };
      });
  if (drops) drop(entry.data_offset, entry.data_offset + entry.data_length);
  if (done) return buffers;
  Error error = std::move(done).error();
  error.tensor = entry.name;
  return error;
}

std::optional<std::span<std::byte>> File::State::in_mapping(std::uint64_t offset,
                                                            std::uint64_t size) const noexcept {
  if (mapping == nullptr) return std::nullopt;
  if (size == 0) return mapped.first(0);
  const auto at = source.stored_at(offset, size);
  if (!at || *at > mapped.size() || size > mapped.size() - *at) return std::nullopt;
  const auto bytes = mapped.subspan(static_cast<std::size_t>(*at), static_cast<std::size_t>(size));
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % min_buffer_alignment != 0)
    return std::nullopt;
  return bytes;
}

void File::State::note_pages(std::uint64_t start, std::uint64_t end) const {
  const std::scoped_lock lock(lazy->mutex);
  for (std::uint64_t window = start / noted_bytes; window * noted_bytes < end; ++window) {
    const auto [noted, fresh] = lazy->pages.try_emplace(window);
    if (fresh)
      noted->second = system::resident_pages(
          source.descriptor(), window * noted_bytes,
          std::min(noted_bytes, source.stored_size() - window * noted_bytes));
  }
}

void File::State::drop_pages(std::uint64_t start, std::uint64_t end) const {
  const std::uint64_t page = system::page_bytes();
  const std::uint64_t window_pages = noted_bytes / page;
  const std::uint64_t behind = end / page;
  const std::scoped_lock lock(lazy->mutex);
  for (std::uint64_t first = start / page + (start % page != 0 ? 1 : 0); first < behind;) {
    const std::uint64_t base = first / window_pages * window_pages;
    const auto noted = lazy->pages.find(base / window_pages);
    const std::uint64_t known = noted != lazy->pages.end() ? noted->second.size() : 0;
    const std::uint64_t stop = std::min(behind, base + known);
    while (first < stop) {
      std::uint64_t next = first;
      while (next < stop && !noted->second[static_cast<std::size_t>(next - base)]) ++next;
      if (next != first)
        system::drop_cached(source.descriptor(), first * page, (next - first) * page);
      first = next + 1;
    }
    first = base + window_pages;
  }
}

Result<Tensor> File::State::tensor(std::size_t i, Described described) const {
  const Entry entry = index.entry(i);
  auto& [descriptor, placement] = described;
  if (auto ok = check_tensor_limit(entry, entry.data_length); !ok) return ok.error();
  std::vector<ByteRange> ranges;
  for (std::size_t k = 0; k < descriptor.buffers.size(); ++k)
    ranges.push_back({placement.buffers[k], descriptor.buffers[k].byte_size});
  auto memory = buffers(i, ranges, &described);
  if (!memory) return std::move(memory).error();
  auto tensor = bind(std::move(descriptor), *std::move(memory),
                     {.provenance = Provenance::outside, .permissive = options.permissive});
  if (!tensor) return about(tensor.error(), entry);
  return *std::move(tensor);
}

Error File::State::torn(const Entry& head, std::uint64_t owed, std::uint64_t behind) const {
  return about({.code = Errc::truncated,
                .origin = Origin::file,
                .expect = Expect::at_least,
                .field = "layout.member_count",
                .what = "tensors behind the head (torn composite)",
                .expected = owed,
                .found = behind},
               head, "its members can be read one by one");
}

Result<std::vector<File::State::Part>> File::State::composite(std::size_t i, Described head) const {
  CompositeChecker checker(
      {.max_depth = options.max_composite_depth, .permissive = options.permissive});
  std::vector<Part> parts;
  std::vector<std::size_t> heads;  ///< Entries of those that are open.
  const auto refuse = [&](const hurray::Error& error) {
    const std::size_t at = checker.fault_depth();
    return about(error, index.entry(at != 0 ? heads[at - 1] : i));
  };
  parts.push_back({i, std::move(head)});
  for (std::size_t k = index.place(i);; ++k) {
    const Descriptor& descriptor = parts.back().described.descriptor;
    if (auto fits = checker.arrive(descriptor); !fits) return refuse(fits.error());
    if (std::holds_alternative<CompositeHead>(descriptor.layout)) {
      heads.push_back(parts.back().entry);
      if (const std::uint64_t behind = index.size() - 1 - k; checker.owed() > behind)
        return torn(index.entry(heads.back()), checker.owed(), behind);
    }
    if (auto whole = checker.complete(); !whole) return refuse(whole.error());
    heads.resize(checker.depth());
    if (!checker.open()) return parts;
    const std::size_t next = index.by_offset(k + 1);  // there, since one is owed
    auto described = describe(next);
    if (!described) return std::move(described).error();
    parts.push_back({next, *std::move(described)});
  }
}

Result<std::optional<std::uint32_t>> File::State::member_count(std::size_t i) const {
  const auto none = std::optional<std::uint32_t>();
  const Entry entry = index.entry(i);
  if (entry.data_length != 0) return none;  // row 25
  const auto bytes = descriptor_bytes(i);
  if (!bytes) {
    const Errc code = bytes.error().code;
    if (code == Errc::system || code == Errc::out_of_memory) return bytes.error();
    return none;
  }
  if ((*bytes)[layout_tag_offset] != static_cast<std::byte>(LayoutTag::composite)) return none;
  const auto descriptor = decoded(entry, *bytes);
  if (!descriptor) return none;
  return std::optional(std::get<CompositeHead>(descriptor->layout).member_count);
}

File::File(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<File> File::open(std::string path, const OpenOptions& options) {
  Step step;
  return open(std::move(path), options, step);
}

Result<File> File::over(int descriptor, const OpenOptions& options) {
  Step step;
  return contain(Origin::file,
                 [&] { return open(Source::over(descriptor, options), options, step); });
}

Result<File> File::over(PositionedSource source, const OpenOptions& options) {
  OpenOptions effective = options;
  effective.mode = Mode::memory;
  Step step;
  return contain(Origin::file,
                 [&] { return open(Source::over(std::move(source), effective), effective, step); });
}

Result<File> File::over(Buffer image, const OpenOptions& options) {
  OpenOptions effective = options;
  if (options.mode == Mode::copy_on_write) effective.mode = Mode::memory;
  Step step;
  return contain(Origin::file,
                 [&] { return open(Source::over(std::move(image)), effective, step); });
}

Result<File> File::open(std::string path, const OpenOptions& options, Step& step) {
  return contain(Origin::file,
                 [&] { return open(Source::open(std::move(path), options), options, step); });
}

Result<File> File::open(Result<Source> opened, const OpenOptions& wanted, Step& step) {
  return contain(Origin::file, [&]() -> Result<File> {
    if (!opened) return std::move(opened).error();
    Source& source = step.source.emplace(*std::move(opened));
    if (auto seen = source.translate(wanted); !seen) return std::move(seen).error();
    OpenOptions options = wanted;
    // Memory that its owner can still cut or write is not mapped (05-stream.md section 9).
    if (options.mode != Mode::memory && source.is_file() &&
        system::sealed(source.descriptor()) == false)
      options.mode = Mode::memory;
    auto ends = read_ends(source, options);
    if (!ends) {
      if (ends.error().offset < header_bytes) {
        step.at(FilePart::header, 0, std::min<std::uint64_t>(source.size(), header_bytes));
      } else {
        const auto size = std::min<std::uint64_t>(source.size(), trailer_bytes);
        step.at(FilePart::trailer, source.size() - size, size);
      }
      return std::move(ends).error();
    }
    step.ends = *ends;
    const FileTrailer& trailer = ends->trailer;
    if (source.remote() != nullptr && !source.translation()) {
      const std::uint64_t first = region_end(trailer);
      // One read for both, unless they lie far apart.
      const std::uint64_t judged = trailer.index_length + trailer.kv_length + Remote::gap_bytes;
      if (source.size() - first <= judged)
        if (auto kept = source.remote()->keep_from(first); !kept) return kept.error();
    }
    step.at(FilePart::index, trailer.index_offset, trailer.index_length);
    auto index = Index::read(source, *ends, options);
    if (!index) return std::move(index).error();
    step.at(FilePart::kv, trailer.kv_offset, trailer.kv_length);
    auto kv = read_kv(source, *ends);
    if (!kv) return std::move(kv).error();
    if (source.remote() != nullptr) source.remote()->let_go();
    std::shared_ptr<Owner> mapping;
    std::span<std::byte> mapped;
    if (options.mode != Mode::memory && source.image()) {
      mapped = source.image()->bytes();
      const std::uint32_t measured = measure_alignment(mapped.data(), mapped.size());
      if (measured < min_buffer_alignment)
        return source.about({.code = Errc::unsupported,
                             .origin = Origin::file,
                             .expect = Expect::at_least,
                             .field = "alignment",
                             .what = "of the memory that tensors are to share",
                             .expected = min_buffer_alignment,
                             .found = measured},
                            {}, "open it with mode=\"memory\"");
      mapping = std::make_shared<Image>(*source.image());
    } else if (options.mode != Mode::memory) {
      auto made = map(source, index->size());
      if (!made) return std::move(made).error();
      mapped = (*made)->bytes();
      mapping = *std::move(made);
    }
    State state{*std::move(step.source), options, *ends, *std::move(index), *std::move(kv)};
    state.mapped = mapped;
    state.mapping = std::move(mapping);
    return File(std::make_shared<const State>(std::move(state)));
  });
}

bool is_local_file(const std::string& path) noexcept {
  const auto status = system::status(path);
  return status && *status && (*status)->kind == system::Kind::regular &&
         system::is_local_volume(path);
}

const std::string& File::path() const noexcept { return state_->source.path(); }
Mode File::mode() const noexcept { return state_->options.mode; }
std::string_view File::format() const noexcept {
  const auto& translation = state_->source.translation();
  return translation ? translation->format() : "hrry";
}
std::uint64_t File::size_bytes() const noexcept { return state_->source.size(); }
const FileHeader& File::header() const noexcept { return state_->ends.header; }
const FileTrailer& File::trailer() const noexcept { return state_->ends.trailer; }
const KeyValues& File::kv() const noexcept { return state_->kv.entries; }

Result<std::uint32_t> File::kv_crc32c() const {
  return contain(Origin::file, [&]() -> Result<std::uint32_t> {
    const FileTrailer& trailer = state_->ends.trailer;
    const auto section =
        state_->source.read_in_steps("kv", trailer.kv_offset, trailer.kv_length,
                                     [](std::span<const std::byte>) { return Result<void>(); });
    if (!section) return section.error();
    return crc32c(without_self(section->bytes()));
  });
}

Result<ChecksumVerdict> File::checksums() const {
  return contain(Origin::file, [&]() -> Result<ChecksumVerdict> {
    const auto table = state_->checksums();
    if (!table) return table.error();
    ChecksumVerdict verdict{.state = (*table)->state()};
    if (!(*table)->findings().empty()) verdict.reason = (*table)->findings().front().error;
    return verdict;
  });
}

bool File::has_checksums() const noexcept {
  if (state_->kv.checksums.entries == 0) return false;
  const auto verdict = checksums();
  return !verdict || verdict->state == ChecksumState::valid ||
         verdict->state == ChecksumState::damaged;
}

std::size_t File::size() const noexcept { return state_->index.size(); }
Entry File::entry(std::size_t i) const noexcept { return state_->index.entry(i); }
std::string_view File::name(std::size_t i) const noexcept { return state_->index.name(i); }
std::optional<std::size_t> File::find(std::string_view name) const noexcept {
  return state_->index.find(name);
}
ReadCounts File::read_counts() const noexcept {
  const Lazy& counts = *state_->lazy;
  if (const Remote* remote = state_->source.remote())
    return {.bytes_wanted = counts.bytes_wanted,
            .bytes_read = remote->bytes_read(),
            .requests = remote->requests()};
  return {.bytes_wanted = counts.bytes_wanted,
          .bytes_read = counts.bytes_read,
          .requests = counts.requests};
}
std::shared_ptr<Owner> File::mapping() const noexcept { return state_->mapping; }

Result<Descriptor> File::descriptor(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Descriptor> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    auto described = state_->describe(i);
    if (!described) return std::move(described).error();
    return std::move(described->descriptor);
  });
}

Result<Bytes> File::descriptor_bytes(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Bytes> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    return state_->descriptor_bytes(i);
  });
}

Result<Tensor> File::tensor(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Tensor> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    auto described = state_->describe(i);
    if (!described) return std::move(described).error();
    return state_->tensor(i, *std::move(described));
  });
}

Result<std::vector<BufferSource>> File::sources(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<std::vector<BufferSource>> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    const auto described = state_->describe(i);
    if (!described) return described.error();
    std::vector<BufferSource> sources;
    for (std::size_t k = 0; k < described->descriptor.buffers.size(); ++k)
      sources.emplace_back(
          described->descriptor.buffers[k].byte_size,
          [state = state_, entry = *entry, start = described->placement.buffers[k]](
              std::uint64_t offset, std::span<std::byte> out) {
            return state->read_data(entry, out, start + offset);
          });
    return sources;
  });
}

Result<std::optional<File::MappedBytes>> File::mapped_bytes(std::size_t i) const {
  using Found = std::optional<MappedBytes>;
  return contain(Origin::file, [&]() -> Result<Found> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    if (state_->mapping == nullptr) return Found();
    const auto described = state_->describe(i);
    if (!described) return described.error();
    const auto& buffers = described->descriptor.buffers;
    if (buffers.empty() || buffers[0].byte_size == 0) return Found();
    const std::uint64_t size = buffers[0].byte_size;
    const auto at = state_->source.stored_at(described->placement.buffers[0], size);
    if (!at || *at > state_->mapped.size() || size > state_->mapped.size() - *at) return Found();
    const auto start = static_cast<std::size_t>(*at);
    const std::size_t before =
        (reinterpret_cast<std::uintptr_t>(state_->mapped.data()) + start) % min_buffer_alignment;
    if (before > start) return Found();
    const auto bytes =
        state_->mapped.subspan(start - before, static_cast<std::size_t>(size) + before);
    return Found({Buffer::borrow(bytes.data(), bytes.size(), state_->mapping,
                                 state_->options.mode == Mode::map),
                  before});
  });
}

Result<Buffer> File::raw_bytes(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Buffer> {
    const auto entry = state_->listed(i);
    if (!entry) return entry.error();
    const ByteRange all{entry->data_offset, entry->data_length};
    auto memory = state_->buffers(i, {&all, 1}, nullptr);
    if (!memory) return std::move(memory).error();
    return std::move(memory->front());
  });
}

Result<Item> File::item(std::size_t i) const {
  return contain(Origin::file, [&]() -> Result<Item> {
    const State& state = *state_;
    const auto first = state.listed(i);
    if (!first) return first.error();
    auto described = state.describe(i);
    if (!described) return std::move(described).error();
    auto parts = state.composite(i, *std::move(described));
    if (!parts) return std::move(parts).error();
    ItemBuilder builder;
    std::optional<Item> item;
    for (State::Part& part : *parts) {
      auto tensor = state.tensor(part.entry, std::move(part.described));
      if (!tensor) return std::move(tensor).error();
      item = builder.add(*std::move(tensor));
    }
    return *std::move(item);
  });
}

Result<Item> File::item(std::string_view name) const {
  return contain(Origin::file, [&]() -> Result<Item> {
    const auto i = state_->named(name);
    return i ? item(*i) : Result<Item>(i.error());
  });
}

Result<Tensor> File::tensor(std::string_view name) const {
  return contain(Origin::file, [&]() -> Result<Tensor> {
    const auto i = state_->named(name);
    return i ? tensor(*i) : Result<Tensor>(i.error());
  });
}

Result<std::vector<std::optional<std::size_t>>> File::owners() const {
  using Owners = std::vector<std::optional<std::size_t>>;
  return contain(Origin::file, [&]() -> Result<Owners> {
    struct Head {
      std::size_t entry;
      std::uint32_t left;
    };
    const Index& index = state_->index;
    Owners owners(index.size());
    if (!index.may_have_heads()) return owners;
    std::vector<Head> heads;
    for (std::size_t k = 0; k < index.size(); ++k) {
      const std::size_t i = index.by_offset(k);
      if (!heads.empty()) owners[i] = heads.back().entry;
      const auto members = state_->member_count(i);
      if (!members) return members.error();
      if (*members)
        heads.push_back({i, **members});
      else if (!heads.empty())
        --heads.back().left;
      while (!heads.empty() && heads.back().left == 0) {
        heads.pop_back();
        if (!heads.empty()) --heads.back().left;
      }
    }
    if (heads.empty()) return owners;
    std::vector<bool> torn(index.size());
    for (const Head& head : heads) torn[head.entry] = true;
    for (auto& owner : owners)
      if (owner && torn[*owner]) owner.reset();
    return owners;
  });
}

Result<KeyValues> load_kv(const std::string& path, const OpenOptions& options) {
  return contain(Origin::file, [&]() -> Result<KeyValues> {
    auto source = Source::open(path, options);
    if (!source) return source.error();
    if (auto seen = source->translate(options); !seen) return std::move(seen).error();
    const auto ends = read_ends(*source, options);
    if (!ends) return ends.error();
    auto kv = read_kv(*source, *ends);
    if (!kv) return std::move(kv).error();
    return std::move(kv->entries);
  });
}

}  // namespace hurray::io
