// expect: hmalloc: hm_local_free(0xPOINTER): double free, or never a block
// The owner frees, then another thread, while a neighbour keeps the unit alive.
#include "hmalloc/hmalloc_local.h"
#include <pthread.h>
#include <stdlib.h>

static void* free_again(void* block) {
  hm_local_free(block);
  return NULL;
}

int main(void) {
  pthread_t thread;
  void* volatile block = hm_local_alloc(100);
  void* volatile kept = hm_local_alloc(100);
  hm_local_free(block);
  pthread_create(&thread, NULL, free_again, block);
  pthread_join(thread, NULL);
  hm_local_free(kept);
}
