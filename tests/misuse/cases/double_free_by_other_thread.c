// expect checked: hmalloc: free(0xPOINTER): double free, or never a block
// Each thread frees once; the first keeps the block in its cache and lives.
#include <pthread.h>
#include <stdlib.h>

static void* free_again(void* block) {
  free(block);
  return NULL;
}

int main(void) {
  pthread_t thread;
  char* volatile block = malloc(100);
  free(block);
  pthread_create(&thread, NULL, free_again, block);
  pthread_join(thread, NULL);
}
