/* Local blocks inline: hm_local_alloc and hm_local_free_sized of hmalloc.h, which says what they promise, without a call.
 *
 * A local block waits for its next use where all small blocks do, in the calling thread's cache of its class.  A size that the
 * compiler knows names the cache, so that nothing but the cache is read.
 *
 * EXPERIMENTAL: with the fast paths the layout that they rely on is inline; both may change with any minor version.  A
 * program that includes this header must be recompiled for each; one that includes only hmalloc.h need not.  Not for code that
 * goes on in another thread in the middle of a function, as fibers may: the compiler may keep where the thread's variables are.
 */
#ifndef HMALLOC_HMALLOC_LOCAL_H
#define HMALLOC_HMALLOC_LOCAL_H

#include <hmalloc/hmalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HM_LOCAL_MAX 4096u            /* larger ones are called for */
#define HM_LOCAL_STRIDE_ ((size_t)32) /* from cache to cache */

/* The calling thread's caches, behind one that has no block and no room.  NULL if it has none, and in the checked library,
 * which has to see every block. */
extern HM_API __thread char* hm_local_caches_ __attribute__((tls_model("initial-exec")));
/* Where the cache of a size is among them.  A program may have a copy of this, which is zero before the program has been
 * relocated: zero is where the first one is. */
struct hm_local_table_ {
  uint16_t by_granules[HM_LOCAL_MAX / 16]; /* (size - 1) / 16 */
};
extern HM_API const struct hm_local_table_ hm_local_offsets_;
HM_API void hm_local_free_slow_(void* block, size_t size) HM_NOEXCEPT;

/* For parts of the two functions below, which the library does not have as functions. */
#ifndef HM_PART_
#define HM_PART_ HM_INLINE_
#endif

/* The class, computed: multiples of 16 bytes up to 128, then four classes to each doubling. */
HM_PART_ size_t hm_local_class_(size_t size) HM_NOEXCEPT {
  size_t quarter = 61 - (size_t)__builtin_clzl((size - 1) | 64);
  return ((size - 1) >> quarter) + 4 * quarter - 16;
}

/* One operation at a time: hm_collect of another thread relies on it. */
HM_PART_ void hm_local_keep_apart_(void) HM_NOEXCEPT { __asm__ __volatile__("" : : : "memory"); }

/* NULL: no cache for this size. */
HM_PART_ struct hm_cache* hm_local_cache_(size_t size) HM_NOEXCEPT {
  char* caches = (hm_local_keep_apart_(), hm_local_caches_);
  if (__builtin_expect(caches == NULL || size - 1 >= HM_LOCAL_MAX, 0)) return NULL;
  size_t granules = (size - 1) / 16;
  size_t offset =
      __builtin_constant_p(size) ? (hm_local_class_(size) + 1) * HM_LOCAL_STRIDE_ : hm_local_offsets_.by_granules[granules];
  return (struct hm_cache*)(caches + offset);
}

HM_INLINE_ void* hm_local_alloc(size_t size) HM_NOEXCEPT {
  struct hm_cache* cache = hm_local_cache_(size);
  if (__builtin_expect(cache != NULL, 1)) {
    void** top = cache->top;
    void* block = *top;
    if (__builtin_expect(block != NULL, 1)) {
      __atomic_store_n(&cache->top, top - 1, __ATOMIC_RELAXED);
      return block;
    }
  }
  return hm_malloc(size);
}

HM_INLINE_ void hm_local_free_sized(void* block, size_t size) HM_NOEXCEPT {
  struct hm_cache* cache = hm_local_cache_(size);
  if (__builtin_expect(cache != NULL && block != NULL, 1)) {
    void** top = cache->top;
    if (__builtin_expect(top < cache->limit && *top != block, 1)) {
      top[1] = block;
      __atomic_store_n(&cache->top, top + 1, __ATOMIC_RELAXED);
      return;
    }
  }
  hm_local_free_slow_(block, size);
}

#ifdef __cplusplus
}
#endif
#endif
