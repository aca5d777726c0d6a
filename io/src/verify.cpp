#include "hurray/io/verify.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "file_state.hpp"
#include "hurray/checked.hpp"
#include "hurray/io/crc32c.hpp"
#include "parallel.hpp"
#include "patience.hpp"
#include "pieces.hpp"

namespace hurray::io {

namespace {

/// Chunks of a tensor that are read before the first of them is reported.
constexpr std::uint64_t chunks_at_once = 256;

/// A range of bytes in the file.
struct Span {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

/// The bytes that are not zero, from the first to the last.
struct Stain {
  Span span;

  void look(std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
    if (bytes.empty() || (bytes[0] == std::byte{0} &&
                          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0))
      return;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == std::byte{0}) continue;
      if (span.end == 0) span.start = offset + i;
      span.end = offset + i + 1;
    }
  }
};

/// The padding inside a data region.
std::vector<Span> paddings(const Descriptor& descriptor, const Placement& placement) {
  std::vector<Span> found;
  std::uint64_t end = placement.data_offset;
  for (std::size_t k = 0; k < placement.buffers.size(); ++k) {
    if (placement.buffers[k] > end) found.push_back({end, placement.buffers[k]});
    end = placement.buffers[k] + descriptor.buffers[k].byte_size;
  }
  return found;
}

}  // namespace

/// One verification. `begin` first; an error of any function ends it, and where the report wanted
/// that, `finish` takes the error back.
class Verifier {
 public:
  Verifier(const Report& report, const VerifyOptions& options)
      : report_(report), patience_(options.interrupted) {}

  /// The error of opening, as a finding where it is one.
  Result<File> open(const std::string& path, const OpenOptions& options) {
    File::Step step;
    auto file = File::open(path, options, step);
    if (file) return file;
    switch (file.error().code) {
      case Errc::system:
      case Errc::out_of_memory:
      case Errc::limit_exceeded:
      case Errc::unsupported:
        return file;
      default:
        break;
    }
    auto reported = diagnose(step, file.error());
    stopped_ = stopped_ || reported.has_value();
    return stopped_ ? std::move(file) : Result<File>(std::move(reported).error());
  }

  Result<void> whole(const File& file) {
    const File::State& state = *file.state_;
    const FileTrailer& trailer = state.ends.trailer;
    const std::uint64_t size = state.source.size();
    if (auto ok = begin(state, size); !ok) return ok;
    if (auto ok = ends(); !ok) return ok;
    auto table = ChecksumTable::read(state.source, state.ends, &state.index, state.kv.checksums,
                                     patience_, &result_.bytes_read);
    if (!table) return std::move(table).error();
    if (auto ok = use(*table); !ok) return ok;
    if (auto ok = index(); !ok) return ok;

    const std::size_t tensors = state.index.size();
    const std::uint64_t region = region_end(trailer);
    const std::uint64_t first = tensors != 0 ? state.ends.header.first_descriptor_offset : region;
    if (auto ok = gap(header_bytes, first); !ok) return ok;
    for (std::size_t k = 0; k < tensors; ++k)
      if (auto ok = tensor(k); !ok) return ok;
    if (trailer.kv_length != 0)
      if (auto ok = gap(trailer.kv_offset + trailer.kv_length, trailer.index_offset); !ok)
        return ok;
    return gap(trailer.index_offset + trailer.index_length, size - trailer_bytes);
  }

  Result<void> one(const File& file, std::size_t i) {
    const File::State& state = *file.state_;
    if (const auto entry = state.listed(i); !entry) return entry.error();
    if (auto ok = begin(state, region_end(state.ends.trailer)); !ok) return ok;
    const auto table = state.checksums();
    if (!table) return table.error();
    if (auto ok = use(**table); !ok) return ok;
    std::size_t k = state.index.place(i);
    do {
      if (auto ok = tensor(k); !ok) return ok;
    } while (++k < state.index.size() && !heads_.empty());
    return {};
  }

  Result<Verification> finish(const Result<void>& done) {
    if (pieces_) result_.bytes_read += pieces_->bytes_read();
    if (stopped_) return result_;
    if (!done) return done.error();
    return result_;
  }

 private:
  struct Head {
    std::size_t entry;
    std::uint32_t left;
  };

  Result<void> begin(const File::State& state, std::uint64_t end) {
    state_ = &state;
    auto pieces = Pieces::over(state.source, end, patience_);
    if (!pieces) return std::move(pieces).error();
    pieces_ = *std::move(pieces);
    fresh_checker();
    return {};
  }

  /// Why a file cannot be opened, and which part is to blame: an index that is wrong may be the
  /// right one under a wrong header or trailer.
  Result<void> diagnose(const File::Step& step, const Error& error) {
    const auto blame = [&](FilePart part, std::uint64_t offset, std::uint64_t size) {
      return emit({.part = part, .offset = offset, .size = size, .error = error});
    };
    if (step.part != FilePart::index && step.part != FilePart::kv)
      return blame(step.part, step.offset, step.size);
    const FileTrailer& trailer = step.ends->trailer;
    const std::uint64_t start = step.source->size() - trailer_bytes;
    const auto kv_end =
        checked_align_up<std::uint64_t>(trailer.kv_offset + trailer.kv_length, part_alignment);
    bool too_long = error.field == "kv_length" && error.found < part_alignment;
    if (too_long) {  // by padding, or is the last entry too short?
      std::array<std::byte, part_alignment> rest{};
      const auto bytes = std::span(rest).first(static_cast<std::size_t>(error.found));
      if (auto ok = step.source->read("kv", bytes, error.offset); !ok) return ok;
      too_long = std::ranges::count(bytes, std::byte{0}) == std::ssize(bytes);
    }
    if (trailer.index_offset + trailer.index_length != start ||
        (trailer.kv_length != 0 && kv_end != trailer.index_offset) || too_long)
      return blame(FilePart::trailer, start, trailer_bytes);
    if (step.part == FilePart::index) {
      if (const auto kv = read_kv(*step.source, *step.ends)) {
        const auto table = ChecksumTable::read(*step.source, *step.ends, nullptr, kv->checksums,
                                               patience_, &result_.bytes_read);
        if (!table) return table.error();
        for (const Finding& finding : table->findings())
          if (finding.part == FilePart::header) return emit(finding);
        if (error.code == Errc::checksum_mismatch && table->index_sum() == error.found)
          return blame(FilePart::trailer, start, trailer_bytes);
      }
    }
    return blame(step.part, step.offset, step.size);
  }

  void fresh_checker() {
    checker_ = CompositeChecker({.max_depth = state_->options.max_composite_depth,
                                 .permissive = state_->options.permissive});
    judging_ = true;
  }

  Result<void> emit(const Finding& finding) {
    if (finding.error.code == Errc::out_of_memory)
      return finding.error;  // says nothing of the file
    ++(finding.accepted ? result_.accepted : result_.findings);
    if (report_) {
      if (report_(finding)) return {};
      result_.complete = false;
      stopped_ = true;
      return finding.error;
    }
    if (finding.accepted) return {};
    return finding.error;
  }

  Result<void> use(const ChecksumTable& table) {
    result_.state = table.state();
    for (const Finding& finding : table.findings())
      if (auto ok = emit(finding); !ok) return ok;
    if (table.fits_index()) sums_ = &table;
    return {};
  }

  /// Header and trailer as they are now, and what they say about the rest.
  Result<void> ends() {
    const File::State& state = *state_;
    const FileHeader& header = state.ends.header;
    const FileTrailer& trailer = state.ends.trailer;
    result_.bytes_read += header_bytes + trailer_bytes;
    if (const auto now = read_ends(state.source, state.options); !now) {
      const Error& error = now.error();
      if (error.code == Errc::system) return error;
      const bool in_header = error.offset < header_bytes;
      return emit({.part = in_header ? FilePart::header : FilePart::trailer,
                   .offset = in_header ? 0 : state.source.size() - trailer_bytes,
                   .size = in_header ? header_bytes : trailer_bytes,
                   .error = error});
    }
    if (header.tensor_count_hint != unknown_count && header.tensor_count_hint != state.index.size())
      if (auto ok = emit({.part = FilePart::header,
                          .offset = 28,
                          .size = 8,
                          .error = state.source.about({.code = Errc::inconsistent,
                                                       .origin = Origin::file,
                                                       .expect = Expect::exactly,
                                                       .field = "tensor_count_hint",
                                                       .what = "as in the index",
                                                       .offset = 28,
                                                       .expected = state.index.size(),
                                                       .found = header.tensor_count_hint})});
          !ok)
        return ok;
    const bool announced = has(header, FileFlag::has_kv_metadata);
    if (announced == (trailer.kv_length != 0)) return {};
    return emit({.part = FilePart::header,
                 .offset = 12,
                 .size = 4,
                 .accepted = true,
                 .error = state.source.about(
                     {.code = Errc::inconsistent,
                      .origin = Origin::file,
                      .field = "file_flags",
                      .what = announced ? "HAS_KV_METADATA is set, and there is no KV section"
                                        : "HAS_KV_METADATA is clear, and there is a KV section",
                      .offset = 12},
                     {}, "accepted: the trailer decides")});
  }

  /// The index as it is now.
  Result<void> index() {
    const FileTrailer& trailer = state_->ends.trailer;
    const auto found =
        pieces_->sum("index", trailer.index_offset, trailer.index_offset + trailer.index_length);
    if (!found) return found.error();
    if (*found == state_->index.crc()) return {};
    return emit(mismatch(state_->source, {},
                         {.part = FilePart::index,
                          .offset = trailer.index_offset,
                          .size = trailer.index_length,
                          .sums = SumPair{state_->index.crc(), *found}}));
  }

  Result<void> stained(const Stain& stain, std::string_view tensor) {
    if (stain.span.end == 0) return {};
    std::string detail = "bytes " + std::to_string(stain.span.start) + " to " +
                         std::to_string(stain.span.end - 1) + "; padding and gaps are 0";
    return emit({.part = FilePart::padding,
                 .offset = stain.span.start,
                 .size = stain.span.end - stain.span.start,
                 .error = state_->source.about({.code = Errc::reserved_bits,
                                                .origin = Origin::file,
                                                .field = "padding",
                                                .what = "holds bytes that are not 0",
                                                .offset = stain.span.start},
                                               tensor, std::move(detail))});
  }

  Result<void> gap(std::uint64_t start, std::uint64_t end, std::string_view tensor = {}) {
    Stain stain;
    std::uint64_t at = start;
    auto ok = pieces_->for_each("padding", start, end,
                                [&](std::span<const std::byte> bytes) -> Result<void> {
                                  stain.look(bytes, at);
                                  at += bytes.size();
                                  return {};
                                });
    if (!ok) return ok;
    return stained(stain, tensor);
  }

  /// Tensor `k` by `descriptor_offset`, with the padding behind it.
  Result<void> tensor(std::size_t k) {
    const Index& index = state_->index;
    const std::size_t i = index.by_offset(k);
    const Entry entry = index.entry(i);
    const std::uint64_t descriptor_end = entry.descriptor_offset + entry.descriptor_length;
    std::optional<File::State::Described> described;
    const auto about = [&](Result<void> result) {
      if (result || !result.error().tensor.empty()) return result;
      Error error = std::move(result).error();
      error.tensor = entry.name;
      return Result<void>(std::move(error));
    };
    if (auto ok = descriptor(k, entry, described); !ok) return about(std::move(ok));
    if (auto ok = composite(k, i, described ? &described->descriptor : nullptr); !ok) return ok;
    std::uint64_t end = descriptor_end;
    if (entry.data_length != 0) {
      end = entry.data_offset + entry.data_length;
      if (auto ok = gap(descriptor_end, entry.data_offset, entry.name); !ok)
        return about(std::move(ok));
      if (auto ok = data(k, entry, described ? &*described : nullptr); !ok)
        return about(std::move(ok));
    }
    const std::uint64_t next = k + 1 < index.size()
                                   ? index.entry(index.by_offset(k + 1)).descriptor_offset
                                   : region_end(state_->ends.trailer);
    return about(gap(end, next, entry.name));
  }

  Result<void> descriptor(std::size_t k, const Entry& entry,
                          std::optional<File::State::Described>& described) {
    const auto broken = [&](const Error& error) {
      return emit({.part = FilePart::descriptor,
                   .offset = entry.descriptor_offset,
                   .size = entry.descriptor_length,
                   .error = error});
    };
    const auto limit = state_->check_descriptor_limit(entry);
    Bytes bytes;
    if (limit) bytes.reserve(entry.descriptor_length);
    std::uint32_t crc = 0;
    auto ok = pieces_->for_each("descriptor", entry.descriptor_offset,
                                entry.descriptor_offset + entry.descriptor_length,
                                [&](std::span<const std::byte> piece) -> Result<void> {
                                  crc = crc32c(piece, crc);
                                  if (limit) bytes.insert(bytes.end(), piece.begin(), piece.end());
                                  return {};
                                });
    if (!ok) return ok;
    if (sums_ != nullptr)
      if (const auto wrong = compare_descriptor(state_->source, *sums_, k, entry, crc))
        return emit(*wrong);
    if (!limit) return broken(limit.error());
    if (auto length = state_->check_descriptor_length(entry, bytes); !length)
      return broken(length.error());
    auto decoded = state_->describe(entry, bytes);
    if (!decoded) return broken(decoded.error());
    described = *std::move(decoded);
    return {};
  }

  Result<void> data(std::size_t k, const Entry& entry, const File::State::Described* described) {
    const std::vector<Span> inner = described != nullptr
                                        ? paddings(described->descriptor, described->placement)
                                        : std::vector<Span>();
    if (sums_ == nullptr) {
      for (const Span& padding : inner)
        if (auto ok = gap(padding.start, padding.end, entry.name); !ok) return ok;
      return {};
    }
    const RegionSums region(*sums_, k, entry,
                            described != nullptr ? &described->descriptor : nullptr,
                            described != nullptr ? &described->placement : nullptr);
    const std::uint64_t chunk_bytes = sums_->chunk_bytes();
    const std::uint64_t chunks =
        entry.data_length / chunk_bytes + (entry.data_length % chunk_bytes != 0 ? 1 : 0);
    const Source& source = state_->source;
    const std::uint64_t data_end = entry.data_offset + entry.data_length;
    /// What was seen of a chunk.
    struct Seen {
      std::uint32_t crc = 0;
      Stain stain = {};
    };
    std::vector<Seen> seen;
    for (std::uint64_t first = 0; first < chunks; first += seen.size()) {
      seen.assign(static_cast<std::size_t>(std::min(chunks - first, chunks_at_once)), {});
      const auto make_work = [&] {
        return [&, memory = Buffer()](std::size_t j) mutable -> Result<void> {
          if (memory.size() == 0) {
            auto own = Buffer::allocate(
                std::min<std::uint64_t>({Pieces::piece_bytes, chunk_bytes, entry.data_length}));
            if (!own) return source.about(own.error());
            memory = *std::move(own);
          }
          const std::uint64_t skipped = (first + j) * chunk_bytes;
          const std::uint64_t end =
              entry.data_offset + skipped + std::min(entry.data_length - skipped, chunk_bytes);
          for (std::uint64_t at = entry.data_offset + skipped; at < end;) {
            const auto bytes = memory.bytes().first(
                static_cast<std::size_t>(std::min<std::uint64_t>(end - at, memory.size())));
            if (auto ok = source.read("data", bytes, at, data_end - at - bytes.size()); !ok)
              return ok;
            seen[j].crc = crc32c(bytes, seen[j].crc);
            for (const Span& padding : inner) {
              const std::uint64_t from = std::max(padding.start, at);
              const std::uint64_t to = std::min(padding.end, at + bytes.size());
              if (from < to)
                seen[j].stain.look(bytes.subspan(static_cast<std::size_t>(from - at),
                                                 static_cast<std::size_t>(to - from)),
                                   from);
            }
            at += bytes.size();
          }
          return {};
        };
      };
      const std::uint64_t bytes = std::min<std::uint64_t>(seen.size() * chunk_bytes,
                                                          entry.data_length - first * chunk_bytes);
      if (auto ok = in_parallel(seen.size(), source.threads_for(bytes), patience_, source.path(),
                                make_work);
          !ok)
        return ok;
      result_.bytes_read += bytes;
      for (std::size_t j = 0; j < seen.size(); ++j) {
        // A chunk that is damaged says so once.
        const auto wrong = region.compare(source, first + j, seen[j].crc);
        auto ok = wrong ? emit(*wrong) : stained(seen[j].stain, entry.name);
        if (!ok) return ok;
      }
    }
    return {};
  }

  /// Tensor `k`, entry `i`, as part of a composite (row 28 of section 12). `descriptor`: null where
  /// it could not be read; it counts as a plain tensor then, and its composite is not judged.
  Result<void> composite(std::size_t k, std::size_t i, const Descriptor* descriptor) {
    const auto* head =
        descriptor != nullptr ? std::get_if<CompositeHead>(&descriptor->layout) : nullptr;
    if (heads_.empty() && head == nullptr) return {};
    if (descriptor == nullptr) judging_ = false;
    const auto refuse = [&](const hurray::Error& error, std::string detail = {}) -> Result<void> {
      judging_ = false;
      const std::size_t at = checker_.fault_depth();
      const std::size_t guilty = at != 0 && at <= heads_.size() ? heads_[at - 1].entry : i;
      const Entry entry = state_->index.entry(guilty);
      return emit({.part = FilePart::descriptor,
                   .offset = entry.descriptor_offset,
                   .size = entry.descriptor_length,
                   .error = state_->about(error, entry, std::move(detail))});
    };
    const auto arrived = judging_ ? checker_.arrive(*descriptor) : hurray::Result<void>();
    if (!arrived)
      if (auto ok = refuse(arrived.error()); !ok) return ok;
    if (head != nullptr)
      heads_.push_back({i, head->member_count});
    else
      --heads_.back().left;
    if (head != nullptr && judging_) {
      if (const std::uint64_t behind = state_->index.size() - 1 - k; checker_.owed() > behind) {
        judging_ = false;
        const Entry entry = state_->index.entry(i);
        auto ok = emit({.part = FilePart::descriptor,
                        .offset = entry.descriptor_offset,
                        .size = entry.descriptor_length,
                        .error = state_->torn(entry, checker_.owed(), behind)});
        if (!ok) return ok;
      }
    }
    if (judging_)
      if (const auto closed = checker_.complete(); !closed)
        if (auto ok = refuse(closed.error()); !ok) return ok;
    while (!heads_.empty() && heads_.back().left == 0) {
      heads_.pop_back();
      if (!heads_.empty()) --heads_.back().left;
    }
    if (heads_.empty()) fresh_checker();
    return {};
  }

  const Report& report_;
  Patience patience_;
  Verification result_;
  bool stopped_ = false;
  const File::State* state_ = nullptr;
  std::optional<Pieces> pieces_;
  const ChecksumTable* sums_ = nullptr;  ///< Null where nothing is compared.
  CompositeChecker checker_;
  std::vector<Head> heads_;  ///< Open ones, outermost first.
  bool judging_ = true;      ///< Nothing of the outermost composite has been refused.
};

Result<Verification> verify(const File& file, const Report& report, const VerifyOptions& options) {
  return contain(Origin::file, [&]() -> Result<Verification> {
    Verifier verifier(report, options);
    return verifier.finish(verifier.whole(file));
  });
}

Result<Verification> verify_tensor(const File& file, std::size_t i, const Report& report,
                                   const VerifyOptions& options) {
  return contain(Origin::file, [&]() -> Result<Verification> {
    Verifier verifier(report, options);
    return verifier.finish(verifier.one(file, i));
  });
}

Result<Verification> verify(const std::string& path, const OpenOptions& open, const Report& report,
                            const VerifyOptions& options) {
  return contain(Origin::file, [&]() -> Result<Verification> {
    Verifier verifier(report, options);
    const auto file = verifier.open(path, open);
    if (!file) return verifier.finish(file.error());
    return verifier.finish(verifier.whole(*file));
  });
}

}  // namespace hurray::io
