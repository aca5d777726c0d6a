#include "hurray/io/verify.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "file_support.hpp"
#include "hurray/builder.hpp"

/// Sums that are compared, and rules for what is under none (04-file.md section 16).
namespace hurray::io {
namespace {

Item item(const Descriptor& descriptor, const Bytes& bytes) {
  auto memory = Buffer::allocate(bytes.size());
  EXPECT_TRUE(memory);
  std::ranges::copy(bytes, memory->data());
  auto tensor = bind(descriptor, {*memory});
  EXPECT_TRUE(tensor);
  return {*std::move(tensor)};
}

/// Columns of the grid of section 14.
Item columns(std::uint64_t first, std::uint64_t count, const Bytes& bytes) {
  return item(
      *DescriptorBuilder::row_major(DType::int8, {2, count}).shard_of({2, 3}, {0, first}).build(),
      bytes);
}

Result<void> write_grid(FileWriter& writer) {
  auto grid = compose(CompositionRule::partition, CombineOp::none, {2, 3}, DType::int8,
                      {columns(0, 1, hex("01 02")), columns(1, 2, hex("03 04 05 06"))});
  if (!grid) return grid.error();
  return writer.write_item("grid", *grid);
}

WriteOptions counted(std::uint64_t tensors, bool checksums = true) {
  WriteOptions options;
  options.sync = false;
  options.checksums = checksums;
  options.tensor_count = tensors;
  return options;
}

/// The tensors of section 14: three buffers with padding between them, an empty tensor, a composite
/// of two members.
Image several(bool checksums = true) {
  const TemporaryFolder folder;
  WriteOptions options = counted(5, checksums);
  options.sorted_index = true;
  auto writer = create(folder / "a.hrry", options);
  EXPECT_EQ(failure(write_sparse_and_empty(writer)), "");
  EXPECT_EQ(failure(write_grid(writer)), "");
  EXPECT_EQ(failure(writer.finish({{"rev", std::int64_t{7}}, {"why", std::string("tests")}})), "");
  return {read_bytes(folder / "a.hrry")};
}

/// The file of section 13.
Image minimal(bool checksums = true) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", counted(1, checksums));
  EXPECT_EQ(failure(write(writer, "t", dense(DType::int16, {3}, 6),
                          {elements<std::int16_t>({1, -2, 300})})),
            "");
  EXPECT_EQ(failure(writer.finish({{"rev", std::int64_t{7}}})), "");
  return {read_bytes(folder / "a.hrry")};
}

struct Outcome {
  Verification result;
  std::vector<Finding> findings;
};

Outcome verified(const std::string& path, const OpenOptions& options = {}) {
  Outcome outcome;
  const auto result = verify(path, options, [&](const Finding& finding) {
    outcome.findings.push_back(finding);
    return true;
  });
  EXPECT_EQ(failure(result), "");
  if (result) outcome.result = *result;
  EXPECT_EQ(outcome.result.findings + outcome.result.accepted, outcome.findings.size());
  return outcome;
}

Outcome verified(const Image& image) { return verified(ScratchFile(image.bytes).path()); }

/// The payload of the checksum entry, and changes of it that keep its own sum right.
struct Payload {
  Image& image;

  std::size_t kv() const {
    return static_cast<std::size_t>(image.get<std::uint64_t>(image.trailer() + 16));
  }
  std::size_t kv_length() const { return image.get<std::uint32_t>(image.trailer() + 24); }
  std::size_t start() const {
    const auto all = std::span(image.bytes).subspan(kv(), kv_length());
    const Bytes magic = bytes_of("HRRYSUM1");
    const auto found = std::ranges::search(all, magic);
    return kv() + static_cast<std::size_t>(found.begin() - all.begin());
  }
  std::size_t end() const { return kv() + kv_length(); }
  void sum() const {
    const std::size_t at = start();
    image.set(end() - 4, crc32c(std::span(image.bytes).subspan(at, end() - 4 - at)));
  }
};

/// A file of `image` with another KV section.
Image with_kv(const Image& image, const Bytes& section) {
  const std::size_t kv = static_cast<std::size_t>(image.get<std::uint64_t>(image.trailer() + 16));
  Image changed{{image.bytes.begin(), image.bytes.begin() + static_cast<std::ptrdiff_t>(kv)}};
  changed.bytes.insert(changed.bytes.end(), section.begin(), section.end());
  changed.bytes.resize((changed.bytes.size() + 7) / 8 * 8);
  const std::uint64_t index = changed.bytes.size();
  changed.bytes.insert(changed.bytes.end(),
                       image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index()),
                       image.bytes.end());
  changed.set(changed.trailer(), index);
  changed.set(changed.trailer() + 24, static_cast<std::uint32_t>(section.size()));
  return changed;
}

Bytes entry(std::string_view key, std::span<const std::byte> payload) {
  Bytes bytes(2);
  hurray::detail::store(bytes.data(), static_cast<std::uint16_t>(key.size()));
  const Bytes name = bytes_of(key);
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.push_back(std::byte{6});
  std::array<std::byte, 4> size{};
  hurray::detail::store(size.data(), static_cast<std::uint32_t>(payload.size()));
  bytes.insert(bytes.end(), size.begin(), size.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Bytes section(std::initializer_list<Bytes> entries) {
  Bytes bytes(4);
  hurray::detail::store(bytes.data(), static_cast<std::uint32_t>(entries.size()));
  for (const Bytes& one : entries) bytes.insert(bytes.end(), one.begin(), one.end());
  return bytes;
}

TEST(Verify, TheVectorOfTheFormat) {
  Image image = minimal();
  ASSERT_EQ(image.bytes.size(), 4275u);
  const Payload payload{image};
  EXPECT_EQ(payload.kv(), 4104u);
  EXPECT_EQ(payload.kv_length(), 82u);
  EXPECT_EQ(image.index(), 4192u);
  const std::size_t at = payload.start();
  EXPECT_EQ(image.get<std::uint32_t>(at + 12), 0xCD7CC511u);
  EXPECT_EQ(image.get<std::uint32_t>(at + 16), 0xA3295638u);
  EXPECT_EQ(image.get<std::uint32_t>(at + 20), 0xCD740F8Eu);
  EXPECT_EQ(image.get<std::uint32_t>(at + 32), 0xB1696D50u);
  EXPECT_EQ(image.get<std::uint32_t>(at + 36), 0x8227BCA4u);
  EXPECT_EQ(image.get<std::uint32_t>(at + 40), 0x2FA6319Du);

  const Outcome outcome = verified(image);
  EXPECT_TRUE(outcome.result.sound());
  EXPECT_TRUE(outcome.result.is_protected());
  EXPECT_GE(outcome.result.bytes_read, image.bytes.size() - 6);

  image.set<std::uint8_t>(4096 + 4, 0x2D);
  const ScratchFile file(image.bytes);
  const Error error = error_of(verify(file.path(), {}));
  EXPECT_EQ(error.code, Errc::checksum_mismatch);
  EXPECT_EQ(error.origin, Origin::file);
  EXPECT_EQ(error.tensor, "t");
  EXPECT_EQ(error.offset, 4096u);
  EXPECT_EQ(error.expected, 0x8227BCA4u);
  const std::string message = to_string(error);
  EXPECT_TRUE(message.starts_with(file.path() +
                                  ": tensor \"t\": data: checksum mismatch (at byte 4096 of the "
                                  "file); bytes 4096 to 4101 (buffer 0) have the CRC-32C 0x"))
      << message;
  EXPECT_NE(message.find("0x8227BCA4 is stored"), std::string::npos) << message;
  EXPECT_NE(message.find("hurray convert a.hrry b.hrry"), std::string::npos) << message;
  EXPECT_NE(message.find("verify=False"), std::string::npos) << message;
}

/// What a byte of `several()` is for, and the tensor that it belongs to.
struct Place {
  FilePart part;
  std::string tensor;
};

std::vector<Place> map_of(const Image& image) {
  std::vector<Place> places(image.bytes.size(), {FilePart::padding, {}});
  const auto mark = [&](std::uint64_t start, std::uint64_t size, const Place& place) {
    for (std::uint64_t i = start; i < start + size; ++i) places[i] = place;
  };
  const ScratchFile memory(image.bytes);
  const auto file = File::open(memory.path());
  EXPECT_EQ(failure(file), "");
  mark(0, 64, {FilePart::header, {}});
  for (std::size_t i = 0; i < file->size(); ++i) {
    const Entry e = file->entry(i);
    const std::string name(e.name);
    mark(e.descriptor_offset, e.descriptor_length, {FilePart::descriptor, name});
    mark(e.data_offset, e.data_length, {FilePart::data, name});
  }
  const FileTrailer& trailer = file->trailer();
  mark(trailer.kv_offset, trailer.kv_length, {FilePart::kv, {}});
  mark(trailer.index_offset, trailer.index_length, {FilePart::index, {}});
  mark(image.trailer(), 40, {FilePart::trailer, {}});
  return places;
}

/// Flips bits of `image`: all of each byte, or of each zero that lies among zeros one.
void flip_every_bit(const Image& image, bool all) {
  const ScratchFile memory(image.bytes);
  ASSERT_TRUE(verified(memory.path()).result.sound());
  const std::vector<Place> places = map_of(image);
  std::size_t in_another_part = 0;
  for (std::size_t at = 0; at < image.bytes.size(); ++at) {
    const auto& [part, tensor] = places[at];
    const bool alone = !all && (part == FilePart::padding || part == FilePart::data) &&
                       image.bytes[at] == std::byte{0} && at % 64 > 7;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (alone && bit != at % 8) continue;
      const std::byte spoiled = image.bytes[at] ^ static_cast<std::byte>(1u << bit);
      memory.put(at, {&spoiled, 1});
      const Outcome outcome = verified(memory.path());
      ASSERT_FALSE(outcome.findings.empty()) << at << " bit " << bit;
      EXPECT_FALSE(outcome.result.sound());
      const Finding& first = outcome.findings.front();
      const std::string message = to_string(first.error);
      if (first.part != part) {
        // HAS_INDEX_CRC32C itself: the trailer's sum is one too many, and says so.
        EXPECT_EQ(at, 12u) << at << " bit " << bit << ": " << message;
        EXPECT_EQ(first.error.field, "index_crc32c") << message;
        ++in_another_part;
        continue;
      }
      EXPECT_LE(first.offset, at) << message;
      EXPECT_GT(first.offset + first.size, at) << at << " bit " << bit << ": " << message;
      if (part == FilePart::descriptor || part == FilePart::data) {
        EXPECT_EQ(first.error.tensor, tensor) << message;
        EXPECT_EQ(first.error.code, Errc::checksum_mismatch) << message;
        EXPECT_TRUE(first.sums) << message;
        EXPECT_EQ(outcome.findings.size(), 1u) << message;
      }
      if (part == FilePart::padding) {
        EXPECT_EQ(first.size, 1u) << message;
        EXPECT_EQ(outcome.findings.size(), 1u) << message;
      }
    }
    memory.put(at, {&image.bytes[at], 1});
  }
  EXPECT_LE(in_another_part, 1u);
  EXPECT_TRUE(verified(memory.path()).result.sound());
}

TEST(Verify, EveryBitIsFoundAndNamed) { flip_every_bit(minimal(), true); }
TEST(Verify, EveryByteOfSeveralTensorsIsFoundAndNamed) { flip_every_bit(several(), false); }

TEST(Verify, EveryCutIsFound) {
  const Image image = several();
  const ScratchFile memory(image.bytes);
  for (std::size_t size = image.bytes.size(); size-- > 0;) {
    memory.cut(size);
    const Outcome outcome = verified(memory.path());
    ASSERT_EQ(outcome.findings.size(), 1u) << size;
    const FilePart part = outcome.findings[0].part;
    EXPECT_EQ(part, size == 0 ? FilePart::header : FilePart::trailer) << size;
    // Behind the magic of a descriptor or of the sums the end looks like a trailer, and is none.
    const bool magic =
        size >= 112 &&
        std::ranges::equal(std::span(image.bytes).subspan(size - 4, 4), bytes_of("HRRY"));
    const Errc code = outcome.findings[0].error.code;
    EXPECT_EQ(code == (size == 0 ? Errc::invalid_magic : Errc::truncated), !magic) << size;
  }
}

TEST(Verify, CutOrChangedWhileOpen) {
  const Image image = several();
  const ScratchFile memory(image.bytes);
  const auto file = File::open(memory.path());
  ASSERT_EQ(failure(file), "");
  ASSERT_TRUE(verify(*file));
  ASSERT_TRUE(verify_tensor(*file, 0));
  const std::byte other{0xEE};
  memory.put(image.index() + 9, {&other, 1});
  EXPECT_EQ(error_of(verify(*file)).field, "index");
  memory.put(image.index() + 9, {&image.bytes[image.index() + 9], 1});
  memory.put(9, {&other, 1});
  EXPECT_EQ(error_of(verify(*file)).field, "header");
  memory.put(9, {&image.bytes[9], 1});
  memory.cut(8192);
  EXPECT_EQ(error_of(verify(*file)).code, Errc::truncated);
  const Error error = error_of(verify_tensor(*file, *file->find("sp")));
  EXPECT_EQ(error.code, Errc::truncated);
  EXPECT_EQ(error.tensor, "sp");
}

TEST(Verify, OneTensorAlone) {
  Image image = several();
  const auto verify_one = [&](std::string_view name) {
    const ScratchFile memory(image.bytes);
    const auto file = File::open(memory.path());
    EXPECT_EQ(failure(file), "");
    return verify_tensor(*file, *file->find(name));
  };
  const auto sound = verify_one("none");
  ASSERT_EQ(failure(sound), "");
  EXPECT_TRUE(sound->is_protected());
  image.bytes[20480] ^= std::byte{1};  // data of grid.0
  EXPECT_TRUE(verify_one("sp"));
  EXPECT_TRUE(verify_one("none"));
  EXPECT_TRUE(verify_one("grid.1"));
  EXPECT_EQ(error_of(verify_one("grid.0")).tensor, "grid.0");
  EXPECT_EQ(error_of(verify_one("grid")).tensor, "grid.0");
  image.bytes[20480] ^= std::byte{1};
  image.bytes[20482] ^= std::byte{1};  // behind it
  const Error padding = error_of(verify_one("grid.0"));
  EXPECT_EQ(padding.field, "padding");
  EXPECT_EQ(padding.tensor, "grid.0");
  EXPECT_EQ(padding.offset, 20482u);
  EXPECT_TRUE(verify_one("grid.1"));
  const ScratchFile memory(image.bytes);
  EXPECT_EQ(error_of(verify_tensor(*File::open(memory.path()), 5)).code, Errc::out_of_bounds);
}

/// Reports name the buffers that a chunk touches.
TEST(Verify, ChunksSpanBuffers) {
  const TemporaryFolder folder;
  auto writer = create(folder / "a.hrry", counted(1));
  const std::uint64_t nnz = 300'001;
  Descriptor sparse = dense(DType::float32, {3, 1 << 20}, 0);
  sparse.layout = Csr{.nnz = nnz};
  sparse.buffers = BufferTable{handle(4 * nnz), handle(8 * nnz), handle(32)};
  ASSERT_EQ(failure(write(writer, "a", sparse,
                          {Bytes(4 * nnz, std::byte{1}), Bytes(8 * nnz, std::byte{2}),
                           Bytes(32, std::byte{3})})),
            "");
  ASSERT_EQ(failure(writer.finish()), "");
  Image image{read_bytes(folder / "a.hrry")};
  // Buffers: 4096 + 1200004; 1204224 + 2400008; 3604480 + 32.
  constexpr std::uint64_t data = 4096;
  constexpr std::uint64_t chunk = 1 << 20;
  struct Case {
    std::size_t at;
    std::uint64_t chunk;
    std::uint32_t first;
    std::uint32_t buffers;
  };
  for (const Case& c : {Case{4096, 0, 0, 1}, Case{1'200'000, 1, 0, 2}, Case{1'204'150, 1, 0, 2},
                        Case{3'000'000, 2, 1, 1}, Case{3'604'481, 3, 1, 2}}) {
    image.bytes[c.at] ^= std::byte{0x40};
    const Outcome outcome = verified(image);
    ASSERT_EQ(outcome.findings.size(), 1u) << c.at;
    const Finding& found = outcome.findings[0];
    EXPECT_EQ(found.part, FilePart::data);
    EXPECT_EQ(found.offset, data + c.chunk * chunk);
    EXPECT_EQ(found.size, c.chunk == 3 ? 3'604'512 - (data + 3 * chunk) : chunk);
    EXPECT_EQ(found.first_buffer, c.first) << c.at;
    EXPECT_EQ(found.buffers, c.buffers) << c.at;
    for (const ModeInfo& mode : modes) {
      OpenOptions options;
      options.mode = mode.tag;
      options.verify = true;
      const ScratchFile memory(image.bytes);
      const auto file = File::open(memory.path(), options);
      ASSERT_EQ(failure(file), "");
      EXPECT_EQ(error_of(file->tensor(0)).offset, found.offset) << mode.name;
      EXPECT_EQ(error_of(file->raw_bytes(0)).offset, found.offset) << mode.name;
    }
    image.bytes[c.at] ^= std::byte{0x40};
  }
  // Two chunks of one tensor.
  image.bytes[data] ^= std::byte{1};
  image.bytes[data + 2 * chunk] ^= std::byte{1};
  EXPECT_EQ(verified(image).findings.size(), 2u);
}

TEST(Verify, UnprotectedFilesPassOnTheRulesAlone) {
  Image image = several(false);
  Outcome outcome = verified(image);
  EXPECT_TRUE(outcome.result.sound());
  EXPECT_FALSE(outcome.result.is_protected());
  EXPECT_EQ(outcome.result.state, ChecksumState::unprotected);
  image.bytes[4096] ^= std::byte{1};  // a value
  EXPECT_TRUE(verified(image).result.sound());
  const auto expect_one = [&](std::size_t at, FilePart part, std::string_view field,
                              std::string_view tensor) {
    image.bytes[at] ^= std::byte{4};
    const Outcome one = verified(image);
    ASSERT_EQ(one.findings.size(), 1u) << field;
    EXPECT_EQ(one.findings[0].part, part) << field;
    EXPECT_EQ(one.findings[0].error.field, field);
    EXPECT_EQ(one.findings[0].error.tensor, tensor);
    EXPECT_FALSE(one.findings[0].sums);
    image.bytes[at] ^= std::byte{4};
  };
  expect_one(28, FilePart::header, "tensor_count_hint", "");
  expect_one(4000, FilePart::padding, "padding", "sp");          // in front of its data
  expect_one(4096 + 14, FilePart::padding, "padding", "sp");     // between its buffers
  expect_one(12312 + 70, FilePart::padding, "padding", "none");  // an empty tensor's padding
  expect_one(64 + 4, FilePart::descriptor, "version_major", "sp");
  expect_one(image.index() - 1, FilePart::padding, "padding", "");
}

TEST(Verify, AFlagThatReadersIgnoreIsReportedAndAccepted) {
  Image image = several(false);
  image.bytes[12] ^= std::byte{1};
  const Outcome outcome = verified(image);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_TRUE(outcome.findings[0].accepted);
  EXPECT_EQ(outcome.findings[0].error.field, "file_flags");
  EXPECT_TRUE(outcome.result.sound());
  EXPECT_EQ(outcome.result.accepted, 1u);
  const ScratchFile memory(image.bytes);
  EXPECT_TRUE(verify(memory.path(), {}));
}

TEST(Verify, CompositesAreJudged) {
  Image image = several(false);
  const ScratchFile memory(image.bytes);
  const auto file = File::open(memory.path());
  ASSERT_TRUE(file);
  const std::size_t member =
      static_cast<std::size_t>(file->entry(*file->find("grid.1")).descriptor_offset);
  const auto head = static_cast<std::size_t>(file->entry(*file->find("grid")).descriptor_offset);
  // A member of another type than the head.
  image.bytes[member + 14] = static_cast<std::byte>(DType::uint8);
  Outcome outcome = verified(image);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].error.tensor, "grid");
  EXPECT_TRUE(outcome.findings[0].error.field.starts_with("members[]"))
      << to_string(outcome.findings[0].error);
  // A descriptor that is broken is named alone.
  image.bytes[member + 14] = std::byte{0};
  outcome = verified(image);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].error.tensor, "grid.1");
  image = several(false);
  image.set<std::uint32_t>(head + 48, 3);  // torn
  outcome = verified(image);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].error.field, "layout.member_count");
  EXPECT_EQ(outcome.findings[0].error.expected, 3u);
  EXPECT_EQ(outcome.findings[0].error.found, 2u);
}

// -------------------------------------------------------------------------------------------
// states

struct StateCase {
  std::string_view name;
  ChecksumState state;
  std::string_view field;  ///< Of the reason.
  Image image;
};

std::vector<StateCase> states() {
  std::vector<StateCase> all;
  const auto add = [&](std::string_view name, ChecksumState state, std::string_view field,
                       Image image) { all.push_back({name, state, field, std::move(image)}); };
  const auto changed = [&](auto&& change, bool sum = true) {
    Image image = minimal();
    const Payload payload{image};
    change(image, payload.start());
    if (sum) payload.sum();
    return image;
  };
  add("unprotected", ChecksumState::unprotected, "", minimal(false));
  add("valid", ChecksumState::valid, "", minimal());

  Image base = minimal();
  const Payload payload{base};
  const Bytes good(base.bytes.begin() + static_cast<std::ptrdiff_t>(payload.start()),
                   base.bytes.begin() + static_cast<std::ptrdiff_t>(payload.end()));
  const auto part = [&](std::size_t n) { return std::span(good).first(n); };
  add("two", ChecksumState::damaged, "checksums",
      with_kv(base, section({entry("other", good), entry(checksums_key, good)})));
  add("magic without key", ChecksumState::damaged, "checksums",
      with_kv(base, section({entry("other", good)})));
  add("key without magic", ChecksumState::damaged, "checksums.magic",
      with_kv(base, section({entry(checksums_key, Bytes(good.size()))})));
  add("key without bytes", ChecksumState::damaged, "checksums",
      with_kv(base, section({[&] {
                Bytes text = entry(checksums_key, good);
                text[2 + checksums_key.size()] = std::byte{5};  // a bool
                text.resize(2 + checksums_key.size() + 2);
                text.back() = std::byte{1};
                return text;
              }()})));
  add("35 bytes", ChecksumState::damaged, "checksums",
      with_kv(base, section({entry(checksums_key, part(35))})));
  add("no bytes", ChecksumState::damaged, "checksums",
      with_kv(base, section({entry(checksums_key, {})})));
  add("own sum", ChecksumState::damaged, "checksums.self_crc32c",
      changed([](Image& i, std::size_t at) { i.bytes[at + 33] ^= std::byte{1}; }, false));
  for (const int log2 : {0, 15, 31, 63, 64, 255})
    add("chunk_log2", ChecksumState::damaged, "checksums.chunk_log2",
        changed([&](Image& i, std::size_t at) { i.bytes[at + 9] = static_cast<std::byte>(log2); }));
  add("reserved", ChecksumState::damaged, "checksums.reserved",
      changed([](Image& i, std::size_t at) { i.set<std::uint8_t>(at + 11, 1); }));

  add("version", ChecksumState::unknown, "checksums.version",
      changed([](Image& i, std::size_t at) { i.set<std::uint8_t>(at + 8, 2); }));
  add("version before the rest", ChecksumState::unknown, "checksums.version",
      changed([](Image& i, std::size_t at) {
        i.set<std::uint8_t>(at + 8, 0);
        i.set<std::uint8_t>(at + 9, 77);
        i.set<std::uint64_t>(at + 24, ~std::uint64_t{0});
      }));

  add("not last", ChecksumState::foreign, "checksums",
      with_kv(base, section({entry(checksums_key, good), entry("x", {})})));
  add("kv", ChecksumState::foreign, "kv", with_kv(base, section({entry(checksums_key, good)})));
  add("index sum", ChecksumState::foreign, "index",
      changed([](Image& i, std::size_t at) { i.bytes[at + 12] ^= std::byte{1}; }));
  add("header", ChecksumState::foreign, "header",
      changed([](Image& i, std::size_t at) { i.bytes[at + 16] ^= std::byte{1}; }));
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}})
    add("count", ChecksumState::foreign, "checksums.tensor_count",
        changed([&](Image& i, std::size_t at) { i.set<std::uint64_t>(at + 24, count); }));
  const auto sized = [&](std::size_t size) {
    // As `good`, but longer or shorter; the KV sum covers the length.
    Bytes other(good);
    other.resize(size);
    Image image = with_kv(base, section({[] {
                                           Bytes rev = bytes_of(std::string_view("\3\0rev\2", 6));
                                           rev.resize(rev.size() + 8);
                                           rev[6] = std::byte{7};
                                           return rev;
                                         }(),
                                         entry(checksums_key, other)}));
    const Payload changed_payload{image};
    const std::size_t at = changed_payload.start();
    image.set(
        at + 20,
        crc32c(std::span(image.bytes).subspan(changed_payload.kv(), at - changed_payload.kv())));
    changed_payload.sum();
    return image;
  };
  add("shorter", ChecksumState::foreign, "checksums", sized(good.size() - 4));
  add("shortest", ChecksumState::foreign, "checksums", sized(36));
  add("longer", ChecksumState::foreign, "checksums", sized(good.size() + 4));
  add("odd", ChecksumState::foreign, "checksums", sized(good.size() + 1));
  return all;
}

TEST(Verify, States) {
  for (const StateCase& c : states()) {
    const ScratchFile memory(c.image.bytes);
    const bool damaged = c.state == ChecksumState::damaged;
    const bool good = c.state == ChecksumState::valid || c.state == ChecksumState::unprotected;
    for (const ModeInfo& mode : modes) {
      for (const std::optional<bool> choice :
           {std::optional<bool>(), std::optional(true), std::optional(false)}) {
        OpenOptions options;
        options.mode = mode.tag;
        options.verify = choice;
        const auto file = File::open(memory.path(), options);
        ASSERT_EQ(failure(file), "") << c.name;
        EXPECT_EQ(file->has_checksums(), damaged || c.state == ChecksumState::valid) << c.name;
        const auto verdict = file->checksums();
        ASSERT_EQ(failure(verdict), "");
        EXPECT_EQ(verdict->state, c.state) << c.name;
        EXPECT_EQ(verdict->reason.has_value(), !good) << c.name;
        if (verdict->reason) {
          EXPECT_EQ(verdict->reason->field, c.field) << c.name;
        }

        const bool refused = choice ? *choice && !good : damaged && mode.tag == Mode::memory;
        const auto tensor = file->tensor(0);
        EXPECT_EQ(tensor.has_value(), !refused) << c.name << " " << mode.name;
        EXPECT_EQ(file->descriptor(0).has_value(), !refused) << c.name;
        EXPECT_EQ(file->raw_bytes(0).has_value(), !refused) << c.name;
        EXPECT_TRUE(file->descriptor_bytes(0)) << c.name;
        const Bytes values = elements<std::int16_t>({1, -2, 300});
        if (tensor) {
          EXPECT_TRUE(std::ranges::equal(tensor->buffer(0).bytes(), values));
        } else {
          EXPECT_EQ(tensor.error().field, c.field) << c.name;
        }
      }
    }
    const Outcome outcome = verified(memory.path());
    EXPECT_EQ(outcome.result.state, c.state) << c.name;
    EXPECT_EQ(outcome.findings.empty(), good) << c.name;
    if (good) continue;
    const Finding& first = outcome.findings[0];
    EXPECT_EQ(first.error.field, c.field) << c.name;
    const std::string message = to_string(first.error);
    EXPECT_NE(message.find("verify=False"), std::string::npos) << message;
    EXPECT_EQ(message.find("hurray convert a.hrry b.hrry") != std::string::npos, !damaged)
        << message;
    EXPECT_NE(raise(first.error), Raise::unsupported) << message;
  }
}

/// Of a header or KV section alone that is another: the sums of the tensors are compared all the
/// same.
TEST(Verify, ForeignSumsThatFitTheIndexAreCompared) {
  Image image = minimal();
  image.set<std::uint64_t>(28, ~std::uint64_t{0});
  image.bytes[4096] ^= std::byte{1};
  const Outcome outcome = verified(image);
  EXPECT_EQ(outcome.result.state, ChecksumState::foreign);
  ASSERT_EQ(outcome.findings.size(), 2u);
  EXPECT_EQ(outcome.findings[0].part, FilePart::header);
  EXPECT_EQ(outcome.findings[0].size, 64u);
  EXPECT_EQ(outcome.findings[1].part, FilePart::data);
}

// -------------------------------------------------------------------------------------------
// reading

TEST(Verify, MemoryModeComparesWhatItCopies) {
  const Image image = several();
  const std::vector<Place> places = map_of(image);
  const ScratchFile memory(image.bytes);
  OpenOptions copying;
  copying.mode = Mode::memory;
  OpenOptions trusting = copying;
  trusting.verify = false;
  OpenOptions careful;
  careful.verify = true;
  for (std::size_t at = 64; at < 24600; at += at % 4096 < 40 ? 1u : 97u) {
    const auto& [part, tensor] = places[at];
    if (part != FilePart::data && part != FilePart::descriptor) continue;
    const std::byte spoiled = image.bytes[at] ^ std::byte{0x10};
    memory.put(at, {&spoiled, 1});
    for (const OpenOptions& options : {copying, careful}) {
      const auto file = File::open(memory.path(), options);
      ASSERT_EQ(failure(file), "");
      for (std::size_t i = 0; i < file->size(); ++i) {
        const auto read = file->tensor(i);
        const bool hit = file->entry(i).name == tensor;
        ASSERT_EQ(read.has_value(), !hit) << at << " " << file->entry(i).name;
        if (!hit) continue;
        EXPECT_EQ(read.error().code, Errc::checksum_mismatch);
        EXPECT_EQ(read.error().tensor, tensor);
      }
      EXPECT_EQ(file->item("grid").has_value(), !tensor.starts_with("grid"));
    }
    if (part == FilePart::data) {
      EXPECT_TRUE(File::open(memory.path(), trusting)->tensor(tensor)) << at;
      EXPECT_TRUE(File::open(memory.path())->tensor(tensor)) << at;
    }
    memory.put(at, {&image.bytes[at], 1});
  }
}

TEST(Verify, SumsAreReadByOneOfManyThreads) {
  const Image image = several();
  const ScratchFile memory(image.bytes);
  OpenOptions options;
  options.mode = Mode::memory;
  const auto file = File::open(memory.path(), options);
  ASSERT_TRUE(file);
  std::vector<std::thread> threads;
  std::array<bool, 4> good{};
  for (bool& one : good)
    threads.emplace_back([&] {
      one = true;
      for (std::size_t i = 0; i < file->size(); ++i) one = one && file->tensor(i).has_value();
      one = one && verify(*file).has_value();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, (std::array<bool, 4>{true, true, true, true}));
}

TEST(Verify, StopsWhenTold) {
  Image image = several();
  image.bytes[4096] ^= std::byte{1};
  image.bytes[20480] ^= std::byte{1};
  const ScratchFile memory(image.bytes);
  const auto file = File::open(memory.path());
  ASSERT_TRUE(file);
  int calls = 0;
  const auto stopped = verify(*file, [&](const Finding&) { return ++calls != 1; });
  ASSERT_EQ(failure(stopped), "");
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(stopped->complete);
  EXPECT_FALSE(stopped->sound());
  EXPECT_EQ(stopped->findings, 1u);
  const auto all = verify(*file, [&](const Finding&) { return true; });
  EXPECT_TRUE(all->complete);
  EXPECT_EQ(all->findings, 2u);
  EXPECT_EQ(error_of(verify(*file)).tensor, "sp");

  VerifyOptions options;
  options.interrupted = [] { return true; };
  const Error error = error_of(verify(*file, {}, options));
  EXPECT_EQ(error.code, Errc::system);
  EXPECT_EQ(error.system_errno, EINTR);
}

TEST(Verify, WhatCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(verify(folder / "none.hrry", {})).system_errno, ENOENT);
  write_bytes(folder / "text", bytes_of("no such file at all, just text"));
  EXPECT_EQ(error_of(verify(folder / "text", {})).code, Errc::invalid_magic);
  const Outcome outcome = verified(folder / "text");
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].part, FilePart::header);
}

}  // namespace
}  // namespace hurray::io
