/* Blocks that know their size and have marks all over, so that whoever frees one sees whether others have written to it. */
#pragma once

#include "case.h"

typedef struct {
  size_t size;
  char rest[];
} Block;

static Block* marked(void* fresh, size_t size) {
  Block* block = fresh;
  REQUIRE(block != NULL);
  block->size = size;
  mark(block->rest, size - sizeof *block, (unsigned)size);
  return block;
}

static void release(Block* block) {
  if (block != NULL) REQUIRE(is_marked(block->rest, block->size - sizeof *block, (unsigned)block->size));
  free(block);
}
