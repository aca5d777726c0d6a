#include <gtest/gtest.h>

#include <cstring>

#include "file_support.hpp"
#include "hurray/io/slice.hpp"
#include "hurray/io/translation.hpp"
#include "hurray/io/verify.hpp"

/// Files of other formats that are seen as .hrry files: here one that begins with "TEST".
namespace hurray::io {
namespace {

/// Every byte one higher, two bytes for each of them.
std::string_view widen(const std::byte* stored, std::byte* out, std::size_t units) {
  for (std::size_t k = 0; k < units; ++k) {
    if (stored[k] == std::byte{0xFF}) return "a byte that must not be";
    out[2 * k] = static_cast<std::byte>(std::to_integer<unsigned>(stored[k]) + 1);
    out[2 * k + 1] = std::byte{0};
  }
  return {};
}
constexpr Conversion widened{.stored_bytes = 1, .bytes = 2, .run = widen};

/// Three to two: a last unit that is there in part is filled up.
std::string_view fold(const std::byte* stored, std::byte* out, std::size_t units) {
  for (std::size_t k = 0; k < units; ++k, stored += 3, out += 2) {
    out[0] = stored[0];
    out[1] = stored[1] ^ stored[2];
  }
  return {};
}
constexpr Conversion folded{.stored_bytes = 3, .bytes = 2, .run = fold};

constexpr std::size_t count = 300'000;

class Translated : public testing::Test {
 protected:
  void SetUp() override {
    bytes = Bytes(8192 + 3 * count);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i * 2654435761u >> 11) % 255);
    std::memcpy(bytes.data(), "TEST", 4);
    write_bytes(path, bytes);
  }

  /// "aligned" on 4096, "odd" on 101, "wide" and "folded" converted, "two" of two buffers.
  static Result<std::optional<Translation>> see(const ForeignSource& source) {
    Bytes head(4);
    if (auto read = source.read(head, 0); !read) return read.error();
    if (head != bytes_of("TEST")) return std::optional<Translation>();
    Translation::Builder builder("test");
    const auto add = [&](std::string_view name, Descriptor descriptor,
                         std::initializer_list<StoredBuffer> buffers) {
      return builder.add(name, descriptor, std::span(buffers.begin(), buffers.size()));
    };
    for (const auto& added :
         {add("aligned", dense(DType::uint8, {count}, count), {{4096, count}}),
          add("odd", dense(DType::uint8, {3, 7}, 21), {{101, 21}}),
          add("none", dense(DType::float32, {0, 7}, 0), {{0, 0}}),
          add("wide", dense(DType::uint16, {count}, 2 * count), {{4097, count, &widened}}),
          add("folded", dense(DType::uint8, {2 * count - 1}, 2 * count - 1),
              {{4099, 3 * count - 2, &folded}}),
          add("two", two(), {{200, 32}, {300, 1, &widened}})})
      if (!added) return added.error();
    auto seen = builder.finish({{"k", std::string("v")}});
    if (!seen) return seen.error();
    return std::optional(*std::move(seen));
  }
  static Descriptor two() {
    Descriptor descriptor = dense(DType::int8, {32}, 32);
    descriptor.buffers = BufferTable{handle(32), handle(2)};
    descriptor.set_quantization(Quantization{
        PerBlockAffine{
            .axis = 0, .block_size = 32, .scale_buffer_index = 1, .scale_type = DType::float16},
        {}});
    return descriptor;
  }

  static OpenOptions options(Mode mode) {
    OpenOptions options;
    options.mode = mode;
    options.foreign = see;
    return options;
  }
  /// What buffer 0 of a tensor must be.
  Bytes expected(std::string_view name) const {
    const auto part = [&](std::size_t at, std::size_t size) {
      return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    };
    if (name == "aligned") return part(4096, count);
    if (name == "odd") return part(101, 21);
    if (name == "two") return part(200, 32);
    if (name == "none") return {};
    if (name == "wide") {
      Bytes all(2 * count);
      widen(bytes.data() + 4097, all.data(), count);
      return all;
    }
    Bytes stored = part(4099, 3 * count - 2);
    stored.resize(3 * count);
    Bytes all(2 * count);
    fold(stored.data(), all.data(), count);
    all.pop_back();
    return all;
  }
  static Bytes content(const Buffer& buffer) {
    return {buffer.data(), buffer.data() + buffer.size()};
  }

  TemporaryFolder folder;
  std::string path = folder / "m.test";
  Bytes bytes;
};

TEST_F(Translated, IsAFileInEveryMode) {
  for (const Mode mode : {Mode::map, Mode::copy_on_write, Mode::memory}) {
    const auto file = File::open(path, options(mode));
    ASSERT_EQ(failure(file), "");
    EXPECT_EQ(file->format(), "test");
    EXPECT_EQ(file->mode(), mode);
    EXPECT_EQ(file->kv(), (KeyValues{{"k", std::string("v")}}));
    EXPECT_FALSE(file->has_checksums());
    EXPECT_EQ(file->size(), 6u);
    for (std::size_t i = 0; i < file->size(); ++i) {
      const auto tensor = file->tensor(i);
      ASSERT_EQ(failure(tensor), "");
      EXPECT_EQ(content(tensor->buffer(0)), expected(file->name(i))) << file->name(i);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->buffer(0).data()) % 64, 0u);
    }
    EXPECT_EQ(
        content(file->tensor("two")->buffer(1)),
        (Bytes{static_cast<std::byte>(std::to_integer<unsigned>(bytes[300]) + 1), std::byte{0}}));
    EXPECT_EQ(failure(verify(*file, {}, {})), "");
    EXPECT_EQ(error_of(file->tensor("TEST")).code, Errc::not_found);
  }
}

TEST_F(Translated, SharesTheMappingWhereThatIsOn64) {
  const auto file = File::open(path, options(Mode::copy_on_write));
  ASSERT_EQ(failure(file), "");
  EXPECT_EQ(file->tensor("aligned")->buffer(0).owner(), file->mapping());
  EXPECT_NE(file->tensor("odd")->buffer(0).owner(), file->mapping());
  EXPECT_NE(file->tensor("wide")->buffer(0).owner(), file->mapping());
  EXPECT_EQ(file->read_counts().bytes_wanted, 21 + 2 * count);
}

TEST_F(Translated, PartsAreReadAsOfAnyFile) {
  for (const Mode mode : {Mode::map, Mode::memory}) {
    const auto file = File::open(path, options(mode));
    ASSERT_EQ(failure(file), "");
    for (const std::string_view name : {"aligned", "wide", "folded"}) {
      const std::size_t width = name == "wide" ? 2 : 1;
      const Bytes whole = expected(name);
      for (const auto& [start, stop, step] : std::vector<std::array<std::uint64_t, 3>>{
               {0, 1, 1}, {7, 8, 1}, {1000, 250'000, 1}, {3, 200'000, 7}, {299'990, 299'999, 2}}) {
        const Along along{.start = start, .stop = stop, .step = step};
        const auto slice = file->slice(name, {&along, 1});
        ASSERT_EQ(failure(slice), "");
        const auto read = slice->read();
        ASSERT_EQ(failure(read), "");
        Bytes wanted;
        for (std::uint64_t i = start; i < stop; i += step)
          wanted.insert(wanted.end(), whole.begin() + static_cast<std::ptrdiff_t>(i * width),
                        whole.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
        EXPECT_EQ(content(read->buffer(0)), wanted) << name << ' ' << start;
      }
    }
    std::vector<File::Wanted> wanted;
    for (std::size_t i = 0; i < file->size(); ++i) wanted.push_back({i, {}});
    EXPECT_GT(*file->prefetch(wanted), 3 * count);
  }
}

/// The file that is seen is the one that a copy of it is.
TEST_F(Translated, IsTheFileThatAConversionMakes) {
  const auto file = File::open(path, options(Mode::memory));
  ASSERT_EQ(failure(file), "");
  WriteOptions write;
  write.checksums = false;
  write.tensor_count = file->size();
  const std::string copy = folder / "copy.hrry";
  auto writer = create(copy, write);
  for (std::size_t i = 0; i < file->size(); ++i) {
    const auto sources = file->sources(i);
    ASSERT_EQ(failure(sources), "");
    ASSERT_EQ(failure(writer.write(file->name(i), *file->descriptor(i), *sources)), "");
  }
  ASSERT_EQ(failure(writer.finish(file->kv())), "");
  const auto made = File::open(copy);
  ASSERT_EQ(failure(made), "");
  EXPECT_EQ(made->size_bytes(), file->size_bytes());
  EXPECT_EQ(made->trailer().index_crc32c, file->trailer().index_crc32c);
  for (std::size_t i = 0; i < file->size(); ++i)
    EXPECT_EQ(content(*made->raw_bytes(i)), content(*file->raw_bytes(i)));
}

TEST_F(Translated, OverEverySource) {
  const auto image = Buffer::allocate(bytes.size());
  ASSERT_TRUE(image);
  std::ranges::copy(bytes, image->data());
  for (const Mode mode : {Mode::map, Mode::memory}) {
    const auto file = File::over(*image, options(mode));
    ASSERT_EQ(failure(file), "");
    EXPECT_EQ(content(file->tensor("folded")->buffer(0)), expected("folded"));
  }
  const PositionedSource source{
      .size = bytes.size(),
      .read_at = [&](std::span<std::byte> into, std::uint64_t offset) -> Result<std::size_t> {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return into.size();
      },
      .name = "far"};
  const auto far = File::over(source, options(Mode::memory));
  ASSERT_EQ(failure(far), "");
  EXPECT_EQ(far->format(), "test");
  ASSERT_EQ(failure(far->prefetch(std::vector<File::Wanted>{{0, {}}, {4, {}}})), "");
  for (std::size_t i = 0; i < far->size(); ++i)
    EXPECT_EQ(content(far->tensor(i)->buffer(0)), expected(far->name(i)));
  EXPECT_EQ(*load_kv(path, options(Mode::memory)), far->kv());
}

TEST_F(Translated, FaultsNameFileAndPlace) {
  bytes[4097 + 1000] = std::byte{0xFF};
  write_bytes(path, bytes);
  const auto file = File::open(path, options(Mode::map));
  ASSERT_EQ(failure(file), "");
  const Error error = error_of(file->tensor("wide"));
  EXPECT_EQ(error.path, path);
  EXPECT_EQ(error.tensor, "wide");
  EXPECT_EQ(error.what, "a byte that must not be");
  EXPECT_EQ(failure(file->tensor("aligned")), "");

  write_bytes(path, std::span(bytes).first(8000));
  const auto cut = File::open(path, options(Mode::memory));
  ASSERT_EQ(failure(cut), "");  // this format says nothing of its size
  EXPECT_EQ(error_of(cut->tensor("aligned")).code, Errc::truncated);
  EXPECT_EQ(failure(cut->tensor("odd")), "");
  EXPECT_EQ(error_of(File::open(path)).code, Errc::invalid_magic);

  OpenOptions refusing = options(Mode::map);
  refusing.foreign = [](const ForeignSource&) -> Result<std::optional<Translation>> {
    return Error({.code = Errc::unsupported, .origin = Origin::file, .what = "not today"});
  };
  EXPECT_EQ(failure(File::open(path, refusing)), path + ": not today (unsupported)");
}

TEST(Translation, RefusesWhatAFileCannotHave) {
  Translation::Builder builder("test");
  const Descriptor one = dense(DType::uint8, {1}, 1);
  const StoredBuffer stored{0, 1};
  EXPECT_EQ(error_of(builder.add("", one, {&stored, 1})).field, "name");
  EXPECT_EQ(error_of(builder.add("\xFF", one, {&stored, 1})).field, "name");
  EXPECT_EQ(error_of(builder.add(std::string(65536, 'x'), one, {&stored, 1})).field, "name");
  Descriptor huge = dense(DType::uint8, {UINT64_MAX / 2}, UINT64_MAX / 2);
  EXPECT_EQ(error_of(builder.add("a", huge, {&stored, 1})).code, Errc::overflow);
  EXPECT_EQ(failure(builder.add("a", one, {&stored, 1})), "");
  EXPECT_EQ(failure(builder.add("a", one, {&stored, 1})), "");
  EXPECT_EQ(error_of(builder.finish({{"hurray.crc32c", true}})).code, Errc::invalid_value);
}

}  // namespace
}  // namespace hurray::io
