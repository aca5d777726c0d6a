#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hurray/checked.hpp"
#include "hurray/cursor.hpp"
#include "hurray/descriptor.hpp"
#include "hurray/io/file.hpp"
#include "hurray/table.hpp"

/// The fixed parts of a `.hrry` file and the sums over positions (04-file.md sections 2 to 6).
/// Every list of fields runs with a `Reader`, a `Sizer` or a `Writer` and judges what a field
/// alone, or with those before it, can break.
namespace hurray::io {

inline constexpr auto file_magic =
    std::to_array<std::byte>({std::byte{'H'}, std::byte{'R'}, std::byte{'R'}, std::byte{'Y'},
                              std::byte{'F'}, std::byte{'I'}, std::byte{'L'}, std::byte{'E'}});

inline constexpr std::size_t header_bytes = 64;
inline constexpr std::size_t trailer_bytes = 40;
inline constexpr std::size_t index_count_bytes = 8;
inline constexpr std::size_t smallest_index_entry = 35;
inline constexpr std::size_t smallest_kv_section = 4;
inline constexpr std::size_t smallest_file = header_bytes + index_count_bytes + trailer_bytes;

inline constexpr std::uint32_t min_data_alignment = 4096;
inline constexpr std::uint32_t max_data_alignment = 2u << 20;
/// Of descriptors, KV section and index.
inline constexpr std::uint64_t part_alignment = 8;

inline constexpr std::uint64_t unknown_count = std::numeric_limits<std::uint64_t>::max();
inline constexpr auto max_file_bytes =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
inline constexpr std::size_t max_name_bytes = std::numeric_limits<std::uint16_t>::max();
inline constexpr std::uint32_t smallest_descriptor = 20;

inline constexpr std::uint32_t known_file_flags = [] {
  std::uint32_t all = 0;
  for (const FileFlagInfo& row : file_flags) all |= static_cast<std::uint32_t>(row.tag);
  return all;
}();

constexpr std::uint32_t bit(FileFlag flag) noexcept { return static_cast<std::uint32_t>(flag); }
inline bool has(const FileHeader& header, FileFlag flag) noexcept {
  return (header.flags & bit(flag)) != 0;
}
/// Written under a later minor version, which may use what is reserved today.
inline bool newer(const FileHeader& header) noexcept { return header.version_minor > 0; }

constexpr bool is_data_alignment(std::uint32_t alignment) noexcept {
  return std::has_single_bit(alignment) && alignment >= min_data_alignment &&
         alignment <= max_data_alignment;
}

/// What `run` puts into a writer.
template <class Run>
std::vector<std::byte> encoded(const Run& run) {
  Sizer sizer(Origin::file);
  run(sizer);
  std::vector<std::byte> bytes(static_cast<std::size_t>(sizer.position()));
  Writer writer(bytes, Origin::file);
  run(writer);
  return bytes;
}

template <class T, class Of>
concept MaybeConst = std::is_same_v<std::remove_const_t<T>, Of>;

/// Reserved bytes: 0 in what is written, and in what is read unless a later minor version may use
/// them.
template <class Io>
void reserved(Io& io, Field field, std::uint64_t n, bool ignored) noexcept {
  if constexpr (Io::reads) {
    if (ignored) {
      (void)io.take(field, n);
      return;
    }
  }
  io.reserved(field, n);
}

// An index has thousands of entries: an error is only put together where there is one.

/// The position of a descriptor, KV section or index.
template <class Io>
void check_multiple(Io& io, Field field, std::uint64_t value) noexcept {
  if (value % part_alignment != 0)
    io.check(false, {.code = Errc::invalid_value,
                     .expect = Expect::as_said,
                     .index = field.index,
                     .field = field.name,
                     .what = "a multiple of 8",
                     .found = value});
}

template <class Io>
void check_at_least(Io& io, Errc code, Field field, std::uint64_t value,
                    std::uint64_t least) noexcept {
  if (value < least)
    io.check(false, {.code = code,
                     .expect = Expect::at_least,
                     .index = field.index,
                     .field = field.name,
                     .expected = least,
                     .found = value});
}

template <class Io>
void check_at_most(Io& io, Errc code, Field field, std::uint64_t value,
                   std::uint64_t most) noexcept {
  if (value > most)
    io.check(false, {.code = code,
                     .expect = Expect::at_most,
                     .index = field.index,
                     .field = field.name,
                     .expected = most,
                     .found = value});
}

/// Section 2.
template <MaybeConst<FileHeader> Header, class Io>
void fields(Header& self, Io& io) noexcept {
  io.literal("magic", file_magic, Errc::invalid_magic);
  io("container_version_major", self.version_major);
  io.check(self.version_major == 1, {.code = Errc::unsupported_version,
                                     .expect = Expect::exactly,
                                     .field = "container_version_major",
                                     .expected = 1,
                                     .found = self.version_major});
  io("container_version_minor", self.version_minor);
  reserved(io, "header.reserved", 2, newer(self));
  io.bits("file_flags", self.flags, file_flags);
  io.check((self.flags & ~known_file_flags) == 0, {.code = Errc::reserved_bits,
                                                   .expect = Expect::exactly,
                                                   .field = "file_flags",
                                                   .what = "in bits 3 to 31",
                                                   .expected = 0,
                                                   .found = self.flags & ~known_file_flags});
  io("data_buffer_alignment", self.data_buffer_alignment);
  io.check(is_data_alignment(self.data_buffer_alignment),
           {.code = Errc::invalid_value,
            .expect = Expect::as_said,
            .field = "data_buffer_alignment",
            .what = "a power of two from 4096 to 2097152",
            .found = self.data_buffer_alignment});
  io("first_descriptor_offset", self.first_descriptor_offset);
  check_at_least(io, Errc::out_of_bounds, "first_descriptor_offset", self.first_descriptor_offset,
                 header_bytes);
  check_multiple(io, "first_descriptor_offset", self.first_descriptor_offset);
  io("tensor_count_hint", self.tensor_count_hint);
  reserved(io, "header.reserved", 28, newer(self));
}

/// A KV section up to the sum that a protected file ends it with: with that in it, sums of all
/// sections would be equal.
inline std::span<const std::byte> without_self(std::span<const std::byte> section) noexcept {
  return section.first(section.size() - std::min<std::size_t>(section.size(), 4));
}

/// Where the tensor region ends at the latest.
inline std::uint64_t region_end(const FileTrailer& trailer) noexcept {
  return trailer.kv_length != 0 ? trailer.kv_offset : trailer.index_offset;
}

/// Section 6, and where header and trailer say that the parts are (rows 6, 8 and 9 of section 12).
/// `end`: the offset of the trailer itself.
template <MaybeConst<FileTrailer> Trailer, class Io>
void fields(Trailer& self, Io& io, const FileHeader& header, std::uint64_t end) noexcept {
  io("index_offset", self.index_offset);
  check_at_least(io, Errc::out_of_bounds, "index_offset", self.index_offset, header_bytes);
  check_at_most(io, Errc::out_of_bounds, "index_offset", self.index_offset, end);
  check_multiple(io, "index_offset", self.index_offset);
  io("index_length", self.index_length);
  check_at_least(io, Errc::out_of_bounds, "index_length", self.index_length, index_count_bytes);
  check_at_most(io, Errc::out_of_bounds, "index_length", self.index_length,
                end - self.index_offset);
  io("kv_offset", self.kv_offset);
  const std::uint64_t at_kv_offset = io.last();
  io("kv_length", self.kv_length);
  if (self.kv_offset != 0 || self.kv_length != 0) {
    check_at_least(io, Errc::out_of_bounds, "kv_length", self.kv_length, smallest_kv_section);
    io.check(self.kv_offset >= header_bytes, {.code = Errc::out_of_bounds,
                                              .expect = Expect::at_least,
                                              .field = "kv_offset",
                                              .offset = at_kv_offset,
                                              .expected = header_bytes,
                                              .found = self.kv_offset});
    io.check(self.kv_offset <= self.index_offset, {.code = Errc::out_of_bounds,
                                                   .expect = Expect::at_most,
                                                   .field = "kv_offset",
                                                   .offset = at_kv_offset,
                                                   .expected = self.index_offset,
                                                   .found = self.kv_offset});
    io.check(self.kv_offset % part_alignment == 0, {.code = Errc::invalid_value,
                                                    .expect = Expect::as_said,
                                                    .field = "kv_offset",
                                                    .what = "a multiple of 8",
                                                    .offset = at_kv_offset,
                                                    .found = self.kv_offset});
    check_at_most(io, Errc::out_of_bounds, "kv_length", self.kv_length,
                  self.index_offset - self.kv_offset);
  }
  io.check(header.first_descriptor_offset <= region_end(self),
           {.code = Errc::out_of_bounds,
            .expect = Expect::at_most,
            .field = "first_descriptor_offset",
            .what = "where the tensor region ends",
            .offset = 20,
            .expected = region_end(self),
            .found = header.first_descriptor_offset});
  io("index_crc32c", self.index_crc32c);
  io.check(has(header, FileFlag::has_index_crc32c) || self.index_crc32c == 0,
           {.code = Errc::inconsistent,
            .expect = Expect::exactly,
            .field = "index_crc32c",
            .what = "where HAS_INDEX_CRC32C is clear",
            .expected = 0,
            .found = self.index_crc32c});
  reserved(io, "trailer.reserved", 4, newer(header));
  io.literal("trailer_magic", magic, Errc::truncated);
}

/// Entry `i` of the index (section 5).
template <MaybeConst<Entry> E, class Io>
void fields(E& self, Io& io, std::size_t i, const FileHeader& header) noexcept {
  auto length = static_cast<std::uint16_t>(self.name.size());
  io({"index[].name_length", i}, length);
  check_at_least(io, Errc::invalid_value, {"index[].name_length", i}, length, 1);
  if constexpr (Io::reads) {
    const auto name = io.take({"index[].name", i}, length);
    self.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  } else {
    io.literal({"index[].name", i}, std::as_bytes(std::span(self.name)), Errc{});
  }
  if constexpr (Io::checks)
    if (!is_utf8(self.name))
      io.check(false, {.code = Errc::invalid_value,
                       .index = static_cast<std::uint32_t>(i),
                       .field = "index[].name",
                       .what = "must be valid UTF-8"});
  io({"index[].descriptor_offset", i}, self.descriptor_offset);
  check_multiple(io, {"index[].descriptor_offset", i}, self.descriptor_offset);
  io({"index[].descriptor_length", i}, self.descriptor_length);
  check_at_least(io, Errc::out_of_bounds, {"index[].descriptor_length", i}, self.descriptor_length,
                 smallest_descriptor);
  io({"index[].data_offset", i}, self.data_offset);
  const std::uint64_t at_data_offset = io.last();
  io({"index[].data_length", i}, self.data_length);
  const std::uint64_t alignment =
      self.data_length != 0 ? header.data_buffer_alignment : part_alignment;
  if ((self.data_offset & (alignment - 1)) != 0)
    io.check(false, {.code = Errc::invalid_value,
                     .expect = Expect::as_said,
                     .index = static_cast<std::uint32_t>(i),
                     .field = "index[].data_offset",
                     .what = self.data_length != 0 ? "a multiple of data_buffer_alignment"
                                                   : "a multiple of 8",
                     .offset = at_data_offset,
                     .found = self.data_offset});
  io.reserved({"index[].flags", i}, 4);
}

/// Where the buffers of one tensor lie (section 3).
struct Placement {
  std::vector<std::uint64_t> buffers;  ///< Offset of each.
  std::uint64_t data_offset = 0;
  std::uint64_t data_length = 0;

  std::uint64_t data_end() const noexcept { return data_offset + data_length; }
};

/// The positions that follow from a buffer table when buffer 0 starts at `data_offset`. Fails as
/// `overflow` beyond the largest file.
hurray::Result<Placement> place(const BufferTable& buffers, std::uint64_t data_offset,
                                std::uint32_t alignment);

}  // namespace hurray::io
