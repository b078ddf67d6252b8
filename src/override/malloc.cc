// The malloc family, as glibc documents it for replacements of malloc.
#include <malloc.h>
#include <stdio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/os_pages.h"
#include "override/allocator.h"  // IWYU pragma: keep (a baseline has the same names in its own)

using namespace hm;

#define HM_EXPORT extern "C" __attribute__((visibility("default")))

// malloc and free lie in the same 512 bytes: with a boundary between them some programs take one and a half times as
// long (docs/decisions.md, 5), and otherwise it would depend on the build.
HM_EXPORT __attribute__((aligned(512))) void* malloc(size_t size) noexcept { return front::allocate(size); }
HM_EXPORT void free(void* block) noexcept { front::deallocate(block, "free"); }
HM_EXPORT void* calloc(size_t count, size_t size) noexcept { return front::allocate_zeroed(count, size); }
HM_EXPORT void* realloc(void* block, size_t size) noexcept { return front::reallocate(block, size, "realloc"); }

HM_EXPORT void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  return front::reallocate(block, bytes, "reallocarray");
}

HM_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  int saved = errno;
  void* block = front::allocate_aligned(alignment, size);
  errno = saved;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

HM_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (std::has_single_bit(alignment)) return front::allocate_aligned(alignment, size);
  errno = EINVAL;
  return nullptr;
}

static void* allocate_rounded(size_t alignment, size_t size) noexcept {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return front::allocate_aligned(std::bit_ceil(alignment), size);
}

static void* allocate_pages(size_t size) noexcept {
  if (size > kMaxRequest) return out_of_memory();
  size_t whole = align_up(size, os::page_size());
  return front::allocate_aligned(os::page_size(), whole == 0 ? os::page_size() : whole);
}

// Like glibc: an alignment that is no power of two is rounded up to one, and is invalid if no such power exists.  A
// power of two to which nothing can be aligned is valid: ENOMEM.
HM_EXPORT void* memalign(size_t alignment, size_t size) noexcept { return allocate_rounded(alignment, size); }

HM_EXPORT void* valloc(size_t size) noexcept { return front::allocate_aligned(os::page_size(), size); }

HM_EXPORT void* pvalloc(size_t size) noexcept { return allocate_pages(size); }

HM_EXPORT size_t malloc_usable_size(void* block) noexcept { return front::usable_size(block, "malloc_usable_size"); }

// C23.  The default library does not need the size: it trusts the descriptor.
HM_EXPORT void free_sized(void* block, size_t size) noexcept {
  if constexpr (kChecked) front::check_size(block, size, kGranule, "free_sized");
  front::deallocate(block, "free_sized");
}
HM_EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
  if constexpr (kChecked) front::check_size(block, size, alignment, "free_aligned_sized");
  front::deallocate(block, "free_aligned_sized");
}

HM_EXPORT int malloc_trim(size_t) noexcept { return collect() ? 1 : 0; }

// HMALLOC_ variables are for tuning; glibc's parameters have no counterpart here.  Returns 1, as glibc does for unknown
// parameters: programs that end because they could not limit the arenas would gain nothing from a 0.
HM_EXPORT int mallopt(int, int) noexcept { return 1; }

HM_EXPORT void malloc_stats() noexcept { print_usage(); }

// Of glibc alone; musl, which has neither these nor the names below, would find the latter twice.
#if defined(__GLIBC__)
HM_EXPORT struct mallinfo2 mallinfo2() noexcept {
  Usage now = usage();
  struct mallinfo2 info{};
  info.arena = now.mapped;
  info.uordblks = now.allocated;
  info.fordblks = now.mapped > now.allocated ? now.mapped - now.allocated : 0;
  info.fsmblks = now.cached;
  info.keepcost = now.retained;
  return info;
}

HM_EXPORT struct mallinfo mallinfo() noexcept {
  struct mallinfo2 wide = mallinfo2();
  struct mallinfo info{};
  info.arena = static_cast<int>(wide.arena);
  info.uordblks = static_cast<int>(wide.uordblks);
  info.fordblks = static_cast<int>(wide.fordblks);
  info.fsmblks = static_cast<int>(wide.fsmblks);
  info.keepcost = static_cast<int>(wide.keepcost);
  return info;
}

HM_EXPORT int malloc_info(int flags, FILE* stream) noexcept {
  if (flags != 0) {
    errno = EINVAL;
    return -1;
  }
  Usage now = usage();
  int written = fprintf(stream,
                        "<malloc version=\"%s\">\n"
                        "<total type=\"allocated\" size=\"%zu\"/>\n<total type=\"active\" size=\"%zu\"/>\n"
                        "<system type=\"current\" size=\"%zu\"/>\n<aspace type=\"total\" size=\"%zu\"/>\n</malloc>\n",
                        kVersion, now.allocated, now.active, now.resident, now.mapped);
  return written < 0 ? -1 : 0;
}

// glibc exports these beside the family: for wrappers of malloc that programs bring, whose malloc must not be called from
// here, and for programs older than 2018 (cfree).  A block of glibc's that reached our free would end the program.
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names
HM_EXPORT void* __libc_malloc(size_t size) noexcept { return front::allocate(size); }
HM_EXPORT void __libc_free(void* block) noexcept { front::deallocate(block, "free"); }
HM_EXPORT void* __libc_calloc(size_t count, size_t size) noexcept { return front::allocate_zeroed(count, size); }
HM_EXPORT void* __libc_realloc(void* block, size_t size) noexcept { return front::reallocate(block, size, "realloc"); }
HM_EXPORT void* __libc_memalign(size_t alignment, size_t size) noexcept { return allocate_rounded(alignment, size); }
HM_EXPORT void* __libc_valloc(size_t size) noexcept { return front::allocate_aligned(os::page_size(), size); }
HM_EXPORT void* __libc_pvalloc(size_t size) noexcept { return allocate_pages(size); }
// NOLINTEND(bugprone-reserved-identifier)
HM_EXPORT void cfree(void* block) noexcept { front::deallocate(block, "cfree"); }
#endif
