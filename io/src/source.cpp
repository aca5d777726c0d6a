#include "source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace hurray::io {

namespace {

constexpr std::size_t spool_step = std::size_t{1} << 20;
/// Of a file's first bytes, enough to tell what it is.
constexpr std::size_t head_bytes = 512;

hurray::Error over_limit(std::string_view option, std::uint64_t limit,
                         std::uint64_t found) noexcept {
  return {.code = Errc::limit_exceeded,
          .origin = Origin::file,
          .expect = Expect::at_most,
          .field = option,
          .expected = limit,
          .found = found};
}

/// All that comes out of `input`, at most `limit` bytes, and how much that is.
Result<std::pair<system::Handle, std::uint64_t>> spool(const system::Handle& input,
                                                       const std::string& path, std::uint64_t limit,
                                                       const system::Interrupted& interrupted) {
  const auto failed = [&](const system::Failure& failure) {
    return system::to_error(failure, Origin::file, path);
  };
  auto kept = system::anonymous_file();
  if (!kept) return failed(kept.error());
  auto piece = Buffer::allocate(spool_step);
  if (!piece) return Error(piece.error(), path);
  for (std::uint64_t total = 0;;) {
    const auto count = system::read_some(input.number(), piece->bytes(), interrupted);
    if (!count) return failed(count.error());
    if (*count == 0) return std::pair(*std::move(kept), total);
    total += *count;
    if (total > limit) return Error(over_limit("max_spool_bytes", limit, total), path);
    const std::span<const std::byte> part = piece->bytes().first(*count);
    if (auto written = system::write_all(kept->number(), {&part, 1}); !written)
      return failed(written.error());
  }
}

}  // namespace

namespace {

bool mapped_pipe(system::Kind kind, const OpenOptions& options) noexcept {
  return kind != system::Kind::regular && options.mode != Mode::memory;
}

Error refuse_pipe(const std::string& path) {
  return Error({.code = Errc::unsupported,
                .origin = Origin::file,
                .what = "a pipe or device cannot be mapped"},
               path, {}, "open it with mode=\"memory\"");
}

}  // namespace

Result<Source> Source::open(std::string path, const OpenOptions& options) {
  const auto failed = [&](const system::Failure& failure) {
    return system::to_error(failure, Origin::file, path);
  };
  const auto named = system::status(path);  // opening a pipe would wait for its other end
  if (!named) return failed(named.error());
  if (*named && (*named)->kind == system::Kind::folder)
    return failed({.number = EISDIR, .call = "open"});
  if (*named && mapped_pipe((*named)->kind, options)) return refuse_pipe(path);
  auto handle = system::open_to_read(path, options.interrupted);
  if (!handle) return failed(handle.error());
  return from(*std::move(handle), std::move(path), options);
}

Result<Source> Source::over(int descriptor, const OpenOptions& options) {
  auto handle = system::duplicate(descriptor);
  if (!handle) return system::to_error(handle.error(), Origin::file, {});
  return from(*std::move(handle), {}, options);
}

Result<Source> Source::from(system::Handle handle, std::string path, const OpenOptions& options) {
  const auto failed = [&](const system::Failure& failure) {
    return system::to_error(failure, Origin::file, path);
  };
  const auto status = system::status(handle.number());
  if (!status) return failed(status.error());
  if (status->kind == system::Kind::folder) return failed({.number = EISDIR, .call = "read"});
  if (mapped_pipe(status->kind, options)) return refuse_pipe(path);
  if (status->kind == system::Kind::regular)
    return Source(std::move(handle), std::move(path), status->size);
  auto kept = spool(handle, path, options.max_spool_bytes, options.interrupted);
  if (!kept) return std::move(kept).error();
  return Source(std::move(kept->first), std::move(path), kept->second);
}

Result<Source> Source::over(PositionedSource remote, const OpenOptions& options) {
  auto opened = Remote::open(std::move(remote), options.interrupted);
  if (!opened) return std::move(opened).error();
  return Source(*std::move(opened));
}

Result<std::size_t> Source::read_up_to(std::span<std::byte> into, std::uint64_t offset,
                                       std::uint64_t ahead) const {
  if (remote() != nullptr) return remote()->read(into, offset, ahead);
  if (image_) {
    const auto bytes = image_->bytes();
    const std::size_t start = std::min(bytes.size(), to_size(offset).value_or(bytes.size()));
    const auto there = bytes.subspan(start).first(std::min(bytes.size() - start, into.size()));
    std::ranges::copy(there, into.begin());
    return there.size();
  }
  const auto count = system::read_at(descriptor(), into, offset);
  if (!count) return system::to_error(count.error(), Origin::file, path_);
  return *count;
}

Result<void> Source::read(std::string_view field, std::span<std::byte> into, std::uint64_t offset,
                          std::uint64_t ahead) const {
  if (!translation_) return read_stored(field, into, offset, ahead);
  auto done =
      translation_->state().fill(into, offset, [&](std::span<std::byte> part, std::uint64_t at) {
        return read_stored(field, part, at, ahead);
      });
  if (done || !done.error().path.empty()) return done;
  Error error = std::move(done).error();
  error.path = path_;
  return error;
}

Result<void> Source::translate(const OpenOptions& options) {
  if (!options.foreign) return {};
  std::array<std::byte, file_magic.size()> start{};
  const auto head = std::span(start).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(size_, start.size())));
  if (auto ok = read_stored("header", head, 0, 0); !ok) return ok;
  if (head.empty() || std::ranges::equal(head, std::span(file_magic).first(head.size()))) return {};
  auto seen = options.foreign(
      {.path = path_,
       .size = size_,
       .read = [this](std::span<std::byte> into,
                      std::uint64_t offset) { return read_stored("header", into, offset, 0); },
       .max_index_bytes = options.max_index_bytes});
  if (!seen) {
    Error error = std::move(seen).error();
    error.path = path_;
    return error;
  }
  translation_ = *std::move(seen);
  return {};
}

Result<void> Source::read_stored(std::string_view field, std::span<std::byte> into,
                                 std::uint64_t offset, std::uint64_t ahead) const {
  const auto count = read_up_to(into, offset, ahead);
  if (!count) return count.error();
  if (*count == into.size()) return {};
  return about({.code = Errc::truncated,
                .origin = Origin::file,
                .expect = Expect::exactly,
                .field = field,
                .what = "bytes",
                .offset = offset,
                .expected = into.size(),
                .found = *count},
               {}, "the file was cut while it was open");
}

Result<Ends> read_ends(const Source& source, const OpenOptions& options) {
  std::array<std::byte, head_bytes> head{};
  const auto start = std::span(head).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), head.size())));
  if (auto ok = source.read("header", start, 0); !ok) return ok.error();

  const std::size_t seen = std::min(start.size(), file_magic.size());
  if (seen == 0 || !std::ranges::equal(start.first(seen), std::span(file_magic).first(seen))) {
    std::string is = describe_foreign_file(start, source.size());
    return source.about(
        {.code = Errc::invalid_magic,
         .origin = Origin::file,
         .field = "magic",
         .what = "this is no .hrry file",
         .offset = 0},
        {}, is.empty() ? std::string("a .hrry file begins with HRRYFILE") : "it is " + is);
  }
  if (source.size() < smallest_file)
    return source.about({.code = Errc::truncated,
                         .origin = Origin::file,
                         .expect = Expect::at_least,
                         .field = "file_size",
                         .what = "bytes",
                         .expected = smallest_file,
                         .found = source.size()},
                        {}, "unfinished download or write?");
  if (source.size() > max_file_bytes)
    return source.about({.code = Errc::overflow,
                         .origin = Origin::file,
                         .expect = Expect::at_most,
                         .field = "file_size",
                         .what = "bytes",
                         .expected = max_file_bytes,
                         .found = source.size()});

  Ends ends;
  Reader header(start.first(header_bytes), Origin::file);
  fields(ends.header, header);
  if (!header.ok()) return source.about(header.error());

  const std::uint64_t end = source.size() - trailer_bytes;
  std::array<std::byte, trailer_bytes> raw{};
  if (auto ok = source.read("trailer", raw, end); !ok) return ok.error();
  if (!std::ranges::equal(std::span(raw).last(magic.size()), magic))
    return source.about({.code = Errc::truncated, .origin = Origin::file, .field = "trailer_magic"},
                        {},
                        "ends at byte " + std::to_string(source.size()) +
                            " without a trailer; unfinished download or write?");
  Reader trailer(raw, Origin::file, end);
  fields(ends.trailer, trailer, ends.header, end);
  if (!trailer.ok()) return source.about(trailer.error());

  if (ends.trailer.index_length > options.max_index_bytes)
    return source.about(
        over_limit("max_index_bytes", options.max_index_bytes, ends.trailer.index_length));
  if (ends.trailer.kv_length > options.max_kv_bytes)
    return source.about(over_limit("max_kv_bytes", options.max_kv_bytes, ends.trailer.kv_length));
  return ends;
}

Result<KvContents> read_kv(const Source& source, const Ends& ends) {
  const FileTrailer& trailer = ends.trailer;
  KvContents contents;
  if (trailer.kv_length == 0) return contents;
  const auto parse = [&](std::span<const std::byte> bytes) -> Result<void> {
    const bool whole = bytes.size() == trailer.kv_length;
    auto section = split_kv(bytes, trailer.kv_offset, newer(ends.header));
    if (!section) {
      // A part of it may only be cut short.
      if (!whole && section.error().code == Errc::truncated) return {};
      Error error = std::move(section).error();
      error.path = source.path();
      return error;
    }
    if (!whole) return {};
    contents.entries = std::move(section->entries);
    if (section->checksums.empty()) return {};
    const ChecksumEntry& ours = section->checksums.front();
    const std::uint64_t end = trailer.kv_offset + trailer.kv_length;
    contents.checksums = {.entries = section->checksums.size(),
                          .has_key = ours.key == checksums_key,
                          .last = ours.last && ours.offset + ours.payload.size() == end,
                          .offset = ours.offset,
                          .size = ours.payload.size()};
    return {};
  };
  auto bytes = source.read_in_steps("kv", trailer.kv_offset, trailer.kv_length, parse);
  if (!bytes) return std::move(bytes).error();
  return contents;
}

}  // namespace hurray::io
