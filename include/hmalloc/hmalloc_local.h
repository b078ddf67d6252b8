/* Local blocks inline: hm_local_alloc and hm_local_free of hmalloc.h, which says what they promise, without a call.
 *
 * EXPERIMENTAL: with the fast paths the layout that they rely on is inline; both may change with any minor version.  A
 * program that includes this header must be recompiled for each; one that includes only hmalloc.h need not.
 *
 * Source    HMalloc, sections 3.1 and 3.3: bump and count, coalescence free.
 */
#ifndef HMALLOC_HMALLOC_LOCAL_H
#define HMALLOC_HMALLOC_LOCAL_H

#include <hmalloc/hmalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HM_LOCAL_MAX 1792u       /* largest local block: 112 granules of 16 bytes */
#define HM_LOCAL_CHUNK_ 0x200000 /* one chunk of local memory, aligned to its size */
#define HM_LOCAL_UNIT_ 0x10000   /* a coalescing unit: one bump region, two counts */
#define HM_LOCAL_COUNTS_ 0x10000 /* in a chunk: struct hm_local_unit_ of each 64 KB unit */
#define HM_LOCAL_SIZES_ 0x11000  /* in a chunk: one byte per granule, the size of the live block that starts there */

#define HM_LOCAL_CACHED_ 64     /* granules: larger blocks are not cached */
#define HM_LOCAL_SLOTS_ 32      /* of a cache; the first one is null */
#define HM_LOCAL_IN_CACHE_ 128u /* added to the byte of a block that waits in a cache */

/* The two counts of the paper: a unit whose blocks have all been freed is one free piece again. */
struct hm_local_unit_ {
  uint32_t allocated;
  uint32_t freed;
};

/* The blocks freed last, by granules: one stack each, aligned to its size, so that its last slot is known by address. */
struct hm_local_cache_ {
  void** top[HM_LOCAL_CACHED_ + 1];
};

/* The calling thread's place in its local memory.  Only that thread writes it. */
struct hm_local_place_ {
  uintptr_t cursor;     /* where the next block starts */
  uintptr_t end;        /* end of the current unit */
  uintptr_t chunk;      /* chunk of the current unit */
  uintptr_t free_chunk; /* chunk that the last local free fell into */
  struct hm_local_unit_* unit;
  struct hm_local_cache_* cache;
};

extern HM_API __thread struct hm_local_place_ hm_local_tls_ __attribute__((tls_model("initial-exec")));
HM_API void* hm_local_alloc_slow_(size_t size) HM_NOEXCEPT;
HM_API void hm_local_free_slow_(void* block) HM_NOEXCEPT;
HM_API void hm_local_coalesce_(void* block) HM_NOEXCEPT;

HM_INLINE_ uint8_t* hm_local_size_(uintptr_t block) HM_NOEXCEPT {
  uintptr_t offset = block & (HM_LOCAL_CHUNK_ - 1);
  return (uint8_t*)(block - offset + HM_LOCAL_SIZES_ + offset / 16);
}

/* One writer at a time; relaxed, because statistics read it. */
HM_INLINE_ void hm_local_set_size_(uint8_t* byte, size_t size) HM_NOEXCEPT {
  __atomic_store_n(byte, (uint8_t)size, __ATOMIC_RELAXED);
}

/* Sizes above 128 bytes are rounded up to a quarter of their power of two, so that a freed block fits more requests. */
HM_INLINE_ size_t hm_local_granules_(size_t size) HM_NOEXCEPT {
  size_t granules = (size + 15) / 16 + (size == 0);
  if (granules <= 8) return granules;
  size_t step = (size_t)1 << (61 - __builtin_clzl(granules - 1));
  return (granules + step - 1) & ~(step - 1);
}

HM_INLINE_ void* hm_local_alloc(size_t size) HM_NOEXCEPT {
  if (__builtin_expect(size > HM_LOCAL_MAX, 0)) return hm_local_alloc_slow_(size);
  size_t granules = hm_local_granules_(size);
  if (granules <= HM_LOCAL_CACHED_) {
    void** top = hm_local_tls_.cache->top[granules];
    void* cached = *top;
    if (__builtin_expect(cached != NULL, 1)) {
      hm_local_tls_.cache->top[granules] = top - 1;
      hm_local_set_size_(hm_local_size_((uintptr_t)cached), granules);
      return cached;
    }
  }
  uintptr_t block = hm_local_tls_.cursor;
  if (__builtin_expect(granules * 16 > hm_local_tls_.end - block, 0)) return hm_local_alloc_slow_(size);
  hm_local_tls_.cursor = block + granules * 16;
  hm_local_set_size_((uint8_t*)(hm_local_tls_.chunk + HM_LOCAL_SIZES_) + (block - hm_local_tls_.chunk) / 16, granules);
  hm_local_tls_.unit->allocated++;
  return (void*)block;
}

HM_INLINE_ void hm_local_free(void* block) HM_NOEXCEPT {
  uintptr_t chunk = hm_local_tls_.free_chunk;
  uintptr_t offset = (uintptr_t)block - chunk;
  /* The rotation puts misaligned offsets out of range, like foreign ones. */
  uintptr_t granule = offset >> 4 | offset << 60;
  if (__builtin_expect(granule >= HM_LOCAL_CHUNK_ / 16, 0)) {
    hm_local_free_slow_(block);
    return;
  }
  uint8_t* state = (uint8_t*)(chunk + HM_LOCAL_SIZES_) + granule;
  size_t granules = *state;
  if (__builtin_expect((uint8_t)(granules - 1) >= HM_LOCAL_MAX / 16, 0)) {
    hm_local_free_slow_(block);
    return;
  }
  if (__builtin_expect(granules <= HM_LOCAL_CACHED_, 1)) {
    void** top = hm_local_tls_.cache->top[granules] + 1;
    if (__builtin_expect(((uintptr_t)top & (HM_LOCAL_SLOTS_ * sizeof(void*) - 1)) != 0, 1)) {
      hm_local_set_size_(state, granules | HM_LOCAL_IN_CACHE_);
      *top = block;
      hm_local_tls_.cache->top[granules] = top;
      return;
    }
  }
  hm_local_set_size_(state, 0);
  struct hm_local_unit_* unit = (struct hm_local_unit_*)(chunk + HM_LOCAL_COUNTS_) + granule / 4096;
  if (++unit->freed != unit->allocated) return;
  if (unit != hm_local_tls_.unit) {
    hm_local_coalesce_(block);
    return;
  }
  unit->allocated = unit->freed = 0; /* coalescence free: the whole unit is one piece again */
  hm_local_tls_.cursor = (uintptr_t)block & ~(uintptr_t)(HM_LOCAL_UNIT_ - 1);
  hm_local_tls_.end = hm_local_tls_.cursor + HM_LOCAL_UNIT_;
}

#ifdef __cplusplus
}
#endif
#endif
