/* write_file PATH   Writes two tensors and some metadata to a .hrry file. */
#include <hurray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(HurrayStatus status) {
  if (status == HURRAY_OK) return;
  fprintf(stderr, "hurray: %s\n", hurray_last_error());
  exit(1);
}

/* A row-major float32 tensor over memory on 64: its buffers and what they are. The memory stays
 * the caller's. */
static void tensor(float *values, const uint64_t *shape, uint32_t rank, HurrayBufferList **list,
                   HurrayTensorContext **context) {
  uint64_t bytes = sizeof(float);
  for (uint32_t k = 0; k < rank; ++k) bytes *= shape[k];

  HurrayBuffer *buffer = NULL;
  check(hurray_buffer_from_ptr(values, bytes, 64, HURRAY_DEVICE_CPU, HURRAY_SYNC_PRODUCER_SYNCED,
                               HURRAY_MEMORY_STANDARD, NULL, NULL, &buffer));
  check(hurray_buffer_list_new(1, list));
  check(hurray_buffer_list_push(*list, buffer));

  HurrayBufferInfo info = {0};
  info.byte_size = bytes;
  info.alignment = 64;
  HurrayDescriptorInit init = {0};
  init.struct_size = sizeof init;
  init.element_type_tag = HURRAY_TYPE_FLOAT32;
  init.layout_tag = HURRAY_LAYOUT_ROW_MAJOR;
  init.shape = shape;
  init.rank = rank;
  init.buffers = &info;
  init.buffer_count = 1;
  HurrayDescriptor *descriptor = NULL;
  check(hurray_descriptor_new(&init, &descriptor));
  uint8_t encoded[256];
  uint64_t length = sizeof encoded;
  check(hurray_descriptor_encode(descriptor, encoded, &length));
  check(hurray_descriptor_destroy(descriptor));
  check(hurray_tensor_context_new(HURRAY_C_ABI_VERSION, encoded, length, NULL, NULL, context));
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  float *memory = aligned_alloc(64, 128);
  if (memory == NULL) return 1;
  for (int i = 0; i < 32; ++i) memory[i] = (float)i / 2;

  HurrayFileWriter *writer = NULL;
  check(hurray_file_create(argv[1], strlen(argv[1]), NULL, &writer));
  const uint64_t matrix[] = {3, 4}, vector[] = {5};
  HurrayBufferList *list = NULL;
  HurrayTensorContext *context = NULL;
  tensor(memory, matrix, 2, &list, &context);
  check(hurray_file_writer_write(writer, "weight", 6, list, context));
  check(hurray_buffer_list_destroy(&list));
  check(hurray_tensor_context_destroy(&context));
  tensor(memory + 16, vector, 1, &list, &context);
  check(hurray_file_writer_write(writer, "bias", 4, list, context));
  check(hurray_buffer_list_destroy(&list));
  check(hurray_tensor_context_destroy(&context));

  HurrayKvEntry entry = {0};
  entry.key = "framework";
  entry.key_length = 9;
  entry.type = HURRAY_KV_STRING;
  entry.data = "plain C";
  entry.count = 7;
  check(hurray_file_writer_put_kv(writer, &entry));
  check(hurray_file_writer_finish(writer)); /* now the file is there, whole */
  check(hurray_file_writer_destroy(&writer));
  free(memory);
  return 0;
}
