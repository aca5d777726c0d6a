#include "hurray/composite.hpp"

#include <bit>
#include <numeric>
#include <string_view>
#include <utility>

#include "hurray/checked.hpp"

namespace hurray {
namespace {

/// Whether boxes overlap, and which.
struct Overlap {
  bool decided = true;                                          ///< False: too much work.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> pair;  ///< The earlier one first.
};

/// The boxes of a partition's members, `[start, end)` in each dimension: `rank` starts, then as
/// many ends, for one box after the other. A view.
class Boxes {
 public:
  using Set = std::vector<std::uint32_t>;

  Boxes(std::span<const std::uint64_t> numbers, std::size_t rank) noexcept
      : numbers_(numbers), rank_(rank) {}

  /// Comparisons of two boxes that `overlap` makes among so many. Boxes that come from splitting a
  /// view take an eighth at most; those made to be in each other's way take as many as there are
  /// pairs.
  static std::uint64_t budget(std::size_t boxes) noexcept {
    constexpr std::uint64_t least = std::uint64_t{1} << 22;
    return std::max<std::uint64_t>(least, std::uint64_t{16} * boxes * std::bit_width(boxes));
  }

  std::uint64_t start(std::size_t box, std::size_t k) const noexcept {
    return numbers_[2 * rank_ * box + k];
  }
  std::uint64_t end(std::size_t box, std::size_t k) const noexcept {
    return numbers_[2 * rank_ * box + rank_ + k];
  }

  /// Two of the boxes that share an index, if any do. Work stays within the budget, and memory
  /// within 16 numbers of a box for each of them. Precondition: none is empty.
  Overlap overlap(Set all) const;

 private:
  /// A place in dimension `k` at which to look at the boxes on both sides apart; those that it cuts
  /// are on both. `pairs`: boxes to compare in all, as a share of those without the cut.
  struct Cut {
    std::size_t k = 0;
    std::uint64_t at = 0;
    double pairs = 1;
  };

  bool meet(std::size_t a, std::size_t b) const noexcept {
    for (std::size_t k = 0; k < rank_; ++k)
      if (start(a, k) >= end(b, k) || start(b, k) >= end(a, k)) return false;
    return true;
  }
  Cut cut(const Set& set, std::size_t k, std::vector<std::uint64_t>& starts) const;
  Overlap sweep(Set set, std::size_t k, std::uint64_t& left) const;

  static constexpr std::size_t small = 32;
  /// A cut that saves less is none; it also bounds how often boxes are on both sides.
  static constexpr double worthwhile = .8;

  /// Takes `looks`, each at one dimension of a box, from what is `left`.
  static bool spend(std::uint64_t& left, std::uint64_t looks) noexcept {
    const bool enough = looks <= left;
    left -= std::min(looks, left);
    return enough;
  }

  std::span<const std::uint64_t> numbers_;
  std::size_t rank_;
};

Boxes::Cut Boxes::cut(const Set& set, std::size_t k, std::vector<std::uint64_t>& starts) const {
  starts.clear();
  for (const std::uint32_t box : set) starts.push_back(start(box, k));
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::ranges::nth_element(starts, middle);
  Cut cut{k, *middle, 1};
  if (cut.at == *std::min_element(starts.begin(), middle + 1)) {
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t s : starts)
      if (s > cut.at) next = std::min(next, s);
    cut.at = next;
  }
  std::size_t below = 0;
  std::size_t above = 0;
  for (const std::uint32_t box : set) {
    if (start(box, k) < cut.at) ++below;
    if (end(box, k) > cut.at) ++above;
  }
  const double shares[] = {static_cast<double>(below) / static_cast<double>(set.size()),
                           static_cast<double>(above) / static_cast<double>(set.size())};
  cut.pairs = shares[0] * shares[0] + shares[1] * shares[1];
  return cut;
}

Overlap Boxes::sweep(Set set, std::size_t k, std::uint64_t& left) const {
  if (rank_ != 0)
    std::ranges::sort(set, {}, [&](std::uint32_t box) { return std::pair(start(box, k), box); });
  Set active;
  for (const std::uint32_t box : set) {
    if (!spend(left, (rank_ + 1) * active.size())) return {.decided = false, .pair = {}};
    if (rank_ != 0)
      std::erase_if(active, [&](std::uint32_t other) { return end(other, k) <= start(box, k); });
    for (const std::uint32_t other : active)
      if (meet(box, other)) return {.pair = std::minmax({box, other})};
    active.push_back(box);
  }
  return {};
}

Overlap Boxes::overlap(Set all) const {
  std::uint64_t left = budget(all.size()) * (rank_ + 1);  // at most 2^32 * 2^9 * 2^7
  // Where all boxes are alike, they cannot be told apart.
  std::vector<std::size_t> dimensions;
  for (std::size_t k = 0; k < rank_; ++k)
    if (std::ranges::any_of(all, [&](std::uint32_t box) {
          return start(box, k) != start(all[0], k) || end(box, k) != end(all[0], k);
        }))
      dimensions.push_back(k);
  std::vector<Set> parts;
  parts.push_back(std::move(all));
  std::vector<std::uint64_t> starts;
  while (!parts.empty()) {
    const Set part = std::move(parts.back());
    parts.pop_back();
    Cut best{dimensions.empty() ? 0 : dimensions[0]};
    if (part.size() > small) {
      if (!spend(left, dimensions.size() * part.size())) return {.decided = false, .pair = {}};
      for (const std::size_t k : dimensions)
        if (const Cut found = cut(part, k, starts); found.pairs < best.pairs) best = found;
    }
    if (best.pairs > worthwhile) {
      if (const Overlap found = sweep(part, best.k, left); !found.decided || found.pair)
        return found;
      continue;
    }
    Set sides[2];
    for (const std::uint32_t box : part) {
      if (start(box, best.k) < best.at) sides[0].push_back(box);
      if (end(box, best.k) > best.at) sides[1].push_back(box);
    }
    for (Set& side : sides) parts.push_back(std::move(side));
  }
  return {};
}

bool is_quantizable(DType head) noexcept {
  return head == DType::float16 || head == DType::bfloat16 || head == DType::float32 ||
         head == DType::float64;
}

std::optional<ExtensionType> extension_of(const Descriptor& descriptor) {
  const ExtensionType* type = descriptor.extension_type();
  return type != nullptr ? std::optional(*type) : std::nullopt;
}

const CompositeHead* head_of(const Descriptor& descriptor) noexcept {
  return std::get_if<CompositeHead>(&descriptor.layout);
}

Result<void> to_result(std::optional<Error> error) {
  if (error) return *std::move(error);
  return {};
}

}  // namespace

CompositeChecker::Head::Head(const Descriptor& descriptor)
    : shape(descriptor.shape),
      extension_type(extension_of(descriptor)),
      dtype(descriptor.dtype),
      layout(*head_of(descriptor)) {}

CompositeChecker::Head::Head(const Head& other, std::vector<std::uint64_t> own_boxes)
    : shape(other.shape),
      extension_type(other.extension_type),
      dtype(other.dtype),
      layout(other.layout),
      received(other.received),
      boxes(std::move(own_boxes)) {}

CompositeChecker CompositeChecker::trial() const {
  if (!open() || heads_.back().received + 1 == heads_.back().layout.member_count) return *this;
  CompositeChecker copy(options_);
  copy.heads_.reserve(heads_.size() + 1);
  for (const Head& head : heads_) copy.heads_.emplace_back(head, std::vector<std::uint64_t>());
  copy.promised_ = promised_;
  copy.fault_ = fault_;
  copy.added_only_ = true;
  return copy;
}

void CompositeChecker::adopt(CompositeChecker trial) {
  if (!trial.added_only_) {
    *this = std::move(trial);
    return;
  }
  const Head& added = trial.heads_.back();
  Head& here = heads_.back();
  here.boxes.insert(here.boxes.end(), added.boxes.begin(), added.boxes.end());
  here.received = added.received;
  promised_ = trial.promised_;
  fault_ = trial.fault_;
  arrived_ = trial.arrived_;
}

bool CompositeChecker::keeps_boxes(const Head& head) const noexcept {
  return head.layout.rule == CompositionRule::partition && !options_.permissive;
}

/// M1 to M6, M6 first: a head cannot have the role that M4 asks for.
std::optional<Error> CompositeChecker::judge_member(const Head& head,
                                                    const Descriptor& member) const {
  const std::uint64_t i = head.received;
  const CompositionRule rule = head.layout.rule;
  const auto wrong = [&](std::string_view field, std::string_view what) {
    return Error{.code = Errc::inconsistent, .index = i, .field = field, .what = what};
  };
  const auto differs = [&](std::string_view field, std::string_view what, std::uint64_t expected,
                           std::uint64_t found) {
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::exactly,
                 .index = i,
                 .field = field,
                 .what = what,
                 .expected = expected,
                 .found = found};
  };

  if (rule == CompositionRule::overlay && head_of(member) != nullptr)
    return wrong("members[].layout_tag", "a member of an overlay is no composite");

  if (head.layout.has_boxes()) {
    const Shard* shard = member.shard();
    if (shard == nullptr)
      return wrong("members[].shard", "a member needs a shard section that says where it lies");
    const std::size_t rank = head.shape.rank();
    if (shard->rank() != rank || member.shape.rank() != rank)
      return differs("members[].rank", "as the head", rank, member.shape.rank());
    for (std::size_t k = 0; k < rank; ++k) {
      if (shard->parent_shape()[k] != head.shape[k])
        return differs("members[].shard.parent_shape", "as the head's size", head.shape[k],
                       shard->parent_shape()[k]);
      const auto end = checked_add(shard->shard_offset()[k], member.shape[k]);
      if (!end || *end > head.shape[k])
        return Error{.code = Errc::out_of_bounds,
                     .expect = Expect::at_most,
                     .index = i,
                     .field = "members[].shard.shard_offset",
                     .what = "(the head's size) as the end of the box",
                     .expected = head.shape[k],
                     .found = end.value_or(shard->shard_offset()[k])};
    }
    if (options_.writing && member.shape.is_empty() && !head.shape.is_empty())
      return wrong("members[].shape", "a member without elements covers nothing: leave it out");

    if (member.quantization() == nullptr) {
      if (member.dtype != head.dtype)
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::type,
                     .index = i,
                     .field = "members[].type_tag",
                     .what = "as the head",
                     .expected = static_cast<std::uint8_t>(head.dtype),
                     .found = static_cast<std::uint8_t>(member.dtype)};
      if (extension_of(member) != head.extension_type)
        return wrong("members[].extension_type", "differs from the head's");
    } else if (!is_quantizable(head.dtype)) {
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::as_said,
                   .index = i,
                   .field = "members[].quantization",
                   .what =
                       "a head of type 1, 2, 3 or 4 (float16, bfloat16, float32, float64) "
                       "over a quantized member",
                   .found = static_cast<std::uint8_t>(head.dtype)};
    }
  }

  const MemberRole* role = member.member_role();
  if (rule == CompositionRule::overlay) {
    const MemberRole expected = i == 0 ? MemberRole::base : MemberRole::correction;
    if (role == nullptr)
      return wrong("members[].composite_member", "a member of an overlay needs a role");
    if (*role != expected)
      return differs("members[].composite_member.member_role",
                     i == 0 ? "(base) for the first member" : "(correction) after the first member",
                     static_cast<std::uint8_t>(expected), static_cast<std::uint8_t>(*role));
    if (i == 0 && !std::ranges::equal(member.shape, head.shape))
      return wrong("members[].shape", "the base does not span the whole view");
  } else if (role != nullptr &&
             (rule == CompositionRule::partition || rule == CompositionRule::group)) {
    return wrong("members[].composite_member", "only members of an overlay have a role");
  }
  return std::nullopt;
}

/// M7, and the limit on members.
std::optional<Error> CompositeChecker::judge_depth_and_count(const Descriptor& descriptor) const {
  const CompositeHead* head = head_of(descriptor);
  if (head == nullptr) return std::nullopt;
  const std::uint64_t i = open() ? heads_.back().received : Error::no_index;
  const std::string_view field = open() ? "members[].layout" : "layout";
  const std::uint32_t deepest =
      std::clamp<std::uint32_t>(options_.max_depth, 1, most_composite_depth);
  if (heads_.size() >= deepest)
    return Error{.code = Errc::limit_exceeded,
                 .expect = Expect::at_most,
                 .index = i,
                 .field = field,
                 .what = "composites inside each other (max_composite_depth)",
                 .expected = deepest,
                 .found = heads_.size() + 1};
  const std::uint64_t before = open() ? promised_ : 0;
  const auto promised = checked_add<std::uint64_t>(before, head->member_count);
  if (!promised || *promised > options_.max_members)
    return Error{.code = Errc::limit_exceeded,
                 .expect = Expect::at_most,
                 .index = i,
                 .field = open() ? "members[].layout.member_count" : "layout.member_count",
                 .what = "members in one composite (max_item_members)",
                 .expected = options_.max_members,
                 .found = promised.value_or(head->member_count)};
  return std::nullopt;
}

/// C2 and C3.
std::optional<Error> CompositeChecker::judge_cover(const Head& head) const {
  if (!keeps_boxes(head)) return std::nullopt;
  const std::size_t rank = head.shape.rank();
  const Boxes boxes(head.boxes, rank);
  const std::uint32_t count = head.layout.member_count;
  Boxes::Set filled;
  std::optional<Volume> covered = Volume{};
  std::vector<std::uint64_t> sizes(rank);
  for (std::uint32_t box = 0; box < count; ++box) {
    for (std::size_t k = 0; k < rank; ++k) sizes[k] = boxes.end(box, k) - boxes.start(box, k);
    const Volume volume = Volume::of(sizes).value_or(Volume{});  // at most the head's, which fits
    if (volume == Volume{}) continue;                            // L21
    filled.push_back(box);
    if (covered) covered = covered->plus(volume);
  }
  // Too few elements are a gap, whatever else there is; finding an overlap takes longer.
  const Volume whole = Volume::of(head.shape).value_or(Volume{});
  const bool gap = covered && *covered < whole;
  const Overlap overlap = gap ? Overlap{} : boxes.overlap(std::move(filled));
  if (overlap.pair)
    return Error{.code = Errc::inconsistent,
                 .index = overlap.pair->second,
                 .field = "members[].shard.shard_offset",
                 .what = "the boxes overlap: an earlier member holds some of the same elements",
                 .found = overlap.pair->first};
  if (!overlap.decided && covered == whole)
    return Error{.code = Errc::limit_exceeded,
                 .field = "members",
                 .what =
                     "whether boxes overlap that lie so much in each other's way takes too many "
                     "comparisons to tell (permissive mode does not ask)"};
  if (covered == whole) return std::nullopt;
  if (!gap)
    return Error{.code = Errc::inconsistent,
                 .field = "members",
                 .what = "the boxes overlap: together they hold more elements than the view"};
  const bool counted = covered && covered->high == 0 && whole.high == 0;
  return Error{.code = Errc::inconsistent,
               .expect = counted ? Expect::exactly : Expect::nothing,
               .field = "members",
               .what = counted ? "elements that the members cover"
                               : "the members do not cover all elements of the view",
               .expected = whole.low,
               .found = counted ? covered->low : 0};
}

std::optional<Error> CompositeChecker::accept(const Descriptor& descriptor) {
  arrived_ = Arrived::none;
  fault_ = heads_.size();
  if (auto error = judge_depth_and_count(descriptor)) return error;
  const CompositeHead* layout = head_of(descriptor);
  if (open())
    if (auto error = judge_member(heads_.back(), descriptor)) return error;

  // What may throw comes before what changes.
  std::optional<Head> head;
  if (layout != nullptr) head.emplace(descriptor);
  if (heads_.size() == heads_.capacity()) heads_.reserve(2 * heads_.size() + 1);
  if (open() && keeps_boxes(heads_.back())) {
    auto& boxes = heads_.back().boxes;
    const std::size_t rank = descriptor.shape.rank();
    const std::size_t before = boxes.size();
    boxes.resize(before + 2 * rank);
    for (std::size_t k = 0; k < rank; ++k) {
      const std::uint64_t start = descriptor.shard()->shard_offset()[k];
      boxes[before + k] = start;
      boxes[before + rank + k] = start + descriptor.shape[k];
    }
  }
  arrived_ = layout != nullptr ? Arrived::head : Arrived::tensor;
  if (layout != nullptr) {
    promised_ = (open() ? promised_ : 0) + layout->member_count;
    heads_.push_back(*std::move(head));
  }
  return std::nullopt;
}

/// Takes back what `accept` did.
void CompositeChecker::withdraw() noexcept {
  if (arrived_ == Arrived::head) {
    promised_ -= heads_.back().layout.member_count;
    heads_.pop_back();
  }
  if (arrived_ != Arrived::none && open() && keeps_boxes(heads_.back())) {
    auto& boxes = heads_.back().boxes;
    boxes.resize(boxes.size() - 2 * heads_.back().shape.rank());
  }
  arrived_ = Arrived::none;
}

/// Every head that the tensor which arrived completes is judged before any is closed.
std::optional<Error> CompositeChecker::judge_closing(Closing& closing) {
  closing = {heads_.size(), arrived_ == Arrived::tensor ? 1u : 0u};
  for (; closing.left != 0; --closing.left, closing.more = 1) {
    const Head& head = heads_[closing.left - 1];
    if (head.received + closing.more != head.layout.member_count) return std::nullopt;
    fault_ = closing.left;
    if (auto error = judge_cover(head)) return error;
  }
  return std::nullopt;
}

std::optional<Error> CompositeChecker::close() {
  Closing closing;
  if (auto error = judge_closing(closing)) return error;
  heads_.erase(heads_.begin() + static_cast<std::ptrdiff_t>(closing.left), heads_.end());
  if (open()) heads_.back().received += closing.more;
  arrived_ = Arrived::none;
  fault_ = heads_.size();
  return std::nullopt;
}

Result<void> CompositeChecker::arrive(const Descriptor& descriptor) {
  return contain(Origin::descriptor, [&] { return to_result(accept(descriptor)); });
}

Result<void> CompositeChecker::complete() {
  return contain(Origin::descriptor, [&] { return to_result(close()); });
}

Result<void> CompositeChecker::add(const Descriptor& descriptor) {
  if (auto arrived = arrive(descriptor); !arrived) return arrived;
  auto completed = complete();
  if (!completed) withdraw();
  return completed;
}

Result<void> CompositeChecker::check(const Descriptor& descriptor) {
  if (auto arrived = arrive(descriptor); !arrived) return arrived;
  Closing closing;
  auto judged = contain(Origin::descriptor, [&] { return to_result(judge_closing(closing)); });
  withdraw();
  return judged;
}

std::uint64_t CompositeChecker::owed() const noexcept {
  std::uint64_t owed = 0;
  for (const Head& head : heads_) owed += head.layout.member_count - head.received;
  // A nested head is here already, and not yet received by the one around it.
  return owed - (heads_.empty() ? 0 : heads_.size() - 1);
}

Error CompositeChecker::torn() const noexcept {
  const Head& head = heads_.back();
  return {.code = Errc::truncated,
          .expect = Expect::exactly,
          .field = "layout.member_count",
          .what = "members (torn composite)",
          .expected = head.layout.member_count,
          .found = head.received};
}

std::string CompositeChecker::where() const {
  std::string text;
  for (std::size_t i = 0; i + 1 < fault_ && i < heads_.size(); ++i) {
    if (i != 0) text += '.';
    text += "members[" + std::to_string(heads_[i].received) + "]";
  }
  return text;
}

Result<void> CompositeChecker::add(const Item& part, std::span<const std::size_t> path) {
  const CompositeHead* head = head_of(part.tensor.descriptor());
  const std::uint64_t i = path.empty() ? Error::no_index : path.back();
  fault_ = heads_.size();
  if (head == nullptr && !part.members.empty())
    return Error{.code = Errc::inconsistent,
                 .index = i,
                 .field = path.empty() ? "members" : "members[].members",
                 .what = "only a composite head binds members"};
  if (head != nullptr && head->member_count != part.members.size())
    return Error{.code = Errc::inconsistent,
                 .expect = Expect::exactly,
                 .index = i,
                 .field = path.empty() ? "layout.member_count" : "members[].layout.member_count",
                 .what = "members, as there are",
                 .expected = part.members.size(),
                 .found = head->member_count};
  return add(part.tensor.descriptor());
}

Result<void> check_composite(const Item& item, const CompositeOptions& options,
                             std::string* where) {
  return contain(Origin::descriptor, [&] {
    CompositeChecker checker(options);
    Result<void> added;
    for_each_item(item, [&](const Item& part, std::span<const std::size_t> path) {
      added = checker.add(part, path);
      return added.has_value();
    });
    if (!added && where != nullptr) *where = checker.where();
    return added;
  });
}

Result<Tensor> with_role(Tensor tensor, std::optional<MemberRole> role) {
  const MemberRole* own = tensor.descriptor().member_role();
  if (own == nullptr ? !role : role == *own) return tensor;
  return contain(Origin::descriptor, [&] {
    // What came from elsewhere with a wait in it is relayed as it was declared.
    Descriptor descriptor =
        tensor.unsynced_buffer() ? tensor.wire_descriptor() : tensor.descriptor();
    descriptor.set_member_role(role);
    return bind(std::move(descriptor), tensor.buffers(), tensor.binding());
  });
}

Result<Item> compose(Descriptor head, std::vector<Item> members) {
  return contain(Origin::descriptor, [&]() -> Result<Item> {
    auto* layout = std::get_if<CompositeHead>(&head.layout);
    if (layout == nullptr)
      return Error{.code = Errc::inconsistent,
                   .field = "layout_tag",
                   .what = "only a composite head binds members"};
    if (members.size() >= CompositeHead::open)
      return Error{.code = Errc::invalid_value,
                   .expect = Expect::at_most,
                   .field = "layout.member_count",
                   .what = "members",
                   .expected = CompositeHead::open - 1,
                   .found = members.size()};
    layout->member_count = static_cast<std::uint32_t>(members.size());
    const bool overlay = layout->rule == CompositionRule::overlay;
    auto tensor = bind(std::move(head), {});
    if (!tensor) return std::move(tensor).error();
    for (std::size_t i = 0; i < members.size(); ++i) {
      // Heads have no role (M6 refuses them in an overlay).
      if (members[i].is_composite()) continue;
      std::optional<MemberRole> role;
      if (overlay) role = i == 0 ? MemberRole::base : MemberRole::correction;
      auto member = with_role(std::move(members[i].tensor), role);
      if (!member) return std::move(member).error();
      members[i].tensor = *std::move(member);
    }
    Item item{*std::move(tensor), std::move(members)};
    if (auto valid = check_composite(item, {.max_depth = most_composite_depth, .writing = true});
        !valid)
      return valid.error();
    return item;
  });
}

Result<Item> compose(CompositionRule rule, CombineOp op, Shape shape, DType dtype,
                     std::vector<Item> members) {
  Descriptor head;
  head.layout = CompositeHead{.rule = rule, .combine_op = op};
  head.shape = std::move(shape);
  head.dtype = dtype;
  return compose(std::move(head), std::move(members));
}

Result<Item> compose(CompositionRule rule, Shape shape, DType dtype, std::vector<Item> members) {
  return compose(rule, CombineOp::none, std::move(shape), dtype, std::move(members));
}

}  // namespace hurray
