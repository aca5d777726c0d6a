/* map_file PATH   Maps a .hrry file and prints its float32 tensors. */
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

static void print(HurrayFile *file, uint64_t i) {
  const char *name = NULL;
  uint64_t length = 0;
  check(hurray_file_name(file, i, &name, &length));

  HurrayDescriptor *descriptor = NULL;
  check(hurray_file_descriptor(file, i, &descriptor));
  uint8_t type = 0, layout = 0;
  uint64_t shape[64], count = 0;
  uintptr_t rank = 64;
  check(hurray_descriptor_element_type_tag(descriptor, &type));
  check(hurray_descriptor_layout_tag(descriptor, &layout));
  check(hurray_descriptor_shape(descriptor, shape, &rank));
  printf("%.*s [", (int)length, name);
  for (uintptr_t k = 0; k < rank; ++k) printf("%s%" PRIu64, k != 0 ? ", " : "", shape[k]);
  printf("]:");
  if (type == HURRAY_TYPE_FLOAT32 && layout == HURRAY_LAYOUT_ROW_MAJOR) {
    check(hurray_descriptor_element_count(descriptor, &count));
    uint64_t offset = 0;
    check(hurray_descriptor_byte_offset(descriptor, &offset));
    HurrayBufferList *list = NULL;
    HurrayTensorContext *context = NULL;
    check(hurray_file_read(file, i, &list, &context));
    HurrayBuffer *buffer = NULL; /* the list's: never destroyed by hand */
    check(hurray_buffer_list_get(list, 0, &buffer));
    void *data = NULL;
    check(hurray_buffer_data_ptr(buffer, &data));
    const float *values = (const float *)(const void *)((const char *)data + offset);
    for (uint64_t k = 0; k < count; ++k) printf(" %g", (double)values[k]);
    check(hurray_buffer_list_destroy(&list));
    check(hurray_tensor_context_destroy(&context));
  }
  printf("\n");
  check(hurray_descriptor_destroy(descriptor));
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  HurrayFile *file = NULL;
  check(hurray_file_open(argv[1], strlen(argv[1]), NULL, &file));
  check(hurray_file_verify(file, NULL, NULL));
  uint64_t count = 0;
  check(hurray_file_count(file, &count));
  for (uint64_t i = 0; i < count; ++i) print(file, i);
  HurrayKvEntry entry;
  if (hurray_file_kv_find(file, "framework", 9, &entry) == HURRAY_OK &&
      entry.type == HURRAY_KV_STRING)
    printf("framework: %.*s\n", (int)entry.count, (const char *)entry.data);
  check(hurray_file_destroy(&file));
  return 0;
}
