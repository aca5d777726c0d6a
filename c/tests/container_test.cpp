// Streams and files through C.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "hurray/builder.hpp"
#include "hurray/io/stream.hpp"
#include "support.hpp"

using namespace hurray::testing;

namespace {

/// A folder of its own for a test, gone with it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hurray-c-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Pair {
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;

  Pair() = default;
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
    EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
  }
};

/// A tensor over `memory`, whose descriptor is `encoded` with one buffer for each size.
void fill(Pair& pair, Memory& memory, const std::vector<std::uint8_t>& encoded,
          std::initializer_list<std::uint64_t> sizes) {
  ASSERT_EQ(hurray_buffer_list_new(sizes.size(), &pair.list), HURRAY_OK);
  for (const std::uint64_t size : sizes)
    ASSERT_EQ(hurray_buffer_list_push(pair.list, buffer_over(memory, nullptr, size, 64)),
              HURRAY_OK);
  ASSERT_EQ(
      hurray_tensor_context_new(4, encoded.data(), encoded.size(), nullptr, nullptr, &pair.ctx),
      HURRAY_OK);
}

std::vector<std::uint8_t> encoded(const hurray::Result<hurray::Descriptor>& d) {
  EXPECT_TRUE(d) << to_string(d.error());
  const auto bytes = hurray::encode(*d);
  EXPECT_TRUE(bytes) << to_string(bytes.error());
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes->data());
  return {begin, begin + bytes->size()};
}

/// A vector of four in two parts.
struct Partition {
  Partition() {
    using hurray::DescriptorBuilder;
    using hurray::DType;
    fill(head, memory, encoded(DescriptorBuilder::partition(DType::float32, {4}, 2).build()), {});
    fill(first, memory,
         encoded(DescriptorBuilder::row_major(DType::float32, {1}).shard_of({4}, {0}).build()),
         {4});
    fill(second, memory,
         encoded(DescriptorBuilder::row_major(DType::float32, {3}).shard_of({4}, {1}).build()),
         {12});
  }

  Memory memory;
  Pair head, first, second;
};

/// The float32 values of a tensor that a file or stream gave.
std::vector<float> values_of(const Pair& pair) {
  const std::uint8_t* bytes = nullptr;
  std::uint64_t length = 0;
  EXPECT_EQ(hurray_tensor_context_descriptor(pair.ctx, &bytes, &length), HURRAY_OK);
  HurrayDescriptor* d = nullptr;
  EXPECT_EQ(hurray_descriptor_decode(bytes, length, &d), HURRAY_OK) << hurray_last_error();
  std::uint64_t count = 0;
  EXPECT_EQ(hurray_descriptor_element_count(d, &count), HURRAY_OK);
  HurrayBufferInfo declared = {};
  EXPECT_EQ(hurray_descriptor_buffer(d, 0, &declared), HURRAY_OK);
  EXPECT_EQ(hurray_descriptor_destroy(d), HURRAY_OK);
  HurrayBuffer* buffer = nullptr;
  EXPECT_EQ(hurray_buffer_list_get(pair.list, 0, &buffer), HURRAY_OK);
  void* data = nullptr;
  std::uint32_t alignment = 0, measured = 0;
  std::uint64_t size = 0;
  EXPECT_EQ(hurray_buffer_data_ptr(buffer, &data), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_alignment(buffer, &alignment), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_byte_size(buffer, &size), HURRAY_OK);
  EXPECT_EQ(hurray_measure_alignment(data, size, &measured), HURRAY_OK);
  EXPECT_EQ(alignment, declared.alignment);
  EXPECT_LE(alignment, measured);
  std::vector<float> values(count);
  if (count != 0) std::memcpy(values.data(), data, 4 * count);
  return values;
}

struct Sink {
  std::vector<std::uint8_t> bytes;
  std::uint64_t most = UINT64_MAX;
  static std::int64_t write(void* context, const std::uint8_t* bytes, std::uint64_t len) {
    auto& self = *static_cast<Sink*>(context);
    len = std::min(len, self.most);
    self.bytes.insert(self.bytes.end(), bytes, bytes + len);
    return static_cast<std::int64_t>(len);
  }
};

/// Three tensors: 3 floats, none, 5 floats.
std::vector<std::uint8_t> three_tensors() {
  Sink sink;
  HurrayWriter* writer = nullptr;
  EXPECT_EQ(hurray_stream_create_callback(&Sink::write, &sink, nullptr, &writer), HURRAY_OK);
  for (const std::uint64_t n : {3u, 0u, 5u}) {
    Memory memory;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = static_cast<float>(n * 10 + i);
      std::memcpy(memory.bytes + 4 * i, &value, 4);
    }
    Pair pair;
    fill(pair, memory, vector_descriptor(n), {4 * n});
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_OK) << hurray_last_error();
  }
  EXPECT_EQ(hurray_writer_finish(writer), HURRAY_OK);
  EXPECT_EQ(hurray_writer_finish(writer), HURRAY_OK);
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
  return sink.bytes;
}

void expect_three_tensors(HurrayReader* reader) {
  for (const auto& expected : {std::vector<float>{30, 31, 32}, std::vector<float>{},
                               std::vector<float>{50, 51, 52, 53, 54}}) {
    Pair pair;
    ASSERT_EQ(hurray_reader_next(reader, &pair.list, &pair.ctx), HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(values_of(pair), expected);
  }
  for (int i = 0; i < 2; ++i) {
    HurrayBufferList* list = sentinel<HurrayBufferList>();
    HurrayTensorContext* ctx = sentinel<HurrayTensorContext>();
    EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_OK);
    EXPECT_EQ(list, nullptr);
    EXPECT_EQ(ctx, nullptr);
  }
}

}  // namespace

TEST(Streams, AreWhatTheLibraryWrites) {
  const auto bytes = three_tensors();
  auto reader = hurray::io::StreamReader::over(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(reader);
  for (const std::uint64_t n : {3u, 0u, 5u}) {
    const auto tensor = reader->next();
    ASSERT_TRUE(tensor && *tensor);
    EXPECT_EQ((*tensor)->descriptor().shape[0], n);
  }
}

TEST(Streams, ComeFromMemoryDescriptorsPathsAndFunctions) {
  const std::size_t before = live_handles();
  const auto bytes = three_tensors();
  HurrayReader* reader = nullptr;
  ASSERT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), nullptr, &reader), HURRAY_OK);
  expect_three_tensors(reader);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  EXPECT_EQ(reader, nullptr);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);

  struct Slow {
    std::span<const std::uint8_t> left;
  } slow{bytes};
  const HurrayReadFn one_byte = [](void* context, std::uint8_t* out,
                                   std::uint64_t) -> std::int64_t {
    auto& left = static_cast<Slow*>(context)->left;
    if (left.empty()) return 0;
    *out = left[0];
    left = left.subspan(1);
    return 1;
  };
  ASSERT_EQ(hurray_stream_open_callback(one_byte, &slow, nullptr, &reader), HURRAY_OK);
  expect_three_tensors(reader);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);

  const Folder folder;
  const std::string path = folder / "t.stream";
  HurrayWriter* writer = nullptr;
  ASSERT_EQ(hurray_stream_create_path(path.data(), path.size(), nullptr, &writer), HURRAY_OK);
  {
    Memory memory;
    Pair pair;
    fill(pair, memory, vector_descriptor(3), {12});
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_OK);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(hurray_writer_finish(writer), HURRAY_OK);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
  ASSERT_EQ(hurray_stream_open_path(path.data(), path.size(), nullptr, &reader), HURRAY_OK);
  {
    Pair pair;
    EXPECT_EQ(hurray_reader_next(reader, &pair.list, &pair.ctx), HURRAY_OK);
    EXPECT_EQ(values_of(pair), std::vector<float>(3));
  }
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread producer([&] {
    HurrayWriter* out = nullptr;
    EXPECT_EQ(hurray_stream_create(ends[1], nullptr, &out), HURRAY_OK);
    ::close(ends[1]);  // the writer has its own
    Memory memory;
    Pair pair;
    fill(pair, memory, vector_descriptor(64), {256});
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(hurray_writer_write(out, pair.list, pair.ctx), HURRAY_OK);
    EXPECT_EQ(hurray_writer_finish(out), HURRAY_OK);
    EXPECT_EQ(hurray_writer_destroy(&out), HURRAY_OK);
  });
  ASSERT_EQ(hurray_stream_open(ends[0], nullptr, &reader), HURRAY_OK);
  ::close(ends[0]);
  int count = 0;
  for (;; ++count) {
    Pair pair;
    ASSERT_EQ(hurray_reader_next(reader, &pair.list, &pair.ctx), HURRAY_OK) << hurray_last_error();
    if (pair.list == nullptr) break;
    EXPECT_EQ(values_of(pair), std::vector<float>(64));
  }
  producer.join();
  EXPECT_EQ(count, 100);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  EXPECT_EQ(live_handles(), before);
}

TEST(Streams, PartialWritesAreContinued) {
  Sink sink;
  sink.most = 3;
  HurrayWriter* writer = nullptr;
  ASSERT_EQ(hurray_stream_create_callback(&Sink::write, &sink, nullptr, &writer), HURRAY_OK);
  Memory memory;
  Pair pair;
  fill(pair, memory, vector_descriptor(3), {12});
  EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
  HurrayReader* reader = nullptr;
  ASSERT_EQ(hurray_stream_open_memory(sink.bytes.data(), sink.bytes.size(), nullptr, &reader),
            HURRAY_OK);
  Pair again;
  EXPECT_EQ(hurray_reader_next(reader, &again.list, &again.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
}

TEST(Streams, EveryCutIsTruncated) {
  const auto bytes = three_tensors();
  const std::size_t before = live_handles();
  int clean = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    HurrayReader* reader = nullptr;
    ASSERT_EQ(hurray_stream_open_memory(bytes.data(), size, nullptr, &reader), HURRAY_OK);
    for (;;) {
      Pair pair;
      auto* list = sentinel<HurrayBufferList>();
      auto* ctx = sentinel<HurrayTensorContext>();
      const HurrayStatus status = hurray_reader_next(reader, &list, &ctx);
      if (status != HURRAY_OK) {
        EXPECT_EQ(status, HURRAY_ERR_TRUNCATED) << hurray_last_error();
        EXPECT_EQ(list, sentinel<HurrayBufferList>());
        EXPECT_EQ(ctx, sentinel<HurrayTensorContext>());
        break;
      }
      pair.list = list;
      pair.ctx = ctx;
      if (list == nullptr) {
        ++clean;
        break;
      }
    }
    EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  }
  EXPECT_EQ(clean, 3);  // before each of the three frames
  EXPECT_EQ(live_handles(), before);
}

TEST(Streams, CallbacksThatFailOrThrowEndTheCall) {
  HurrayReader* reader = nullptr;
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  const auto open = [&](HurrayReadFn read) {
    ASSERT_EQ(hurray_stream_open_callback(read, nullptr, nullptr, &reader), HURRAY_OK);
  };
  open([](void*, std::uint8_t*, std::uint64_t) -> std::int64_t { return -5; });
  EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_ERR_IO);
  EXPECT_NE(std::strstr(hurray_last_error(), "it returned -5"), nullptr) << hurray_last_error();
  EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_ERR_INVALID_STATE);  // not the end
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  open([](void*, std::uint8_t*, std::uint64_t capacity) -> std::int64_t {
    return static_cast<std::int64_t>(capacity) + 1;
  });
  EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_ERR_IO);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  open([](void*, std::uint8_t*, std::uint64_t) -> std::int64_t { throw 1; });
  EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);

  HurrayWriter* writer = nullptr;
  Memory memory;
  Pair pair;
  fill(pair, memory, vector_descriptor(3), {12});
  ASSERT_EQ(hurray_stream_create_callback(
                [](void*, const std::uint8_t*, std::uint64_t) -> std::int64_t { throw 1; }, nullptr,
                nullptr, &writer),
            HURRAY_OK);
  HurrayStatus status = hurray_writer_write(writer, pair.list, pair.ctx);
  if (status == HURRAY_OK) status = hurray_writer_finish(writer);
  EXPECT_EQ(status, HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
}

TEST(Streams, OptionsOfAnySizeAreRead) {
  const auto bytes = three_tensors();
  HurrayReader* reader = nullptr;
  HurrayStreamOptions options = {};
  EXPECT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &options, &reader),
            HURRAY_ERR_INVALID_ARGUMENT);
  options.struct_size = sizeof options;
  options.max_buffer_bytes = 11;
  ASSERT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &options, &reader), HURRAY_OK);
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  EXPECT_EQ(hurray_reader_next(reader, &list, &ctx), HURRAY_ERR_LIMIT_EXCEEDED);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  options.struct_size = offsetof(HurrayStreamOptions, max_buffer_bytes);
  ASSERT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &options, &reader), HURRAY_OK);
  expect_three_tensors(reader);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  // A later caller, with fields that this library does not know.
  struct Longer {
    HurrayStreamOptions known = {};
    std::uint64_t later[4] = {1, 2, 3, 4};
  } longer;
  longer.known.struct_size = sizeof longer;
  ASSERT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &longer.known, &reader),
            HURRAY_OK);
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  options = HurrayStreamOptions{};
  options.struct_size = sizeof options;
  options.cross_machine = 3;
  EXPECT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &options, &reader),
            HURRAY_ERR_INVALID_ARGUMENT);
  options = HurrayStreamOptions{};
  options.struct_size = sizeof options;
  options.has_expected_items = 1;
  options.expected_items = 4;
  ASSERT_EQ(hurray_stream_open_memory(bytes.data(), bytes.size(), &options, &reader), HURRAY_OK);
  HurrayStatus status = HURRAY_OK;
  for (int i = 0; i < 4 && status == HURRAY_OK; ++i) {
    Pair pair;
    status = hurray_reader_next(reader, &pair.list, &pair.ctx);
  }
  EXPECT_EQ(status, HURRAY_ERR_TRUNCATED) << hurray_last_error();
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
}

TEST(Streams, CompositesAreHeadThenMembers) {
  const Partition composite;
  Sink sink;
  HurrayWriter* writer = nullptr;
  ASSERT_EQ(hurray_stream_create_callback(&Sink::write, &sink, nullptr, &writer), HURRAY_OK);
  EXPECT_EQ(hurray_writer_write(writer, composite.head.list, composite.head.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_writer_write(writer, composite.first.list, composite.first.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_writer_finish(writer), HURRAY_ERR_TORN_COMPOSITE);
  EXPECT_EQ(hurray_writer_write(writer, composite.first.list, composite.first.ctx),
            HURRAY_ERR_INVALID_LAYOUT);  // the same box twice
  const std::size_t torn_at = sink.bytes.size();
  EXPECT_EQ(hurray_writer_write(writer, composite.second.list, composite.second.ctx), HURRAY_OK)
      << hurray_last_error();
  EXPECT_EQ(hurray_writer_finish(writer), HURRAY_OK);
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);

  for (const bool torn : {false, true}) {
    HurrayReader* reader = nullptr;
    ASSERT_EQ(hurray_stream_open_memory(sink.bytes.data(), torn ? torn_at : sink.bytes.size(),
                                        nullptr, &reader),
              HURRAY_OK);
    std::vector<std::uint64_t> lengths;
    HurrayStatus status = HURRAY_OK;
    for (;;) {
      Pair pair;
      status = hurray_reader_next(reader, &pair.list, &pair.ctx);
      if (status != HURRAY_OK || pair.list == nullptr) break;
      std::uint64_t length = 7;
      EXPECT_EQ(hurray_buffer_list_len(pair.list, &length), HURRAY_OK);
      lengths.push_back(length);
    }
    EXPECT_EQ(status, torn ? HURRAY_ERR_TORN_COMPOSITE : HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(lengths,
              torn ? (std::vector<std::uint64_t>{0, 1}) : (std::vector<std::uint64_t>{0, 1, 1}));
    EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  }
}

TEST(Writers, RefuseAListThatIsNotTheDescriptors) {
  Memory memory;
  Sink sink;
  HurrayWriter* writer = nullptr;
  ASSERT_EQ(hurray_stream_create_callback(&Sink::write, &sink, nullptr, &writer), HURRAY_OK);
  const auto refuse = [&](const std::vector<std::uint8_t>& bytes,
                          std::initializer_list<std::uint64_t> sizes, const char* says) {
    Pair pair;
    fill(pair, memory, bytes, sizes);
    EXPECT_LT(hurray_writer_write(writer, pair.list, pair.ctx), 0);
    EXPECT_NE(std::strstr(hurray_last_error(), says), nullptr) << hurray_last_error();
  };
  refuse(vector_descriptor(3), {}, "the descriptor has 1 buffers, the list 0");
  refuse(vector_descriptor(3), {12, 12}, "the list 2");
  refuse(vector_descriptor(3), {8}, "the descriptor declares 12, the handle in the list says 8");
  refuse({}, {8}, "truncated");
  refuse({'H', 'R'}, {8}, "");
  {
    Pair pair;  // declared on the CPU, handle on CUDA
    ASSERT_EQ(hurray_buffer_list_new(1, &pair.list), HURRAY_OK);
    ASSERT_EQ(hurray_buffer_list_push(pair.list,
                                      buffer_over(memory, nullptr, 12, 64, HURRAY_DEVICE_CUDA)),
              HURRAY_OK);
    const auto bytes = vector_descriptor(3);
    ASSERT_EQ(hurray_tensor_context_new(4, bytes.data(), bytes.size(), nullptr, nullptr, &pair.ctx),
              HURRAY_OK);
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_ERR_INVALID_LAYOUT);
    EXPECT_NE(std::strstr(hurray_last_error(), "device_tag"), nullptr);
  }
  {
    Pair pair;  // really on a device: nobody here can read it
    ASSERT_EQ(hurray_buffer_list_new(1, &pair.list), HURRAY_OK);
    ASSERT_EQ(hurray_buffer_list_push(pair.list,
                                      buffer_over(memory, nullptr, 12, 64, HURRAY_DEVICE_CUDA)),
              HURRAY_OK);
    hurray::Descriptor d;
    d.shape = hurray::Shape{3};
    d.buffers.push_back({.byte_size = 12, .alignment = 64, .device = hurray::Device::cuda});
    const auto bytes = encoded(d);
    ASSERT_EQ(hurray_tensor_context_new(4, bytes.data(), bytes.size(), nullptr, nullptr, &pair.ctx),
              HURRAY_OK);
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_ERR_UNSUPPORTED)
        << hurray_last_error();
  }
  {
    Pair pair;
    fill(pair, memory, vector_descriptor(3), {12});
    HurrayTensorContext* old = nullptr;
    const auto bytes = vector_descriptor(3);
    ASSERT_EQ(hurray_tensor_context_new(3, bytes.data(), bytes.size(), nullptr, nullptr, &old),
              HURRAY_OK);
    EXPECT_EQ(hurray_writer_write(writer, pair.list, old), HURRAY_ERR_UNSUPPORTED);
    EXPECT_EQ(hurray_tensor_context_destroy(&old), HURRAY_OK);
    // A buffer that is larger than declared is fine; nothing was written before.
    EXPECT_TRUE(sink.bytes.empty());
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_OK);
    EXPECT_FALSE(sink.bytes.empty());
  }
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
}

namespace {

struct Kv {
  const char* key;
  std::uint8_t type, element;
  const void* data;
  std::uint64_t count;
};

void put(HurrayFileWriter* writer, const Kv& kv, HurrayStatus expected = HURRAY_OK) {
  HurrayKvEntry entry = {};
  entry.key = kv.key;
  entry.key_length = std::strlen(kv.key);
  entry.type = kv.type;
  entry.element_type = kv.element;
  entry.data = kv.data;
  entry.count = kv.count;
  EXPECT_EQ(hurray_file_writer_put_kv(writer, &entry), expected)
      << kv.key << ' ' << hurray_last_error();
}

/// Tensors "a" (3 floats from 1) and "b" (none), and every type of metadata.
std::string write_file(const Folder& folder, const HurrayFileWriteOptions* options = nullptr) {
  const std::string path = folder / "t.hrry";
  HurrayFileWriter* writer = nullptr;
  EXPECT_EQ(hurray_file_create(path.data(), path.size(), options, &writer), HURRAY_OK)
      << hurray_last_error();
  Memory memory;
  const float values[] = {1, 2, 3};
  std::memcpy(memory.bytes, values, sizeof values);
  Pair a, b;
  fill(a, memory, vector_descriptor(3), {12});
  fill(b, memory, vector_descriptor(0), {0});
  EXPECT_EQ(hurray_file_writer_write(writer, "a", 1, a.list, a.ctx), HURRAY_OK)
      << hurray_last_error();
  EXPECT_EQ(hurray_file_writer_write(writer, "a", 1, b.list, b.ctx), HURRAY_ERR_DUPLICATE);
  EXPECT_EQ(hurray_file_writer_write(writer, "", 0, b.list, b.ctx), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_file_writer_write(writer, "b", 1, b.list, b.ctx), HURRAY_OK)
      << hurray_last_error();

  const std::int64_t i64 = -7;
  const std::uint64_t u64 = UINT64_MAX;
  const double f64[] = {0.5, -2};
  const std::uint8_t bits[] = {1, 0, 1};
  const HurraySpan strings[] = {{"x", 1}, {nullptr, 0}, {"yz", 2}};
  put(writer, {"text", HURRAY_KV_STRING, 0, "h\xC3\xA9", 3});
  put(writer, {"no text", HURRAY_KV_STRING, 0, nullptr, 0});
  put(writer, {"i", HURRAY_KV_INT64, 0, &i64, 1});
  put(writer, {"u", HURRAY_KV_UINT64, 0, &u64, 1});
  put(writer, {"f", HURRAY_KV_FLOAT64, 0, f64, 1});
  put(writer, {"yes", HURRAY_KV_BOOL, 0, bits, 1});
  put(writer, {"raw", HURRAY_KV_BYTES, 0, bits, 3});
  put(writer, {"is", HURRAY_KV_ARRAY, HURRAY_KV_INT64, &i64, 1});
  put(writer, {"fs", HURRAY_KV_ARRAY, HURRAY_KV_FLOAT64, f64, 2});
  put(writer, {"bits", HURRAY_KV_ARRAY, HURRAY_KV_BOOL, bits, 3});
  put(writer, {"strings", HURRAY_KV_ARRAY, HURRAY_KV_STRING, strings, 3});
  put(writer, {"none", HURRAY_KV_ARRAY, HURRAY_KV_UINT64, nullptr, 0});

  const std::uint8_t two = 2;
  constexpr HurrayStatus bad = HURRAY_ERR_INVALID_ARGUMENT;
  put(writer, {"i", HURRAY_KV_INT64, 0, &i64, 1}, HURRAY_ERR_DUPLICATE);
  put(writer, {"z", HURRAY_KV_INT64, 0, &i64, 2}, bad);
  put(writer, {"z", HURRAY_KV_INT64, 0, nullptr, 1}, HURRAY_ERR_NULL_POINTER);
  put(writer, {"z", HURRAY_KV_BOOL, 0, &two, 1}, bad);
  put(writer, {"z", 0, 0, &i64, 1}, bad);
  put(writer, {"z", HURRAY_KV_INT64, HURRAY_KV_INT64, &i64, 1}, bad);
  put(writer, {"z", 8, 0, &i64, 1}, bad);
  put(writer, {"z", HURRAY_KV_ARRAY, HURRAY_KV_ARRAY, &i64, 1}, bad);
  put(writer, {"", HURRAY_KV_INT64, 0, &i64, 1}, bad);
  put(writer, {"\xFF", HURRAY_KV_INT64, 0, &i64, 1}, bad);
  put(writer, {"z", HURRAY_KV_STRING, 0, "\xFF", 1}, bad);

  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(hurray_file_writer_finish(writer), HURRAY_OK) << hurray_last_error();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(hurray_file_writer_write(writer, "c", 1, b.list, b.ctx), HURRAY_ERR_INVALID_STATE);
  put(writer, {"late", HURRAY_KV_INT64, 0, &i64, 1}, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(hurray_file_writer_destroy(&writer), HURRAY_OK);
  EXPECT_EQ(writer, nullptr);
  return path;
}

std::vector<std::uint8_t> read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_file(HurrayFile* file) {
  std::uint64_t count = 0, at = 7;
  EXPECT_EQ(hurray_file_count(file, &count), HURRAY_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(hurray_file_find(file, "b", 1, &at), HURRAY_OK);
  EXPECT_EQ(at, 1u);
  EXPECT_EQ(hurray_file_find(file, "c", 1, &at), HURRAY_ERR_NOT_FOUND);
  EXPECT_EQ(at, 1u);
  const char* name = nullptr;
  std::uint64_t length = 0;
  EXPECT_EQ(hurray_file_name(file, 0, &name, &length), HURRAY_OK);
  EXPECT_EQ(std::string(name, length), "a");
  HurrayFileEntry entry = {};
  EXPECT_EQ(hurray_file_entry(file, 0, &entry), HURRAY_OK);
  EXPECT_EQ(std::string(entry.name, entry.name_length), "a");
  EXPECT_EQ(entry.descriptor_offset, 64u);
  EXPECT_EQ(entry.data_offset, 4096u);
  EXPECT_EQ(entry.data_length, 12u);
  HurrayDescriptor* d = nullptr;
  EXPECT_EQ(hurray_file_descriptor(file, 0, &d), HURRAY_OK);
  std::uint64_t elements = 0;
  EXPECT_EQ(hurray_descriptor_element_count(d, &elements), HURRAY_OK);
  EXPECT_EQ(elements, 3u);
  EXPECT_EQ(hurray_descriptor_destroy(d), HURRAY_OK);
  {
    Pair pair;
    ASSERT_EQ(hurray_file_read(file, 0, &pair.list, &pair.ctx), HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(values_of(pair), (std::vector<float>{1, 2, 3}));
  }
  {
    Pair pair;
    ASSERT_EQ(hurray_file_read(file, 1, &pair.list, &pair.ctx), HURRAY_OK);
    EXPECT_EQ(values_of(pair), std::vector<float>());
  }
  for (const std::uint64_t i : {std::uint64_t{2}, UINT64_MAX}) {
    EXPECT_EQ(hurray_file_name(file, i, &name, &length), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    EXPECT_EQ(hurray_file_entry(file, i, &entry), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    EXPECT_EQ(hurray_file_descriptor(file, i, &d), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    HurrayBufferList* list = nullptr;
    HurrayTensorContext* ctx = nullptr;
    EXPECT_EQ(hurray_file_read(file, i, &list, &ctx), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    std::uint64_t n = 0;
    EXPECT_EQ(hurray_file_members(file, i, nullptr, &n), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  }
  std::uint64_t members[1], n = 1;
  EXPECT_EQ(hurray_file_members(file, 0, members, &n), HURRAY_OK);
  EXPECT_EQ(n, 0u);

  EXPECT_EQ(hurray_file_kv_count(file, &count), HURRAY_OK);
  EXPECT_EQ(count, 12u);
  HurrayKvEntry kv = {};
  const auto find = [&](const char* key, std::uint8_t type, std::uint8_t element,
                        std::uint64_t expected) {
    EXPECT_EQ(hurray_file_kv_find(file, key, std::strlen(key), &kv), HURRAY_OK) << key;
    EXPECT_EQ(std::string(kv.key, kv.key_length), key);
    EXPECT_EQ(kv.type, type) << key;
    EXPECT_EQ(kv.element_type, element) << key;
    EXPECT_EQ(kv.count, expected) << key;
    return kv.data;
  };
  EXPECT_EQ(std::string_view(static_cast<const char*>(find("text", HURRAY_KV_STRING, 0, 3)), 3),
            "h\xC3\xA9");
  find("no text", HURRAY_KV_STRING, 0, 0);
  EXPECT_EQ(*static_cast<const std::int64_t*>(find("i", HURRAY_KV_INT64, 0, 1)), -7);
  EXPECT_EQ(*static_cast<const std::uint64_t*>(find("u", HURRAY_KV_UINT64, 0, 1)), UINT64_MAX);
  EXPECT_EQ(*static_cast<const double*>(find("f", HURRAY_KV_FLOAT64, 0, 1)), 0.5);
  EXPECT_EQ(*static_cast<const std::uint8_t*>(find("yes", HURRAY_KV_BOOL, 0, 1)), 1);
  EXPECT_EQ(std::memcmp(find("raw", HURRAY_KV_BYTES, 0, 3), "\1\0\1", 3), 0);
  EXPECT_EQ(*static_cast<const std::int64_t*>(find("is", HURRAY_KV_ARRAY, HURRAY_KV_INT64, 1)), -7);
  EXPECT_EQ(static_cast<const double*>(find("fs", HURRAY_KV_ARRAY, HURRAY_KV_FLOAT64, 2))[1], -2);
  EXPECT_EQ(std::memcmp(find("bits", HURRAY_KV_ARRAY, HURRAY_KV_BOOL, 3), "\1\0\1", 3), 0);
  const auto* spans =
      static_cast<const HurraySpan*>(find("strings", HURRAY_KV_ARRAY, HURRAY_KV_STRING, 3));
  EXPECT_EQ(spans[1].length, 0u);
  EXPECT_EQ(std::string_view(static_cast<const char*>(spans[2].data), spans[2].length), "yz");
  find("none", HURRAY_KV_ARRAY, HURRAY_KV_UINT64, 0);
  const HurrayKvEntry kept = kv;
  EXPECT_EQ(hurray_file_kv_find(file, "nothing", 7, &kv), HURRAY_ERR_NOT_FOUND);
  EXPECT_EQ(hurray_file_kv_entry(file, 12, &kv), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  EXPECT_EQ(kv.key, kept.key);
  EXPECT_EQ(hurray_file_kv_entry(file, 0, &kv), HURRAY_OK);
  EXPECT_EQ(std::string(kv.key, kv.key_length), "text");
}

}  // namespace

TEST(Files, ComeFromPathsDescriptorsAndMemoryInEveryMode) {
  const std::size_t before = live_handles();
  const Folder folder;
  const std::string path = write_file(folder);
  const auto image = read_all(path);
  for (const std::uint8_t mode : {HURRAY_MODE_MAP, HURRAY_MODE_COPY_ON_WRITE, HURRAY_MODE_MEMORY}) {
    HurrayFileOptions options = {};
    options.struct_size = sizeof options;
    options.mode = mode;
    HurrayFile* file = nullptr;
    ASSERT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_OK);
    expect_file(file);
    EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
    EXPECT_EQ(file, nullptr);

    const int fd = ::open(path.c_str(), O_RDONLY);
    ASSERT_EQ(hurray_file_open_fd(fd, &options, &file), HURRAY_OK) << hurray_last_error();
    ::close(fd);
    expect_file(file);
    EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);

    const auto* aligned =
        static_cast<std::uint8_t*>(std::aligned_alloc(4096, (image.size() + 4095) / 4096 * 4096));
    std::memcpy(const_cast<std::uint8_t*>(aligned), image.data(), image.size());
    ASSERT_EQ(hurray_file_open_memory(aligned, image.size(), &options, &file), HURRAY_OK)
        << hurray_last_error();
    expect_file(file);
    EXPECT_EQ(hurray_file_verify(file, nullptr, nullptr), HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
    std::free(const_cast<std::uint8_t*>(aligned));
  }
  EXPECT_EQ(live_handles(), before);
}

TEST(Files, TensorsOutliveThem) {
  const Folder folder;
  const std::string path = write_file(folder);
  for (const std::uint8_t mode : {HURRAY_MODE_MAP, HURRAY_MODE_MEMORY}) {
    HurrayFileOptions options = {};
    options.struct_size = sizeof options;
    options.mode = mode;
    HurrayFile* file = nullptr;
    ASSERT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_OK);
    Pair pair;
    ASSERT_EQ(hurray_file_read(file, 0, &pair.list, &pair.ctx), HURRAY_OK);
    EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
    EXPECT_EQ(values_of(pair), (std::vector<float>{1, 2, 3}));
  }
}

TEST(Files, CopyOnWriteLetsWritesStayHere) {
  const Folder folder;
  const std::string path = write_file(folder);
  const auto before = read_all(path);
  HurrayFileOptions options = {};
  options.struct_size = sizeof options;
  options.mode = HURRAY_MODE_COPY_ON_WRITE;
  HurrayFile* file = nullptr;
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_OK);
  Pair pair;
  ASSERT_EQ(hurray_file_read(file, 0, &pair.list, &pair.ctx), HURRAY_OK);
  HurrayBuffer* buffer = nullptr;
  void* data = nullptr;
  ASSERT_EQ(hurray_buffer_list_get(pair.list, 0, &buffer), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_data_ptr(buffer, &data), HURRAY_OK);
  static_cast<float*>(data)[0] = 99;
  EXPECT_EQ(values_of(pair), (std::vector<float>{99, 2, 3}));
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
  EXPECT_EQ(read_all(path), before);
}

TEST(Files, TwoSavesAreTheSameBytesAndOptionsAreFollowed) {
  const Folder first, second;
  const std::string path = write_file(first);
  EXPECT_EQ(read_all(path), read_all(write_file(second)));

  const Folder third;
  HurrayFileWriteOptions options = {};
  options.struct_size = sizeof options;
  options.alignment = 8192;
  options.no_checksums = 1;
  options.sorted_index = 1;
  options.no_sync = 1;
  options.has_tensor_count = 1;
  options.tensor_count = 2;
  const std::string other = write_file(third, &options);
  HurrayFile* file = nullptr;
  ASSERT_EQ(hurray_file_open(other.data(), other.size(), nullptr, &file), HURRAY_OK);
  HurrayFileEntry entry = {};
  EXPECT_EQ(hurray_file_entry(file, 0, &entry), HURRAY_OK);
  EXPECT_EQ(entry.data_offset, 8192u);
  EXPECT_EQ(hurray_file_verify(file, nullptr, nullptr), HURRAY_OK) << hurray_last_error();
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);

  HurrayFileWriter* writer = nullptr;
  options.alignment = 100;
  EXPECT_EQ(hurray_file_create(path.data(), path.size(), &options, &writer),
            HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(writer, nullptr);
}

TEST(Files, VerificationNamesWhatIsDamaged) {
  const Folder folder;
  const std::string path = write_file(folder);
  auto bytes = read_all(path);
  bytes[4100] ^= 1;  // in the data of "a"
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  HurrayFile* file = nullptr;
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), nullptr, &file), HURRAY_OK);
  std::vector<std::string> parts;
  const HurrayFindingFn report = [](void* context, const HurrayFinding* finding) {
    EXPECT_EQ(finding->status, HURRAY_ERR_CRC_MISMATCH);
    EXPECT_LE(finding->offset, 4100u);
    EXPECT_GT(finding->offset + finding->length, 4100u);
    EXPECT_NE(std::strlen(finding->message), 0u);
    static_cast<std::vector<std::string>*>(context)->emplace_back(finding->part,
                                                                  finding->part_length);
    return 0;
  };
  EXPECT_EQ(hurray_file_verify(file, report, &parts), HURRAY_ERR_CRC_MISMATCH);
  EXPECT_EQ(parts, std::vector<std::string>{"a"});
  EXPECT_EQ(hurray_file_verify(
                file, [](void*, const HurrayFinding*) -> int { throw 1; }, nullptr),
            HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);

  HurrayFileOptions options = {};
  options.struct_size = sizeof options;
  options.mode = HURRAY_MODE_MEMORY;
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_OK);
  EXPECT_EQ(hurray_file_read(file, 0, &list, &ctx), HURRAY_ERR_CRC_MISMATCH);
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
  options.verify = HURRAY_OFF;
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_OK);
  {
    Pair pair;
    EXPECT_EQ(hurray_file_read(file, 0, &pair.list, &pair.ctx), HURRAY_OK);
  }
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
}

TEST(Files, BadOnesAreNamed) {
  const Folder folder;
  const std::string path = write_file(folder);
  const auto bytes = read_all(path);
  auto* file = sentinel<HurrayFile>();
  const std::string nowhere = folder / "nothing.hrry";
  EXPECT_EQ(hurray_file_open(nowhere.data(), nowhere.size(), nullptr, &file), HURRAY_ERR_IO);
  EXPECT_NE(std::strstr(hurray_last_error(), "nothing.hrry"), nullptr);
  EXPECT_EQ(hurray_file_open("", 0, nullptr, &file), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_file_open("a\0b", 3, nullptr, &file), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_file_open("a", UINT64_MAX, nullptr, &file), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_file_open_fd(-1, nullptr, &file), HURRAY_ERR_IO);
  EXPECT_LT(hurray_file_open_memory(nullptr, 0, nullptr, &file), 0);
  EXPECT_LT(hurray_file_open_memory(bytes.data(), bytes.size() - 1, nullptr, &file), 0);
  const std::uint8_t zip[36] = {'P', 'K', 3, 4};
  EXPECT_EQ(hurray_file_open_memory(zip, sizeof zip, nullptr, &file), HURRAY_ERR_INVALID_FILE);
  HurrayFileOptions options = {};
  options.struct_size = sizeof options;
  options.mode = 3;
  EXPECT_EQ(hurray_file_open(path.data(), path.size(), &options, &file),
            HURRAY_ERR_INVALID_ARGUMENT);
  options.mode = 0;
  options.max_tensors = 1;
  EXPECT_EQ(hurray_file_open(path.data(), path.size(), &options, &file), HURRAY_ERR_LIMIT_EXCEEDED);
  EXPECT_EQ(file, sentinel<HurrayFile>());
}

TEST(Files, WritersLeaveNothingWithoutFinish) {
  const Folder folder;
  const std::string path = folder / "t.hrry";
  HurrayFileWriter* writer = nullptr;
  ASSERT_EQ(hurray_file_create(path.data(), path.size(), nullptr, &writer), HURRAY_OK);
  Memory memory;
  Pair pair;
  fill(pair, memory, vector_descriptor(3), {12});
  EXPECT_EQ(hurray_file_writer_write(writer, "a", 1, pair.list, pair.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_file_writer_destroy(&writer), HURRAY_OK);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
}

TEST(Files, CompositesKeepTheirMembersInOrder) {
  const Folder folder;
  const std::string path = folder / "t.hrry";
  const Partition composite;
  HurrayFileWriteOptions options = {};
  options.struct_size = sizeof options;
  options.sorted_index = 1;
  HurrayFileWriter* writer = nullptr;
  ASSERT_EQ(hurray_file_create(path.data(), path.size(), &options, &writer), HURRAY_OK);
  EXPECT_EQ(hurray_file_writer_write(writer, "m", 1, composite.head.list, composite.head.ctx),
            HURRAY_OK);
  EXPECT_EQ(hurray_file_writer_write(writer, "z", 1, composite.first.list, composite.first.ctx),
            HURRAY_OK);
  EXPECT_EQ(hurray_file_writer_finish(writer), HURRAY_ERR_TORN_COMPOSITE);
  EXPECT_EQ(hurray_file_writer_write(writer, "b", 1, composite.second.list, composite.second.ctx),
            HURRAY_OK);
  EXPECT_EQ(hurray_file_writer_finish(writer), HURRAY_OK) << hurray_last_error();
  EXPECT_EQ(hurray_file_writer_destroy(&writer), HURRAY_OK);

  HurrayFile* file = nullptr;
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), nullptr, &file), HURRAY_OK);
  std::uint64_t at = 7, members[2] = {7, 7}, n = 1;
  ASSERT_EQ(hurray_file_find(file, "m", 1, &at), HURRAY_OK);
  EXPECT_EQ(at, 1u);  // sorted: b, m, z
  EXPECT_EQ(hurray_file_members(file, at, members, &n), HURRAY_ERR_BUFFER_TOO_SMALL);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(hurray_file_members(file, at, members, &n), HURRAY_OK);
  EXPECT_EQ(members[0], 2u);
  EXPECT_EQ(members[1], 0u);
  Pair pair;
  ASSERT_EQ(hurray_file_read(file, at, &pair.list, &pair.ctx), HURRAY_OK);
  std::uint64_t length = 7;
  EXPECT_EQ(hurray_buffer_list_len(pair.list, &length), HURRAY_OK);
  EXPECT_EQ(length, 0u);
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
}

/// A tensor whose descriptor declares a device, while its bytes came from a file: relayed as it is.
TEST(Files, DeclaredDevicesAreRelayed) {
  hurray::Descriptor d;
  d.shape = hurray::Shape{3};
  d.buffers.push_back({.byte_size = 12,
                       .alignment = 64,
                       .device = hurray::Device::cuda,
                       .sync_mode = hurray::SyncMode::event});
  auto stream = hurray::io::StreamWriter::in_memory();
  ASSERT_TRUE(stream);
  const std::byte data[12] = {};
  const hurray::io::BufferSource source{std::span<const std::byte>(data)};
  ASSERT_TRUE(stream->write(d, {&source, 1}));
  std::array<Pair, 16> pairs;  // kept, so that the memory lies here and there
  for (Pair& pair : pairs) {
    HurrayReader* reader = nullptr;
    ASSERT_EQ(
        hurray_stream_open_memory(reinterpret_cast<const std::uint8_t*>(stream->bytes().data()),
                                  stream->bytes().size(), nullptr, &reader),
        HURRAY_OK);
    ASSERT_EQ(hurray_reader_next(reader, &pair.list, &pair.ctx), HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
    Sink sink;
    HurrayWriter* writer = nullptr;
    ASSERT_EQ(hurray_stream_create_callback(&Sink::write, &sink, nullptr, &writer), HURRAY_OK);
    EXPECT_EQ(hurray_writer_write(writer, pair.list, pair.ctx), HURRAY_OK) << hurray_last_error();
    EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(sink.bytes)), stream->bytes()));
  }
}

TEST(Checksum, IsThatOfTheFormat) {
  std::uint32_t sum = 0;
  EXPECT_EQ(hurray_crc32c("123456789", 9, &sum), HURRAY_OK);
  EXPECT_EQ(sum, 0xE3069283u);
  sum = 0;
  EXPECT_EQ(hurray_crc32c("12345", 5, &sum), HURRAY_OK);
  EXPECT_EQ(hurray_crc32c("6789", 4, &sum), HURRAY_OK);
  EXPECT_EQ(sum, 0xE3069283u);
  EXPECT_EQ(hurray_crc32c(nullptr, 0, &sum), HURRAY_OK);
  EXPECT_EQ(sum, 0xE3069283u);
  EXPECT_EQ(hurray_crc32c(nullptr, 1, &sum), HURRAY_ERR_NULL_POINTER);
}

TEST(Files, KeyValuesThatAreSwitchedOffAreRefused) {
  const Folder folder;
  const std::string path = folder / "t.hrry";
  HurrayFileWriteOptions options = {};
  options.struct_size = sizeof options;
  options.no_key_values = 1;
  HurrayFileWriter* writer = nullptr;
  ASSERT_EQ(hurray_file_create(path.data(), path.size(), &options, &writer), HURRAY_OK);
  const std::int64_t one = 1;
  put(writer, {"i", HURRAY_KV_INT64, 0, &one, 1}, HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_file_writer_finish(writer), HURRAY_OK) << hurray_last_error();
  EXPECT_EQ(hurray_file_writer_destroy(&writer), HURRAY_OK);
}

TEST(Files, UnalignedImagesAreCopiedOnRequest) {
  const Folder folder;
  const auto image = read_all(write_file(folder));
  std::vector<std::uint8_t> shifted(image.size() + 128);
  const auto address = reinterpret_cast<std::uintptr_t>(shifted.data());
  std::uint8_t* odd = shifted.data() + (64 - address % 64) + 1;
  std::ranges::copy(image, odd);
  HurrayFile* file = nullptr;
  EXPECT_EQ(hurray_file_open_memory(odd, image.size(), nullptr, &file), HURRAY_ERR_UNSUPPORTED);
  EXPECT_NE(std::strstr(hurray_last_error(), "HURRAY_MODE_MEMORY"), nullptr);
  HurrayFileOptions options = {};
  options.struct_size = sizeof options;
  options.mode = HURRAY_MODE_MEMORY;
  ASSERT_EQ(hurray_file_open_memory(odd, image.size(), &options, &file), HURRAY_OK);
  expect_file(file);
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);
}

TEST(Callbacks, CannotUseTheHandleThatCalls) {
  struct Inside {
    HurrayReader* reader = nullptr;
    HurrayWriter* writer = nullptr;
    HurrayFile* file = nullptr;
    HurrayStatus next = 0, destroy = 0;
  } inside;
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(hurray_stream_open_callback(
                [](void* context, std::uint8_t*, std::uint64_t) -> std::int64_t {
                  auto& in = *static_cast<Inside*>(context);
                  HurrayBufferList* one = nullptr;
                  HurrayTensorContext* two = nullptr;
                  in.next = hurray_reader_next(in.reader, &one, &two);
                  in.destroy = hurray_reader_destroy(&in.reader);
                  return 0;
                },
                &inside, nullptr, &inside.reader),
            HURRAY_OK);
  EXPECT_EQ(hurray_reader_next(inside.reader, &list, &ctx), HURRAY_OK);  // an empty stream
  EXPECT_EQ(inside.next, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(inside.destroy, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(hurray_reader_destroy(&inside.reader), HURRAY_OK);

  ASSERT_EQ(hurray_stream_create_callback(
                [](void* context, const std::uint8_t*, std::uint64_t len) {
                  auto& in = *static_cast<Inside*>(context);
                  in.next = hurray_writer_finish(in.writer);
                  in.destroy = hurray_writer_destroy(&in.writer);
                  return static_cast<std::int64_t>(len);
                },
                &inside, nullptr, &inside.writer),
            HURRAY_OK);
  Memory memory;
  Pair pair;
  fill(pair, memory, vector_descriptor(3), {12});
  inside.next = inside.destroy = 0;
  EXPECT_EQ(hurray_writer_write(inside.writer, pair.list, pair.ctx), HURRAY_OK);
  EXPECT_EQ(hurray_writer_finish(inside.writer), HURRAY_OK);
  EXPECT_EQ(inside.next, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(inside.destroy, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(hurray_writer_destroy(&inside.writer), HURRAY_OK);

  const Folder folder;
  const std::string path = write_file(folder);
  auto bytes = read_all(path);
  bytes[4100] ^= 1;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  ASSERT_EQ(hurray_file_open(path.data(), path.size(), nullptr, &inside.file), HURRAY_OK);
  inside.destroy = 0;
  EXPECT_EQ(hurray_file_verify(
                inside.file,
                [](void* context, const HurrayFinding*) {
                  auto& in = *static_cast<Inside*>(context);
                  in.destroy = hurray_file_destroy(&in.file);
                  return 0;
                },
                &inside),
            HURRAY_ERR_CRC_MISMATCH);
  EXPECT_EQ(inside.destroy, HURRAY_ERR_INVALID_STATE);
  EXPECT_EQ(hurray_file_destroy(&inside.file), HURRAY_OK);
}
