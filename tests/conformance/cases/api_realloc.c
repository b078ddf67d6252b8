/* realloc between every two boundary sizes, and two million random operations whose blocks must never overlap. */
#include <malloc.h>

#include "case.h"

static const size_t boundary_sizes[] = {1,     8,     16,    17,     24,     63,   64,      65,         128,   129,
                                        1008,  1024,  1025,  4032,   4096,   4097, 8192,    16384,      32768, 32769,
                                        65535, 65536, 65537, 131072, 524288, MIB,  4 * MIB, 4 * MIB + 1};

static void fill(unsigned char* bytes, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) bytes[i] = (unsigned char)(i * 131 + (i >> 8));
}
static int is_filled(const unsigned char* bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != (unsigned char)(i * 131 + (i >> 8))) return 0;
  return 1;
}

CASE(realloc_matrix) {
  _Static_assert(COUNT_OF(boundary_sizes) == 28, "28 boundary sizes");
  for (size_t i = 0; i < COUNT_OF(boundary_sizes); i++) {
    for (size_t j = 0; j < COUNT_OF(boundary_sizes); j++) {
      size_t before = boundary_sizes[i], after = boundary_sizes[j];
      unsigned char* block = (unsigned char*)take(before);
      fill(block, 0, before);
      block = (unsigned char*)realloc(block, after);
      REQUIRE(block != NULL && malloc_usable_size(block) >= after);
      REQUIRE(is_filled(block, before < after ? before : after));
      fill(block, 0, after);
      free(block);
    }
  }
}

/* As glibc: the block is freed and NULL comes back, without an error. */
CASE(realloc_zero) {
  for (size_t i = 0; i < COUNT_OF(boundary_sizes); i++) {
    void* block = malloc(boundary_sizes[i]);
    errno = 4242;
    REQUIRE(realloc(block, hidden_size(0)) == NULL && errno == 4242);
  }
}

/* Growing by steps as a string or a vector does, with neighbours that must stay whole. */
CASE(realloc_grow) {
  unsigned char* block = NULL;
  void* neighbours[256];
  size_t count = 0, size = 0;
  while (size < 24 * MIB) {
    size_t next = size + size / 2 + 10;
    block = (unsigned char*)realloc(block, next);
    REQUIRE(block != NULL);
    fill(block, size, next);
    size = next;
    REQUIRE(count < COUNT_OF(neighbours));
    neighbours[count] = take_marked(size, (unsigned)count);
    count++;
  }
  REQUIRE(is_filled(block, size));
  free(block);
  size = 0;
  for (size_t i = 0; i < count; i++) {
    size = size + size / 2 + 10;
    free_marked(neighbours[i], size, (unsigned)i);
  }
}

typedef struct {
  void* block;
  size_t size;
  unsigned seed;
} Slot;

static size_t random_size(uint64_t* state) {
  uint32_t dice = random_next(state) % 1000;
  uint32_t value = random_next(state);
  if (dice < 800) return 1 + value % 512;
  if (dice < 980) return 1 + value % 8192;
  return 1 + value % (dice < 999 ? 100000 : 3000000);
}

CASE(uniq_overlap) {
  enum { kSlots = 5000, kOperations = 2000000 };
  static Slot slots[kSlots];
  uint64_t state = 0x2545F4914F6CDD1Du;
  for (unsigned i = 0; i < kOperations; i++) {
    Slot* slot = &slots[random_next(&state) % kSlots];
    if (slot->block != NULL) {
      free_marked(slot->block, slot->size, slot->seed);
      slot->block = NULL;
      continue;
    }
    slot->size = random_size(&state);
    slot->seed = i;
    slot->block = take_marked(slot->size, slot->seed);
  }
  for (size_t i = 0; i < kSlots; i++) {
    REQUIRE(slots[i].block == NULL || is_marked(slots[i].block, slots[i].size, slots[i].seed));
    free(slots[i].block);
  }
}

CASE_MAIN()
