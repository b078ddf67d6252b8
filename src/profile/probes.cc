#include "profile/probes.h"

#if HM_PROBES
#define _SDT_HAS_SEMAPHORES 1  // NOLINT(bugprone-reserved-identifier): sys/sdt.h calls it so
#include <sys/sdt.h>

extern "C" {
// Weak: where the library is linked statically, something else in the program may have the same probes.
[[gnu::weak, gnu::section(".probes")]] constinit unsigned short otel_memory_alloc_semaphore = 0;
[[gnu::weak, gnu::section(".probes")]] constinit unsigned short otel_memory_free_semaphore = 0;
}
#else
#define STAP_PROBE1(...)
#define STAP_PROBE3(...)
#endif

namespace hm {

// Functions of their own, so that there is one place of each, and the arguments are where those of a call are: a reader may
// look for them there instead of reading the note, as the first one of OpenTelemetry's was to.
HM_NOINLINE void probe_alloc([[maybe_unused]] const void* block, [[maybe_unused]] uint64_t size,
                             [[maybe_unused]] uint64_t weight) noexcept {
  STAP_PROBE3(otel_memory, alloc, block, size, weight);
}
HM_NOINLINE void probe_free([[maybe_unused]] const void* block) noexcept { STAP_PROBE1(otel_memory, free, block); }

}  // namespace hm
