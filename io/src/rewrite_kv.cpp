#include "hurray/io/rewrite_kv.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "checksums.hpp"
#include "container.hpp"
#include "hurray/checked.hpp"
#include "index.hpp"
#include "output.hpp"
#include "patience.hpp"
#include "pieces.hpp"
#include "source.hpp"

namespace hurray::io {

namespace {

/// The bytes of `source` from `offset` up to `end` behind those of `output`.
Result<void> copy(const Source& source, std::uint64_t offset, std::uint64_t end, Output& output,
                  Patience& patience) {
  const system::Interrupted question = patience.question();
  if (output.replaces()) {
    const auto copied = system::copy_range(source.descriptor(), offset, end - offset,
                                           output.descriptor(), question);
    if (!copied) return system::to_error(copied.error(), Origin::file, output.path());
    offset += *copied;
  }
  auto pieces = Pieces::over(source, end, patience);
  if (!pieces) return std::move(pieces).error();
  return pieces->for_each("tensors", offset, end, [&](std::span<const std::byte> bytes) {
    return output.write({&bytes, 1}, question);
  });
}

}  // namespace

Result<void> rewrite_key_values(const std::string& path, const std::string& target,
                                const KeyValues& kv, const RewriteOptions& options) {
  return contain(Origin::file, [&]() -> Result<void> {
    OpenOptions open;
    open.mode = Mode::memory;
    open.interrupted = options.interrupted;
    const auto status = system::status(path);  // opening a pipe would wait for its other end
    if (status && *status && (*status)->kind != system::Kind::regular &&
        (*status)->kind != system::Kind::folder)
      return Error(
          {.code = Errc::invalid_value, .origin = Origin::file, .what = "not a regular file"}, path,
          {}, "save what it delivers to a file first");
    const auto source = Source::open(path, open);
    if (!source) return source.error();
    const auto ends = read_ends(*source, open);
    if (!ends) return ends.error();
    if (newer(ends->header))
      return source->about({.code = Errc::unsupported,
                            .origin = Origin::file,
                            .expect = Expect::exactly,
                            .field = "container_version_minor",
                            .what = "in a file whose key-values are changed",
                            .expected = 0,
                            .found = ends->header.version_minor},
                           {}, "\"hurray convert a.hrry b.hrry\" makes one of this version");
    const auto index = Index::read(*source, *ends, open);
    if (!index) return index.error();
    const auto old = read_kv(*source, *ends);
    if (!old) return old.error();
    Patience patience(options.interrupted);
    const auto sums =
        ChecksumTable::read(*source, *ends, &*index, old->checksums, patience, nullptr);
    if (!sums) return sums.error();
    if (!sums->findings().empty()) return sums->findings().front().error;

    FileHeader header = ends->header;
    header.flags |= bit(FileFlag::has_kv_metadata);
    std::array<std::byte, header_bytes> header_image{};
    Writer header_writer(header_image, Origin::file);
    fields(header, header_writer);

    FileTrailer trailer = ends->trailer;
    const auto index_bytes =
        source->read_in_steps("index", trailer.index_offset, trailer.index_length,
                              [](std::span<const std::byte>) -> Result<void> { return {}; });
    if (!index_bytes) return index_bytes.error();
    auto section = encode_kv(kv);
    if (!section) {
      Error error = std::move(section).error();
      error.path = target;
      return error;
    }
    if (sums->state() == ChecksumState::valid)
      if (auto added = sums->append_to(*section, header_image, index_bytes->bytes()); !added)
        return added;
    const std::uint64_t region = region_end(ends->trailer);
    trailer.kv_offset = region;
    trailer.kv_length = static_cast<std::uint32_t>(section->size());
    const auto index_offset =
        checked_align_up<std::uint64_t>(region + section->size(), part_alignment);
    const auto file_end = index_offset
                              ? checked_add(*index_offset, trailer.index_length + trailer_bytes)
                              : std::nullopt;
    if (!file_end || *file_end > max_file_bytes)
      return source->about({.code = Errc::overflow,
                            .origin = Origin::file,
                            .field = "file_size",
                            .what = "the new file would be larger than files can be"});
    trailer.index_offset = *index_offset;
    std::array<std::byte, trailer_bytes> trailer_image{};
    Writer trailer_writer(trailer_image, Origin::file);
    fields(trailer, trailer_writer, header, trailer.index_offset + trailer.index_length);

    auto output = Output::create(target, Origin::file, 0, options.interrupted);
    if (!output) return std::move(output).error();
    // Whole from the first byte on, the start can be shared with the old file.
    const bool same_header = header.flags == ends->header.flags;
    const std::span<const std::byte> start = header_image;
    if (!same_header)
      if (auto written = output->write({&start, 1}); !written) return written;
    if (auto copied = copy(*source, same_header ? 0 : header_bytes, region, *output, patience);
        !copied)
      return copied;
    constexpr std::array<std::byte, part_alignment> zeros{};
    const std::array<std::span<const std::byte>, 4> rest = {
        *section,
        std::span(zeros).first(
            static_cast<std::size_t>(trailer.index_offset - region - section->size())),
        index_bytes->bytes(), trailer_image};
    if (auto written = output->write(rest, patience.question()); !written) return written;
    return output->commit(options.sync);
  });
}

}  // namespace hurray::io
