#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "hurray/buffer.hpp"
#include "hurray/io/crc32c.hpp"
#include "patience.hpp"
#include "source.hpp"

namespace hurray::io {

/// A file's bytes in pieces of at most 1 MiB, which neighbours share. Refers to its source and
/// patience.
class Pieces {
 public:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  /// Of which little is wanted.
  static constexpr std::size_t small_piece_bytes = std::size_t{64} << 10;

  /// Reads nothing at or after `end`.
  static Result<Pieces> over(const Source& source, std::uint64_t end, Patience& patience) {
    auto memory =
        Buffer::allocate(std::min<std::uint64_t>(std::min(end, source.size()), piece_bytes));
    if (!memory) return source.about(memory.error());
    return Pieces(source, *std::move(memory), end, patience);
  }

  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

  /// Calls `each(bytes)` for the bytes from `offset` up to `end`, one after the other. Asks the
  /// patience before every read.
  template <class Each>
  Result<void> for_each(std::string_view field, std::uint64_t offset, std::uint64_t end,
                        Each&& each) {
    while (offset < end) {
      if (offset < start_ || offset - start_ >= size_)
        if (auto filled = fill(field, offset, end); !filled) return filled;
      const auto skip = static_cast<std::size_t>(offset - start_);
      const auto bytes = memory_.bytes().subspan(
          skip, static_cast<std::size_t>(std::min<std::uint64_t>(size_ - skip, end - offset)));
      if (auto ok = each(std::span<const std::byte>(bytes)); !ok) return ok;
      offset += bytes.size();
    }
    return {};
  }

  Result<std::uint32_t> sum(std::string_view field, std::uint64_t offset, std::uint64_t end) {
    std::uint32_t crc = 0;
    auto ok = for_each(field, offset, end, [&](std::span<const std::byte> bytes) -> Result<void> {
      crc = crc32c(bytes, crc);
      return {};
    });
    if (!ok) return std::move(ok).error();
    return crc;
  }

 private:
  Pieces(const Source& source, Buffer memory, std::uint64_t end, Patience& patience) noexcept
      : source_(&source), memory_(std::move(memory)), end_(end), patience_(&patience) {}

  Result<void> fill(std::string_view field, std::uint64_t offset, std::uint64_t end) {
    if (patience_->ended())
      return system::to_error(system::stopped(), Origin::file, source_->path());
    size_ = 0;
    const std::uint64_t wanted = std::max<std::uint64_t>(end - offset, small_piece_bytes);
    const auto size = static_cast<std::size_t>(std::min({wanted, memory_.size(), end_ - offset}));
    if (auto ok = source_->read(field, memory_.bytes().first(size), offset); !ok) return ok;
    start_ = offset;
    size_ = size;
    bytes_read_ += size;
    return {};
  }

  const Source* source_;
  Buffer memory_;
  std::uint64_t end_;
  Patience* patience_;
  std::uint64_t start_ = 0;
  std::size_t size_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace hurray::io
