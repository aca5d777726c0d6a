/* Hands a buffer of an allocator of one's own over: the consumer gives it back with one call. */
#include <hurray.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(HurrayStatus status) {
  if (status == HURRAY_OK) return;
  fprintf(stderr, "hurray: %s\n", hurray_last_error());
  exit(1);
}

/* The producer's allocator: one block at a time, from an arena on 4096. */
typedef struct Arena {
  char *memory;
  int in_use;
} Arena;

static void *take(Arena *arena, size_t size) {
  if (arena->in_use || size > 8192) return NULL;
  arena->in_use = 1;
  return arena->memory;
}

static void give_back(void *data, void *context) {
  Arena *arena = context;
  if (data == arena->memory) arena->in_use = 0;
}

static void produce(Arena *arena, HurrayBuffer **out) {
  void *data = take(arena, 4096);
  if (data == NULL) exit(1);
  memset(data, 42, 4096);
  uint32_t alignment = 0;
  check(hurray_measure_alignment(data, 4096, &alignment));
  check(hurray_buffer_from_ptr(data, 4096, alignment, HURRAY_DEVICE_CPU,
                               HURRAY_SYNC_PRODUCER_SYNCED, HURRAY_MEMORY_STANDARD, give_back,
                               arena, out));
}

static unsigned consume(HurrayBuffer *buffer) {
  check(hurray_buffer_handoff_producer_synced(buffer));
  uint64_t size = 0;
  void *data = NULL;
  check(hurray_buffer_byte_size(buffer, &size));
  check(hurray_buffer_data_ptr(buffer, &data));
  unsigned sum = 0;
  for (uint64_t i = 0; i < size; ++i) sum += ((const unsigned char *)data)[i];
  check(hurray_buffer_destroy(buffer)); /* calls give_back */
  return sum;
}

int main(void) {
  Arena arena = {aligned_alloc(4096, 8192), 0};
  if (arena.memory == NULL) return 1;
  HurrayBuffer *buffer = NULL;
  produce(&arena, &buffer);

  /* What is not so is refused, and the memory stays with its owner. */
  HurrayBuffer *none = NULL;
  if (hurray_buffer_from_ptr(arena.memory + 32, 64, 4096, HURRAY_DEVICE_CPU, 0, 0, give_back,
                             &arena, &none) != HURRAY_ERR_INVALID_LAYOUT)
    return 1;
  printf("refused: %s\n", strstr(hurray_last_error(), "declared"));

  printf("sum %u, ", consume(buffer));
  printf("given back: %s\n", arena.in_use ? "no" : "yes");
  free(arena.memory);
  return 0;
}
