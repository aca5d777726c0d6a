// Handles of a second build of the library, and of things that are no handles at all.
#include <dlfcn.h>

#include <cstring>
#include <memory>

#include "support.hpp"

using namespace hurray::testing;

namespace {

/// The other build: other allocator, other insides, its own copy of every function.
class Twin {
 public:
  Twin() : library_(::dlopen(HURRAY_C_TWIN_PATH, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
  }
  template <class Function>
  Function* get(const char* name, Function*) const {
    auto* found = reinterpret_cast<Function*>(::dlsym(library_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }

 private:
  void* library_;  // never closed: its handles' functions live as long as the program
};

const Twin& twin() {
  static const Twin instance;
  return instance;
}
#define TWIN(function) twin().get(#function, &function)

/// A tensor of three floats as a pair made by one library's functions.
struct Functions {
  decltype(&hurray_buffer_from_ptr) from_ptr;
  decltype(&hurray_buffer_list_new) list_new;
  decltype(&hurray_buffer_list_push) list_push;
  decltype(&hurray_tensor_context_new) context_new;
};

struct Capsule {
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  Memory memory;
  Released buffer, owner;
};

std::unique_ptr<Capsule> produce(const Functions& f) {
  auto made = std::make_unique<Capsule>();
  const float values[] = {1.5f, -2, 8};
  std::memcpy(made->memory.bytes, values, sizeof values);
  HurrayBuffer* handle = nullptr;
  EXPECT_EQ(f.from_ptr(made->memory.bytes, 12, 4096, 0, 0, 0, &Released::callback, &made->buffer,
                       &handle),
            HURRAY_OK);
  EXPECT_EQ(f.list_new(1, &made->list), HURRAY_OK);
  EXPECT_EQ(f.list_push(made->list, handle), HURRAY_OK);
  const auto descriptor = vector_descriptor(3, 4096);
  EXPECT_EQ(f.context_new(4, descriptor.data(), descriptor.size(), &made->owner, &Released::owner,
                          &made->ctx),
            HURRAY_OK);
  return made;
}

/// What a consumer does, by `this` build's functions or the twin's.
struct Consumer {
  decltype(&hurray_tensor_context_abi_version) version;
  decltype(&hurray_tensor_context_descriptor) descriptor;
  decltype(&hurray_buffer_list_len) len;
  decltype(&hurray_buffer_list_get) get;
  decltype(&hurray_buffer_byte_size) byte_size;
  decltype(&hurray_buffer_alignment) alignment;
  decltype(&hurray_buffer_device_tag) device;
  decltype(&hurray_buffer_sync_mode) sync_mode;
  decltype(&hurray_buffer_memory_class) memory_class;
  decltype(&hurray_buffer_data_ptr) data;
  decltype(&hurray_buffer_handoff_producer_synced) handoff;
  decltype(&hurray_buffer_handoff_event) handoff_event;
  decltype(&hurray_buffer_list_destroy) list_destroy;
  decltype(&hurray_tensor_context_destroy) context_destroy;
  decltype(&hurray_last_error) last_error;
};

void consume(Capsule& capsule, const Consumer& f) {
  std::uint32_t version = 0;
  EXPECT_EQ(f.version(capsule.ctx, &version), HURRAY_OK) << f.last_error();
  EXPECT_EQ(version, 4u);
  const std::uint8_t* bytes = nullptr;
  std::uint64_t length = 0;
  EXPECT_EQ(f.descriptor(capsule.ctx, &bytes, &length), HURRAY_OK);
  const auto expected = vector_descriptor(3, 4096);
  ASSERT_EQ(length, expected.size());
  EXPECT_EQ(std::memcmp(bytes, expected.data(), expected.size()), 0);
  std::uint64_t count = 0;
  EXPECT_EQ(f.len(capsule.list, &count), HURRAY_OK);
  ASSERT_EQ(count, 1u);
  HurrayBuffer* handle = nullptr;
  ASSERT_EQ(f.get(capsule.list, 0, &handle), HURRAY_OK);
  std::uint64_t size = 0;
  std::uint32_t alignment = 0;
  std::uint8_t device = 9, sync_mode = 9, memory_class = 9;
  void* data = nullptr;
  EXPECT_EQ(f.byte_size(handle, &size), HURRAY_OK);
  EXPECT_EQ(f.alignment(handle, &alignment), HURRAY_OK);
  EXPECT_EQ(f.device(handle, &device), HURRAY_OK);
  EXPECT_EQ(f.sync_mode(handle, &sync_mode), HURRAY_OK);
  EXPECT_EQ(f.memory_class(handle, &memory_class), HURRAY_OK);
  EXPECT_EQ(f.data(handle, &data), HURRAY_OK);
  EXPECT_EQ(size, 12u);
  EXPECT_EQ(alignment, 4096u);
  EXPECT_EQ(device + sync_mode + memory_class, 0);
  EXPECT_EQ(data, capsule.memory.bytes);
  EXPECT_EQ(f.handoff(handle), HURRAY_OK);
  const HurraySyncEventPayload event{&capsule, 0, [](void*, void*) {}, nullptr};
  EXPECT_EQ(f.handoff_event(handle, &event), HURRAY_ERR_SYNC_MODE_MISMATCH);

  // The other library's refusal comes with its words.
  auto* none = sentinel<HurrayBuffer>();
  EXPECT_EQ(f.get(capsule.list, 1, &none), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  EXPECT_NE(std::strstr(f.last_error(), "fewer buffers"), nullptr) << f.last_error();
  EXPECT_EQ(none, sentinel<HurrayBuffer>());

  EXPECT_EQ(f.list_destroy(&capsule.list), HURRAY_OK);
  EXPECT_EQ(capsule.list, nullptr);
  EXPECT_EQ(capsule.buffer.calls, 1);
  EXPECT_EQ(f.context_destroy(&capsule.ctx), HURRAY_OK);
  EXPECT_EQ(capsule.ctx, nullptr);
  EXPECT_EQ(capsule.owner.calls, 1);
}

Functions our_functions() {
  return {&hurray_buffer_from_ptr, &hurray_buffer_list_new, &hurray_buffer_list_push,
          &hurray_tensor_context_new};
}
Functions twin_functions() {
  return {TWIN(hurray_buffer_from_ptr), TWIN(hurray_buffer_list_new), TWIN(hurray_buffer_list_push),
          TWIN(hurray_tensor_context_new)};
}
Consumer our_consumer() {
  return {&hurray_tensor_context_abi_version,
          &hurray_tensor_context_descriptor,
          &hurray_buffer_list_len,
          &hurray_buffer_list_get,
          &hurray_buffer_byte_size,
          &hurray_buffer_alignment,
          &hurray_buffer_device_tag,
          &hurray_buffer_sync_mode,
          &hurray_buffer_memory_class,
          &hurray_buffer_data_ptr,
          &hurray_buffer_handoff_producer_synced,
          &hurray_buffer_handoff_event,
          &hurray_buffer_list_destroy,
          &hurray_tensor_context_destroy,
          &hurray_last_error};
}
Consumer twin_consumer() {
  return {TWIN(hurray_tensor_context_abi_version),
          TWIN(hurray_tensor_context_descriptor),
          TWIN(hurray_buffer_list_len),
          TWIN(hurray_buffer_list_get),
          TWIN(hurray_buffer_byte_size),
          TWIN(hurray_buffer_alignment),
          TWIN(hurray_buffer_device_tag),
          TWIN(hurray_buffer_sync_mode),
          TWIN(hurray_buffer_memory_class),
          TWIN(hurray_buffer_data_ptr),
          TWIN(hurray_buffer_handoff_producer_synced),
          TWIN(hurray_buffer_handoff_event),
          TWIN(hurray_buffer_list_destroy),
          TWIN(hurray_tensor_context_destroy),
          TWIN(hurray_last_error)};
}

}  // namespace

TEST(Twin, SharesNoFunctionWithUs) {
  EXPECT_NE(TWIN(hurray_buffer_from_ptr), &hurray_buffer_from_ptr);
  const auto theirs = produce(twin_functions());
  const auto ours = produce(our_functions());
  EXPECT_NE(reinterpret_cast<HurrayHandlePrefix*>(theirs->list)->fn,
            reinterpret_cast<HurrayHandlePrefix*>(ours->list)->fn);
  consume(*theirs, twin_consumer());
  consume(*ours, our_consumer());
}

TEST(Twin, TensorsGoBothWays) {
  consume(*produce(twin_functions()), our_consumer());
  consume(*produce(our_functions()), twin_consumer());
}

TEST(Twin, ListsHoldBuffersOfEither) {
  Memory memory[2];
  Released released[2];
  HurrayBuffer* theirs = nullptr;
  ASSERT_EQ(TWIN(hurray_buffer_from_ptr)(memory[0].bytes, 64, 64, 0, 0, 0, &Released::callback,
                                         &released[0], &theirs),
            HURRAY_OK);
  HurrayBuffer* ours = buffer_over(memory[1], &released[1]);
  HurrayBufferList* list = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(2, &list), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_push(list, theirs), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_push(list, theirs), HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_buffer_list_push(list, ours), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(released[0].calls, 1);
  EXPECT_EQ(released[1].calls, 1);
}

/// The refusal of a destroy comes when the handle is gone already.
TEST(Twin, WhoseReleaseThrowsIsReported) {
  const HurrayReleaseCallback throws = [](void*, void*) { throw 1; };
  Memory memory;
  HurrayBuffer* theirs = nullptr;
  const auto make = [&] {
    ASSERT_EQ(TWIN(hurray_buffer_from_ptr)(memory.bytes, 64, 64, 0, 0, 0, throws, nullptr, &theirs),
              HURRAY_OK);
  };
  make();
  EXPECT_EQ(hurray_buffer_destroy(theirs), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_STREQ(hurray_last_error(), "an exception came out of a callback");
  make();
  HurrayBufferList* list = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(1, &list), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, theirs), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_ERR_INTERNAL_PANIC);
  make();
  ASSERT_EQ(TWIN(hurray_buffer_list_new)(1, &list), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, theirs), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(list, nullptr);
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(TWIN(hurray_tensor_context_new)(
                4, nullptr, 0, nullptr, [](void*) { throw 1; }, &ctx),
            HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(ctx, nullptr);
}

TEST(Twin, ABufferOfOursHasOneOwner) {
  Memory memory;
  Released released;
  HurrayBuffer* handle = buffer_over(memory, &released);
  HurrayBufferList *ours = nullptr, *theirs = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(1, &ours), HURRAY_OK);
  ASSERT_EQ(TWIN(hurray_buffer_list_new)(1, &theirs), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_push(ours, handle), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_push(theirs, handle), HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_buffer_list_destroy(&theirs), HURRAY_OK);
  EXPECT_EQ(released.calls, 0);
  EXPECT_EQ(hurray_buffer_list_destroy(&ours), HURRAY_OK);
  EXPECT_EQ(released.calls, 1);
}

TEST(Twin, DestroyedHandlesOfItAreAnsweredToo) {
  const auto capsule = produce(twin_functions());
  HurrayBufferList* dead = capsule->list;
  HurrayTensorContext* dead_ctx = capsule->ctx;
  consume(*capsule, our_consumer());
  std::uint64_t length = 7;
  std::uint32_t version = 7;
  EXPECT_EQ(hurray_buffer_list_len(dead, &length), HURRAY_ERR_INTERNAL);
  EXPECT_EQ(hurray_tensor_context_abi_version(dead_ctx, &version), HURRAY_ERR_INTERNAL);
  EXPECT_EQ(hurray_buffer_list_destroy(&dead), HURRAY_ERR_INTERNAL);
  EXPECT_EQ(length + version, 14u);
}

TEST(Twin, DescriptorsStayWithTheirLibrary) {
  const auto bytes = vector_descriptor(3);
  HurrayDescriptor* theirs = nullptr;
  ASSERT_EQ(TWIN(hurray_descriptor_decode)(bytes.data(), bytes.size(), &theirs), HURRAY_OK);
  std::uint32_t rank = 7;
  EXPECT_EQ(hurray_descriptor_rank(theirs, &rank), HURRAY_ERR_FOREIGN_HANDLE);
  EXPECT_NE(std::strstr(hurray_last_error(), "a handle of hurray-cpp"), nullptr)
      << hurray_last_error();
  EXPECT_EQ(rank, 7u);
  EXPECT_EQ(TWIN(hurray_descriptor_destroy)(theirs), HURRAY_OK);
}

namespace {

/// Every function that takes such a handle, as status.
std::vector<HurrayStatus> ask_all(void* fake) {
  std::uint64_t number = 7;
  std::uint32_t small = 7;
  std::uint8_t byte = 7;
  void* pointer = nullptr;
  const std::uint8_t* bytes = nullptr;
  HurrayBuffer* handle = nullptr;
  auto* buffer = static_cast<HurrayBuffer*>(fake);
  auto* list = static_cast<HurrayBufferList*>(fake);
  auto* ctx = static_cast<HurrayTensorContext*>(fake);
  auto* descriptor = static_cast<HurrayDescriptor*>(fake);
  auto* reader = static_cast<HurrayReader*>(fake);
  auto* writer = static_cast<HurrayWriter*>(fake);
  auto* file = static_cast<HurrayFile*>(fake);
  auto* file_writer = static_cast<HurrayFileWriter*>(fake);
  HurrayBufferList* out_list = nullptr;
  HurrayTensorContext* out_ctx = nullptr;
  std::vector<HurrayStatus> all = {
      hurray_buffer_destroy(buffer),
      hurray_buffer_byte_size(buffer, &number),
      hurray_buffer_alignment(buffer, &small),
      hurray_buffer_device_tag(buffer, &byte),
      hurray_buffer_sync_mode(buffer, &byte),
      hurray_buffer_memory_class(buffer, &byte),
      hurray_buffer_data_ptr(buffer, &pointer),
      hurray_buffer_handoff_producer_synced(buffer),
      hurray_buffer_list_len(list, &number),
      hurray_buffer_list_get(list, 0, &handle),
      hurray_buffer_list_push(list, buffer),
      hurray_buffer_list_destroy(&list),
      hurray_tensor_context_abi_version(ctx, &small),
      hurray_tensor_context_descriptor(ctx, &bytes, &number),
      hurray_tensor_context_destroy(&ctx),
      hurray_descriptor_rank(descriptor, &small),
      hurray_descriptor_flags(descriptor, &small),
      hurray_descriptor_destroy(descriptor),
      hurray_reader_next(reader, &out_list, &out_ctx),
      hurray_reader_destroy(&reader),
      hurray_writer_finish(writer),
      hurray_writer_destroy(&writer),
      hurray_file_count(file, &number),
      hurray_file_destroy(&file),
      hurray_file_writer_finish(file_writer),
      hurray_file_writer_destroy(&file_writer),
  };
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(small, 7u);
  EXPECT_EQ(byte, 7u);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(bytes, nullptr);
  EXPECT_EQ(handle, nullptr);
  return all;
}

}  // namespace

TEST(Fakes, OfEightReadableBytesAreForeign) {
  const auto words = std::to_array<std::uint64_t>(
      {0, 1, 0x00007F0012345678, 0xFFFFFFFFFFFFFFFF, 0x3249424159525248, 0x3149424159525249});
  for (const std::uint64_t word : words) {
    // On the heap, of exactly this size: a ninth byte is the sanitizer's.
    const auto fake = std::make_unique<std::uint64_t>(word);
    for (const HurrayStatus status : ask_all(fake.get()))
      EXPECT_EQ(status, HURRAY_ERR_FOREIGN_HANDLE) << word;
    EXPECT_NE(std::strstr(hurray_last_error(), "HRRYABI1"), nullptr);
  }
  const auto dead = std::make_unique<std::uint64_t>(0xDDDDDDDDDDDDDDDD);
  for (const HurrayStatus status : ask_all(dead.get())) EXPECT_EQ(status, HURRAY_ERR_INTERNAL);
}

TEST(Fakes, OfAWrongKindAreForeign) {
  HurrayHandlePrefix fake = {};
  std::memcpy(fake.magic, "HRRYABI1", 8);
  fake.abi_version = 4;
  for (const std::uint32_t kind : {0u, 9u, 0xFFFFFFFFu}) {
    fake.kind = kind;
    for (const HurrayStatus status : ask_all(&fake)) EXPECT_EQ(status, HURRAY_ERR_FOREIGN_HANDLE);
  }
}

namespace {
std::string not_served(std::uint32_t abi_version, const HurrayHandleFunctions* table) {
  HurrayHandlePrefix fake = {};
  std::memcpy(fake.magic, "HRRYABI1", 8);
  fake.abi_version = abi_version;
  fake.kind = HURRAY_KIND_TENSOR_CONTEXT;
  fake.fn = table;
  std::uint32_t version = 7;
  hurray_clear_last_error();
  EXPECT_EQ(
      hurray_tensor_context_abi_version(reinterpret_cast<HurrayTensorContext*>(&fake), &version),
      HURRAY_ERR_FOREIGN_HANDLE);
  EXPECT_EQ(version, 7u);
  return hurray_last_error();
}
}  // namespace

TEST(Fakes, WhoseTableDoesNotReachAreNotServed) {
  HurrayHandleFunctions table = {};
  table.table_size = sizeof table;
  table.producer = "otherlib 2.0";
  EXPECT_NE(not_served(4, nullptr).find("an unnamed library"), std::string::npos);
  EXPECT_NE(not_served(4, &table).find("otherlib 2.0"), std::string::npos);  // null entry
  table.context_abi_version = [](const HurrayTensorContext*, std::uint32_t* out) -> HurrayStatus {
    *out = 4;
    return HURRAY_OK;
  };
  EXPECT_NE(not_served(3, &table).find("otherlib 2.0"), std::string::npos);
  table.table_size = offsetof(HurrayHandleFunctions, context_abi_version) + sizeof(void*) - 1;
  EXPECT_NE(not_served(4, &table).find("otherlib 2.0"), std::string::npos);
  table.table_size = 8;
  EXPECT_NE(not_served(4, &table).find("an unnamed library"), std::string::npos);
}

TEST(Fakes, WhoseDescriptorIsNowhereAreRefused) {
  HurrayHandleFunctions table = {};
  table.table_size = sizeof table;
  table.producer = "otherlib 2.0";
  table.context_abi_version = [](const HurrayTensorContext*, std::uint32_t* out) -> HurrayStatus {
    *out = 4;
    return HURRAY_OK;
  };
  table.context_descriptor = [](const HurrayTensorContext*, const std::uint8_t** bytes,
                                std::uint64_t* length) -> HurrayStatus {
    *bytes = nullptr;
    *length = 100;
    return HURRAY_OK;
  };
  HurrayHandlePrefix fake = {};
  std::memcpy(fake.magic, "HRRYABI1", 8);
  fake.abi_version = 4;
  fake.kind = HURRAY_KIND_TENSOR_CONTEXT;
  fake.fn = &table;
  HurrayBufferList* list = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(0, &list), HURRAY_OK);
  HurrayWriter* writer = nullptr;
  ASSERT_EQ(hurray_stream_create_callback(
                [](void*, const std::uint8_t*, std::uint64_t) -> std::int64_t { return -1; },
                nullptr, nullptr, &writer),
            HURRAY_OK);
  EXPECT_EQ(hurray_writer_write(writer, list, reinterpret_cast<HurrayTensorContext*>(&fake)),
            HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_writer_destroy(&writer), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
}

TEST(Fakes, ThatThrowOrFailAreReported) {
  HurrayHandleFunctions table = {};
  table.table_size = sizeof table;
  table.producer = "otherlib 2.0";
  HurrayHandlePrefix fake = {};
  std::memcpy(fake.magic, "HRRYABI1", 8);
  fake.abi_version = 4;
  fake.kind = HURRAY_KIND_BUFFER_LIST;
  fake.fn = &table;
  auto* list = reinterpret_cast<HurrayBufferList*>(&fake);
  std::uint64_t length = 7;
  table.list_len = [](const HurrayBufferList*, std::uint64_t*) -> HurrayStatus { throw 1; };
  EXPECT_EQ(hurray_buffer_list_len(list, &length), HURRAY_ERR_INTERNAL_PANIC);
  table.list_len = [](const HurrayBufferList*, std::uint64_t*) -> HurrayStatus { return -77; };
  EXPECT_EQ(hurray_buffer_list_len(list, &length), -77);
  EXPECT_STREQ(hurray_last_error(), "another library refused, without words");
  table.last_error = [] { return "out of paper"; };
  EXPECT_EQ(hurray_buffer_list_len(list, &length), -77);
  EXPECT_STREQ(hurray_last_error(), "out of paper");
  EXPECT_EQ(length, 7u);
}
