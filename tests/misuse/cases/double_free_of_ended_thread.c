// expect: hmalloc: free(0xPOINTER): double free, or never a block
// The thread that freed first has ended, and a trim emptied the caches it left.
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static void* free_first(void* block) {
  free(block);
  return NULL;
}

int main(void) {
  pthread_t thread;
  char* volatile block = malloc(100);
  pthread_create(&thread, NULL, free_first, block);
  pthread_join(thread, NULL);
  malloc_trim(0);
  free(block);
}
