// Composites in streams (05-stream.md section 4) and in files (04-file.md section 9).
#include "hurray/composite.hpp"

#include <gtest/gtest.h>

#include "file_support.hpp"
#include "hurray/io/stream.hpp"
#include "hurray/materialize.hpp"

namespace hurray::io {
namespace {

using Numbers = std::vector<std::uint64_t>;

// -------------------------------------------------------------------------------------------
// what is written

Tensor tensor_of(Descriptor d, const Bytes& data = {}) {
  std::vector<Buffer> buffers;
  for (const BufferHandle& h : d.buffers) {
    buffers.push_back(*Buffer::allocate(h.byte_size, true));
    if (!data.empty()) std::ranges::copy(data, buffers.back().data());
  }
  auto tensor = bind(std::move(d), std::move(buffers));
  EXPECT_TRUE(tensor) << to_string(tensor.error());
  return *std::move(tensor);
}

Descriptor int8(const Numbers& size) {
  Descriptor d = dense(DType::int8, {}, Shape(std::span(size)).count());
  d.shape = Shape(std::span(size));
  return d;
}

Descriptor part(const Numbers& parent, const Numbers& offset, const Numbers& size) {
  Descriptor d = int8(size);
  d.set_shard(Shard(parent, offset));
  return d;
}

Descriptor head(CompositionRule rule, std::uint32_t members, const Numbers& shape) {
  Descriptor d;
  d.dtype = DType::int8;
  d.shape = Shape(std::span(shape));
  d.layout = CompositeHead{members, rule, CombineOp::none};
  return d;
}

constexpr auto partition = CompositionRule::partition;
constexpr auto group = CompositionRule::group;

Item grid() {
  auto item = compose(partition, CombineOp::none, {2, 3}, DType::int8,
                      {{tensor_of(part({2, 3}, {0, 0}, {2, 1}), hex("01 02"))},
                       {tensor_of(part({2, 3}, {0, 1}, {2, 2}), hex("03 04 05 06"))}});
  EXPECT_TRUE(item) << to_string(item.error());
  return *std::move(item);
}

/// A group of the grid and a tensor, and in it another group.
Item nested() {
  auto inner = compose(group, CombineOp::none, {}, DType::int8, {grid(), {tensor_of(int8({2}))}});
  auto outer =
      compose(group, CombineOp::none, {}, DType::int8, {{tensor_of(int8({1}))}, *std::move(inner)});
  EXPECT_TRUE(outer);
  return *std::move(outer);
}

void expect_equal(const Item& a, const Item& b) {
  EXPECT_EQ(a.tensor.wire_descriptor(), b.tensor.wire_descriptor());
  for (std::size_t i = 0; i < a.tensor.buffers().size(); ++i)
    EXPECT_TRUE(std::ranges::equal(a.tensor.buffer(i).bytes(), b.tensor.buffer(i).bytes()));
  ASSERT_EQ(a.members.size(), b.members.size());
  for (std::size_t i = 0; i < a.members.size(); ++i) expect_equal(a.members[i], b.members[i]);
}

Bytes frame(const Descriptor& d, const Bytes& data = {}) {
  Bytes bytes = *encode(d);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes stream_of(const Item& item) {
  auto writer = StreamWriter::in_memory();
  EXPECT_EQ(failure(writer->write_item(item)), "");
  EXPECT_EQ(failure(writer->finish()), "");
  return {writer->bytes().begin(), writer->bytes().end()};
}

StreamReader reader(std::span<const std::byte> bytes, const StreamReadOptions& options = {}) {
  auto made = StreamReader::over(bytes, options);
  EXPECT_TRUE(made);
  return *std::move(made);
}

/// The first error of either way of reading, which must be the same; "" for none.
std::optional<Error> first_error(const Bytes& bytes, const StreamReadOptions& options = {}) {
  auto frames = reader(bytes, options);
  auto items = reader(bytes, options);
  std::optional<Error> by_frame;
  std::optional<Error> by_item;
  for (;;) {
    const auto next = frames.next();
    if (!next) by_frame = next.error();
    if (!next || !*next) break;
  }
  for (;;) {
    const auto next = items.next_item();
    if (!next) by_item = next.error();
    if (!next || !*next) break;
  }
  EXPECT_EQ(by_frame.has_value(), by_item.has_value());
  if (by_frame && by_item) {
    EXPECT_EQ(to_string(*by_frame), to_string(*by_item));
  }
  EXPECT_TRUE(frames.next() && !*frames.next()) << "exhausted";
  EXPECT_TRUE(items.next_item() && !*items.next_item()) << "exhausted";
  return by_frame;
}

std::string sentence(const Bytes& bytes, const StreamReadOptions& options = {}) {
  const auto error = first_error(bytes, options);
  return error ? to_string(*error) : "";
}

// -------------------------------------------------------------------------------------------
// streams

/// The second example of 05-stream.md section 7.
const Bytes worked =
    hex("48 52 52 59 01 00 2D 00 00 00 00 00 00 00 03 0B 01 00 00 00 02 00 00 00 00 00 00 00 "
        "00 00 00 00 00 00 00 00 03 00 00 00 01 00 00 00 00 "
        "48 52 52 59 01 00 35 00 00 00 00 00 00 00 10 01 01 00 00 00 02 00 00 00 00 00 00 00 "
        "00 00 00 00 00 00 00 00 01 02 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00 05 FB");

TEST(CompositeStream, WorkedBytes) {
  ASSERT_EQ(worked.size(), 100u);
  const auto item =
      compose(group, CombineOp::none, {2}, DType::float32, {{tensor_of(int8({2}), hex("05 FB"))}});
  ASSERT_TRUE(item);
  EXPECT_EQ(stream_of(*item), worked);

  auto items = reader(worked);
  const auto read = items.next_item();
  ASSERT_TRUE(read && *read);
  expect_equal(**read, *item);
  EXPECT_EQ(items.position(), 100u);
  const auto end = items.next_item();
  EXPECT_TRUE(end && !*end);

  auto frames = reader(worked);
  const auto first = frames.next();
  ASSERT_TRUE(first && *first);
  EXPECT_TRUE((*first)->buffers().empty());
  EXPECT_EQ(frames.position(), 45u);
  const auto second = frames.next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->buffer(0).bytes()[1], std::byte{0xFB});
  EXPECT_TRUE(frames.next() && !*frames.next());
}

TEST(CompositeStream, EveryCut) {
  for (std::size_t cut = 0; cut <= worked.size(); ++cut) {
    SCOPED_TRACE(cut);
    const Bytes bytes(worked.begin(), worked.begin() + static_cast<std::ptrdiff_t>(cut));
    const auto error = first_error(bytes);
    if (cut == 0 || cut == 100) {
      EXPECT_FALSE(error);
    } else if (cut == 45) {
      ASSERT_TRUE(error);
      EXPECT_EQ(to_string(*error),
                "layout.member_count: expected 1 members (torn composite), found 0 (truncated at "
                "byte 45 of the stream); pass all of the bytes");
    } else {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, Errc::truncated);
      EXPECT_NE(error->field, "layout.member_count");
      EXPECT_EQ(error->offset, cut);
    }
  }
}

/// Where each frame of a stream ends.
std::vector<std::size_t> frame_ends(const Bytes& bytes) {
  std::vector<std::size_t> ends;
  auto frames = reader(bytes);
  while (*frames.next()) ends.push_back(frames.position());
  return ends;
}

TEST(CompositeStream, NestedItemsAndEveryCutOfThem) {
  const Item item = nested();
  const Bytes bytes = stream_of(item) + frame(int8({1}), hex("07"));
  auto items = reader(bytes, {.expected_items = 2});
  const auto read = items.next_item();
  ASSERT_EQ(failure(read), "");
  expect_equal(**read, item);
  ASSERT_TRUE(*items.next_item());
  const auto end = items.next_item();
  EXPECT_TRUE(end && !*end) << "a composite is one item";
  EXPECT_EQ(first_error(bytes, {.expected_items = 3})->field, "expected_items");

  const auto ends = frame_ends(bytes);
  ASSERT_EQ(ends.size(), 8u);  // outer, tensor, inner, grid, two parts, tensor; tensor
  const std::vector<std::array<std::uint64_t, 2>> torn{{2, 0}, {2, 1}, {2, 0},
                                                       {2, 0}, {2, 1}, {2, 1}};
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    SCOPED_TRACE(cut);
    const Bytes some(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    const auto error = first_error(some);
    const auto at = std::ranges::find(ends, cut);
    if (at == ends.end()) {
      ASSERT_TRUE(error);
      EXPECT_NE(error->field, "layout.member_count");
    } else if (at - ends.begin() == 6) {
      EXPECT_FALSE(error) << "a shorter stream";
    } else {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->field, "layout.member_count");
      const auto& counts = torn[static_cast<std::size_t>(at - ends.begin())];
      EXPECT_EQ(error->expected, counts[0]);
      EXPECT_EQ(error->found, counts[1]);
    }
    EXPECT_TRUE(!error || error->code == Errc::truncated);
  }
  const Bytes some(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(ends[4]));
  EXPECT_EQ(first_error(some)->detail, "inside members[1].members[0]");
}

TEST(CompositeStream, PermissiveTakesTheMembersOfATornCompositeAlone) {
  const Bytes bytes = stream_of(nested());
  const auto ends = frame_ends(bytes);
  // Outer: a tensor and inner; inner: the grid, whole, and a tensor that is missing.
  const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(ends[5]));
  EXPECT_EQ(first_error(cut)->found, 1u);
  auto items = reader(cut, {.permissive = true});
  const auto tensor = items.next_item();
  ASSERT_TRUE(tensor && *tensor);
  EXPECT_FALSE((*tensor)->is_composite());
  ASSERT_TRUE(items.torn());
  EXPECT_EQ(items.torn()->expected, 2u);
  EXPECT_EQ(items.torn()->found, 1u);
  const auto whole = items.next_item();
  ASSERT_TRUE(whole && *whole);
  expect_equal(**whole, grid());
  EXPECT_FALSE(*items.next_item());

  auto frames = reader(cut, {.permissive = true});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(*frames.next());
  EXPECT_FALSE(frames.torn());
  const auto end = frames.next();
  ASSERT_TRUE(end && !*end);
  EXPECT_TRUE(frames.torn());
  // A member that is cut off is an error in both modes.
  EXPECT_EQ(
      first_error(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(ends[4] - 1)),
                  {.permissive = true})
          ->code,
      Errc::truncated);
  // So is the rest after a close.
  auto closed = reader(cut, {.permissive = true});
  ASSERT_TRUE(*closed.next_item());
  closed.close();
  EXPECT_FALSE(*closed.next_item());
}

TEST(CompositeStream, ItemsAfterAHeadAreItsMembers) {
  const Bytes bytes = stream_of(nested());
  auto items = reader(bytes);
  ASSERT_TRUE(*items.next());
  EXPECT_FALSE((*items.next_item())->is_composite());
  const auto inner = items.next_item();
  ASSERT_TRUE(inner && *inner);
  EXPECT_EQ((*inner)->members.size(), 2u);
  EXPECT_FALSE(*items.next_item());
}

TEST(CompositeStream, MembersAreJudgedBeforeTheirDataIsWaitedFor) {
  const Bytes wrong = frame(part({2, 4}, {0, 0}, {2, 3}));  // its six bytes never come
  EXPECT_EQ(sentence(frame(head(partition, 1, {2, 3})) + wrong),
            "members[0].shard.parent_shape: expected 3 as the head's size, found 4 (inconsistent); "
            "this descriptor begins at byte 53 of the stream");
  EXPECT_EQ(first_error(frame(head(partition, 1, {2, 3})) + wrong)->origin, Origin::descriptor);
  Descriptor inner = head(partition, 1, {2, 3});
  EXPECT_EQ(sentence(frame(head(group, 1, {})) + frame(inner) + wrong),
            "members[0].shard.parent_shape: expected 3 as the head's size, found 4 (inconsistent); "
            "this descriptor begins at byte 90 of the stream, inside members[0]");
}

TEST(CompositeStream, ClosingRulesAtTheLastMember) {
  const Bytes top = frame(head(partition, 2, {3}));
  const Bytes first = frame(part({3}, {0}, {2}), hex("01 02"));
  const Bytes overlap = top + first + frame(part({3}, {1}, {2}), hex("03 04"));
  EXPECT_EQ(sentence(overlap),
            "members[1].shard.shard_offset: the boxes overlap: an earlier member holds some of the "
            "same elements (inconsistent); this descriptor begins at byte " +
                std::to_string(top.size() + first.size()) + " of the stream");
  auto frames = reader(overlap);
  ASSERT_TRUE(*frames.next());
  ASSERT_TRUE(*frames.next()) << "the members before it have been handed out";
  EXPECT_FALSE(frames.next());
  const Bytes gap = top + first + frame(part({3}, {2}, {0}));
  EXPECT_EQ(first_error(gap)->found, 2u);
  EXPECT_EQ(sentence(overlap, {.permissive = true}), "");
  auto items = reader(overlap, {.permissive = true});
  const auto item = items.next_item();
  ASSERT_TRUE(item && *item);
  EXPECT_FALSE(materialize(**item)) << "what permissive mode lets through is never interpreted";
}

TEST(CompositeStream, Depth) {
  Bytes bytes;
  for (int i = 0; i < 64; ++i) bytes = bytes + frame(head(group, 1, {}));
  bytes = bytes + frame(int8({}), hex("01"));
  const auto error = first_error(bytes);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::limit_exceeded);
  EXPECT_EQ(error->origin, Origin::stream);
  EXPECT_EQ(error->expected, 8u);
  EXPECT_EQ(error->found, 9u);
  EXPECT_EQ(error->offset, 8u * 37);
  EXPECT_EQ(first_error(bytes, {.max_composite_depth = 63})->found, 64u);
  EXPECT_FALSE(first_error(bytes, {.max_composite_depth = 64}));
  EXPECT_TRUE(first_error(frame(head(group, 1, {})) + bytes, {.max_composite_depth = 65}));
}

TEST(CompositeStream, AHugeMemberCountIsALimitOrTorn) {
  const Bytes hostile = frame(head(group, 0xFFFFFFFE, {}));
  ASSERT_EQ(hostile.size(), 37u);
  const auto limited = first_error(hostile);
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->code, Errc::limit_exceeded);
  EXPECT_EQ(limited->origin, Origin::stream);
  EXPECT_EQ(limited->field, "layout.member_count");
  EXPECT_EQ(limited->expected, 1u << 20);
  const auto torn = first_error(hostile, {.max_item_members = ~std::uint64_t{0}});
  ASSERT_TRUE(torn);
  EXPECT_EQ(torn->code, Errc::truncated);
  EXPECT_EQ(torn->expected, 0xFFFFFFFEu);
  EXPECT_EQ(torn->found, 0u);
  const Bytes two =
      frame(head(group, 2, {})) + frame(head(group, 0, {})) + frame(head(group, 1, {}));
  EXPECT_EQ(first_error(two, {.max_item_members = 2})->found, 3u);
}

TEST(CompositeStream, AnUnknownLayoutEndsTheStreamInBothModes) {
  Bytes unknown = frame(int8({1}), hex("07"));
  unknown[15] = std::byte{0x30};
  for (const bool permissive : {false, true}) {
    const auto error = first_error(worked + unknown + worked, {.permissive = permissive});
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Errc::invalid_tag);
    EXPECT_EQ(error->field, "layout_tag");
    EXPECT_EQ(error->found, 0x30u);
    EXPECT_NE(error->detail.find("begins at byte 100 of the stream"), std::string::npos);
  }
}

// -------------------------------------------------------------------------------------------
// writing streams

TEST(CompositeStreamWriter, NothingTornOrInconsistentIsFinished) {
  auto writer = StreamWriter::in_memory();
  ASSERT_EQ(failure(writer->write(head(partition, 2, {3}), {})), "");
  const Error torn = error_of(writer->finish());
  EXPECT_EQ(torn.code, Errc::invalid_state);
  EXPECT_EQ(torn.origin, Origin::stream);
  EXPECT_EQ(torn.expected, 2u);
  EXPECT_EQ(torn.found, 0u);
  const Bytes data(3);
  const auto write = [&](const Descriptor& d) {
    const std::span<const std::byte> all(data);
    const BufferSource source(all.first(d.buffers[0].byte_size));
    return writer->write(d, {&source, 1});
  };
  const std::size_t before = writer->bytes().size();
  EXPECT_EQ(error_of(write(int8({2}))).field, "members[].shard");
  ASSERT_EQ(failure(write(part({3}, {0}, {2}))), "");
  EXPECT_EQ(error_of(write(part({3}, {1}, {2}))).field, "members[].shard.shard_offset");
  EXPECT_EQ(error_of(write(part({3}, {1}, {1}))).code, Errc::inconsistent) << "an overlap";
  EXPECT_EQ(error_of(write(part({3}, {2}, {0}))).field, "members[].shape") << "L21";
  EXPECT_EQ(writer->bytes().size(), before + frame(part({3}, {0}, {2})).size() + 2);
  EXPECT_FALSE(writer->finish());
  ASSERT_EQ(failure(write(part({3}, {2}, {1}))), "") << "refusals leave it usable";
  ASSERT_EQ(failure(writer->finish()), "");
  EXPECT_FALSE(first_error({writer->bytes().begin(), writer->bytes().end()}));
}

TEST(CompositeStreamWriter, ATreeIsJudgedBeforeTheFirstByte) {
  auto writer = StreamWriter::in_memory();
  Item spoiled = nested();
  spoiled.members[1].members[0].members.pop_back();
  const Error error = error_of(writer->write_item(spoiled));
  EXPECT_EQ(error.field, "members[].layout.member_count");
  EXPECT_EQ(error.detail, "inside members[1]");
  EXPECT_TRUE(writer->bytes().empty());
  Item deep{tensor_of(int8({}))};
  for (int i = 0; i < 9; ++i) deep = *compose(group, CombineOp::none, {}, DType::int8, {deep});
  EXPECT_EQ(error_of(writer->write_item(deep)).code, Errc::limit_exceeded);
  EXPECT_TRUE(writer->bytes().empty());
  EXPECT_EQ(failure(writer->write_item(deep.members[0])), "");
  ASSERT_EQ(failure(writer->finish()), "");
  EXPECT_EQ(error_of(writer->write_item(deep.members[0])).code, Errc::invalid_state);
}

TEST(CompositeStreamWriter, CrossMachineHoldsForMembers) {
  Descriptor d = dense(DType::float32, {2}, 8);
  d.buffers[0].device = Device::cuda;
  d.buffers[0].sync_mode = SyncMode::event;
  const auto item =
      compose(group, CombineOp::none, {}, DType::int8, {{tensor_of(int8({1}))}, {tensor_of(d)}});
  ASSERT_TRUE(item);
  auto writer = StreamWriter::in_memory({.cross_machine = true});
  EXPECT_EQ(field_name(error_of(writer->write_item(*item))), "buffers[0].sync_mode");
  EXPECT_TRUE(writer->bytes().empty());
  auto local = StreamWriter::in_memory();
  EXPECT_EQ(failure(local->write_item(*item)), "");
}

TEST(CompositeStreamWriter, OtherMemoryIsBroughtToTheHostFirst) {
  Descriptor d = int8({1});
  d.buffers[0].device = Device::cuda;
  const auto away = bind(d, {*Buffer::allocate(1)}, {.memory_device = Device::cuda});
  ASSERT_TRUE(away);
  const auto item = compose(group, CombineOp::none, {}, DType::int8, {{*away}});
  ASSERT_TRUE(item);
  auto writer = StreamWriter::in_memory();
  EXPECT_EQ(error_of(writer->write_item(*item)).code, Errc::unsupported);
  EXPECT_TRUE(writer->bytes().empty());
  const TemporaryFolder folder;
  auto file = create(folder / "a.hrry", plain());
  const Error error = error_of(file.write_item("x", *item));
  EXPECT_EQ(error.code, Errc::unsupported);
  EXPECT_EQ(error.tensor, "x.0");
}

TEST(CompositeStreamWriter, ItemsMayBeMembersOfAnOpenHead) {
  auto writer = StreamWriter::in_memory();
  ASSERT_EQ(failure(writer->write(head(group, 2, {}), {})), "");
  ASSERT_EQ(failure(writer->write_item({tensor_of(int8({1}))})), "");
  ASSERT_EQ(failure(writer->write_item(nested().members[1])), "");
  ASSERT_EQ(failure(writer->finish()), "");
  EXPECT_EQ((Bytes{writer->bytes().begin(), writer->bytes().end()}), stream_of(nested()));
}

TEST(CompositeStreamWriter, OverAPathATornStreamDoesNotAppear) {
  const TemporaryFolder folder;
  {
    auto writer = StreamWriter::create(folder / "s", {.sync = false});
    ASSERT_EQ(failure(writer->write(head(group, 1, {}), {})), "");
    EXPECT_FALSE(writer->finish());
  }
  EXPECT_TRUE(folder.names().empty());
  auto writer = StreamWriter::create(folder / "s", {.sync = false});
  ASSERT_EQ(failure(writer->write_item(grid())), "");
  ASSERT_EQ(failure(writer->finish()), "");
  auto items = StreamReader::open(folder / "s");
  ASSERT_TRUE(items);
  const auto item = items->next_item();
  ASSERT_EQ(failure(item), "");
  expect_equal(**item, grid());
}

// -------------------------------------------------------------------------------------------
// files

File open(const std::string& path, const OpenOptions& options = {}) {
  auto file = File::open(path, options);
  EXPECT_EQ(failure(file), "");
  return *std::move(file);
}

std::vector<std::string> names(const File& file) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < file.size(); ++i) all.emplace_back(file.entry(i).name);
  return all;
}

/// The owners by name, "-" for none, in index order.
std::vector<std::string> owners(const File& file) {
  const auto found = file.owners();
  EXPECT_EQ(failure(found), "");
  std::vector<std::string> text;
  for (const auto& owner : *found)
    text.push_back(owner ? std::string(file.entry(*owner).name) : "-");
  return text;
}

/// The second vector of 04-file.md section 14, byte for byte.
TEST(CompositeFile, GridIsWrittenWhereTheFormatPutsIt) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.sorted_index = true;
  auto writer = create(folder / "a.hrry", options);
  ASSERT_TRUE(write_sparse_and_empty(writer));
  ASSERT_EQ(failure(writer.write_item("grid", grid())), "");
  ASSERT_EQ(failure(writer.finish()), "");
  const Image image{read_bytes(folder / "a.hrry")};
  EXPECT_EQ(image.bytes.size(), 24832u);
  EXPECT_EQ(image.get<std::uint32_t>(image.trailer() + 28), 0x456BB112u);
  const File file = open(folder / "a.hrry");
  const Entry entry = file.entry(0);
  EXPECT_EQ(entry.name, "grid");
  EXPECT_EQ(entry.descriptor_offset, 16384u);
  EXPECT_EQ(entry.data_offset, 16440u);
  EXPECT_EQ(entry.data_length, 0u);
}

TEST(CompositeFile, EveryModeAndAlignmentGivesTheTreeBack) {
  const TemporaryFolder folder;
  for (const std::uint32_t alignment : {4096u, 65536u}) {
    WriteOptions options;
    options.sync = false;
    options.alignment = alignment;
    options.tensor_count = 8;
    auto writer = create(folder / "a.hrry", options);
    ASSERT_EQ(failure(writer.write_item("t", {tensor_of(int8({1}))})), "");
    ASSERT_EQ(failure(writer.write_item("top", nested())), "");
    ASSERT_EQ(failure(writer.finish()), "");
    for (const ModeInfo& mode : modes) {
      OpenOptions how;
      how.mode = mode.tag;
      const File file = open(folder / "a.hrry", how);
      EXPECT_EQ(names(file), (std::vector<std::string>{"t", "top", "top.0", "top.1", "top.1.0",
                                                       "top.1.0.0", "top.1.0.1", "top.1.1"}));
      EXPECT_EQ(owners(file), (std::vector<std::string>{"-", "-", "top", "top", "top.1", "top.1.0",
                                                        "top.1.0", "top.1"}));
      const auto item = file.item("top");
      ASSERT_EQ(failure(item), "");
      expect_equal(*item, nested());
      const auto inner = file.item("top.1.0");
      ASSERT_EQ(failure(inner), "") << "a walk may start at a nested head";
      expect_equal(*inner, grid());
      EXPECT_FALSE(file.item("t")->is_composite());
      const auto alone = file.tensor(*file.find("top.1.0.1"));
      ASSERT_EQ(failure(alone), "");
      EXPECT_EQ(alone->descriptor().shard()->shard_offset()[1], 1u);
    }
  }
}

TEST(CompositeFile, MembersAreFoundByPositionWhateverTheIndexOrder) {
  const TemporaryFolder folder;
  WriteOptions options = plain();
  options.sorted_index = true;
  auto writer = create(folder / "a.hrry", options);
  const std::vector<std::string> given{"d", "a", "g", "c", "b", "f"};
  ASSERT_EQ(failure(writer.write_item("e", nested(), given)), "");
  ASSERT_EQ(failure(writer.finish()), "");
  const File file = open(folder / "a.hrry");
  EXPECT_EQ(names(file), (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g"}));
  // e: d, a (g (c, b), f)
  EXPECT_EQ(owners(file), (std::vector<std::string>{"e", "g", "g", "e", "-", "a", "a"}));
  expect_equal(*file.item("e"), nested());
  expect_equal(*file.item("g"), grid());
}

TEST(CompositeFile, NamesAreJudgedBeforeTheFirstByte) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  ASSERT_EQ(failure(writer.write_item("grid.1", {tensor_of(int8({1}))})), "");
  const Error clash = error_of(writer.write_item("grid", grid()));
  EXPECT_EQ(clash.code, Errc::duplicate);
  EXPECT_EQ(clash.tensor, "grid.1");
  const auto refuse = [&](std::vector<std::string> given, std::string_view field, Errc code) {
    const Error error = error_of(writer.write_item("grid", grid(), given));
    EXPECT_EQ(error.field, field);
    EXPECT_EQ(error.code, code);
  };
  refuse({"x", "x"}, "name", Errc::duplicate);
  refuse({"x", "grid"}, "name", Errc::duplicate);
  refuse({"x", ""}, "name", Errc::invalid_value);
  refuse({"x", "\xFF"}, "name", Errc::invalid_value);
  refuse({"x"}, "member_names", Errc::invalid_value);
  refuse({"x", "y", "z"}, "member_names", Errc::invalid_value);
  Item spoiled = grid();
  spoiled.members[1] = {tensor_of(part({2, 3}, {0, 2}, {2, 1}))};
  const Error gap = error_of(writer.write_item("bad", spoiled));
  EXPECT_EQ(gap.field, "members");
  EXPECT_EQ(gap.tensor, "bad.1");
  ASSERT_EQ(failure(writer.write_item("grid", grid(), std::vector<std::string>{"x", "y"})), "");
  ASSERT_EQ(failure(writer.write_item("bad", grid())), "") << "the name stayed free";
  ASSERT_EQ(failure(writer.finish()), "");
  const File file = open(folder / "a.hrry");
  EXPECT_EQ(names(file),
            (std::vector<std::string>{"grid.1", "grid", "x", "y", "bad", "bad.0", "bad.1"}));
  expect_equal(*file.item("grid"), grid());

  {
    WriteOptions counted = plain();
    counted.tensor_count = 2;
    auto few = create(folder / "b.hrry", counted);
    EXPECT_EQ(error_of(few.write_item("grid", grid())).field, "tensor_count");
  }
}

TEST(CompositeFile, ItemsAreCheckedWithoutBeingWritten) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  const std::vector<std::string> names{"x", "y"}, twice{"x", "x"}, one{"x"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(failure(writer.check_item("grid", grid())), "");
    EXPECT_EQ(failure(writer.check_item("grid", grid(), names)), "");
  }
  EXPECT_EQ(error_of(writer.check_item("grid", grid(), twice)).code, Errc::duplicate);
  EXPECT_EQ(error_of(writer.check_item("grid", grid(), one)).field, "member_names");
  Item spoiled = grid();
  spoiled.members.pop_back();
  EXPECT_EQ(error_of(writer.check_item("bad", spoiled)).field, "layout.member_count");
  ASSERT_EQ(failure(writer.write_item("grid", grid())), "");
  EXPECT_EQ(failure(writer.check_item("x", {tensor_of(int8({1}))})), "");
  EXPECT_EQ(error_of(writer.check_item("grid", grid())).code, Errc::duplicate);
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(error_of(writer.check_item("more", grid())).code, Errc::invalid_state);
  EXPECT_EQ(open(folder / "a.hrry").size(), 3u);
}

TEST(CompositeFile, NamesOfMembers) {
  EXPECT_EQ(
      member_names("top", nested()),
      (std::vector<std::string>{"top.0", "top.1", "top.1.0", "top.1.0.0", "top.1.0.1", "top.1.1"}));
  EXPECT_TRUE(member_names("t", {tensor_of(int8({1}))}).empty());
}

TEST(CompositeFile, NothingTornIsFinished) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  ASSERT_EQ(failure(writer.write("g", head(partition, 2, {2, 3}), {})), "");
  EXPECT_EQ(error_of(writer.finish()).code, Errc::invalid_state);
  EXPECT_EQ(error_of(write(writer, "x", int8({1}), {Bytes(1)})).field, "members[].shard");
  EXPECT_EQ(error_of(writer.check("x", int8({1}), {})).field, "buffer_count");
  const Bytes data(1);
  const BufferSource source{std::span<const std::byte>(data)};
  EXPECT_EQ(error_of(writer.check("x", int8({1}), {&source, 1})).field, "members[].shard");
  ASSERT_EQ(failure(write(writer, "x", part({2, 3}, {0, 0}, {2, 1}), {Bytes(2)})), "");
  EXPECT_EQ(error_of(write(writer, "y", part({2, 3}, {0, 1}, {2, 1}), {Bytes(2)})).field,
            "members");
  ASSERT_EQ(failure(write(writer, "y", part({2, 3}, {0, 1}, {2, 2}), {Bytes(4)})), "");
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(owners(open(folder / "a.hrry")), (std::vector<std::string>{"-", "g", "g"}));
}

/// A file of `t` and `grid`, to be spoiled.
Image with_grid() {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  EXPECT_EQ(failure(writer.write_item("t", {tensor_of(int8({1}), hex("07"))})), "");
  EXPECT_EQ(failure(writer.write_item("grid", grid())), "");
  EXPECT_EQ(failure(writer.finish()), "");
  return {read_bytes(folder / "a.hrry")};
}

std::size_t descriptor_of(const Image& image, std::size_t entry) {
  return static_cast<std::size_t>(image.get<std::uint64_t>(image.entry(entry)));
}

TEST(CompositeFile, OwnersReadTheDescriptorsOfHeadsAlone) {
  const TemporaryFolder folder;
  Image image = with_grid();
  // "t" and the members of "grid" become nobody's descriptors; their data_length says what counts.
  for (const std::size_t entry : {0u, 2u, 3u})
    image.set<std::uint32_t>(descriptor_of(image, entry), 0x3F3F3F3F);
  write_bytes(folder / "a.hrry", image.bytes);
  const File file = open(folder / "a.hrry");
  EXPECT_EQ(owners(file), (std::vector<std::string>{"-", "-", "grid", "grid"}));
  EXPECT_FALSE(file.item("grid"));
}

TEST(CompositeFile, Row28) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.hrry";
  struct Row {
    std::string_view what;
    std::size_t entry;
    std::size_t at;  ///< In its descriptor.
    std::uint32_t value;
    std::string_view field;
    Errc code;
  };
  // Head: rank 2, layout fields at 44, its count at 48. Members: shard behind one buffer, at 61.
  for (const Row& row :
       {Row{"torn", 1, 48, 3, "layout.member_count", Errc::truncated},
        Row{"hostile", 1, 48, 0xFFFFFFFE, "layout.member_count", Errc::truncated},
        Row{"gap", 1, 48, 1, "members", Errc::inconsistent},
        Row{"overlap", 3, 61 + 24, 0, "members[].shard.shard_offset", Errc::inconsistent},
        Row{"other parent", 2, 61 + 8, 4, "members[].shard.parent_shape", Errc::inconsistent},
        Row{"other type", 1, 14, 0x0B11, "members[].type_tag", Errc::inconsistent}}) {
    SCOPED_TRACE(row.what);
    Image image = with_grid();
    const std::size_t at = descriptor_of(image, row.entry) + row.at;
    if (row.at == 14)
      image.set(at, static_cast<std::uint16_t>(row.value));
    else
      image.set(at, row.value);
    write_bytes(path, image.bytes);
    const File file = open(path);
    const Error error = error_of(file.item("grid"));
    EXPECT_EQ(error.field, row.field);
    EXPECT_EQ(error.code, row.code) << to_string(error);
    EXPECT_EQ(error.tensor, "grid");
    // Everything else stays readable.
    for (std::size_t i = 0; i < file.size(); ++i) EXPECT_EQ(failure(file.tensor(i)), "");
    EXPECT_EQ(failure(file.item("t")), "");
    EXPECT_EQ(owners(file)[0], "-");
  }
}

TEST(CompositeFile, TornHeadsSayWhatIsMissing) {
  const TemporaryFolder folder;
  Image image = with_grid();
  image.set<std::uint32_t>(descriptor_of(image, 1) + 48, 3);
  write_bytes(folder / "a.hrry", image.bytes);
  const File file = open(folder / "a.hrry");
  EXPECT_EQ(to_string(error_of(file.item("grid"))),
            file.path() +
                ": tensor \"grid\": layout.member_count: expected at least 3 tensors behind the "
                "head (torn composite), found 2 (truncated); its members can be read one by one");
  EXPECT_EQ(owners(file), (std::vector<std::string>{"-", "-", "-", "-"}));
  OpenOptions permissive;
  permissive.permissive = true;
  const File lenient = open(folder / "a.hrry", permissive);
  EXPECT_EQ(owners(lenient), (std::vector<std::string>{"-", "-", "-", "-"}));
  EXPECT_FALSE(lenient.item("grid")) << "the composite never";
  EXPECT_EQ(failure(lenient.item("grid.1")), "");
}

TEST(CompositeFile, DepthIsAnOption) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", plain());
  Item deep{tensor_of(int8({}))};
  for (int i = 0; i < 9; ++i) deep = *compose(group, CombineOp::none, {}, DType::int8, {deep});
  const Error refused = error_of(writer.write_item("deep", deep));
  EXPECT_EQ(refused.code, Errc::limit_exceeded);
  EXPECT_EQ(refused.tensor, "deep.0.0.0.0.0.0.0.0");
  ASSERT_EQ(failure(writer.write_item("deep", deep.members[0])), "");
  ASSERT_EQ(failure(writer.finish()), "");
  EXPECT_EQ(failure(open(folder / "a.hrry").item("deep")), "");
  OpenOptions shallow;
  shallow.max_composite_depth = 7;
  const File file = open(folder / "a.hrry", shallow);
  const Error error = error_of(file.item("deep"));
  EXPECT_EQ(error.code, Errc::limit_exceeded);
  EXPECT_EQ(error.expected, 7u);
  EXPECT_EQ(failure(file.item("deep.0")), "");
  EXPECT_EQ(owners(file).back(), "deep.0.0.0.0.0.0.0");
}

TEST(CompositeFile, AMemberThatDoesNotDecodeFailsItsCompositeAlone) {
  const TemporaryFolder folder;
  Image image = with_grid();
  image.set<std::uint8_t>(descriptor_of(image, 2) + 14, 0);
  write_bytes(folder / "a.hrry", image.bytes);
  const File file = open(folder / "a.hrry");
  const Error error = error_of(file.item("grid"));
  EXPECT_EQ(error.field, "type_tag");
  EXPECT_EQ(error.tensor, "grid.0");
  EXPECT_EQ(failure(file.tensor(3)), "");
  EXPECT_EQ(owners(file), (std::vector<std::string>{"-", "-", "grid", "grid"}));
}

/// Row 25: the buffer table of an unknown layout cannot be found.
TEST(CompositeFile, AnUnknownLayoutOffersItsRegion) {
  const TemporaryFolder folder;
  Image image = with_grid();
  image.set<std::uint8_t>(descriptor_of(image, 0) + 15, 0x30);
  write_bytes(folder / "a.hrry", image.bytes);
  EXPECT_EQ(error_of(open(folder / "a.hrry").tensor(0)).code, Errc::invalid_tag);
  for (const ModeInfo& mode : modes) {
    OpenOptions permissive;
    permissive.permissive = true;
    permissive.mode = mode.tag;
    const File file = open(folder / "a.hrry", permissive);
    const auto tensor = file.tensor(0);
    ASSERT_EQ(failure(tensor), "");
    EXPECT_TRUE(tensor->buffers().empty());
    EXPECT_TRUE(opaque(tensor->descriptor()));
    const auto region = file.raw_bytes(0);
    ASSERT_EQ(failure(region), "");
    EXPECT_EQ((Bytes{region->bytes().begin(), region->bytes().end()}), hex("07"));
    EXPECT_EQ(file.raw_bytes(1)->size(), 0u);
  }
}

}  // namespace
}  // namespace hurray::io
