/* nothing: the resident set of a C program that does nothing, in kilobytes: the least that an allocator costs.
 *
 *   nothing [BYTES]        with an argument: allocates so many bytes once before it looks
 *
 * How it misleads: most of the figure is the pages of libc and of the loader, which other processes share; a library
 * that is larger or needs more libraries looks worse by its own code.  The kernel counts in batches: +-100 KB. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The field of a file in /proc, in kilobytes. */
static long kernel_kb(const char* path, const char* field) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  const char* line = strstr(text, field);
  return line == NULL ? 0 : strtol(line + strlen(field), NULL, 10);
}

int main(int count, char** values) {
  void* volatile block = count > 1 ? malloc(strtoul(values[1], NULL, 10)) : NULL;
  long resident = kernel_kb("/proc/self/smaps_rollup", "\nRss:");
  long peak = kernel_kb("/proc/self/status", "VmHWM:");
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  Dl_info info = {0};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  const char* library = symbol != NULL && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
  printf("{\"workload\":\"nothing\",\"case\":\"%s\",\"api\":\"malloc\",\"threads\":1,\"ops\":1,\"ns_per_op\":0,"
         "\"vm_hwm_kb\":%ld,\"minor_faults\":%ld,\"rss_kb\":%ld,\"malloc_library\":\"%s\"}\n",
         count > 1 ? "once" : "none", peak, usage.ru_minflt, resident, library);
  free(block);
  return 0;
}
