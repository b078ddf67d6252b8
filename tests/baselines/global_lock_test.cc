// The baselines with one lock around everything: every call waits for it.
#include "contract_support.h"
#if defined(HM_AR_MALLOC_GLOBAL_LOCK)
#include "baselines/ar_malloc/arena.h"
#endif

using namespace contract;

namespace {

#if defined(HM_AR_MALLOC_GLOBAL_LOCK)
Lock& lock() { return ar_malloc::arenas[0].lock(); }
#else
Lock& lock() { return one_lock::the_lock(); }
#endif

}  // namespace

TEST(GlobalLock, EveryCallWaitsForIt) {
  char *small = get(100), *large = get(kMiB), *huge = get(3 * kMiB);
  EXPECT_TRUE(waits_for(lock(), [] { get(100); }));
  EXPECT_TRUE(waits_for(lock(), [] { get(kMiB); }));
  EXPECT_TRUE(waits_for(lock(), [] { baseline::allocate_aligned(64, 10); }));
  EXPECT_TRUE(waits_for(lock(), [=] { give(small); }));
  EXPECT_TRUE(waits_for(lock(), [=] { give(large); }));
  EXPECT_TRUE(waits_for(lock(), [=] { baseline::resize(huge, 8 * kMiB); }));
  EXPECT_TRUE(waits_for(lock(), [] { baseline::usage(); }));
}

TEST(GlobalLock, AForkWithinItWorks) {
  expect_fork_within(lock(), [] {
    for (size_t size : {10, 100'000}) give(get(size));
  });
}
