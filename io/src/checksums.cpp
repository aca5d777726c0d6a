#include "checksums.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "crc32c.hpp"
#include "hurray/cursor.hpp"
#include "hurray/io/crc32c.hpp"
#include "hurray/memory.hpp"
#include "hurray/printer.hpp"
#include "key_values.hpp"
#include "pieces.hpp"

namespace hurray::io {

namespace {

constexpr std::uint8_t payload_version = 1;
constexpr std::size_t sum_bytes = 4;
constexpr unsigned least_chunk_log2 = 16;

struct Head {
  std::uint8_t version = payload_version;
  std::uint8_t chunk_log2 = Checksums::smallest_chunk_log2;
  std::uint32_t index_sum = 0;
  std::uint32_t header_sum = 0;
  std::uint32_t kv_sum = 0;
  std::uint64_t tensors = 0;
};

template <MaybeConst<Head> H, class Io>
void fields(H& self, Io& io) noexcept {
  io.literal("checksums.magic", std::as_bytes(std::span(checksums_magic)), Errc::invalid_magic);
  io("checksums.version", self.version);
  io("checksums.chunk_log2", self.chunk_log2);
  io.check(least_chunk_log2 <= self.chunk_log2 && self.chunk_log2 <= Checksums::largest_chunk_log2,
           {.code = Errc::invalid_value,
            .expect = Expect::as_said,
            .field = "checksums.chunk_log2",
            .what = "16 to 30",
            .found = self.chunk_log2});
  io.reserved("checksums.reserved", 2);
  io("checksums.index_crc32c", self.index_sum);
  io("checksums.header_crc32c", self.header_sum);
  io("checksums.kv_crc32c", self.kv_sum);
  io("checksums.tensor_count", self.tensors);
}

/// Bytes of a payload without sums of tensors.
std::uint64_t fixed_bytes() noexcept {
  const Head head;
  Sizer sizer(Origin::file);
  fields(head, sizer);
  return sizer.position() + sum_bytes;
}

constexpr std::string_view damaged_advice =
    "take another copy of the file; verify=False reads it as it is";
constexpr std::string_view foreign_advice =
    "damaged, or rewritten by a program that copies the sums without knowing them: "
    "\"hurray convert a.hrry b.hrry\" makes new ones, verify=False reads the file as it is";
constexpr std::string_view unknown_advice =
    "a newer release knows it; \"hurray convert a.hrry b.hrry\" makes sums of this version, "
    "verify=False reads the file as it is";

/// How many chunks a data region has.
std::uint64_t chunks(std::uint64_t length, unsigned chunk_log2) noexcept {
  const std::uint64_t rest = length & ((std::uint64_t{1} << chunk_log2) - 1);
  return (length >> chunk_log2) + (rest != 0 ? 1 : 0);
}

/// "bytes 4096 to 4101 (buffer 0)"
std::string words(const Finding& finding) {
  std::string text = "bytes " + std::to_string(finding.offset) + " to " +
                     std::to_string(finding.offset + finding.size - 1);
  if (finding.buffers == 0) return text;
  text += finding.buffers == 1 ? " (buffer " : " (buffers ";
  text += std::to_string(finding.first_buffer);
  if (finding.buffers > 1)
    text += " to " + std::to_string(finding.first_buffer + finding.buffers - 1);
  return text + ')';
}

Finding mismatch(const Source& source, std::string_view tensor, Finding about,
                 std::string_view advice) {
  const auto& [stored, found] = *about.sums;
  std::string detail = words(about) + " have the CRC-32C " + to_hex(found) + ", and " +
                       to_hex(stored) + " is stored; ";
  detail += advice;
  about.error = source.about({.code = Errc::checksum_mismatch,
                              .origin = Origin::file,
                              .field = find_row(file_parts, about.part)->name,
                              .offset = about.offset,
                              .expected = stored,
                              .found = found},
                             tensor, std::move(detail));
  return about;
}

/// Appends the entry with `payload`, in which the sums of tensors stand, and puts the rest in.
Result<void> append(Bytes& kv_section, Head head, std::span<const std::byte> payload) {
  if (auto appended = append_checksums(kv_section, payload); !appended) return appended;
  const auto section = std::span<std::byte>(kv_section);
  const auto own = section.last(payload.size());
  head.kv_sum = crc32c(section.first(section.size() - own.size()));
  Writer start(own, Origin::file);
  fields(head, start);
  Writer end(own.last(sum_bytes), Origin::file);
  end("self_crc32c", crc32c(own.first(own.size() - sum_bytes)));
  return {};
}

}  // namespace

Finding mismatch(const Source& source, std::string_view tensor, Finding about) {
  return mismatch(source, tensor, std::move(about), foreign_advice);
}

Result<ChecksumTable> ChecksumTable::read(const Source& source, const Ends& ends,
                                          const Index* index, const ChecksumPlace& place,
                                          Patience& patience, std::uint64_t* bytes_read) {
  return contain(Origin::file, [&]() -> Result<ChecksumTable> {
    const FileTrailer& trailer = ends.trailer;
    ChecksumTable table;
    if (place.entries == 0) return table;
    const auto broken = [&](ChecksumState state, hurray::Error error, std::string_view advice) {
      error.origin = Origin::file;
      table.state_ = state;
      table.findings_.push_back({.part = FilePart::kv,
                                 .offset = trailer.kv_offset,
                                 .size = trailer.kv_length,
                                 .error = source.about(error, {}, std::string(advice))});
    };
    const auto damaged = [&](const hurray::Error& error) {
      broken(ChecksumState::damaged, error, damaged_advice);
      return std::move(table);
    };
    if (place.entries > 1)
      return damaged(
          {.code = Errc::duplicate, .field = "checksums", .what = "a file has one entry of them"});
    if (!place.has_key)
      return damaged({.code = Errc::inconsistent,
                      .field = "checksums",
                      .what = "are under another key than \"hurray.crc32c\""});
    const std::uint64_t fixed = fixed_bytes();
    if (place.size < fixed)
      return damaged({.code = Errc::truncated,
                      .expect = Expect::at_least,
                      .field = "checksums",
                      .what = "bytes",
                      .offset = place.offset,
                      .expected = fixed,
                      .found = place.size});

    auto pieces = Pieces::over(source, place.offset + place.size, patience);
    if (!pieces) return std::move(pieces).error();
    const auto header_sum = pieces->sum("header", 0, header_bytes);
    if (!header_sum) return header_sum.error();
    const auto kv_sum = pieces->sum("kv", trailer.kv_offset, place.offset);
    if (!kv_sum) return kv_sum.error();
    auto memory = Buffer::allocate(place.size);
    if (!memory) return source.about(memory.error());
    table.payload_ = *std::move(memory);
    const std::span<const std::byte> payload = table.payload_.bytes();
    std::byte* to = table.payload_.data();
    auto copied = pieces->for_each("checksums", place.offset, place.offset + place.size,
                                   [&](std::span<const std::byte> bytes) -> Result<void> {
                                     to = std::ranges::copy(bytes, to).out;
                                     return {};
                                   });
    if (!copied) return std::move(copied).error();
    if (bytes_read != nullptr) *bytes_read += pieces->bytes_read();

    if (!std::ranges::equal(payload.first(checksums_magic.size()),
                            std::as_bytes(std::span(checksums_magic))))
      return damaged({.code = Errc::invalid_magic,
                      .field = "checksums.magic",
                      .what = "are not what their key says",
                      .offset = place.offset});
    const SumPair self{
        .stored = hurray::detail::load<std::uint32_t>(payload.last(sum_bytes).data()),
        .found = crc32c(payload.first(payload.size() - sum_bytes))};
    if (self.stored != self.found) {
      table.state_ = ChecksumState::damaged;
      table.findings_.push_back(
          mismatch(source, {},
                   {.part = FilePart::kv, .offset = place.offset, .size = place.size, .sums = self},
                   damaged_advice));
      table.findings_.back().error.field = "checksums.self_crc32c";
      return table;
    }
    Head head;
    Reader io(payload, Origin::file, place.offset);
    fields(head, io);
    if (head.version != payload_version) {
      broken(ChecksumState::unknown,
             {.code = Errc::unsupported_version,
              .expect = Expect::exactly,
              .field = "checksums.version",
              .offset = place.offset + checksums_magic.size(),
              .expected = payload_version,
              .found = head.version},
             unknown_advice);
      return table;
    }
    if (!io.ok()) return damaged(io.error());

    const auto foreign = [&](const hurray::Error& error) {
      broken(ChecksumState::foreign, error, foreign_advice);
    };
    const auto compare = [&](FilePart part, std::uint64_t offset, std::uint64_t size,
                             std::uint32_t stored, std::uint32_t found) {
      if (stored == found) return true;
      table.state_ = ChecksumState::foreign;
      table.findings_.push_back(
          mismatch(source, {},
                   {.part = part, .offset = offset, .size = size, .sums = SumPair{stored, found}}));
      return false;
    };
    table.state_ = ChecksumState::valid;
    if (!place.last)
      foreign({.code = Errc::inconsistent,
               .field = "checksums",
               .what = "must be the last entry of the KV section"});
    compare(FilePart::header, 0, header_bytes, head.header_sum, *header_sum);
    compare(FilePart::kv, trailer.kv_offset, place.offset - trailer.kv_offset, head.kv_sum,
            *kv_sum);
    table.index_sum_ = head.index_sum;
    if (index == nullptr) return table;
    bool fits = compare(FilePart::index, trailer.index_offset, trailer.index_length, head.index_sum,
                        index->crc());
    if (head.tensors != index->size()) {
      fits = false;
      foreign({.code = Errc::inconsistent,
               .expect = Expect::exactly,
               .field = "checksums.tensor_count",
               .what = "as in the index",
               .expected = index->size(),
               .found = head.tensors});
    }
    // Regions lie in the file and do not overlap, and a chunk has 64 KiB: no sum here overflows.
    std::uint64_t sums = 0;
    for (std::size_t i = 0; i < index->size(); ++i)
      sums += 1 + chunks(index->entry(i).data_length, head.chunk_log2);
    if (const std::uint64_t expected = fixed + sum_bytes * sums; place.size != expected) {
      fits = false;
      foreign({.code = Errc::length_mismatch,
               .expect = Expect::exactly,
               .field = "checksums",
               .what = "bytes for the tensors of the index",
               .expected = expected,
               .found = place.size});
    }
    if (!fits) return table;
    table.chunk_log2_ = head.chunk_log2;
    table.sums_offset_ = static_cast<std::size_t>(fixed - sum_bytes);
    table.first_sums_.reserve(index->size());
    std::size_t next = 0;
    for (std::size_t k = 0; k < index->size(); ++k) {
      table.first_sums_.push_back(next);
      const std::uint64_t length = index->entry(index->by_offset(k)).data_length;
      next += 1 + static_cast<std::size_t>(chunks(length, head.chunk_log2));
    }
    return table;
  });
}

std::optional<Finding> compare_descriptor(const Source& source, const ChecksumTable& table,
                                          std::size_t k, const Entry& entry, std::uint32_t found) {
  const std::uint32_t stored = table.descriptor_sum(k);
  if (stored == found) return std::nullopt;
  return mismatch(source, entry.name,
                  {.part = FilePart::descriptor,
                   .offset = entry.descriptor_offset,
                   .size = entry.descriptor_length,
                   .sums = SumPair{stored, found}});
}

std::optional<Finding> RegionSums::compare(const Source& source, std::uint64_t chunk,
                                           std::uint32_t found) const {
  const std::uint32_t stored = table_.chunk_sum(k_, chunk);
  if (stored == found) return std::nullopt;
  const std::uint64_t skipped = chunk * table_.chunk_bytes();
  const std::uint64_t start = entry_.data_offset + skipped;
  const std::uint64_t end = start + std::min(entry_.data_length - skipped, table_.chunk_bytes());
  Finding finding{
      .part = FilePart::data, .offset = start, .size = end - start, .sums = SumPair{stored, found}};
  for (std::size_t b = 0; placement_ != nullptr && b < placement_->buffers.size(); ++b) {
    const std::uint64_t from = placement_->buffers[b];
    const std::uint64_t to = from + descriptor_->buffers[b].byte_size;
    if (from == to || to <= start || from >= end) continue;
    if (finding.buffers == 0) finding.first_buffer = static_cast<std::uint32_t>(b);
    finding.buffers = static_cast<std::uint32_t>(b) - finding.first_buffer + 1;
  }
  return mismatch(source, entry_.name, std::move(finding));
}

Result<void> ChecksumTable::append_to(Bytes& kv_section, std::span<const std::byte> header,
                                      std::span<const std::byte> index) const {
  return contain(Origin::file, [&] {
    Head head;
    head.chunk_log2 = static_cast<std::uint8_t>(chunk_log2_);
    head.index_sum = crc32c(index);
    head.header_sum = crc32c(header);
    head.tensors = first_sums_.size();
    return append(kv_section, head, payload_.bytes());
  });
}

Checksums::Checksums(std::span<const std::byte> header, std::uint64_t payload_limit) noexcept
    : payload_limit_(payload_limit), header_sum_(crc32c(header)) {}

void Checksums::reserve(std::size_t tensors, std::uint64_t data_length) {
  // The descriptor's sum of each, and one more chunk that is not full.
  const auto more = to_size(2 * std::uint64_t{tensors} + (data_length >> smallest_chunk_log2));
  if (!more || *more > sums_.max_size() - sums_.size()) throw std::bad_alloc();
  if (*more > sums_.capacity() - sums_.size())
    sums_.reserve(std::max(sums_.size() + *more, 2 * sums_.size()));
  if (tensors > data_lengths_.capacity() - data_lengths_.size())
    data_lengths_.reserve(
        std::max({std::size_t{16}, 2 * data_lengths_.size(), data_lengths_.size() + tensors}));
}

void Checksums::begin(std::span<const std::byte> descriptor, std::uint64_t data_length) noexcept {
  data_lengths_.push_back(data_length);
  sums_.push_back(crc32c(descriptor));
}

void Checksums::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t chunk = std::size_t{1} << smallest_chunk_log2;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), chunk - in_chunk_);
    chunk_sum_ = crc32c(bytes.first(size), chunk_sum_);
    in_chunk_ += size;
    if (in_chunk_ == chunk) end();
    bytes = bytes.subspan(size);
  }
}

void Checksums::end() noexcept {
  if (in_chunk_ == 0) return;
  sums_.push_back(chunk_sum_);
  chunk_sum_ = 0;
  in_chunk_ = 0;
}

Result<void> Checksums::append_to(Bytes& kv_section, std::span<const std::byte> index) const {
  return contain(Origin::file, [&]() -> Result<void> {
    Head head;
    head.index_sum = crc32c(index);
    head.header_sum = header_sum_;
    head.tensors = data_lengths_.size();
    const std::uint64_t fixed = fixed_bytes();

    // Two neighbours of one tensor become one sum as often as it takes.
    std::vector<std::uint32_t> sums = sums_;
    while (fixed + sum_bytes * sums.size() > payload_limit_ &&
           head.chunk_log2 < largest_chunk_log2) {
      std::size_t from = 0;
      std::size_t to = 0;
      for (const std::uint64_t length : data_lengths_) {
        sums[to++] = sums[from++];
        std::uint64_t left = length;
        const std::uint64_t chunk = std::uint64_t{1} << head.chunk_log2;
        while (left != 0) {
          std::uint32_t sum = sums[from++];
          left -= std::min(left, chunk);
          if (left != 0) {
            const std::uint64_t second = std::min(left, chunk);
            sum = join_crc32c(sum, sums[from++], second);
            left -= second;
          }
          sums[to++] = sum;
        }
      }
      sums.resize(to);
      ++head.chunk_log2;
    }

    Bytes payload(static_cast<std::size_t>(fixed) + sum_bytes * sums.size());
    Writer writer(
        std::span<std::byte>(payload).subspan(static_cast<std::size_t>(fixed - sum_bytes)),
        Origin::file);
    for (const std::uint32_t sum : sums) writer("sums[]", sum);
    return append(kv_section, head, payload);
  });
}

}  // namespace hurray::io
