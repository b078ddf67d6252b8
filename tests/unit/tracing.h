// What a tracer does to this program, for the tests of what follows: it counts the semaphores.
#pragma once
#include "profile/probes.h"
#include "profile/samples.h"
#include "support.h"

#if HM_PROBES

namespace hm::test {

inline constexpr size_t kTracerRate = 512 * kKiB;

inline void count_semaphores(int by) {
  for (unsigned short* word : {&otel_memory_alloc_semaphore, &otel_memory_free_semaphore})
    __atomic_fetch_add(word, static_cast<unsigned short>(by), __ATOMIC_RELAXED);
}

// Slow-path operations as programs make them: at one of these the semaphore is looked at.
inline void work() { free_all(allocate_many(2000, 3000)); }

struct Tracing : NothingIsLost {
  void TearDown() override {
    EXPECT_TRUE(samples.is_valid());
    NothingIsLost::TearDown();
  }
};

}  // namespace hm::test

#endif
