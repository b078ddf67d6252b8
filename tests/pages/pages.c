// Preloaded: a machine with pages of PAGE_BYTES, for whoever asks libc.  getauxval says so, and calls that map memory
// round as a kernel with such pages does: what is mapped is aligned to them, lengths are rounded up, an address that is
// not a multiple is refused, and mincore has one byte for each.  libc itself keeps the pages of the machine.
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = PAGE_BYTES };

static size_t rounded(size_t bytes) { return (bytes + kPage - 1) & ~(size_t)(kPage - 1); }
static int misplaced(const void* address) { return (uintptr_t)address % kPage != 0; }
static void* raw_map(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) {
  return (void*)syscall(SYS_mmap, hint, bytes, protection, flags, file, offset);
}

unsigned long getauxval(unsigned long what) {
  static unsigned long (*real)(unsigned long);
  if (what == AT_PAGESZ) return kPage;
  if (real == NULL) real = (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");
  return real(what);
}

void* mmap(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_ANONYMOUS) == 0 || (flags & MAP_FIXED) != 0 || bytes > PTRDIFF_MAX - kPage)
    return raw_map(hint, bytes, protection, flags, file, offset);
  bytes = rounded(bytes);
  char* base = raw_map(hint, bytes, protection, flags, file, offset);
  if (base == MAP_FAILED || !misplaced(base)) return base;
  syscall(SYS_munmap, base, bytes);
  base = raw_map(NULL, bytes + kPage, protection, flags, file, offset);
  if (base == MAP_FAILED) return base;
  size_t head = rounded((uintptr_t)base) - (uintptr_t)base;
  if (head > 0) syscall(SYS_munmap, base, head);
  syscall(SYS_munmap, base + head + bytes, kPage - head);
  return base + head;
}

static int refused(void) {
  errno = EINVAL;
  return -1;
}

int munmap(void* base, size_t bytes) { return misplaced(base) ? refused() : (int)syscall(SYS_munmap, base, rounded(bytes)); }

int madvise(void* base, size_t bytes, int advice) {
  return misplaced(base) ? refused() : (int)syscall(SYS_madvise, base, rounded(bytes), advice);
}

int mprotect(void* base, size_t bytes, int protection) {
  return misplaced(base) ? refused() : (int)syscall(SYS_mprotect, base, rounded(bytes), protection);
}

void* mremap(void* base, size_t bytes, size_t new_bytes, int flags, ...) {
  __builtin_va_list rest;
  __builtin_va_start(rest, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? __builtin_va_arg(rest, void*) : NULL;
  __builtin_va_end(rest);
  if (misplaced(base) || misplaced(to)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mremap, base, rounded(bytes), rounded(new_bytes), flags, to);
}

// A page is in memory if any part of it is.
int mincore(void* base, size_t bytes, unsigned char* in_memory) {
  unsigned char parts[kPage / 4096];
  if (misplaced(base)) return refused();
  for (size_t at = 0; at < bytes; at += kPage) {
    if (syscall(SYS_mincore, (char*)base + at, (size_t)kPage, parts) != 0) return -1;
    in_memory[at / kPage] = 0;
    for (size_t i = 0; i < sizeof parts; ++i) in_memory[at / kPage] |= parts[i] & 1;
  }
  return 0;
}
