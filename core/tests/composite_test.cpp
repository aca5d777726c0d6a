#include "hurray/composite.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "support.hpp"

namespace hurray {
namespace {

using testing::dense;
using testing::handle;

using Numbers = std::vector<std::uint64_t>;

/// A part of a view.
Descriptor part(const Numbers& parent, const Numbers& offset, const Numbers& size,
                DType dtype = DType::int8) {
  Descriptor d = dense(dtype, Shape(std::span(size)));
  d.set_shard(Shard(parent, offset));
  return d;
}

Descriptor with_role(Descriptor d, MemberRole role) {
  d.set_member_role(role);
  return d;
}

Descriptor head(CompositionRule rule, std::uint32_t members, const Numbers& shape,
                DType dtype = DType::int8, CombineOp op = CombineOp::none) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = Shape(std::span(shape));
  d.layout = CompositeHead{members, rule, op};
  EXPECT_TRUE(validate(d));
  return d;
}

constexpr auto partition = CompositionRule::partition;
constexpr auto overlay = CompositionRule::overlay;
constexpr auto group = CompositionRule::group;

/// The sentence of the first error that comes up, after " / " the descriptor it came from and the
/// nested head it is about; "" when all pass and nothing is left open, "open" when something is.
std::string judge(const std::vector<Descriptor>& tensors, const CompositeOptions& options = {}) {
  CompositeChecker checker(options);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(validate(tensors[i])) << i << to_string(validate(tensors[i]).error());
    CompositeChecker before = checker;
    const auto checked = before.check(tensors[i]);
    const auto added = checker.add(tensors[i]);
    EXPECT_EQ(checked.has_value(), added.has_value());
    if (added) continue;
    EXPECT_EQ(checked.error(), added.error());
    EXPECT_EQ(added.error().origin, Origin::descriptor);
    std::string text = to_string(added.error());
    text.resize(text.rfind(" ("));
    text += " / " + std::to_string(i);
    if (!checker.where().empty()) text += " " + checker.where();
    // A refusal leaves all as it was.
    const auto again = checker.add(tensors[i]);
    EXPECT_FALSE(again);
    if (!again) {
      EXPECT_EQ(again.error(), added.error());
    }
    return text;
  }
  return checker.open() ? "open" : "";
}

/// `members` under a partition of `[6,5]`.
std::string judge_parts(const std::vector<std::array<Numbers, 2>>& boxes,
                        const CompositeOptions& options = {}, const Numbers& shape = {6, 5}) {
  std::vector<Descriptor> tensors{head(partition, static_cast<std::uint32_t>(boxes.size()), shape)};
  for (const auto& [offset, size] : boxes) tensors.push_back(part(shape, offset, size));
  return judge(tensors, options);
}

TEST(Composite, TheExampleOfThePartition) {
  EXPECT_EQ(
      judge_parts({{Numbers{0, 0}, {6, 2}}, {Numbers{0, 2}, {4, 3}}, {Numbers{4, 2}, {2, 3}}}), "");
  EXPECT_EQ(
      judge_parts({{Numbers{4, 2}, {2, 3}}, {Numbers{0, 2}, {4, 3}}, {Numbers{0, 0}, {6, 2}}}), "");
}

TEST(Composite, PlainTensorsPassAlsoWithARole) {
  EXPECT_EQ(judge({dense(DType::int8, {2}), with_role(dense(DType::int8, {2}), MemberRole::base)}),
            "");
}

// -------------------------------------------------------------------------------------------
// every rule once

TEST(Composite, M1AMemberSaysWhereItLies) {
  for (const auto& [rule, op] : {std::pair(partition, CombineOp::none), {overlay, CombineOp::add}})
    EXPECT_EQ(judge({head(rule, 1, {2}, DType::int8, op), dense(DType::int8, {2})}),
              "members[0].shard: a member needs a shard section that says where it lies / 1");
  EXPECT_EQ(judge({head(partition, 1, {2, 3}), part({2, 4}, {0, 0}, {2, 3})}),
            "members[0].shard.parent_shape: expected 3 as the head's size, found 4 / 1");
  EXPECT_EQ(judge({head(partition, 1, {6}), part({2, 3}, {0, 0}, {2, 3})}),
            "members[0].rank: expected 1 as the head, found 2 / 1");
  EXPECT_EQ(judge({head(partition, 1, {}), part({1}, {0}, {1})}),
            "members[0].rank: expected 0 as the head, found 1 / 1");
  // A box outside its parent is no valid descriptor; the checker does not rely on that.
  CompositeChecker checker;
  ASSERT_TRUE(checker.add(head(partition, 1, {6})));
  for (const std::uint64_t offset : {std::uint64_t{1}, ~std::uint64_t{0}}) {
    const auto outside = checker.add(part({6}, {offset}, {6}));
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().code, Errc::out_of_bounds);
    EXPECT_EQ(field_name(outside.error()), "members[0].shard.shard_offset");
  }
}

TEST(Composite, M2AMemberHasTheTypeOfTheHead) {
  EXPECT_EQ(
      judge({head(partition, 2, {2}), part({2}, {0}, {1}), part({2}, {1}, {1}, DType::uint8)}),
      "members[1].type_tag: expected int8 (16) as the head, found uint8 (17) / 2");
  EXPECT_EQ(judge({head(overlay, 1, {2}, DType::int8, CombineOp::replace),
                   with_role(part({2}, {0}, {2}, DType::float32), MemberRole::base)}),
            "members[0].type_tag: expected int8 (16) as the head, found float32 (3) / 1");
  EXPECT_EQ(judge({head(group, 1, {2}), dense(DType::float32, {7})}), "");

  // Nested heads by their own type.
  Descriptor nested = head(group, 0, {2}, DType::float32);
  nested.set_shard(Shard(Numbers{2}, Numbers{0}));
  EXPECT_EQ(judge({head(partition, 1, {2}), nested}),
            "members[0].type_tag: expected int8 (16) as the head, found float32 (3) / 1");
  EXPECT_EQ(judge({head(partition, 1, {2}, DType::float32), nested}), "");
}

TEST(Composite, M2PrivateTypesAreTheSameToTheLastByte) {
  const DType mine{0xF3};
  const ExtensionType wide{.bit_width = 16, .is_signed = 1};
  ExtensionType other = wide;
  other.is_signed = 0;
  Descriptor top = head(partition, 1, {2});
  top.dtype = mine;
  top.set_extension_type(wide);
  Descriptor member = part({2}, {0}, {2}, DType::int16);
  member.dtype = mine;
  member.set_extension_type(wide);
  EXPECT_EQ(judge({top, member}), "");
  member.set_extension_type(other);
  EXPECT_EQ(judge({top, member}), "members[0].extension_type: differs from the head's / 1");
}

TEST(Composite, M2QuantizedMembersAreReal) {
  Descriptor member = part({4}, {0}, {4});
  member.set_quantization(Quantization{.scheme = PerTensorAffine{.scale = .5f}, .rest = {}});
  for (const DTypeInfo& row : dtypes) {
    const std::string found = judge({head(partition, 1, {4}, row.tag), member});
    const bool real = row.tag == DType::float16 || row.tag == DType::bfloat16 ||
                      row.tag == DType::float32 || row.tag == DType::float64;
    EXPECT_EQ(found.empty(), real) << row.name;
    if (!real) {
      EXPECT_TRUE(found.starts_with("members[0].quantization: expected a head of type")) << found;
    }
  }
}

TEST(Composite, M3OnlyMembersOfAnOverlayHaveARole) {
  EXPECT_EQ(judge({head(partition, 1, {2}), with_role(part({2}, {0}, {2}), MemberRole::base)}),
            "members[0].composite_member: only members of an overlay have a role / 1");
  EXPECT_EQ(judge({head(group, 2, {2}), dense(DType::int8, {2}),
                   with_role(dense(DType::int8, {2}), MemberRole::correction)}),
            "members[1].composite_member: only members of an overlay have a role / 2");
}

TEST(Composite, M4TheFirstMemberIsTheBaseAndTheOthersCorrect) {
  const Descriptor top = head(overlay, 2, {2}, DType::int8, CombineOp::add);
  const Descriptor plain = part({2}, {0}, {2});
  const Descriptor base = with_role(plain, MemberRole::base);
  const Descriptor correction = with_role(plain, MemberRole::correction);
  EXPECT_EQ(judge({top, base, correction}), "");
  EXPECT_EQ(judge({top, plain}),
            "members[0].composite_member: a member of an overlay needs a role / 1");
  EXPECT_EQ(judge({top, correction}),
            "members[0].composite_member.member_role: expected 1 (base) for the first member, "
            "found 0 / 1");
  EXPECT_EQ(judge({top, base, base}),
            "members[1].composite_member.member_role: expected 0 (correction) after the first "
            "member, found 1 / 2");
}

TEST(Composite, M5TheBaseSpansAll) {
  EXPECT_EQ(judge({head(overlay, 1, {3}, DType::int8, CombineOp::replace),
                   with_role(part({3}, {0}, {2}), MemberRole::base)}),
            "members[0].shape: the base does not span the whole view / 1");
  EXPECT_EQ(judge({head(overlay, 2, {3}, DType::int8, CombineOp::replace),
                   with_role(part({3}, {0}, {3}), MemberRole::base),
                   with_role(part({3}, {1}, {2}), MemberRole::correction)}),
            "");
}

TEST(Composite, M6AnOverlayHoldsNoComposite) {
  Descriptor nested = head(overlay, 1, {2}, DType::int8, CombineOp::replace);
  nested.set_shard(Shard(Numbers{2}, Numbers{0}));
  const Descriptor base = with_role(part({2}, {0}, {2}), MemberRole::base);
  const Descriptor top = head(overlay, 2, {2}, DType::int8, CombineOp::replace);
  EXPECT_EQ(judge({top, base, nested}),
            "members[1].layout_tag: a member of an overlay is no composite / 2");
  // Inside a partition or a group it is fine.
  EXPECT_EQ(judge({head(partition, 1, {2}), nested, base}), "");
  EXPECT_EQ(judge({head(group, 2, {}), nested, base, nested, base}), "");
}

std::vector<Descriptor> tower(std::size_t heads) {
  std::vector<Descriptor> tensors(heads, head(group, 1, {}));
  tensors.push_back(dense(DType::int8, {}));
  return tensors;
}

TEST(Composite, M7NestingIsLimited) {
  EXPECT_EQ(judge(tower(8)), "");
  EXPECT_EQ(judge(tower(9)),
            "members[0].layout: expected at most 8 composites inside each other "
            "(max_composite_depth), found 9 / 8 members[0].members[0].members[0].members[0]."
            "members[0].members[0].members[0]");
  EXPECT_EQ(judge(tower(1), {.max_depth = 1}), "");
  EXPECT_FALSE(judge(tower(2), {.max_depth = 1}).empty());
  EXPECT_EQ(judge(tower(1), {.max_depth = 0}), "");
  EXPECT_EQ(judge(tower(64), {.max_depth = 64}), "");
  EXPECT_TRUE(judge(tower(65), {.max_depth = 64}).starts_with("members[0].layout: "));
  EXPECT_TRUE(judge(tower(65), {.max_depth = 1000}).starts_with("members[0].layout: "));
}

TEST(Composite, C1SaysWhatIsOpenAndWhatIsMissing) {
  CompositeChecker checker;
  EXPECT_FALSE(checker.open());
  EXPECT_EQ(checker.owed(), 0u);
  ASSERT_TRUE(checker.add(head(group, 3, {})));
  EXPECT_EQ(checker.owed(), 3u);
  ASSERT_TRUE(checker.add(dense(DType::int8, {})));
  EXPECT_EQ(checker.torn().expected, 3u);
  EXPECT_EQ(checker.torn().found, 1u);
  ASSERT_TRUE(checker.add(head(group, 2, {})));
  EXPECT_EQ(checker.depth(), 2u);
  EXPECT_EQ(checker.owed(), 3u);
  EXPECT_EQ(to_string(checker.torn()),
            "layout.member_count: expected 2 members (torn composite), found 0 (truncated); pass "
            "all of the bytes");
  EXPECT_EQ(checker.where(), "members[1]");
  ASSERT_TRUE(checker.add(dense(DType::int8, {})));
  ASSERT_TRUE(checker.add(dense(DType::int8, {})));
  EXPECT_EQ(checker.owed(), 1u);
  EXPECT_EQ(checker.depth(), 1u);
  EXPECT_EQ(checker.where(), "");
  ASSERT_TRUE(checker.add(head(group, 0, {})));
  EXPECT_FALSE(checker.open());
}

TEST(Composite, C2BoxesDoNotOverlap) {
  const std::string overlap =
      "members[1].shard.shard_offset: the boxes overlap: an earlier member holds some of the same "
      "elements / 2";
  EXPECT_EQ(judge_parts({{Numbers{0, 0}, {6, 3}}, {Numbers{0, 2}, {6, 3}}}), overlap);
  // The volumes are right.
  EXPECT_EQ(judge_parts({{Numbers{0, 0}, {3, 5}}, {Numbers{0, 0}, {3, 5}}}), overlap);
  EXPECT_EQ(judge_parts({{Numbers{}, {}}, {Numbers{}, {}}}, {}, {}), overlap);
  const CompositeOptions permissive{.permissive = true};
  EXPECT_EQ(judge_parts({{Numbers{0, 0}, {3, 5}}, {Numbers{0, 0}, {3, 5}}}, permissive), "");
}

TEST(Composite, C3BoxesCoverAll) {
  EXPECT_EQ(judge_parts({{Numbers{0, 0}, {6, 2}}, {Numbers{0, 2}, {4, 3}}}),
            "members: expected 30 elements that the members cover, found 24 / 2");
  EXPECT_EQ(judge_parts({}), "members: expected 30 elements that the members cover, found 0 / 0");
  EXPECT_EQ(judge_parts({}, {.permissive = true}), "");
  EXPECT_EQ(judge_parts({}, {}, {}),
            "members: expected 1 elements that the members cover, found 0 / 0");
  EXPECT_EQ(judge_parts({{Numbers{}, {}}}, {}, {}), "");
}

TEST(Composite, L20VolumesAreExactTo128Bits) {
  const std::uint64_t half = std::uint64_t{1} << 63;
  const Numbers whole{half, half, 2};  // 2^127
  const auto sparse = [&](const Numbers& offset, const Numbers& size) {
    Descriptor d = part(whole, {0, 0, 0}, {0, 0, 0});
    d.layout = Coo{};
    d.shape = Shape(std::span(size));
    d.set_shard(Shard(whole, offset));
    d.buffers = BufferTable{handle(0), handle(0)};
    return d;
  };
  const Descriptor top = head(partition, 2, whole);
  EXPECT_EQ(judge({top, sparse({0, 0, 0}, {half, half, 1}), sparse({0, 0, 1}, {half, half, 1})}),
            "");
  EXPECT_EQ(
      judge({top, sparse({0, 0, 0}, {half, half, 1}), sparse({0, 0, 1}, {half, half - 1, 1})}),
      "members: the members do not cover all elements of the view / 2");
  Descriptor larger;
  larger.shape = {half, half, 4};
  larger.layout = CompositeHead{0, partition, CombineOp::none};
  EXPECT_EQ(validate(larger).error().code, Errc::overflow);
}

TEST(Composite, L21MembersWithoutElementsCoverNothing) {
  const std::vector<std::array<Numbers, 2>> boxes{
      {Numbers{0, 0}, {6, 5}}, {Numbers{3, 3}, {0, 2}}, {Numbers{3, 3}, {0, 2}}};
  EXPECT_EQ(judge_parts(boxes), "");
  EXPECT_EQ(judge_parts(boxes, {.writing = true}),
            "members[1].shape: a member without elements covers nothing: leave it out / 2");
  const std::vector<std::array<Numbers, 2>> empty{{Numbers{0, 0}, {0, 5}}, {Numbers{0, 2}, {0, 3}}};
  EXPECT_EQ(judge_parts(empty, {.writing = true}, {0, 5}), "");
  EXPECT_EQ(judge_parts({}, {.writing = true}, {0, 5}), "");
}

TEST(Composite, L21NobodyWritesAnEmptyMemberOfAnOverlayEither) {
  const auto corrected = [](std::uint64_t size, std::uint64_t rows) {
    return std::vector<Descriptor>{head(overlay, 2, {size}, DType::int8, CombineOp::add),
                                   with_role(part({size}, {0}, {size}), MemberRole::base),
                                   with_role(part({size}, {0}, {rows}), MemberRole::correction)};
  };
  const auto writes = [](const std::vector<Descriptor>& tensors) {
    CompositeChecker checker({.writing = true});
    for (const Descriptor& d : tensors)
      if (auto added = checker.add(d); !added) return to_string(added.error());
    return std::string();
  };
  EXPECT_EQ(judge(corrected(4, 0)), "") << "readers take it";
  EXPECT_TRUE(writes(corrected(4, 0)).starts_with("members[1].shape: a member without elements"));
  EXPECT_EQ(writes(corrected(4, 1)), "");
  EXPECT_EQ(writes(corrected(0, 0)), "") << "an empty head";
}

TEST(Composite, ComposeWithoutAnOperation) {
  const Tensor member = *bind(dense(DType::int8, {2}), {*Buffer::allocate(2)});
  const auto group_of = compose(group, {2}, DType::int8, {{member}});
  ASSERT_TRUE(group_of) << to_string(group_of.error());
  EXPECT_EQ(std::get<CompositeHead>(group_of->tensor.descriptor().layout).combine_op,
            CombineOp::none);
  const auto overlay_of = compose(overlay, {2}, DType::int8, {{member}});
  ASSERT_FALSE(overlay_of);
  EXPECT_EQ(overlay_of.error().field, "layout.combine_op");
}

TEST(Composite, L18LayoutsWithoutAShardAreForGroups) {
  Descriptor csf;
  csf.shape = {1, 1, 1};
  csf.layout = Csf{.nnz = 0, .mode_order = {0, 1, 2}};
  csf.dtype = DType::int8;
  csf.buffers =
      BufferTable{handle(0), handle(0), handle(0), handle(0), handle(0), handle(16), handle(8)};
  for (std::size_t i = 1; i < csf.buffers.size(); ++i) csf.buffers[i] = handle(16);
  EXPECT_EQ(judge({head(group, 1, {}), csf}), "");
  EXPECT_EQ(judge({head(partition, 1, {1, 1, 1}), csf}),
            "members[0].shard: a member needs a shard section that says where it lies / 1");
}

// -------------------------------------------------------------------------------------------
// trees

TEST(Composite, NestedHeadsCountWhenTheyAreComplete) {
  Descriptor left = head(partition, 2, {2, 2});
  left.set_shard(Shard(Numbers{2, 5}, Numbers{0, 0}));
  const std::vector<Descriptor> tensors{head(partition, 2, {2, 5}), left,
                                        part({2, 2}, {0, 0}, {1, 2}), part({2, 2}, {1, 0}, {1, 2}),
                                        part({2, 5}, {0, 2}, {2, 3})};
  EXPECT_EQ(judge(tensors), "");
  // The nested one has a gap, which shows where it is.
  auto gap = tensors;
  gap[3] = part({2, 2}, {1, 0}, {1, 1});
  EXPECT_EQ(judge(gap),
            "members: expected 4 elements that the members cover, found 3 / 3 "
            "members[0]");
  auto wrong = tensors;
  wrong[3] = part({2, 5}, {1, 0}, {1, 2});
  EXPECT_EQ(judge(wrong),
            "members[1].shard.parent_shape: expected 2 as the head's size, found 5 / 3 "
            "members[0]");
}

TEST(Composite, OneTensorMayCompleteSeveralHeads) {
  Descriptor nested = head(partition, 1, {2});
  nested.set_shard(Shard(Numbers{3}, Numbers{0}));
  // The inner one closes and the outer one has a gap: neither is closed.
  CompositeChecker checker;
  ASSERT_TRUE(checker.add(head(partition, 1, {3})));
  ASSERT_TRUE(checker.add(nested));
  const auto gap = checker.add(part({2}, {0}, {2}));
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().expected, 3u);
  EXPECT_EQ(gap.error().found, 2u);
  EXPECT_EQ(checker.where(), "");
  EXPECT_EQ(checker.depth(), 2u);
}

TEST(Composite, MembersAreLimitedBeforeTheyCome) {
  const Descriptor top = head(group, 3, {});
  const Descriptor nested = head(group, 2, {});
  EXPECT_EQ(judge({top, nested}, {.max_members = 5}), "open");
  EXPECT_EQ(judge({top, nested}, {.max_members = 4}),
            "members[0].layout.member_count: expected at most 4 members in one composite "
            "(max_item_members), found 5 / 1");
  EXPECT_EQ(judge({head(group, 0xFFFFFFFE, {})}, {.max_members = 1u << 20}),
            "layout.member_count: expected at most 1048576 members in one composite "
            "(max_item_members), found 4294967294 / 0");
  // Of one composite, not of all.
  const Descriptor one = dense(DType::int8, {});
  EXPECT_EQ(judge({top, one, one, one, top, one, one, one}, {.max_members = 3}), "");
}

TEST(Composite, HalvesForReaders) {
  CompositeChecker checker;
  ASSERT_TRUE(checker.arrive(head(partition, 2, {2})));
  ASSERT_TRUE(checker.complete());
  ASSERT_TRUE(checker.arrive(part({2}, {0}, {1})));
  ASSERT_TRUE(checker.complete());
  ASSERT_TRUE(checker.arrive(part({2}, {0}, {1}))) << "an overlap shows at the close";
  const auto closed = checker.complete();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().index, 1u);
  EXPECT_EQ(closed.error().found, 0u);
}

/// Random guillotine cuts of a random box, in random order, then spoiled in one place.
TEST(Composite, RandomPartitionsAgainstADenseOracle) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  int overlaps = 0;
  int gaps = 0;
  int whole = 0;
  for (int round = 0; round < 600; ++round) {
    const std::size_t rank = 1 + below(4);
    Numbers shape(rank);
    for (auto& n : shape) n = 1 + below(round % 3 == 0 ? 12 : 5);
    std::vector<std::array<Numbers, 2>> boxes{{Numbers(rank, 0), shape}};
    const std::size_t cuts = below(round % 3 == 0 ? 150 : 12);
    for (std::size_t i = 0; i < cuts; ++i) {
      auto& box = boxes[below(boxes.size())];
      const std::size_t k = below(rank);
      if (box[1][k] < 2) continue;
      const std::uint64_t at = 1 + below(box[1][k] - 1);
      auto rest = box;
      rest[0][k] += at;
      rest[1][k] -= at;
      box[1][k] = at;
      boxes.push_back(rest);
    }
    std::ranges::shuffle(boxes, random);
    auto& spoiled = boxes[below(boxes.size())];
    const std::size_t k = below(rank);
    switch (below(4)) {
      case 0:
        if (spoiled[0][k] + spoiled[1][k] < shape[k]) ++spoiled[1][k];
        break;
      case 1:
        if (spoiled[0][k] > 0) --spoiled[0][k];
        break;
      case 2:
        if (spoiled[1][k] > 1) --spoiled[1][k];
        break;
      default:
        break;
    }

    std::vector<int> owners(static_cast<std::size_t>(Shape(std::span(shape)).count()));
    for (const auto& [offset, size] : boxes) {
      Numbers index(rank, 0);
      for (bool more = true; more;) {
        std::size_t at = 0;
        for (std::size_t d = 0; d < rank; ++d) at = at * shape[d] + offset[d] + index[d];
        ++owners[at];
        more = false;
        for (std::size_t d = rank; d-- > 0 && !more;) {
          more = ++index[d] < size[d];
          if (!more) index[d] = 0;
        }
      }
    }
    const bool overlap = std::ranges::any_of(owners, [](int n) { return n > 1; });
    const bool gap = std::ranges::any_of(owners, [](int n) { return n == 0; });
    const std::string found = judge_parts(boxes, {}, shape);
    const bool too_few =
        std::accumulate(owners.begin(), owners.end(), 0) < static_cast<int>(owners.size());
    if (overlap && !too_few) {
      EXPECT_NE(found.find("overlap"), std::string::npos) << found;
    } else if (gap) {
      EXPECT_NE(found.find("that the members cover"), std::string::npos) << found;
    } else {
      EXPECT_EQ(found, "");
    }
    ++(overlap ? overlaps : gap ? gaps : whole);
  }
  EXPECT_GT(overlaps, 30);
  EXPECT_GT(gaps, 30);
  EXPECT_GT(whole, 100);
}

/// Long thin boxes along each of three dimensions that all cross each other's shadows: no order
/// along one dimension tells them apart.
TEST(Composite, ManyBoxesThatNoSingleSweepTellsApart) {
  const std::uint64_t n = 60;
  const Numbers shape{2 * n, n};
  std::vector<Descriptor> tensors{head(partition, static_cast<std::uint32_t>(2 * n), shape)};
  for (std::uint64_t i = 0; i < n; ++i) {
    tensors.push_back(part(shape, {i, 0}, {1, n}));  // rows above
    tensors.push_back(part(shape, {n, i}, {n, 1}));  // columns below
  }
  EXPECT_EQ(judge(tensors), "");
  tensors.back() = tensors[2];
  EXPECT_EQ(judge(tensors),
            "members[119].shard.shard_offset: the boxes overlap: an earlier member holds some of "
            "the same elements / 120");
}

/// Rods of a partition of `[s, s, s, s, s, 2]` in the half `half`, thin in three of the first five
/// dimensions: every two meet in some, and no cut tells many of them apart.
std::vector<Descriptor> rods(std::uint64_t n, std::uint64_t s, std::uint64_t half) {
  const Numbers shape{s, s, s, s, s, 2};
  std::vector<std::array<std::size_t, 3>> thin;
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = i + 1; j < 5; ++j)
      for (std::size_t k = j + 1; k < 5; ++k) thin.push_back({i, j, k});
  std::vector<Descriptor> tensors;
  for (std::uint64_t i = 0; i < n; ++i) {
    Numbers offset{0, 0, 0, 0, 0, half};
    Numbers size{s, s, s, s, s, 1};
    for (const std::size_t k : thin[i % thin.size()]) {
      offset[k] = i + 1;
      size[k] = 1;
    }
    tensors.push_back(part(shape, offset, size));
  }
  return tensors;
}

/// The error of the last of many tensors.
Error last_error(const std::vector<Descriptor>& tensors, const CompositeOptions& options = {}) {
  CompositeChecker checker(options);
  for (std::size_t i = 0; i + 1 < tensors.size(); ++i) EXPECT_TRUE(checker.add(tensors[i]));
  const auto last = checker.add(tensors.back());
  return last ? Error{.what = "none"} : last.error();
}

TEST(Composite, BoxesInEachOthersWayAreJudgedInBoundedWork) {
  constexpr std::uint64_t n = 16000;
  constexpr std::uint64_t s = std::uint64_t{1} << 20;
  const Numbers shape{s, s, s, s, s, 2};
  // More elements than the view has: an overlap, whichever boxes it is.
  std::vector<Descriptor> boxes{head(partition, n + 2, shape)};
  for (Descriptor& rod : rods(n, s, 1)) boxes.push_back(std::move(rod));
  for (int i = 0; i < 2; ++i) boxes.push_back(part(shape, {0, 0, 0, 0, 0, 0}, {s, s, s, s, s, 2}));
  const Error more = last_error(boxes);
  EXPECT_EQ(more.code, Errc::inconsistent);
  EXPECT_EQ(more.field.substr(0, 7), "members");

  // As many as it has: rods hold n s^2, and what fills the rest overlaps itself by as much.
  boxes = {head(partition, n + 4, shape)};
  for (Descriptor& rod : rods(n, s, 0)) boxes.push_back(std::move(rod));
  boxes.push_back(part(shape, {0, 0, 0, 0, 0, 1}, {s, s, s, s, s, 1}));
  boxes.push_back(part(shape, {1, 0, 0, 0, 0, 1}, {s - 1, s, s, s, s, 1}));
  boxes.push_back(part(shape, {0, 1, 0, 0, 0, 1}, {1, s - 1, s, s, s, 1}));
  boxes.push_back(part(shape, {0, 0, n, 0, 0, 1}, {1, 1, s - n, s, s, 1}));
  const Error same = last_error(boxes);
  EXPECT_EQ(same.code, Errc::limit_exceeded) << to_string(same);
  EXPECT_EQ(same.field, "members");
  EXPECT_EQ(last_error(boxes, {.permissive = true}).what, "none");
}

TEST(Composite, PartitionsIntoManyBoxesAreProven) {
  std::mt19937 random(3);
  const auto judged = [&](const Numbers& shape, std::vector<std::array<Numbers, 2>> boxes) {
    std::ranges::shuffle(boxes, random);
    CompositeChecker checker;
    EXPECT_TRUE(checker.add(head(partition, static_cast<std::uint32_t>(boxes.size()), shape)));
    for (const auto& [offset, size] : boxes) {
      const auto added = checker.add(part(shape, offset, size));
      ASSERT_TRUE(added) << to_string(added.error());
    }
    EXPECT_FALSE(checker.open());
  };
  std::vector<std::array<Numbers, 2>> boxes;
  for (std::uint64_t i = 0; i < 4096; ++i)  // a grid
    boxes.push_back(
        {Numbers{i / 512 * 3, i / 64 % 8 * 3, i / 8 % 8 * 3, i % 8 * 3}, Numbers{3, 3, 3, 3}});
  judged({24, 24, 24, 24}, boxes);
  boxes.clear();
  for (std::uint64_t i = 0; i < 64; ++i)  // pinwheels, which no straight cut leaves whole
    for (std::uint64_t j = 0; j < 64; ++j)
      for (const auto& [x, y, w, h] : std::initializer_list<std::array<std::uint64_t, 4>>{
               {0, 0, 2, 1}, {2, 0, 1, 2}, {1, 2, 2, 1}, {0, 1, 1, 2}, {1, 1, 1, 1}})
        boxes.push_back({Numbers{3 * i + x, 3 * j + y}, Numbers{w, h}});
  judged({192, 192}, boxes);
  boxes.clear();
  constexpr std::uint64_t m = 24;  // rods in three directions, and cubes around them
  const auto rod = [](std::uint64_t a, std::uint64_t b) { return a % 2 == 0 && b % 2 == 1; };
  for (std::uint64_t a = 0; a < m; ++a)
    for (std::uint64_t b = 0; b < m; ++b) {
      if (rod(a, b)) {
        boxes.push_back({Numbers{0, a, b}, Numbers{m, 1, 1}});
        boxes.push_back({Numbers{b, 0, a}, Numbers{1, m, 1}});
        boxes.push_back({Numbers{a, b, 0}, Numbers{1, 1, m}});
      }
      for (std::uint64_t c = 0; c < m; ++c)
        if (!rod(b, c) && !rod(c, a) && !rod(a, b))
          boxes.push_back({Numbers{a, b, c}, Numbers{1, 1, 1}});
    }
  judged({m, m, m}, boxes);
}

TEST(Composite, TrialsOfItemsEndWhereTheItemsDo) {
  const Numbers shape{4};
  const auto row = [&](std::uint64_t i) { return part(shape, {i}, {1}); };
  CompositeChecker checker;
  ASSERT_TRUE(checker.add(head(partition, 4, shape)));
  const auto item = [&](const std::vector<Descriptor>& parts) {
    CompositeChecker trial = checker.trial();
    for (const Descriptor& d : parts)
      if (auto added = trial.add(d); !added) return std::string(added.error().what);
    checker.adopt(std::move(trial));
    return std::string();
  };
  const auto nested = [&](std::uint32_t members) {
    Descriptor d = head(partition, members, {1});
    d.set_shard(Shard(shape, Numbers{1}));
    return d;
  };
  EXPECT_EQ(item({row(0)}), "");
  EXPECT_NE(item({nested(2), part({1}, {0}, {1}), part({1}, {0}, {1})}), "");
  EXPECT_EQ(checker.owed(), 3u);
  EXPECT_EQ(item({nested(1), part({1}, {0}, {1})}), "");
  EXPECT_EQ(item({row(2)}), "");
  EXPECT_EQ(checker.owed(), 1u);
  EXPECT_EQ(checker.depth(), 1u);
  EXPECT_NE(item({row(1)}), "") << "an overlap with a member that came as an item";
  EXPECT_EQ(item({row(3)}), "");
  EXPECT_FALSE(checker.open());
  EXPECT_EQ(item({head(group, 1, {}), dense(DType::int8, {2})}), "");
  EXPECT_FALSE(checker.open());
}

// -------------------------------------------------------------------------------------------
// whole trees

Tensor tensor_of(Descriptor d) {
  std::vector<Buffer> buffers;
  for (const BufferHandle& h : d.buffers) buffers.push_back(*Buffer::allocate(h.byte_size, true));
  auto tensor = bind(std::move(d), std::move(buffers));
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  return *std::move(tensor);
}

Item item_of(Descriptor d, std::vector<Item> members = {}) {
  return {tensor_of(std::move(d)), std::move(members)};
}

std::string failure(const Result<void>& result) { return result ? "" : to_string(result.error()); }

TEST(Composite, ATreeIsJudgedAsAWhole) {
  Descriptor left = head(partition, 2, {2, 2});
  left.set_shard(Shard(Numbers{2, 5}, Numbers{0, 0}));
  Item tree =
      item_of(head(partition, 2, {2, 5}), {item_of(left, {item_of(part({2, 2}, {0, 0}, {1, 2})),
                                                          item_of(part({2, 2}, {1, 0}, {1, 2}))}),
                                           item_of(part({2, 5}, {0, 2}, {2, 3}))});
  EXPECT_EQ(failure(check_composite(tree)), "");
  EXPECT_EQ(failure(check_composite(item_of(dense(DType::int8, {3})))), "");

  std::vector<std::string> order;
  for_each_item(tree, [&](const Item& item, std::span<const std::size_t> path) {
    std::string text = item.is_composite() ? "head" : "tensor";
    for (const std::size_t i : path) text += " " + std::to_string(i);
    order.push_back(text);
    return true;
  });
  EXPECT_EQ(order,
            (std::vector<std::string>{"head", "head 0", "tensor 0 0", "tensor 0 1", "tensor 1"}));

  Item fewer = tree;
  fewer.members[0].members.pop_back();
  std::string where = "untouched";
  EXPECT_EQ(failure(check_composite(fewer, {}, &where)),
            "members[0].layout.member_count: expected 1 members, as there are, found 2 "
            "(inconsistent); two fields contradict each other");
  EXPECT_EQ(where, "");
  Item deep = tree;
  deep.members[0].members[1] = item_of(part({2, 2}, {1, 0}, {1, 1}));
  EXPECT_FALSE(check_composite(deep, {}, &where));
  EXPECT_EQ(where, "members[0]");
  Item odd = tree;
  odd.members[1].members.push_back(item_of(dense(DType::int8, {})));
  EXPECT_EQ(failure(check_composite(odd)),
            "members[1].members: only a composite head binds members (inconsistent); two fields "
            "contradict each other");
}

TEST(Composite, ComposeSetsRolesAndLeavesTheCallersTensorsAlone) {
  const Tensor base = tensor_of(part({3}, {0}, {3}));
  const Tensor patch =
      tensor_of(with_role(part({3}, {1}, {2}), MemberRole::base));  // of another overlay
  const auto item = compose(overlay, CombineOp::replace, {3}, DType::int8, {{base}, {patch}});
  ASSERT_TRUE(item) << to_string(item.error());
  EXPECT_EQ(std::get<CompositeHead>(item->tensor.descriptor().layout),
            (CompositeHead{2, overlay, CombineOp::replace}));
  EXPECT_EQ(*item->members[0].tensor.descriptor().member_role(), MemberRole::base);
  EXPECT_EQ(*item->members[1].tensor.descriptor().member_role(), MemberRole::correction);
  EXPECT_EQ(item->members[0].tensor.buffer(0).data(), base.buffer(0).data());
  EXPECT_EQ(base.descriptor().member_role(), nullptr);
  EXPECT_EQ(*patch.descriptor().member_role(), MemberRole::base);

  const auto parts = compose(group, CombineOp::none, {}, DType::int8, {{base}, {patch}});
  ASSERT_TRUE(parts) << to_string(parts.error());
  EXPECT_EQ(parts->members[1].tensor.descriptor().member_role(), nullptr);

  EXPECT_FALSE(compose(overlay, CombineOp::none, {3}, DType::int8, {{base}}));
  EXPECT_FALSE(compose(overlay, CombineOp::add, {3}, DType::int8, {}));
  EXPECT_FALSE(compose(partition, CombineOp::none, {3, 1}, DType::int8, {{base}}));
  EXPECT_FALSE(compose(dense(DType::int8, {3}), {}));
  EXPECT_FALSE(compose(partition, CombineOp::none, {dynamic}, DType::int8, {}));
}

TEST(Composite, ComposeKeepsADeclaredWait) {
  Descriptor d = part({2}, {0}, {2}, DType::float32);
  d.buffers[0] = {
      .byte_size = 8, .alignment = 256, .device = Device::cuda, .sync_mode = SyncMode::event};
  const Tensor waiting = tensor_of(d);
  const auto item = compose(overlay, CombineOp::add, {2}, DType::float32, {{waiting}});
  ASSERT_TRUE(item) << to_string(item.error());
  const Descriptor wire = item->members[0].tensor.wire_descriptor();
  EXPECT_EQ(wire.buffers[0].alignment, 256u);
  EXPECT_EQ(wire.buffers[0].sync_mode, SyncMode::event);
  EXPECT_EQ(*wire.member_role(), MemberRole::base);
}

TEST(Composite, SixtyFourLevelsCanBeBuilt) {
  Item item = item_of(dense(DType::int8, {}));
  for (int level = 1; level <= 64; ++level) {
    auto outer = compose(group, CombineOp::none, {}, DType::int8, {item});
    ASSERT_TRUE(outer) << level;
    item = *std::move(outer);
    EXPECT_EQ(check_composite(item).has_value(), level <= 8);
  }
  EXPECT_FALSE(compose(group, CombineOp::none, {}, DType::int8, {item}));
}

TEST(Composite, Volumes) {
  const std::uint64_t top = ~std::uint64_t{0};
  EXPECT_EQ(Volume::of({}), (Volume{0, 1}));
  EXPECT_EQ(Volume::of(Numbers{top, top}), (Volume{top - 1, 1}));
  EXPECT_EQ(Volume::of(Numbers{top, top, 2}), std::nullopt);
  EXPECT_EQ(Volume::of(Numbers{top, top, top, 0}), Volume{});
  EXPECT_EQ((Volume{0, top}.plus({0, 1})), (Volume{1, 0}));
  EXPECT_EQ((Volume{top, top}.plus({0, 1})), std::nullopt);
  EXPECT_EQ((Volume{top, 0}.plus({1, 0})), std::nullopt);
  EXPECT_EQ((Volume{1, 5}.plus({2, 6})), (Volume{3, 11}));
}

}  // namespace
}  // namespace hurray
