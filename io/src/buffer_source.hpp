#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "hurray/buffer.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"

namespace hurray::io {

/// The memory that converted arrays pass through; it is taken when the first one comes.
class Scratch {
 public:
  /// Whole elements of every type, few enough to stay in a cache.
  static constexpr std::size_t piece_bytes = (1u << 20) / gather_granularity * gather_granularity;
  static_assert(piece_bytes <= max_scratch_bytes);

  /// Makes sure that `for_each_piece` of `source` finds its memory.
  hurray::Result<void> prepare(const BufferSource& source) {
    const std::uint64_t size = std::min<std::uint64_t>(source.size(), piece_bytes);
    if (!source.converted() || size <= memory_.size()) return {};
    auto memory = Buffer::allocate(size);
    if (!memory) return memory.error();
    memory_ = *std::move(memory);
    return {};
  }

  /// Hands the bytes of `source` in order to `sink`, which returns a `Result<void>`: memory whole
  /// and from where it is, all else in pieces of which each overwrites the one before.
  template <class Sink>
  Result<void> for_each_piece(const BufferSource& source, Sink&& sink) {
    if (!source.converted()) return sink(source.bytes());
    if (auto ready = prepare(source); !ready) return ready.error();
    for (std::uint64_t at = 0; at < source.size(); at += piece_bytes) {
      const std::uint64_t size = std::min<std::uint64_t>(source.size() - at, piece_bytes);
      const auto piece = memory_.bytes().first(static_cast<std::size_t>(size));
      if (auto filled = source.fill(at, piece); !filled) return filled;
      if (auto taken = sink(std::span<const std::byte>(piece)); !taken) return taken;
    }
    return {};
  }

 private:
  Buffer memory_;
};

}  // namespace hurray::io
