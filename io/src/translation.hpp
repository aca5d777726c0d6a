#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "container.hpp"
#include "hurray/io/translation.hpp"

namespace hurray::io {

/// The parts of the `.hrry` file that is seen; between them there are zeros.
struct Translation::State {
  struct Part {
    std::uint64_t start = 0;   ///< In the file that is seen.
    std::uint64_t size = 0;    ///< Bytes there.
    std::uint64_t at = 0;      ///< In `made`, or in the file of another format.
    std::uint64_t stored = 0;  ///< Bytes there; 0 for what was made here.
    const Conversion* conversion = nullptr;

    std::uint64_t end() const noexcept { return start + size; }
    /// The bytes are those of the file as they stand.
    bool direct() const noexcept { return stored != 0 && conversion == nullptr; }
  };

  std::string_view format;
  std::vector<std::byte> made;
  std::vector<Part> parts;  ///< By `start`.
  std::vector<std::byte> index;
  std::uint64_t entries = 0;
  std::uint64_t size = 0;

  /// The first part that ends behind `offset`.
  std::vector<Part>::const_iterator part_at(std::uint64_t offset) const noexcept;
  /// Where the bytes from `offset` on are in the file of another format; none where they are not
  /// there as they stand.
  std::optional<std::uint64_t> direct(std::uint64_t offset, std::uint64_t size) const noexcept;
  /// Calls `each` with offset and size in the file of every stored part between `start` and `end`.
  template <class Each>
  void for_each_stored(std::uint64_t start, std::uint64_t end, Each&& each) const {
    for (auto part = part_at(start); part != parts.end() && part->start < end; ++part) {
      if (part->stored == 0) continue;
      if (!part->direct()) {
        each(part->at, part->stored);
        continue;
      }
      const std::uint64_t from = std::max(start, part->start);
      each(part->at + (from - part->start), std::min(end, part->end()) - from);
    }
  }
  /// Fills `into` from `offset` on, which is within `size`. `read` fills from the file itself.
  template <class Read>
  Result<void> fill(std::span<std::byte> into, std::uint64_t offset, Read&& read) const;
  /// The bytes from `offset` in `part` on, through its conversion.
  template <class Read>
  static Result<void> convert(const Part& part, std::span<std::byte> into, std::uint64_t offset,
                              Read&& read);
};

template <class Read>
Result<void> Translation::State::fill(std::span<std::byte> into, std::uint64_t offset,
                                      Read&& read) const {
  auto part = part_at(offset);
  while (!into.empty()) {
    const bool inside = part != parts.end() && part->start <= offset;
    const std::uint64_t end = part == parts.end() ? size : inside ? part->end() : part->start;
    const auto here =
        into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - offset)));
    if (!inside) {
      std::ranges::fill(here, std::byte{0});
    } else if (part->stored == 0) {
      const auto from = made.begin() + static_cast<std::ptrdiff_t>(part->at + offset - part->start);
      std::copy_n(from, here.size(), here.begin());
    } else if (part->direct()) {
      if (auto done = read(here, part->at + (offset - part->start)); !done) return done;
    } else {
      if (auto done = convert(*part, here, offset - part->start, read); !done) return done;
    }
    if (inside && offset + here.size() == part->end()) ++part;
    offset += here.size();
    into = into.subspan(here.size());
  }
  return {};
}

template <class Read>
Result<void> Translation::State::convert(const Part& part, std::span<std::byte> into,
                                         std::uint64_t offset, Read&& read) {
  constexpr std::size_t scratch_bytes = std::size_t{256} << 10;
  const Conversion& conversion = *part.conversion;
  const std::size_t most =
      std::max<std::size_t>(1, scratch_bytes / (conversion.stored_bytes + conversion.bytes));
  std::vector<std::byte> stored(most * conversion.stored_bytes);
  std::vector<std::byte> out(most * conversion.bytes);
  while (!into.empty()) {
    const std::uint64_t unit = offset / conversion.bytes;
    const auto skipped = static_cast<std::size_t>(offset % conversion.bytes);
    const std::size_t units =
        std::min(most, (skipped + into.size() + conversion.bytes - 1) / conversion.bytes);
    const std::uint64_t start = unit * conversion.stored_bytes;
    const auto there = std::span(stored).first(static_cast<std::size_t>(std::min<std::uint64_t>(
        units * std::uint64_t{conversion.stored_bytes}, part.stored - start)));
    if (auto done = read(there, part.at + start); !done) return done;
    std::ranges::fill(std::span(stored).subspan(there.size()), std::byte{0});
    if (const auto wrong = conversion.run(stored.data(), out.data(), units); !wrong.empty())
      return Error({.code = Errc::invalid_value,
                    .origin = Origin::file,
                    .field = "data",
                    .what = wrong,
                    .offset = part.at + start});
    const std::size_t count = std::min(into.size(), units * conversion.bytes - skipped);
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(skipped), count, into.begin());
    offset += count;
    into = into.subspan(count);
  }
  return {};
}

}  // namespace hurray::io
