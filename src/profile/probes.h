// Probes for tracers (USDT).  Each is a nop in the code; a note in the ELF file says where it is, and where its arguments are,
// so that perf, bpftrace, gdb or a profiler in the kernel can stop there.
//
//   otel_memory:alloc(ptr, size, weight)   a block was sampled, and becomes the program's
//   otel_memory:free(ptr)                  a sampled block is freed, and is nobody's yet
//
// So OpenTelemetry's eBPF profiler expects it of every allocator: opentelemetry-ebpf-profiler, pull request 1672 (its
// design-docs/00003-memory-profiling) and 1743; the same was asked of jemalloc in its issue 3011.  The weight is no count, but
// bytes, which 1743 therefore calls weighted_bytes: as many as were allocated for each sample of this size,
// size / (1 - exp(-size / rate)).  A reader takes it for the bytes, and weight / size for the number of blocks.  Until 1743 it
// was the number of samples within the block times the rate, which has the same mean.  The size is the block's, as in our own
// profiles: a request of 100 bytes has 112; of large blocks it is the request's.
//
// Each probe has a semaphore: a word that a tracer counts up when it comes, and down when it goes.  Without sys/sdt.h (Debian:
// systemtap-sdt-dev) there is neither probe nor semaphore.
#pragma once
#include "base/sizes.h"

#if __has_include(<sys/sdt.h>)
#define HM_PROBES 1
#else
#define HM_PROBES 0
#endif

// By the names that sys/sdt.h gives them in the notes.
extern "C" {
[[gnu::visibility("hidden"), gnu::weak]] extern unsigned short otel_memory_alloc_semaphore;
[[gnu::visibility("hidden"), gnu::weak]] extern unsigned short otel_memory_free_semaphore;
}

namespace hm {

// Relaxed: the system, or a debugger, writes the word at any time.  Who reads it late begins late.
inline bool tracer_listens() noexcept {
#if HM_PROBES
  return (__atomic_load_n(&otel_memory_alloc_semaphore, __ATOMIC_RELAXED) |
          __atomic_load_n(&otel_memory_free_semaphore, __ATOMIC_RELAXED)) != 0;
#else
  return false;
#endif
}

// By threads that hold no lock of ours: a tracer may stop them there.
void probe_alloc(const void* block, uint64_t size, uint64_t weight) noexcept;
void probe_free(const void* block) noexcept;

}  // namespace hm
