/* Taking memory until there is none, shared by the limits and the injected faults. */
#ifndef CONFORMANCE_EXHAUST_H
#define CONFORMANCE_EXHAUST_H

#include <sys/resource.h>

#include "case.h"

/* Blocks in a list through their own first word: the list itself needs no memory. */
typedef struct Link {
  struct Link* next;
} Link;

static inline Link* take_until_none(size_t size, size_t most, size_t* taken) {
  Link* list = NULL;
  for (*taken = 0; *taken < most; ++*taken) {
    errno = 0;
    Link* block = (Link*)malloc(size);
    if (block == NULL) {
      REQUIRE(errno == ENOMEM);
      return list;
    }
    mark(block + 1, size - sizeof(Link), (unsigned)*taken);
    block->next = list;
    list = block;
  }
  return list;
}

static inline void give_back_all(Link* list, size_t size, size_t taken) {
  while (list != NULL) {
    Link* next = list->next;
    REQUIRE(is_marked(list + 1, size - sizeof(Link), (unsigned)--taken));
    errno = 4242;
    free(list);
    REQUIRE(errno == 4242);
    list = next;
  }
  REQUIRE(taken == 0);
}

/* To exhaustion, all back, then at least half as much again: for each size, with what the others left behind. */
static inline void exhaust_and_recover(void) {
  const size_t sizes[] = {64, 1000, 20000, 300000, 5 * MIB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t first;
    size_t again;
    Link* list = take_until_none(sizes[i], 8 * KIB * MIB / sizes[i], &first);
    REQUIRE(first > 0 && first < 8 * KIB * MIB / sizes[i]);
    errno = 0;
    REQUIRE(calloc(sizes[i], 64 * KIB) == NULL && errno == ENOMEM);
    give_back_all(list, sizes[i], first);
    list = take_until_none(sizes[i], first / 2, &again);
    REQUIRE(again == first / 2);
    give_back_all(list, sizes[i], again);
  }
}

static inline void limit(__rlimit_resource_t resource, size_t bytes) {
  struct rlimit value = {bytes, bytes};
  REQUIRE(setrlimit(resource, &value) == 0);
}

#endif
