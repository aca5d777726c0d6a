#include <cstring>
#include <stdexcept>
#include <thread>

#include "support.hpp"

using namespace hurray::testing;

TEST(Surface, SaysItsVersions) {
  EXPECT_EQ(hurray_c_abi_version(), 4u);
  EXPECT_EQ(hurray_abi_extension_version(), 1u);
}

TEST(LastError, IsReplacedByFailuresOnlyAndBelongsToTheThread) {
  hurray_clear_last_error();
  EXPECT_STREQ(hurray_last_error(), "");
  EXPECT_EQ(hurray_buffer_destroy(nullptr), HURRAY_ERR_NULL_POINTER);
  EXPECT_STREQ(hurray_last_error(), "handle is null");
  std::uint32_t measured = 0;
  EXPECT_EQ(hurray_measure_alignment(nullptr, 0, &measured), HURRAY_OK);
  EXPECT_STREQ(hurray_last_error(), "handle is null");
  std::thread([] { EXPECT_STREQ(hurray_last_error(), ""); }).join();
  EXPECT_EQ(hurray_measure_alignment(nullptr, 0, nullptr), HURRAY_ERR_NULL_POINTER);
  EXPECT_STREQ(hurray_last_error(), "out is null");
  hurray_clear_last_error();
  EXPECT_STREQ(hurray_last_error(), "");
}

TEST(Buffer, SaysWhatItWasMadeOf) {
  Memory memory;
  Released released;
  HurrayBuffer* handle = nullptr;
  ASSERT_EQ(hurray_buffer_from_ptr(memory.bytes, 200, 128, HURRAY_DEVICE_CUDA, HURRAY_SYNC_EVENT,
                                   HURRAY_MEMORY_UNIFIED, &Released::callback, &released, &handle),
            HURRAY_OK);
  std::uint64_t size = 0;
  std::uint32_t alignment = 0;
  std::uint8_t device = 0xFF, sync_mode = 0xFF, memory_class = 0xFF;
  void* data = nullptr;
  EXPECT_EQ(hurray_buffer_byte_size(handle, &size), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_alignment(handle, &alignment), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_device_tag(handle, &device), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_sync_mode(handle, &sync_mode), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_memory_class(handle, &memory_class), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_data_ptr(handle, &data), HURRAY_OK);
  EXPECT_EQ(size, 200u);
  EXPECT_EQ(alignment, 128u);
  EXPECT_EQ(device, HURRAY_DEVICE_CUDA);
  EXPECT_EQ(sync_mode, HURRAY_SYNC_EVENT);
  EXPECT_EQ(memory_class, HURRAY_MEMORY_UNIFIED);
  EXPECT_EQ(data, memory.bytes);
  EXPECT_EQ(released.calls, 0);
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK);
  EXPECT_EQ(released.calls, 1);
  EXPECT_EQ(released.data, memory.bytes);
}

TEST(Buffer, AnEmptyOneNeedsNoPointerAndNoAlignment) {
  HurrayBuffer* handle = nullptr;
  ASSERT_EQ(hurray_buffer_from_ptr(nullptr, 0, 1, 0, 0, 0, nullptr, nullptr, &handle), HURRAY_OK);
  void* data = sentinel<void>();
  EXPECT_EQ(hurray_buffer_data_ptr(handle, &data), HURRAY_OK);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK);
}

struct Refusal {
  std::uint64_t size;
  std::uint32_t alignment;
  std::uint8_t device, sync_mode, memory_class;
  HurrayStatus status;
  const char* says;
};

TEST(Buffer, RefusesWhatIsNotSoAndKeepsItsHandsOffTheMemory) {
  Memory memory;
  const Refusal refusals[] = {
      {64, 0, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "alignment: expected a power of two"},
      {64, 32, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "at least 64, found 32"},
      {64, 96, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "found 96"},
      {0, 3, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "at least 1, found 3"},
      {UINT64_MAX, 64, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "leave the range of addresses"},
      {UINT64_MAX / 2 + 1, 64, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT, "leave the range of addresses"},
      {64, 64, 0x09, 0, 0, HURRAY_ERR_INVALID_TYPE, "device_tag: expected a known"},
      {64, 64, 0xFF, 0, 0, HURRAY_ERR_INVALID_TYPE, "found 0xFF"},
      {64, 64, 0, 0, HURRAY_MEMORY_PEER, HURRAY_ERR_INVALID_TYPE, "one that cpu can have"},
      {64, 64, 1, 0, 4, HURRAY_ERR_INVALID_TYPE, "one that cuda can have, found 0x04"},
      {64, 64, 1, 3, 0, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode: expected 0"},
      {64, 64, 1, 0xFF, 0, HURRAY_ERR_INVALID_SYNC_MODE, "found 0xFF"},
      {64, 64, 0, 1, 0, HURRAY_ERR_INVALID_SYNC_MODE, "on the CPU, found event"},
  };
  for (const Refusal& r : refusals) {
    Released released;
    auto* handle = sentinel<HurrayBuffer>();
    EXPECT_EQ(hurray_buffer_from_ptr(memory.bytes, r.size, r.alignment, r.device, r.sync_mode,
                                     r.memory_class, &Released::callback, &released, &handle),
              r.status)
        << r.says;
    EXPECT_EQ(handle, sentinel<HurrayBuffer>());
    EXPECT_EQ(released.calls, 0);
    EXPECT_NE(std::strstr(hurray_last_error(), r.says), nullptr) << hurray_last_error();
  }
  EXPECT_EQ(hurray_buffer_from_ptr(nullptr, 1, 64, 0, 0, 0, nullptr, nullptr, nullptr),
            HURRAY_ERR_NULL_POINTER);
  EXPECT_STREQ(hurray_last_error(), "data is null");
}

TEST(Buffer, DividesTheAddressWhereTheDeviceHasAddresses) {
  Memory memory;
  std::uint8_t* odd = memory.bytes + 33;
  struct {
    std::uint8_t device;
    bool measured;
  } const devices[] = {{HURRAY_DEVICE_CPU, true},     {HURRAY_DEVICE_CUDA, true},
                       {HURRAY_DEVICE_ROCM, true},    {HURRAY_DEVICE_METAL, false},
                       {HURRAY_DEVICE_VULKAN, false}, {HURRAY_DEVICE_WEBGPU, false},
                       {HURRAY_DEVICE_HEXAGON, true}, {HURRAY_DEVICE_LEVEL_ZERO, true},
                       {HURRAY_DEVICE_OPENCL, false}, {0xF0, false}};
  for (const auto& [device, measured] : devices) {
    auto* handle = sentinel<HurrayBuffer>();
    const HurrayStatus status =
        hurray_buffer_from_ptr(odd, 64, 4096, device, 0, 0, nullptr, nullptr, &handle);
    if (measured) {
      EXPECT_EQ(status, HURRAY_ERR_INVALID_LAYOUT) << int{device};
      EXPECT_EQ(handle, sentinel<HurrayBuffer>());
      const std::string says = hurray_last_error();
      EXPECT_NE(says.find("declared 4096"), std::string::npos) << says;
      EXPECT_NE(says.find("measures 1;"), std::string::npos) << says;
      EXPECT_NE(says.find("hurray_buffer_copy"), std::string::npos) << says;
    } else {
      ASSERT_EQ(status, HURRAY_OK) << int{device} << hurray_last_error();
      EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK);
    }
  }
}

TEST(Buffer, MeasuresAndCopiesWhatIsNotAligned) {
  Memory memory;
  for (std::size_t i = 0; i < sizeof memory.bytes; ++i)
    memory.bytes[i] = static_cast<std::uint8_t>(i);
  std::uint32_t measured = 0;
  EXPECT_EQ(hurray_measure_alignment(memory.bytes, 1, &measured), HURRAY_OK);
  EXPECT_EQ(measured, 4096u);
  EXPECT_EQ(hurray_measure_alignment(memory.bytes + 48, 1, &measured), HURRAY_OK);
  EXPECT_EQ(measured, 16u);
  EXPECT_EQ(hurray_measure_alignment(memory.bytes + 48, 0, &measured), HURRAY_OK);
  EXPECT_EQ(measured, 1u);

  HurrayBuffer* copy = nullptr;
  ASSERT_EQ(hurray_buffer_copy(memory.bytes + 33, 100, 4096, &copy), HURRAY_OK);
  void* data = nullptr;
  std::uint32_t alignment = 0;
  EXPECT_EQ(hurray_buffer_data_ptr(copy, &data), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_alignment(copy, &alignment), HURRAY_OK);
  EXPECT_EQ(alignment, 4096u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 4096, 0u);
  EXPECT_EQ(std::memcmp(data, memory.bytes + 33, 100), 0);
  EXPECT_EQ(hurray_buffer_destroy(copy), HURRAY_OK);
  copy = sentinel<HurrayBuffer>();
  EXPECT_EQ(hurray_buffer_copy(memory.bytes, 4, 32, &copy), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_buffer_copy(memory.bytes, UINT64_MAX, 64, &copy), HURRAY_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hurray_buffer_copy(nullptr, 4, 64, &copy), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(copy, sentinel<HurrayBuffer>());
  EXPECT_EQ(hurray_buffer_copy(nullptr, 0, 64, &copy), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_destroy(copy), HURRAY_OK);
}

TEST(Handles, OfTheDeadAreAnswered) {
  Memory memory;
  Released released;
  HurrayBuffer* handle = buffer_over(memory, &released);
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK);
  std::uint64_t size = 7;
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_ERR_INTERNAL);
  EXPECT_STREQ(hurray_last_error(), "handle is a destroyed handle");
  EXPECT_EQ(hurray_buffer_byte_size(handle, &size), HURRAY_ERR_INTERNAL);
  EXPECT_EQ(size, 7u);
  EXPECT_EQ(released.calls, 1);
}

TEST(Handles, OfAnotherKindAreRefused) {
  Memory memory;
  HurrayBuffer* buffer = buffer_over(memory);
  HurrayBufferList* list = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(0, &list), HURRAY_OK);
  std::uint64_t number = 7;
  EXPECT_EQ(hurray_buffer_byte_size(reinterpret_cast<HurrayBuffer*>(list), &number),
            HURRAY_ERR_FOREIGN_HANDLE);
  EXPECT_STREQ(hurray_last_error(), "handle: expected a buffer, found a buffer list");
  EXPECT_EQ(hurray_buffer_list_len(reinterpret_cast<HurrayBufferList*>(buffer), &number),
            HURRAY_ERR_FOREIGN_HANDLE);
  auto* wrong = reinterpret_cast<HurrayBufferList*>(buffer);
  EXPECT_EQ(hurray_buffer_list_destroy(&wrong), HURRAY_ERR_FOREIGN_HANDLE);
  EXPECT_EQ(static_cast<void*>(wrong), buffer);
  EXPECT_EQ(hurray_buffer_list_push(list, reinterpret_cast<HurrayBuffer*>(list)),
            HURRAY_ERR_FOREIGN_HANDLE);
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(hurray_buffer_destroy(buffer), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
}

TEST(Callbacks, ThatThrowAreCalledOnceAndReported) {
  static int calls;
  calls = 0;
  Memory memory;
  HurrayBuffer* handle = nullptr;
  const HurrayReleaseCallback throws = [](void*, void*) {
    ++calls;
    throw std::runtime_error("no");
  };
  ASSERT_EQ(hurray_buffer_from_ptr(memory.bytes, 64, 64, 0, 0, 0, throws, nullptr, &handle),
            HURRAY_OK);
  const std::size_t live = live_handles();
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(live_handles(), live - 1);
  EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_ERR_INTERNAL);
  EXPECT_EQ(calls, 1);

  HurrayBufferList* list = nullptr;
  Released released;
  ASSERT_EQ(hurray_buffer_list_new(2, &list), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_from_ptr(memory.bytes, 64, 64, 0, 0, 0, throws, nullptr, &handle),
            HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, handle), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, buffer_over(memory, &released)), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(list, nullptr);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(released.calls, 1);

  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(
      hurray_tensor_context_new(4, nullptr, 0, nullptr, [](void*) { throw 1; }, &ctx), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_ERR_INTERNAL_PANIC);
  EXPECT_EQ(ctx, nullptr);
}

TEST(Lists, OwnTheirBuffersInOrder) {
  Memory memory[3];
  Released released[3];
  HurrayBufferList* list = sentinel<HurrayBufferList>();
  ASSERT_EQ(hurray_buffer_list_new(UINT64_MAX, &list), HURRAY_OK);
  HurrayBuffer* handles[3];
  for (int i = 0; i < 3; ++i) {
    handles[i] = buffer_over(memory[i], &released[i]);
    EXPECT_EQ(hurray_buffer_list_push(list, handles[i]), HURRAY_OK);
  }
  std::uint64_t length = 0;
  EXPECT_EQ(hurray_buffer_list_len(list, &length), HURRAY_OK);
  EXPECT_EQ(length, 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    HurrayBuffer* got = nullptr;
    EXPECT_EQ(hurray_buffer_list_get(list, i, &got), HURRAY_OK);
    EXPECT_EQ(got, handles[i]);
  }
  auto* got = sentinel<HurrayBuffer>();
  for (const std::uint64_t i : {std::uint64_t{3}, UINT64_MAX})
    EXPECT_EQ(hurray_buffer_list_get(list, i, &got), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
  EXPECT_EQ(got, sentinel<HurrayBuffer>());

  EXPECT_EQ(hurray_buffer_destroy(handles[1]), HURRAY_ERR_INTERNAL);
  EXPECT_NE(std::strstr(hurray_last_error(), "borrowed"), nullptr);
  EXPECT_EQ(hurray_buffer_list_push(list, handles[1]), HURRAY_ERR_INVALID_LAYOUT);
  HurrayBufferList* other = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(0, &other), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_push(other, handles[1]), HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_buffer_list_destroy(&other), HURRAY_OK);
  EXPECT_EQ(released[0].calls + released[1].calls + released[2].calls, 0);

  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(list, nullptr);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(released[i].calls, 1);
    EXPECT_EQ(released[i].data, memory[i].bytes);
  }
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(nullptr), HURRAY_ERR_NULL_POINTER);
}

TEST(Lists, HoldAtMost255BuffersOfOnePlace) {
  Memory memory;
  HurrayBufferList* list = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(0, &list), HURRAY_OK);
  for (int i = 0; i < 255; ++i)
    ASSERT_EQ(hurray_buffer_list_push(list, buffer_over(memory)), HURRAY_OK) << i;
  Released released;
  HurrayBuffer* more = buffer_over(memory, &released);
  EXPECT_EQ(hurray_buffer_list_push(list, more), HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(released.calls, 0);
  EXPECT_EQ(hurray_buffer_destroy(more), HURRAY_OK);

  ASSERT_EQ(hurray_buffer_list_new(0, &list), HURRAY_OK);
  ASSERT_EQ(hurray_buffer_list_push(list, buffer_over(memory)), HURRAY_OK);
  HurrayBuffer* elsewhere = buffer_over(memory, nullptr, 64, 64, HURRAY_DEVICE_CUDA);
  EXPECT_EQ(hurray_buffer_list_push(list, elsewhere), HURRAY_ERR_INVALID_LAYOUT);
  EXPECT_EQ(hurray_buffer_destroy(elsewhere), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
}

TEST(Contexts, KeepACopyAndLetGoOfTheOwnerOnce) {
  Released released;
  std::vector<std::uint8_t> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(
      hurray_tensor_context_new(9, bytes.data(), bytes.size(), &released, &Released::owner, &ctx),
      HURRAY_OK);
  std::uint32_t version = 0;
  EXPECT_EQ(hurray_tensor_context_abi_version(ctx, &version), HURRAY_OK);
  EXPECT_EQ(version, 9u);
  const std::uint8_t* copy = nullptr;
  std::uint64_t length = 0;
  EXPECT_EQ(hurray_tensor_context_descriptor(ctx, &copy, &length), HURRAY_OK);
  ASSERT_EQ(length, bytes.size());
  EXPECT_NE(copy, bytes.data());
  EXPECT_EQ(std::memcmp(copy, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(released.calls, 0);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
  EXPECT_EQ(ctx, nullptr);
  EXPECT_EQ(released.calls, 1);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);

  ASSERT_EQ(hurray_tensor_context_new(4, nullptr, 0, nullptr, nullptr, &ctx), HURRAY_OK);
  copy = bytes.data();
  EXPECT_EQ(hurray_tensor_context_descriptor(ctx, &copy, &length), HURRAY_OK);
  EXPECT_EQ(copy, nullptr);
  EXPECT_EQ(length, 0u);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_new(4, nullptr, 1, nullptr, nullptr, &ctx),
            HURRAY_ERR_NULL_POINTER);
}

/// Builds that do not know the prefix look for a version between it and byte 128.
TEST(Handles, OfListsAndContextsShowNoVersionToOthers) {
  HurrayBufferList* list = nullptr;
  HurrayTensorContext* ctx = nullptr;
  ASSERT_EQ(hurray_buffer_list_new(0, &list), HURRAY_OK);
  ASSERT_EQ(hurray_tensor_context_new(4, nullptr, 0, nullptr, nullptr, &ctx), HURRAY_OK);
  for (const void* handle : {static_cast<const void*>(list), static_cast<const void*>(ctx)}) {
    const auto* bytes = static_cast<const std::uint8_t*>(handle);
    EXPECT_EQ(std::memcmp(bytes, "HRRYABI1", 8), 0);
    for (std::size_t i = sizeof(HurrayHandlePrefix); i < 128; ++i) EXPECT_EQ(bytes[i], 0xFF) << i;
  }
  EXPECT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
  EXPECT_EQ(hurray_tensor_context_destroy(&ctx), HURRAY_OK);
}

/// A device that is not there: its events and streams are any pointers.
struct FakeDevice {
  int waits = 0;
  int events_released = 0;
  static void release_event(void* event, void* context) {
    EXPECT_EQ(event, context);
    ++static_cast<FakeDevice*>(event)->events_released;
  }
};

TEST(HandOff, ComparesPayloadAndDeclaration) {
  Memory memory;
  FakeDevice device;
  HurrayBuffer* synced = buffer_over(memory, nullptr, 64, 64, HURRAY_DEVICE_CUDA);
  HurrayBuffer* evented =
      buffer_over(memory, nullptr, 64, 64, HURRAY_DEVICE_CUDA, HURRAY_SYNC_EVENT);
  HurrayBuffer* streamed =
      buffer_over(memory, nullptr, 64, 64, HURRAY_DEVICE_CUDA, HURRAY_SYNC_CONSUMER_STREAM);
  const HurraySyncEventPayload event{&device, HURRAY_DEVICE_CUDA, &FakeDevice::release_event,
                                     &device};
  const HurraySyncConsumerStreamPayload stream{&device, HURRAY_DEVICE_CUDA};

  EXPECT_EQ(hurray_buffer_handoff_producer_synced(synced), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_handoff_event(evented, &event), HURRAY_OK);
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(streamed, &stream), HURRAY_OK);
  EXPECT_EQ(device.events_released, 0);

  constexpr HurrayStatus mismatch = HURRAY_ERR_SYNC_MODE_MISMATCH;
  EXPECT_EQ(hurray_buffer_handoff_producer_synced(evented), mismatch);
  EXPECT_EQ(hurray_buffer_handoff_producer_synced(streamed), mismatch);
  EXPECT_EQ(hurray_buffer_handoff_event(synced, &event), mismatch);
  EXPECT_STREQ(hurray_last_error(),
               "sync_mode: expected event for this payload, found producer_synced");
  EXPECT_EQ(hurray_buffer_handoff_event(streamed, &event), mismatch);
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(synced, &stream), mismatch);
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(evented, &stream), mismatch);

  HurraySyncEventPayload wrong = event;
  wrong.sync_handle = nullptr;
  EXPECT_EQ(hurray_buffer_handoff_event(evented, &wrong), mismatch);
  wrong = event;
  wrong.event_release_fn = nullptr;
  EXPECT_EQ(hurray_buffer_handoff_event(evented, &wrong), mismatch);
  wrong = event;
  wrong.event_release_context = nullptr;
  EXPECT_EQ(hurray_buffer_handoff_event(evented, &wrong), HURRAY_OK);
  wrong.sync_handle_device_tag = HURRAY_DEVICE_ROCM;
  EXPECT_EQ(hurray_buffer_handoff_event(evented, &wrong), mismatch);
  HurraySyncConsumerStreamPayload no_stream{nullptr, HURRAY_DEVICE_CUDA};
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(streamed, &no_stream), mismatch);
  no_stream = {&device, HURRAY_DEVICE_CPU};
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(streamed, &no_stream), mismatch);
  EXPECT_EQ(hurray_buffer_handoff_event(nullptr, &event), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(hurray_buffer_handoff_event(evented, nullptr), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(hurray_buffer_handoff_consumer_stream(streamed, nullptr), HURRAY_ERR_NULL_POINTER);
  EXPECT_EQ(hurray_buffer_handoff_producer_synced(nullptr), HURRAY_ERR_NULL_POINTER);

  // What the consumer does after it has waited: the event's release, once, then the buffer's.
  event.event_release_fn(event.sync_handle, event.event_release_context);
  EXPECT_EQ(device.events_released, 1);
  for (HurrayBuffer* handle : {synced, evented, streamed})
    EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK);
}

TEST(Threads, MakeAndDestroyHandlesAtOnce) {
  const std::size_t before = live_handles();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      Memory memory;
      Released released;
      for (int i = 0; i < 2000; ++i) {
        HurrayBufferList* list = nullptr;
        ASSERT_EQ(hurray_buffer_list_new(1, &list), HURRAY_OK);
        for (int k = 0; k < 3; ++k)
          ASSERT_EQ(hurray_buffer_list_push(list, buffer_over(memory, &released)), HURRAY_OK);
        ASSERT_EQ(hurray_buffer_list_destroy(&list), HURRAY_OK);
      }
      EXPECT_EQ(released.calls, 6000);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live_handles(), before);
}

TEST(Threads, ReleaseWhereTheHandleIsDestroyed) {
  Memory memory;
  std::thread::id where;
  HurrayBuffer* handle = nullptr;
  ASSERT_EQ(hurray_buffer_from_ptr(
                memory.bytes, 64, 64, 0, 0, 0,
                [](void*, void* context) {
                  *static_cast<std::thread::id*>(context) = std::this_thread::get_id();
                },
                &where, &handle),
            HURRAY_OK);
  std::thread other([&] { EXPECT_EQ(hurray_buffer_destroy(handle), HURRAY_OK); });
  const std::thread::id expected = other.get_id();
  other.join();
  EXPECT_EQ(where, expected);
}
