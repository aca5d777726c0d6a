// Every allocation of every call fails once: the call says so, and nothing leaks or changes.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "../../../core/tests/fail_everywhere.hpp"
#include "support.hpp"

using namespace hurray::testing;

namespace {

/// Runs `call` with its n-th allocation failing, for every n, until it succeeds.
template <class Call>
void everywhere(const char* name, HurrayStatus expected, Call call) {
  for (long n = 0;; ++n) {
    ASSERT_LT(n, 2000) << name;
    const std::size_t before = live_handles();
    fail_after = n;
    const HurrayStatus status = call();
    const bool reached = fail_after < 0;
    fail_after = -1;
    if (status == HURRAY_OK) return;
    EXPECT_TRUE(reached) << name;
    ASSERT_EQ(status, expected) << name << ' ' << n << ' ' << hurray_last_error();
    EXPECT_STRNE(hurray_last_error(), "") << name;
    EXPECT_EQ(live_handles(), before) << name << ' ' << n;
  }
}

}  // namespace

TEST(Allocation, FailsEverywhereInTheHandlesOfTensors) {
  Memory memory;
  Released released;
  const auto descriptor = vector_descriptor(64);
  std::vector<std::uint8_t> large(4096, 7);
  // Enough that every pool needs more memory, and lists more than they have in place.
  for (int round = 0; round < 40; ++round) {
    HurrayBuffer* buffers[6] = {};
    for (HurrayBuffer*& buffer : buffers)
      everywhere("from_ptr", HURRAY_ERR_INTERNAL, [&] {
        return hurray_buffer_from_ptr(memory.bytes, 64, 64, 0, 0, 0, &Released::callback, &released,
                                      &buffer);
      });
    HurrayBufferList* list = nullptr;
    everywhere("list_new", HURRAY_ERR_INTERNAL, [&] { return hurray_buffer_list_new(6, &list); });
    for (HurrayBuffer* buffer : buffers)
      everywhere("push", HURRAY_ERR_INTERNAL,
                 [&] { return hurray_buffer_list_push(list, buffer); });
    HurrayTensorContext* ctx = nullptr;
    everywhere("context_new", HURRAY_ERR_INTERNAL, [&] {
      return hurray_tensor_context_new(4, large.data(), large.size(), &released, &Released::owner,
                                       &ctx);
    });
    HurrayDescriptor* d = nullptr;
    everywhere("decode", HURRAY_ERR_INTERNAL,
               [&] { return hurray_descriptor_decode(descriptor.data(), descriptor.size(), &d); });
    HurrayBuffer* copy = nullptr;
    everywhere("copy", HURRAY_ERR_OUT_OF_MEMORY,
               [&] { return hurray_buffer_copy(large.data(), large.size(), 64, &copy); });
    EXPECT_EQ(hurray_buffer_destroy(copy), HURRAY_OK);
    EXPECT_EQ(hurray_descriptor_destroy(d), HURRAY_OK);
    if (round % 2 == 0) continue;  // some stay, so that the pools grow
    EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
    EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
  }
  EXPECT_EQ(released.calls, 20 * 7);
}

TEST(Allocation, FailsEverywhereInDescriptors) {
  const std::uint64_t shape[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const HurrayBufferInfo buffers[] = {{4, 64, 0, 0, 0, 0}};
  HurrayDescriptorInit init = {};
  init.struct_size = sizeof init;
  init.element_type_tag = HURRAY_TYPE_FLOAT32;
  init.layout_tag = HURRAY_LAYOUT_COL_MAJOR;
  init.shape = shape;
  init.rank = 10;
  init.buffers = buffers;
  init.buffer_count = 1;
  HurrayDescriptor* d = nullptr;
  everywhere("new", HURRAY_ERR_OUT_OF_MEMORY, [&] { return hurray_descriptor_new(&init, &d); });
  const std::uint8_t* bytes = nullptr;
  std::uint64_t length = 0;
  everywhere("layout_bytes", HURRAY_ERR_OUT_OF_MEMORY,
             [&] { return hurray_descriptor_layout_bytes(d, &bytes, &length); });
  std::int64_t strides[10];
  std::uintptr_t rank = 10;
  everywhere("strides", HURRAY_ERR_OUT_OF_MEMORY,
             [&] { return hurray_descriptor_strides(d, strides, &rank); });
  EXPECT_EQ(strides[9], 1);
  EXPECT_EQ(hurray_descriptor_destroy(d), HURRAY_OK);
}

TEST(Allocation, FailsEverywhereInFilesAndStreams) {
  std::string pattern = (std::filesystem::temp_directory_path() / "hurray-c-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::string path = folder / "t.hrry";
  Memory memory;
  const auto descriptor = vector_descriptor(64);
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(1, &list), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, buffer_over(memory)), HURRAY_OK);
  ASSERT_EQ(
      hurray_tensor_context_new(4, descriptor.data(), descriptor.size(), nullptr, nullptr, &ctx),
      HURRAY_OK);
  constexpr HurrayStatus none = HURRAY_ERR_OUT_OF_MEMORY;

  HurrayFileWriter* writer = nullptr;
  everywhere("file_create", none,
             [&] { return hurray_file_create(path.data(), path.size(), nullptr, &writer); });
  everywhere("file_write", none,
             [&] { return hurray_file_writer_write(writer, "a", 1, list, ctx); });
  const HurraySpan spans[] = {{"one", 3}, {"a longer text, beyond what fits in place", 40}};
  HurrayKvEntry entry = {};
  entry.key = "a longer key, beyond what fits in place";
  entry.key_length = std::strlen(entry.key);
  entry.type = HURRAY_KV_ARRAY;
  entry.element_type = HURRAY_KV_STRING;
  entry.data = spans;
  entry.count = 2;
  everywhere("put_kv", none, [&] { return hurray_file_writer_put_kv(writer, &entry); });
  EXPECT_EQ(hurray_file_writer_finish(writer), HURRAY_OK) << hurray_last_error();
  EXPECT_EQ(hurray_file_writer_destroy(&writer), HURRAY_OK);

  HurrayFile* file = nullptr;
  everywhere("file_open", none,
             [&] { return hurray_file_open(path.data(), path.size(), nullptr, &file); });
  HurrayBufferList* out_list = nullptr;
  HurrayTensorContext* out_ctx = nullptr;
  everywhere("file_read", none, [&] { return hurray_file_read(file, 0, &out_list, &out_ctx); });
  EXPECT_EQ(hurray_buffer_list_destroy(&out_list), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&out_ctx), HURRAY_OK);
  HurrayDescriptor* d = nullptr;
  everywhere("file_descriptor", none, [&] { return hurray_file_descriptor(file, 0, &d); });
  EXPECT_EQ(hurray_descriptor_destroy(d), HURRAY_OK);
  std::uint64_t members = 0;
  everywhere("file_members", none, [&] {
    std::uint64_t index = 0;
    members = 1;
    return hurray_file_members(file, 0, &index, &members);
  });
  everywhere("file_verify", none, [&] { return hurray_file_verify(file, nullptr, nullptr); });
  EXPECT_EQ(hurray_file_destroy(&file), HURRAY_OK);

  HurrayWriter* stream = nullptr;
  const std::string stream_path = folder / "t.stream";
  everywhere("stream_create", none, [&] {
    return hurray_stream_create_path(stream_path.data(), stream_path.size(), nullptr, &stream);
  });
  everywhere("stream_write", none, [&] { return hurray_writer_write(stream, list, ctx); });
  EXPECT_EQ(hurray_writer_finish(stream), HURRAY_OK);
  EXPECT_EQ(hurray_writer_destroy(&stream), HURRAY_OK);
  HurrayReader* reader = nullptr;
  everywhere("stream_open", none, [&] {
    return hurray_stream_open_path(stream_path.data(), stream_path.size(), nullptr, &reader);
  });
  // A reader that failed is exhausted: one for each allocation.
  EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
  everywhere("reader_next", none, [&] {
    const long kept = fail_after;
    fail_after = -1;
    EXPECT_EQ(hurray_stream_open_path(stream_path.data(), stream_path.size(), nullptr, &reader),
              HURRAY_OK);
    fail_after = kept;
    const HurrayStatus status = hurray_reader_next(reader, &out_list, &out_ctx);
    const long after = fail_after;
    fail_after = -1;
    EXPECT_EQ(hurray_reader_destroy(&reader), HURRAY_OK);
    fail_after = after;
    return status;
  });
  EXPECT_EQ(hurray_buffer_list_destroy(&out_list), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&out_ctx), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
  std::filesystem::remove_all(folder);
}
