/* stream_pipe write PATH | stream_pipe read
 * Sends every tensor of a .hrry file through a pipe, and counts the bytes at the other end. */
#include <hurray.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(HurrayStatus status) {
  if (status == HURRAY_OK) return;
  fprintf(stderr, "hurray: %s\n", hurray_last_error());
  exit(1);
}

static void send_all(const char *path) {
  HurrayFile *file = NULL;
  HurrayWriter *writer = NULL;
  check(hurray_file_open(path, strlen(path), NULL, &file));
  check(hurray_stream_create(1, NULL, &writer));
  uint64_t count = 0;
  check(hurray_file_count(file, &count));
  for (uint64_t i = 0; i < count; ++i) {
    HurrayBufferList *list = NULL;
    HurrayTensorContext *context = NULL;
    check(hurray_file_read(file, i, &list, &context));
    check(hurray_writer_write(writer, list, context));
    check(hurray_buffer_list_destroy(&list));
    check(hurray_tensor_context_destroy(&context));
  }
  check(hurray_writer_finish(writer));
  check(hurray_writer_destroy(&writer));
  check(hurray_file_destroy(&file));
}

static void receive_all(void) {
  HurrayReader *reader = NULL;
  check(hurray_stream_open(0, NULL, &reader));
  uint64_t tensors = 0, bytes = 0;
  for (;; ++tensors) {
    HurrayBufferList *list = NULL;
    HurrayTensorContext *context = NULL;
    check(hurray_reader_next(reader, &list, &context));
    if (list == NULL) break; /* the clean end */
    uint64_t length = 0;
    check(hurray_buffer_list_len(list, &length));
    for (uint64_t i = 0; i < length; ++i) {
      HurrayBuffer *buffer = NULL;
      uint64_t size = 0;
      check(hurray_buffer_list_get(list, i, &buffer));
      check(hurray_buffer_byte_size(buffer, &size));
      bytes += size;
    }
    check(hurray_buffer_list_destroy(&list));
    check(hurray_tensor_context_destroy(&context));
  }
  check(hurray_reader_destroy(&reader));
  printf("%" PRIu64 " tensors, %" PRIu64 " bytes\n", tensors, bytes);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "write") == 0)
    send_all(argv[2]);
  else if (argc == 2 && strcmp(argv[1], "read") == 0)
    receive_all();
  else
    return 2;
  return 0;
}
