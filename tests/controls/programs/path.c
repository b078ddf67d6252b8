/* A fast path with a slow one behind it, to be counted; LONGER has one instruction more, LOCKED a locked one. */
#include <stdatomic.h>

struct Cache {
  void** top;
  long taken;
  atomic_long shared;
};

__attribute__((noinline, cold)) void* refill(struct Cache* cache) { return cache->top; }

void* taken(struct Cache* cache) {
  void* block = *cache->top;
  if (__builtin_expect(block == 0, 0)) return refill(cache);
  --cache->top;
#if defined LONGER
  ++cache->taken;
#elif defined LOCKED
  atomic_fetch_add(&cache->shared, 1);
#endif
  return block;
}
