#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hurray/layout.hpp"
#include "hurray/selection.hpp"

namespace hurray {

/// What a selection takes along one dimension, worked out: `count` indices from `start` on, `step`
/// apart, and how many row-major elements of the result lie between two of them (0 for a dimension
/// that the result lacks).
struct Taken {
  std::uint64_t start = 0;
  std::uint64_t step = 1;
  std::uint64_t count = 0;
  std::int64_t pitch = 0;

  std::uint64_t last() const noexcept { return start + (count - 1) * step; }
  bool all(std::uint64_t size) const noexcept { return count == size && step == 1; }
};

/// The first index that is taken and not below `from`; false where there is none.
bool first_taken(const Taken& taken, std::uint64_t from, std::uint64_t& index) noexcept;

/// The selected elements of a dense layout, by runs. A walk: it goes once, in one thread.
class ElementRuns {
 public:
  ElementRuns() = default;
  ElementRuns(const ElementRuns&) = delete;
  ElementRuns& operator=(const ElementRuns&) = delete;
  virtual ~ElementRuns();
  virtual bool next(ElementRun& run) noexcept = 0;
};

/// Targets of a Morton curve's first codes relative to that of code 0: those of every aligned block
/// of as many codes that is taken whole.
std::vector<std::int64_t> block_offsets(const Layout& layout, const Shape& shape,
                                        std::span<const Taken> taken);

/// Precondition: a dense layout, valid for `shape`, and no `count` is 0. The arguments outlive the
/// walk.
std::unique_ptr<ElementRuns> runs_of(const Layout& layout, const Shape& shape,
                                     std::span<const Taken> taken,
                                     std::span<const std::int64_t> offsets);

}  // namespace hurray
