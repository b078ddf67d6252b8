/* Writes the statistics of one moment in both forms for machines: forms JSON OPENMETRICS. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void* pass;

static void* allocate(void* unused) {
  for (size_t size = 16; size < 3000000; size += size / 2) free(malloc(size));
  pass = malloc(100);
  return unused;
}

int main(int count, char** words) {
  void (*print)(int, int) = (void (*)(int, int))dlsym(RTLD_DEFAULT, "hm_stats_print");
  if (count != 3 || print == NULL) return 2;
  for (size_t size = 16; size < 3000000; size += size / 3)
    if (malloc(size) == NULL) return 1;
  for (int i = 0; i < 70; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, NULL);
    free(pass);
  }
  for (int form = 1; form <= 2; form++) {
    int fd = open(words[form], O_WRONLY | O_CREAT, 0600);
    print(fd, form);
    close(fd);
  }
  return 0;
}
