#include "base/system_call.h"

#if defined(HM_LIBC_CALLS)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace hm {
namespace {

// Those by which sanitizers learn that memory came or went, and which tests intercept, go through libc's functions.
long through_libc(long number, long a, long b, long c, long d, long e, long f) noexcept {
  auto* base = reinterpret_cast<void*>(a);
  auto bytes = static_cast<size_t>(b);
  switch (number) {
    case SYS_mmap: return reinterpret_cast<long>(mmap(base, bytes, int(c), int(d), int(e), f));
    case SYS_munmap: return munmap(base, bytes);
    case SYS_madvise: return madvise(base, bytes, int(c));
    case SYS_mremap: return reinterpret_cast<long>(mremap(base, bytes, size_t(c), int(d), reinterpret_cast<void*>(e)));
    case SYS_mincore: return mincore(base, bytes, reinterpret_cast<unsigned char*>(c));
    default: return syscall(number, a, b, c, d, e, f);
  }
}

}  // namespace

long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  int saved = errno;
  long result = through_libc(number, a, b, c, d, e, f);
  if (result == -1) result = -errno;
  errno = saved;
  return result;
}

}  // namespace hm
#endif
