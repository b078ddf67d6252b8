/* nothing: the resident set of a C program that does nothing, in kilobytes: the least that an allocator costs.
 *
 *   nothing [--size 0]        so many bytes are allocated once before it looks; 0: malloc is never called
 *
 * How it misleads: most of the figure is the pages of libc and of the loader, which other processes share; a library
 * that is larger or needs more libraries looks worse by its own code.  The kernel counts in batches: +-100 KB. */
#include <dlfcn.h>
#include <errno.h>
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

/* As arguments.h has it, without the start-up of C++. */
static size_t size_argument(int count, char** values) {
  if (count == 1) return 0;
  char* end = NULL;
  errno = 0;
  unsigned long size = count == 3 ? strtoul(values[2], &end, 10) : 0;
  if (count == 3 && strcmp(values[1], "--size") == 0 && values[2][0] >= '0' && values[2][0] <= '9' && *end == 0 &&
      errno == 0) {
    return size;
  }
  fprintf(stderr, "nothing: the only argument is --size with a whole number of bytes\n");
  exit(2);
}

int main(int count, char** values) {
  size_t size = size_argument(count, values);
  void* volatile block = size != 0 ? malloc(size) : NULL;
  if (size != 0 && block == NULL) abort();
  long resident = kernel_kb("/proc/self/smaps_rollup", "\nRss:");
  long vm_peak = kernel_kb("/proc/self/status", "VmPeak:");
  long vm_hwm = kernel_kb("/proc/self/status", "VmHWM:");
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  Dl_info info = {0};
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  const char* library = symbol != NULL && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
  /* Formatted without a stream, which would allocate its buffer. */
  char line[4096];
  int length =
      snprintf(line, sizeof line,
               "{\"workload\":\"nothing\",\"api\":\"malloc\",\"threads\":1,\"ops\":%d,\"ns_per_op\":0,\"seconds\":0,"
               "\"cpu_share\":1,\"vm_peak_kb\":%ld,\"vm_hwm_kb\":%ld,\"minor_faults\":%ld,\"malloc_library\":\"%s\","
               "\"rss_kb\":%ld}\n",
               size != 0, vm_peak, vm_hwm, usage.ru_minflt, library, resident);
  free(block);
  return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}
