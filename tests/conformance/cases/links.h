/* As many blocks as there are, without memory beside them. */
#ifndef CONFORMANCE_LINKS_H
#define CONFORMANCE_LINKS_H

#include "case.h"

/* Blocks in a list through their own first word: the list itself needs no memory. */
typedef struct Link {
  struct Link* next;
} Link;

static Link* take_until_none(size_t size, size_t most, size_t* taken) {
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

static void give_back(Link* list, size_t size, size_t taken) {
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

#endif
