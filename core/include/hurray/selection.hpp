#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hurray/descriptor.hpp"
#include "hurray/export.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"

namespace hurray {

/// What is taken along one dimension: the elements `start`, `start + step`, … below `stop`; or the
/// one at `start` (`drops`), and then the result lacks the dimension.
struct Along {
  static constexpr std::uint64_t end = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t start = 0;
  std::uint64_t stop = end;  ///< `end`: the size of the dimension, which it must not exceed.
  std::uint64_t step = 1;    ///< At least 1.
  bool drops = false;

  static constexpr Along index(std::uint64_t i) noexcept { return {.start = i, .drops = true}; }
  friend bool operator==(const Along&, const Along&) = default;
};

/// One for each dimension; dimensions behind the last one are taken whole.
using Selection = std::vector<Along>;

/// Elements of buffer 0, `count` of them from `slot` on and `slot_step` apart, that become
/// row-major elements of a result from `target` on, `target_step` apart. With `offsets` (as many as
/// `count`, of the plan's) element i goes to `target + offsets[i]` instead.
struct ElementRun {
  std::int64_t slot = 0;
  std::int64_t slot_step = 1;
  std::int64_t target = 0;
  std::int64_t target_step = 1;
  std::uint64_t count = 0;
  const std::int64_t* offsets = nullptr;
};

/// Bytes of buffer 0 that are read at once.
struct ReadPiece {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  /// The bytes are those of the result from here on, whatever their number: they can be read into
  /// it. Otherwise `SelectionPlan::scatter` moves what is wanted of them.
  std::optional<std::uint64_t> target = {};
  std::vector<ElementRun> runs = {};
};

struct PieceOptions {
  /// As many bytes between two wanted ones are read over rather than skipped.
  std::uint64_t max_gap_bytes = std::uint64_t{64} << 10;
  /// The most bytes of a piece without `target`, unless one element has more.
  std::uint64_t piece_bytes = std::uint64_t{2} << 20;
  /// Every byte read belongs to a whole chunk of so many bytes, counted from the start of the
  /// buffer, that is looked at: no piece has a `target`, or (but for elements that lie across)
  /// crosses a multiple of `piece_bytes`, which is a multiple of this; and no chunk is in two of
  /// them. 0: there are no chunks.
  std::uint64_t chunk_bytes = 0;
};

/// Where the elements of a selection lie in buffer 0 of a dense tensor, and how they become a
/// row-major tensor of their own. Made from a descriptor alone; takes no memory for elements,
/// however many there are. A value that shares what it knows; may be used from any thread.
class SelectionPlan {
 public:
  /// Fails as `unsupported` for layouts that are not dense (field `layout_tag`), schemes other than
  /// per-tensor, opaque tensors, dynamic sizes, buffers that are not producer-synced, and a bool
  /// tensor that is `ambiguous_bool` where `provenance` is outside. Of the selection: as
  /// `inconsistent` for more parts than dimensions, as `out_of_bounds` for an index or `stop`
  /// beyond the size, as `invalid_value` for step 0; as `overflow` for a result beyond 2^63 bytes.
  HURRAY_EXPORT static Result<SelectionPlan> of(const Descriptor& descriptor,
                                                std::span<const Along> selection,
                                                Provenance provenance = Provenance::outside);

  /// What the result is: the type, row-major, with per-tensor quantization and the declared
  /// placement; statistics and shard spoke of the whole. Its buffer table has the size that
  /// follows.
  HURRAY_EXPORT const Descriptor& descriptor() const noexcept;
  /// Bytes of the result.
  HURRAY_EXPORT std::uint64_t size_bytes() const noexcept;
  /// Every element of the tensor is wanted.
  HURRAY_EXPORT bool whole() const noexcept;

  /// Where buffer 0 holds the result as it is, one byte after the other; none for an empty one.
  HURRAY_EXPORT std::optional<std::uint64_t> contiguous() const noexcept;

  /// The pieces one after the other: in the order of the buffer where the layout lets them be
  /// known so, which is everywhere but under strides that do not nest or descend inside tiles.
  class Pieces {
   public:
    /// The next one into `piece`, whose memory is used again; false at the end. `out_of_bounds`
    /// where an element does not lie in the buffer.
    HURRAY_EXPORT Result<bool> next(ReadPiece& piece);

    HURRAY_EXPORT Pieces(Pieces&&) noexcept;
    HURRAY_EXPORT Pieces& operator=(Pieces&&) noexcept;
    HURRAY_EXPORT ~Pieces();

   private:
    friend class SelectionPlan;
    struct State;
    explicit Pieces(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
  };
  HURRAY_EXPORT Result<Pieces> pieces(const PieceOptions& options = {}) const;

  /// Moves what is wanted of a piece, whose bytes begin at `bytes`, into the result. Bits that are
  /// not of wanted elements stay as they are. Pieces of elements of whole bytes may be moved at the
  /// same time. Precondition: `out` has `size_bytes()` bytes.
  HURRAY_EXPORT void scatter(const ReadPiece& piece, std::span<const std::byte> bytes,
                             std::span<std::byte> out) const noexcept;

  /// Elements share bytes of the result.
  HURRAY_EXPORT bool packed() const noexcept;

 private:
  struct State;
  explicit SelectionPlan(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace hurray
