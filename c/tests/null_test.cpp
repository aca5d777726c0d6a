// Every pointer that must not be null is asked for, first of all.
#include <array>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "support.hpp"

using namespace hurray::testing;

namespace {

/// A value that is not null for each parameter; pointers lead to memory that must stay as it is.
struct Arguments {
  std::array<std::uint64_t, 64> memory;
  Arguments() { memory.fill(0x0101010101010101); }

  template <class T>
  T make() {
    if constexpr (std::is_function_v<std::remove_pointer_t<T>>) {
      return nullptr;  // optional everywhere but where `callback` says so
    } else if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(memory.data());
    } else {
      return T{1};
    }
  }
};

/// Calls `function` once for each of `required` (positions), with null there and no null elsewhere.
template <class... P>
void expect_nulls_refused(const char* name, HurrayStatus (*function)(P...),
                          std::initializer_list<std::size_t> required) {
  for (const std::size_t position : required) {
    Arguments arguments;
    const Arguments untouched = arguments;
    std::tuple<P...> values{arguments.make<P>()...};
    std::size_t i = 0;
    std::apply(
        [&](auto&... each) {
          const auto null = [&]<class T>(T& value) {
            if (i++ != position) return;
            if constexpr (std::is_pointer_v<T>)
              value = nullptr;
            else
              FAIL() << name << ": argument " << position << " is no pointer";
          };
          (null(each), ...);
        },
        values);
    hurray_clear_last_error();
    EXPECT_EQ(std::apply(function, values), HURRAY_ERR_NULL_POINTER) << name << ' ' << position;
    EXPECT_NE(std::strstr(hurray_last_error(), " is null"), nullptr) << name;
    EXPECT_EQ(arguments.memory, untouched.memory) << name;
  }
}
#define NULLS(function, ...) expect_nulls_refused(#function, &function, {__VA_ARGS__})

}  // namespace

TEST(Nulls, AreRefusedByEveryFunction) {
  NULLS(hurray_buffer_from_ptr, 0, 8);
  NULLS(hurray_buffer_copy, 0, 3);
  NULLS(hurray_buffer_destroy, 0);
  NULLS(hurray_buffer_byte_size, 0, 1);
  NULLS(hurray_buffer_alignment, 0, 1);
  NULLS(hurray_buffer_device_tag, 0, 1);
  NULLS(hurray_buffer_sync_mode, 0, 1);
  NULLS(hurray_buffer_memory_class, 0, 1);
  NULLS(hurray_buffer_data_ptr, 0, 1);
  NULLS(hurray_measure_alignment, 0, 2);
  NULLS(hurray_descriptor_decode, 0, 2);
  NULLS(hurray_descriptor_decode_with, 0, 3);
  NULLS(hurray_descriptor_new, 0, 1);
  NULLS(hurray_descriptor_destroy, 0);
  NULLS(hurray_descriptor_rank, 0, 1);
  NULLS(hurray_descriptor_element_type_tag, 0, 1);
  NULLS(hurray_descriptor_layout_tag, 0, 1);
  NULLS(hurray_descriptor_byte_offset, 0, 1);
  NULLS(hurray_descriptor_buffer_count, 0, 1);
  NULLS(hurray_descriptor_shape, 0, 2);
  NULLS(hurray_descriptor_encode, 0, 2);
  NULLS(hurray_descriptor_version, 0, 1, 2);
  NULLS(hurray_descriptor_flags, 0, 1);
  NULLS(hurray_descriptor_buffer, 0, 2);
  NULLS(hurray_descriptor_layout_bytes, 0, 1, 2);
  NULLS(hurray_descriptor_quantization_bytes, 0, 1, 2);
  NULLS(hurray_descriptor_strides, 0, 2);
  NULLS(hurray_descriptor_nnz, 0, 1);
  NULLS(hurray_descriptor_composite, 0, 1, 2, 3);
  NULLS(hurray_descriptor_member_role, 0, 1);
  NULLS(hurray_descriptor_shard, 0, 3);
  NULLS(hurray_descriptor_statistics, 0, 1);
  NULLS(hurray_descriptor_extension_type, 0, 1);
  NULLS(hurray_descriptor_element_count, 0, 1);
  NULLS(hurray_descriptor_required_bytes, 0, 2);
  NULLS(hurray_buffer_list_new, 1);
  NULLS(hurray_buffer_list_push, 0, 1);
  NULLS(hurray_buffer_list_len, 0, 1);
  NULLS(hurray_buffer_list_get, 0, 2);
  NULLS(hurray_buffer_list_destroy, 0);
  NULLS(hurray_tensor_context_new, 1, 5);
  NULLS(hurray_tensor_context_abi_version, 0, 1);
  NULLS(hurray_tensor_context_descriptor, 0, 1, 2);
  NULLS(hurray_tensor_context_destroy, 0);
  NULLS(hurray_buffer_handoff_producer_synced, 0);
  NULLS(hurray_buffer_handoff_event, 0, 1);
  NULLS(hurray_buffer_handoff_consumer_stream, 0, 1);
  NULLS(hurray_stream_open, 2);
  NULLS(hurray_stream_open_path, 0, 3);
  NULLS(hurray_stream_open_memory, 0, 3);
  NULLS(hurray_stream_open_callback, 0, 3);
  NULLS(hurray_reader_next, 0, 1, 2);
  NULLS(hurray_reader_destroy, 0);
  NULLS(hurray_stream_create, 2);
  NULLS(hurray_stream_create_path, 0, 3);
  NULLS(hurray_stream_create_callback, 0, 3);
  NULLS(hurray_writer_write, 0, 1, 2);
  NULLS(hurray_writer_finish, 0);
  NULLS(hurray_writer_destroy, 0);
  NULLS(hurray_file_open, 0, 3);
  NULLS(hurray_file_open_fd, 2);
  NULLS(hurray_file_open_memory, 0, 3);
  NULLS(hurray_file_count, 0, 1);
  NULLS(hurray_file_name, 0, 2, 3);
  NULLS(hurray_file_find, 0, 1, 3);
  NULLS(hurray_file_entry, 0, 2);
  NULLS(hurray_file_descriptor, 0, 2);
  NULLS(hurray_file_read, 0, 2, 3);
  NULLS(hurray_file_members, 0, 3);
  NULLS(hurray_file_kv_count, 0, 1);
  NULLS(hurray_file_kv_entry, 0, 2);
  NULLS(hurray_file_kv_find, 0, 1, 3);
  NULLS(hurray_file_verify, 0);
  NULLS(hurray_file_destroy, 0);
  NULLS(hurray_file_create, 0, 3);
  NULLS(hurray_file_writer_write, 0, 1, 3, 4);
  NULLS(hurray_file_writer_put_kv, 0, 1);
  NULLS(hurray_file_writer_finish, 0);
  NULLS(hurray_file_writer_destroy, 0);
  NULLS(hurray_crc32c, 0, 2);
}
