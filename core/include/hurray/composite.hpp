#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hurray/descriptor.hpp"
#include "hurray/export.hpp"
#include "hurray/layout/composite_head.hpp"
#include "hurray/result.hpp"
#include "hurray/tensor.hpp"
#include "hurray/volume.hpp"

namespace hurray {

/// One item (02-layouts.md section 14.6): a plain tensor, or a composite head (a tensor without
/// buffers) with the items that it binds, in order. A value that shares its tensors' memory; any
/// thread may read it while nobody changes it.
struct Item {
  Tensor tensor;
  std::vector<Item> members = {};

  bool is_composite() const noexcept {
    return std::holds_alternative<CompositeHead>(tensor.descriptor().layout);
  }
};

/// Calls `each(item, path)` for `root` and everything inside it in emission order, a head before
/// its members, until it returns false; says whether it was true to the end. `path`: which member
/// on each level, outermost first; empty for `root`. Takes memory by the depth alone, and throws
/// `std::bad_alloc`.
template <class Each>
bool for_each_item(const Item& root, Each&& each) {
  std::vector<const Item*> heads;
  std::vector<std::size_t> path;
  if (!each(root, std::span<const std::size_t>(path))) return false;
  heads.push_back(&root);
  path.push_back(0);
  while (!heads.empty()) {
    if (path.back() == heads.back()->members.size()) {
      heads.pop_back();
      path.pop_back();
      if (!path.empty()) ++path.back();
      continue;
    }
    const Item& item = heads.back()->members[path.back()];
    if (!each(item, std::span<const std::size_t>(path))) return false;
    heads.push_back(&item);
    path.push_back(0);
  }
  return true;
}

/// Heads on the path to a composite, itself included, that everybody writes and reads (D6), and
/// that a reader may be told to allow.
inline constexpr std::uint32_t default_composite_depth = 8;
inline constexpr std::uint32_t most_composite_depth = 64;

struct CompositeOptions {
  std::uint32_t max_depth = default_composite_depth;  ///< 1 to 64; others count as the nearest.
  /// Tensors inside one outermost composite, nested heads included.
  std::uint64_t max_members = std::numeric_limits<std::uint64_t>::max();
  bool permissive = false;  ///< Partitions may overlap and leave gaps (C2, C3).
  bool writing = false;     ///< Also what only writers must not do (L21).
};

/// The rules of 02-layouts.md section 14, judged while descriptors come by in emission order: of
/// members (M1 to M7) as each arrives, of a whole composite (C2, C3) when its last member is
/// complete. Plain tensors pass between composites. Nothing recurses, and memory grows with the
/// members that have arrived: 16 bytes per dimension and member of an open partition.
///
/// Whether the boxes of a partition overlap is found in work that grows like n log n. Boxes that
/// are made to be in each other's way can need more: these fail as `inconsistent` where their
/// volumes prove an overlap or a gap, else as `limit_exceeded`.
///
/// Descriptors have been validated. Errors have the origin `descriptor`; their field starts with
/// "members[]", whose index counts the members of the innermost head concerned, which `where` names
/// if it is a nested one. A value; one thread at a time.
class CompositeChecker {
 public:
  explicit CompositeChecker(const CompositeOptions& options = {}) noexcept : options_(options) {}

  /// The next descriptor, and whatever it completes. A failure leaves all as it was.
  HURRAY_EXPORT Result<void> add(const Descriptor& descriptor);

  /// The next tensor of a tree that `for_each_item` visits, which also binds as many members as it
  /// says (C1); only a head binds any.
  HURRAY_EXPORT Result<void> add(const Item& part, std::span<const std::size_t> path);

  /// `add` in two halves, for readers: the rules of a member as soon as its descriptor is known,
  /// and the closing rules once its data is there. Alternate; a failed half is not followed by
  /// another call.
  HURRAY_EXPORT Result<void> arrive(const Descriptor& descriptor);
  HURRAY_EXPORT Result<void> complete();

  /// A copy to `add` the next item to, whole, and the way to keep what it became. It holds boxes of
  /// open partitions only where that item completes one: the items of one head do not each copy
  /// what came before them.
  HURRAY_EXPORT CompositeChecker trial() const;
  HURRAY_EXPORT void adopt(CompositeChecker trial);

  /// What `add` would say, without its effect.
  HURRAY_EXPORT Result<void> check(const Descriptor& descriptor);

  /// A head waits for members.
  bool open() const noexcept { return !heads_.empty(); }
  /// How many do, each inside the one before it.
  std::size_t depth() const noexcept { return heads_.size(); }
  /// How many tensors must follow at least.
  HURRAY_EXPORT std::uint64_t owed() const noexcept;
  /// C1: the input ended here, inside the innermost open head: its declared count as `expected`,
  /// what is complete as `found`. Precondition: `open()`.
  HURRAY_EXPORT Error torn() const noexcept;

  /// The nested head that the last error (else the next descriptor) belongs to:
  /// "members[1].members[0]". Empty for the outermost.
  HURRAY_EXPORT std::string where() const;
  /// How many open heads lead to it, itself included; 0 outside of all.
  std::size_t fault_depth() const noexcept { return fault_; }

 private:
  struct Head {
    explicit Head(const Descriptor& descriptor);
    Head(const Head& other, std::vector<std::uint64_t> own_boxes);

    Shape shape;
    std::optional<ExtensionType> extension_type;
    DType dtype;
    CompositeHead layout;
    std::uint32_t received = 0;
    std::vector<std::uint64_t> boxes;  ///< Of a partition: starts and ends of each member.
  };
  enum class Arrived : std::uint8_t { none, tensor, head };

  /// What the tensor that arrived completes: the heads that stay open, and the members, 0 or 1,
  /// that the innermost of them gains.
  struct Closing {
    std::size_t left = 0;
    std::uint32_t more = 0;
  };

  std::optional<Error> judge_member(const Head& head, const Descriptor& member) const;
  std::optional<Error> judge_depth_and_count(const Descriptor& descriptor) const;
  std::optional<Error> judge_cover(const Head& head) const;
  std::optional<Error> judge_closing(Closing& closing);
  bool keeps_boxes(const Head& head) const noexcept;
  std::optional<Error> accept(const Descriptor& descriptor);
  std::optional<Error> close();
  void withdraw() noexcept;

  CompositeOptions options_;
  std::vector<Head> heads_;     ///< Open ones, outermost first.
  std::uint64_t promised_ = 0;  ///< Members of all heads of this outermost composite.
  std::size_t fault_ = 0;       ///< Open heads down to the one that the last error is about.
  Arrived arrived_ = Arrived::none;
  bool added_only_ = false;  ///< A trial: of its heads, the boxes that were added to it.
};

/// The same for a whole tree, before anything of it is written. `where` as in
/// `CompositeChecker::where`.
HURRAY_EXPORT Result<void> check_composite(const Item& item, const CompositeOptions& options = {},
                                           std::string* where = nullptr);

/// The tensor over the same memory under a descriptor with this role, or with none.
HURRAY_EXPORT Result<Tensor> with_role(Tensor tensor, std::optional<MemberRole> role);

/// What a head binds, put together: `head` with a `CompositeHead` layout, whose count is taken from
/// `members`. The first member of an overlay becomes its base, the others corrections; members of
/// other rules have no role. Members get descriptors of their own for that and share their memory
/// with what was passed. Judged like what is written, at any depth up to 64.
HURRAY_EXPORT Result<Item> compose(Descriptor head, std::vector<Item> members);

/// The same for a head that is a view of `shape` and nothing else; `op` for overlays, which need
/// one.
HURRAY_EXPORT Result<Item> compose(CompositionRule rule, CombineOp op, Shape shape, DType dtype,
                                   std::vector<Item> members);
HURRAY_EXPORT Result<Item> compose(CompositionRule rule, Shape shape, DType dtype,
                                   std::vector<Item> members);

}  // namespace hurray
