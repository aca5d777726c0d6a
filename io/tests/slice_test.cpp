#include "hurray/io/slice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "../../core/tests/dense_support.hpp"
#include "file_support.hpp"

namespace hurray::io {
namespace {

using testing::bit;

Mode any_mode(std::mt19937& random) { return modes[testing::pick(random, modes.size())].tag; }

bool ambiguous(const Tensor& tensor) { return ambiguous_bool(tensor.descriptor()); }

TEST(Slice, EveryDenseLayoutAndWidthInEveryMode) {
  std::mt19937 random(7);
  const TemporaryFolder folder;
  for (int round = 0; round < 60; ++round) {
    WriteOptions write_options = plain();
    write_options.checksums = round % 2 == 0;
    std::vector<Tensor> tensors;
    {
      auto writer = create(folder / "t.hrry", write_options);
      while (tensors.size() < 25) {
        Descriptor d = testing::random_dense(random);
        testing::set_width(d, testing::widths[testing::pick(random, std::size(testing::widths))]);
        Tensor tensor = testing::filled(d, random);
        if (ambiguous(tensor)) continue;
        const auto sources = sources_of(tensor);
        ASSERT_EQ(
            failure(writer.write(std::to_string(tensors.size()), tensor.descriptor(), *sources)),
            "");
        tensors.push_back(std::move(tensor));
      }
      ASSERT_EQ(failure(writer.finish()), "");
    }
    OpenOptions open;
    open.mode = any_mode(random);
    const auto file = File::open(folder / "t.hrry", open);
    ASSERT_EQ(failure(file), "");
    for (const Tensor& tensor : tensors) {
      const std::size_t i = static_cast<std::size_t>(&tensor - tensors.data());
      for (int k = 0; k < 4; ++k) {
        const Selection selection = testing::random_selection(tensor.descriptor().shape, random);
        const std::vector<bool> expected = testing::selected_bits(tensor, selection);
        const auto slice = file->slice(i, selection);
        ASSERT_EQ(failure(slice), "");
        const std::uint64_t width = element_bits(tensor.descriptor());
        ASSERT_EQ(slice->descriptor().shape.count() * width, expected.size());
        const SliceOptions options{.verify = testing::pick(random, 2) == 0,
                                   .share = testing::pick(random, 2) == 0};
        const auto read = slice->read(options);
        ASSERT_EQ(failure(read), "");
        Bytes out(slice->size_bytes(), std::byte{0xFF});
        ASSERT_EQ(failure(slice->read_into(out, options)), "");
        const auto expect = [&](std::span<const std::byte> bytes, bool bits_behind) {
          ASSERT_EQ(bytes.size(), slice->size_bytes());
          for (std::uint64_t b = 0; b < 8 * bytes.size(); ++b)
            if (b < expected.size() || !bits_behind) {
              ASSERT_EQ(bit(bytes, b), b < expected.size() && expected[b])
                  << "bit " << b << ", round " << round << ", " << name(tensor.descriptor().layout);
            }
        };
        // A view has what the file has behind the last element.
        expect(read->buffer(0).bytes(), options.share && slice->shareable());
        expect(out, false);
        ASSERT_EQ(read->descriptor().shape, slice->descriptor().shape);
        ASSERT_TRUE(std::holds_alternative<RowMajor>(read->descriptor().layout));
      }
    }
  }
}

/// float32 `x` of 512 x 1024 (2 MiB), and 3 numbers `y` with per-tensor quantization.
class Matrix : public ::testing::Test {
 protected:
  static constexpr std::uint64_t rows = 512, columns = 1024, row = columns * 4;

  void SetUp() override {
    values.resize(rows * row);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    auto writer = create(path);
    ASSERT_EQ(
        failure(write(writer, "x", dense(DType::float32, {rows, columns}, rows * row), {values})),
        "");
    Descriptor scaled = dense(DType::uint8, {3}, 3);
    scaled.set_quantization(Quantization{PerTensorAffine{.scale = .5f, .zero_point = 3}, {}});
    scaled.set_statistics(Statistics{.computed_mask = 1, .nnz = 3});
    ASSERT_EQ(failure(write(writer, "y", scaled, {elements<std::uint8_t>({1, 2, 3})})), "");
    ASSERT_EQ(failure(write_sparse_and_empty(writer)), "");
    ASSERT_EQ(failure(writer.finish()), "");
  }
  static File open(Mode mode, std::string_view at) {
    OpenOptions options;
    options.mode = mode;
    auto file = File::open(std::string(at), options);
    EXPECT_EQ(failure(file), "");
    return *std::move(file);
  }

  TemporaryFolder folder;
  std::string path = folder / "m.hrry";
  Bytes values;
};

ReadCounts operator-(const ReadCounts& a, const ReadCounts& b) {
  return {a.bytes_wanted - b.bytes_wanted, a.bytes_read - b.bytes_read, a.requests - b.requests};
}

TEST_F(Matrix, WhatIsReadIsWhatIsWanted) {
  const File file = open(Mode::map, path);
  EXPECT_EQ(file.read_counts(), ReadCounts());
  const auto cost = [&](const Selection& selection, const SliceOptions& options = {}) {
    const ReadCounts before = file.read_counts();
    EXPECT_EQ(failure(file.slice("x", selection)->read(options)), "");
    return file.read_counts() - before;
  };
  // Rows on 64 are the mapping's.
  EXPECT_EQ(cost({{.start = 10, .stop = 300}}), ReadCounts());
  EXPECT_EQ(cost({{.start = 10, .stop = 300}}, {.share = false}),
            (ReadCounts{290 * row, 290 * row, 1}));
  // Columns: gaps of 3 KiB are read over.
  EXPECT_EQ(cost({{}, {.start = 0, .stop = 256}}),
            (ReadCounts{rows * 1024, (rows - 1) * row + 1024, 1}));
  // Whole chunks of 1 MiB.
  EXPECT_EQ(cost({{.start = 10, .stop = 11}}, {.verify = true}), (ReadCounts{0, 1 << 20, 1}));
  EXPECT_EQ(cost({{.start = 255, .stop = 257}}, {.verify = true, .share = false}),
            (ReadCounts{2 * row, 2 << 20, 1}));
  EXPECT_EQ(cost({Along::index(0), Along::index(1)}), (ReadCounts{4, 4, 1}));
  EXPECT_EQ(cost({{.start = 5, .stop = 5}}), ReadCounts());
}

TEST_F(Matrix, ViewsShareTheMappingAndNothingElse) {
  for (const Mode mode : {Mode::map, Mode::copy_on_write, Mode::memory}) {
    const File file = open(mode, path);
    const auto whole = file.tensor("x");
    const auto slice = file.slice("x", Selection{{.start = 3, .stop = 5}});
    EXPECT_EQ(slice->shareable(), mode != Mode::memory);
    const auto part = slice->read();
    ASSERT_EQ(failure(part), "");
    const bool shared = part->buffer(0).data() == whole->buffer(0).data() + 3 * row;
    EXPECT_EQ(shared, mode != Mode::memory);
    EXPECT_EQ(part->readonly(), mode == Mode::map);
    EXPECT_TRUE(
        std::ranges::equal(part->buffer(0).bytes(), std::span(values).subspan(3 * row, 2 * row)));
    EXPECT_FALSE(file.slice("x", Selection{Along::index(0), {.start = 1, .stop = 2}})->shareable());
  }
}

TEST_F(Matrix, WhatGoesAlong) {
  const File file = open(Mode::map, path);
  const auto slice = file.slice("y", Selection{{.start = 1}});
  ASSERT_EQ(failure(slice), "");
  ASSERT_NE(slice->descriptor().quantization(), nullptr);
  EXPECT_EQ(slice->descriptor().statistics(), nullptr);
  const auto read = slice->read();
  EXPECT_EQ(std::get<PerTensorAffine>(read->descriptor().quantization()->scheme).zero_point, 3);
  EXPECT_EQ(read->buffer(0).bytes()[1], std::byte{3});
}

TEST_F(Matrix, Refusals) {
  const File file = open(Mode::map, path);
  const auto refused = [&](std::string_view tensor, const Selection& selection) {
    const auto slice = file.slice(tensor, selection);
    return slice ? Error(hurray::Error{}) : slice.error();
  };
  EXPECT_EQ(refused("nothing", {}).code, Errc::not_found);
  EXPECT_EQ(refused("sp", {}).code, Errc::unsupported);
  EXPECT_EQ(refused("sp", {}).tensor, "sp");
  EXPECT_EQ(refused("x", {{}, {}, {}}).code, Errc::inconsistent);
  EXPECT_EQ(refused("x", {Along::index(rows)}).code, Errc::out_of_bounds);
  EXPECT_EQ(failure(file.slice(7, {})).empty(), false);
  Bytes out(7);
  const auto read = file.slice("y", {})->read_into(out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::length_mismatch);
  EXPECT_EQ(read.error().expected, 3u);
  OpenOptions options;
  options.max_tensor_bytes = 1000;
  const auto small = File::open(path, options);
  EXPECT_EQ(error_of(small->slice("x", Selection{{.stop = 1}})->read()).code, Errc::limit_exceeded);
  EXPECT_EQ(failure(small->slice("x", Selection{Along::index(1), {.stop = 250}})->read()), "");
}

TEST_F(Matrix, SpoiledChunksAreFoundWhereTheyAreAskedFor) {
  Bytes bytes = read_bytes(path);
  const std::size_t data = static_cast<std::size_t>(open(Mode::map, path).entry(0).data_offset);
  bytes[data + 300 * row] ^= std::byte{1};
  const ScratchFile spoiled(bytes);
  for (const Mode mode : {Mode::map, Mode::memory}) {
    const File file = open(mode, spoiled.path());
    const auto read = [&](std::uint64_t at, bool verify) {
      return file.slice("x", Selection{{.start = at, .stop = at + 1}})->read({.verify = verify});
    };
    EXPECT_EQ(failure(read(10, true)), "");
    EXPECT_EQ(failure(read(300, false)), "");
    const auto found = read(400, true);  // another row of the same chunk
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::checksum_mismatch);
    EXPECT_EQ(found.error().tensor, "x");
    EXPECT_NE(to_string(found.error()).find("bytes 1052672 to 2101247"), std::string::npos)
        << to_string(found.error());
    Bytes out(row, std::byte{7});
    EXPECT_FALSE(file.slice("x", Selection{Along::index(300)})->read_into(out, {.verify = true}));
  }
  OpenOptions careful;
  careful.verify = true;
  const auto file = File::open(spoiled.path(), careful);
  EXPECT_FALSE(file->slice("x", Selection{Along::index(300)})->read());
  EXPECT_TRUE(file->slice("x", Selection{Along::index(300)})->read({.verify = false}));
  // A descriptor that is another is no guide to the data.
  bytes[64 + 40] ^= std::byte{1};
  const ScratchFile worse(bytes);
  const auto damaged = File::open(worse.path());
  const auto slice = damaged->slice("x", Selection{Along::index(0)});
  if (slice) {
    EXPECT_EQ(error_of(slice->read({.verify = true})).code, Errc::checksum_mismatch);
  }
}

TEST_F(Matrix, CutWhileOpen) {
  const Bytes bytes = read_bytes(path);
  const ScratchFile file(bytes);
  const File open = Matrix::open(Mode::memory, file.path());
  const auto slice = open.slice("x", Selection{{.start = 100, .stop = 500}});
  file.cut(static_cast<std::size_t>(open.entry(0).data_offset + 200 * row));
  const Error error = error_of(slice->read());
  EXPECT_EQ(error.code, Errc::truncated);
  EXPECT_EQ(error.tensor, "x");
  EXPECT_EQ(failure(open.slice("x", Selection{{.start = 100, .stop = 200}})), "");
}

TEST(Slice, LargeOnesAreReadByThreadsAndCanBeInterrupted) {
  // 256 MiB of zeros but for a number in each row, in a file that takes no room.
  constexpr std::uint64_t rows = 1 << 13, row = 1 << 15;
  const TemporaryFolder folder;
  {
    auto writer = create(folder / "big.hrry", plain());
    const std::vector<BufferSource> sources{BufferSource(
        rows * row, [](std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
          std::ranges::fill(out, std::byte{0});
          for (std::uint64_t at = (offset + row - 1) / row * row; at < offset + out.size();
               at += row)
            out[at - offset] = static_cast<std::byte>(at / row);
          return {};
        })};
    ASSERT_EQ(failure(writer.write("x", dense(DType::uint8, {rows, row}, rows * row), sources)),
              "");
    ASSERT_EQ(failure(writer.finish()), "");
  }
  std::atomic<int> asked = 0;
  std::atomic<bool> stop = false;
  OpenOptions options;
  options.interrupted = [&] { return ++asked, stop.load(); };
  const auto file = File::open(folder / "big.hrry", options);
  const auto all = file->slice("x", Selection{{}, {.stop = row / 2}})->read();
  ASSERT_EQ(failure(all), "");
  for (std::uint64_t k = 0; k < rows; ++k)
    ASSERT_EQ(all->buffer(0).bytes()[k * row / 2], static_cast<std::byte>(k));
  const auto direct = file->slice("x", Selection{{.start = 1}})->read({.share = false});
  ASSERT_EQ(failure(direct), "");
  for (std::uint64_t k = 1; k < rows; ++k)
    ASSERT_EQ(direct->buffer(0).bytes()[(k - 1) * row], static_cast<std::byte>(k));
  EXPECT_GT(asked.load(), 0);
  stop = true;
  const auto ended = file->slice("x", Selection{{.start = 1}})->read({.share = false});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::system);
  EXPECT_EQ(ended.error().system_errno, EINTR);
}

TEST_F(Matrix, PrefetchAsksForWhatWouldBeRead) {
  const File file = open(Mode::map, path);
  const std::size_t x = *file.find("x"), y = *file.find("y"), sp = *file.find("sp");
  const auto asked = [&](const std::vector<File::Wanted>& wanted, std::uint64_t max = 1 << 30) {
    const auto bytes = file.prefetch(wanted, max);
    EXPECT_EQ(failure(bytes), "");
    return bytes ? *bytes : 0;
  };
  EXPECT_EQ(asked({}), 0u);
  EXPECT_EQ(asked({{x, {}}}), rows * row);
  EXPECT_EQ(asked({{x, {}}, {x, {}}}), rows * row);
  EXPECT_EQ(asked({{x, Selection{{.start = 3, .stop = 5}}}}), 2 * row);
  // Near each other: one range, with what lies between.
  EXPECT_EQ(asked({{x, Selection{{.start = 10, .stop = 11}}}, {x, Selection{Along::index(2)}}}),
            9 * row);
  EXPECT_EQ(asked({{x, Selection{{}, {.start = 0, .stop = 256}}}}, 4096), 4096u);
  EXPECT_GE(asked({{sp, {}}, {y, {}}}), 63u);
  EXPECT_EQ(error_of(file.prefetch(std::vector<File::Wanted>{{sp, Selection{}}})).code,
            Errc::unsupported);
  EXPECT_EQ(error_of(file.prefetch(std::vector<File::Wanted>{{99, {}}})).code, Errc::out_of_bounds);
  file.will_read_all();
  EXPECT_EQ(file.read_counts(), ReadCounts());
}

TEST(Slice, ManyThreadsReadOneFile) {
  const Image image = two_tensors();
  const ScratchFile scratch(image.bytes);
  OpenOptions options;
  options.mode = Mode::memory;
  const auto file = File::open(scratch.path(), options);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t k = 0; k < 200; ++k) {
        const std::uint64_t at = (k * 37 + static_cast<std::uint64_t>(t) * 11) % 4990;
        const auto read = file->slice("uu", Selection{{.start = at, .stop = at + 10}})->read();
        bool same = read.has_value();
        for (std::uint64_t i = 0; same && i < 10; ++i)
          same = read->buffer(0).bytes()[i] == static_cast<std::byte>(at + i + 1);
        good += same;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_EQ(file->read_counts(), (ReadCounts{8000, 8000, 800}));
}

}  // namespace
}  // namespace hurray::io
