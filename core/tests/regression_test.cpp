// Faults that were found once, each as a test of its whole kind.
#include <gtest/gtest.h>

#include "hurray/tensor.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

TEST(Regression, ListsOfTheWrongLengthAreErrorsAtEveryRank) {
  for (std::size_t rank = 0; rank < 12; ++rank)
    for (std::size_t entries = 0; entries < 12; ++entries) {
      Descriptor d = dense(DType::uint8, {});
      d.shape.resize(rank);
      for (auto& n : d.shape) n = 1;
      d.buffers = {handle(1)};
      const std::vector<std::uint64_t> ones(entries, 1), zeros(entries, 0);
      d.set_shard(Shard(ones, zeros));
      EXPECT_EQ(static_cast<bool>(encode(d)), rank == entries) << rank << " " << entries;
      EXPECT_EQ(static_cast<bool>(bind(d, {*Buffer::allocate(1)})), rank == entries);
      if (rank == 0) continue;
      d.set_shard({});
      Strided strided;
      strided.strides.resize(entries);
      d.layout = strided;
      EXPECT_EQ(static_cast<bool>(encode(d)), rank == entries);
      EXPECT_EQ(static_cast<bool>(required_bytes(d, 0)), rank == entries);
    }
}

TEST(Regression, ANewerMinorVersionBecomesATensor) {
  Descriptor d = dense(DType::float32, {2});
  d.version.minor = 1;
  EXPECT_TRUE(validate(d));
  const auto t = bind(d, {*Buffer::allocate(8)});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().version.minor, 1);
  EXPECT_EQ(encode(t->wire_descriptor()).error().field, "version_minor");
}

// Cut at every length, with the length fixed, so that every field in turn is the one that is
// missing.
TEST(Regression, ACutWithAFixedLengthIsTruncatedAtItsField) {
  for (const Vector& v : read_vectors("valid/descriptor"))
    for (std::size_t n = 20; n < v.bytes.size(); ++n) {
      Bytes cut(v.bytes.begin(), v.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      detail::store(cut.data() + 6, static_cast<std::uint32_t>(n));
      const auto d = decode(cut, {.agreed = {.all = true}});
      ASSERT_FALSE(d) << v.path << " cut to " << n;
      EXPECT_EQ(d.error().code, Errc::truncated)
          << v.path << " cut to " << n << ": " << to_string(d.error());
    }
}

TEST(Regression, RulesAreJudgedInWireOrder) {
  // nnz above the element count, and a reserved byte after it that is not 0.
  EXPECT_EQ(decode(hex("4852525901004e0000000000000016070200000004000000000000000100000000000000"
                       "00000000000000000500000000000000000000000000004003280000000000000000200000"
                       "fe00000028"))
                .error()
                .field,
            "layout.nnz");
  // statistics.nnz differs from the layout's, and the section is cut after it.
  EXPECT_EQ(decode(hex("4852525901006d000000080000000407020000000200000000000000030000000000000000"
                       "00000000000000020000000000000000000000000000000210000000000000000002000000"
                       "000000100000000000000000100000000000001d000000000000000000000000000000"),
                   {.cross_machine = true})
                .error()
                .field,
            "statistics.nnz");
}

TEST(Regression, RelayingNeverRepeatsASizeThatIsNotThere) {
  for (const std::uint32_t alignment : {1u, 3u, 64u, 4096u})
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
      Descriptor d = dense(DType::float32, {1});
      d.buffers = {{.byte_size = size,
                    .alignment = alignment,
                    .device = Device::cuda,
                    .sync_mode = SyncMode::event,
                    .memory_class = MemoryClass::unified}};
      const auto t = bind(d, {*Buffer::allocate(4)});
      ASSERT_TRUE(t) << to_string(t.error());
      const Descriptor wire = t->wire_descriptor();
      EXPECT_TRUE(validate(wire));
      EXPECT_EQ(wire.buffers[0].byte_size, 4u);
      EXPECT_EQ(wire.buffers[0].alignment, alignment < 64 ? 64u : alignment);
    }
}

TEST(Regression, ValuesSurviveAssignmentFromTheirOwnParts) {
  for (const std::size_t size : {3u, 8u, 20u}) {
    Shape s;
    s.resize(size);
    for (std::size_t i = 0; i < size; ++i) s[i] = i;
    s.assign(std::span<const std::uint64_t>(s.data() + 1, size - 1));
    ASSERT_EQ(s.rank(), size - 1);
    for (std::size_t i = 0; i + 1 < size; ++i) EXPECT_EQ(s[i], i + 1);
  }
}

TEST(Regression, AMovedFromBufferIsEmpty) {
  Buffer a = *Buffer::allocate(64);
  Buffer b = std::move(a);
  EXPECT_EQ(a.size(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(b.size(), 64u);
  a = b;
  b = std::move(a);
  EXPECT_EQ(b.size(), 64u);
  EXPECT_EQ(b.use_count(), 1);
}

TEST(Regression, NoMemoryIsNotAlignedMemory) {
  EXPECT_EQ(measure_alignment(nullptr, 100), 1u);
  const auto nowhere = Buffer::borrow(nullptr, 100, std::shared_ptr<Owner>(), false);
  EXPECT_FALSE(bind(dense(DType::uint8, {100}), {nowhere}));
}

TEST(Regression, ManyBuffersAreRefusedWithTheLimit) {
  const auto t = bind(dense(DType::uint8, {1}), std::vector<Buffer>(256));
  EXPECT_EQ(t.error().field, "buffer_count");
  Descriptor d = dense(DType::uint8, {1});
  d.buffers = {};
  EXPECT_EQ(bind(d, std::vector<Buffer>(256)).error().expected, 255u);
}

}  // namespace
}  // namespace hurray::testing
