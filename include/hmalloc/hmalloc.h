/* hmalloc: a memory allocator that tells thread-local from shared memory.
 *
 * Linked or preloaded, libhmalloc replaces malloc and its family.  This header adds the explicit API, with which a
 * program says what it knows: a block is local (only this thread frees it) or shared (others will).
 *
 * Units     sizes and alignments are bytes.
 * Alignment every block is aligned to at least 16 bytes.
 * Ownership every block belongs to the caller until freed.  Blocks of hm_malloc, hm_shared_alloc, malloc and new may
 *           be freed by any thread; a local block should be freed by the thread that allocated it.  If another thread
 *           frees it all the same, the block is handed back to its owner: slower, never corrupting.
 * Threads   every function may be called from any thread at any time; none is async-signal-safe.
 * Errors    allocation functions return NULL and set errno to ENOMEM; the old block of a failed realloc stays intact.
 *           Freeing never changes errno.  A pointer that is no live block ends the program: one line on descriptor 2,
 *           then abort.
 * Source    "An efficient multi-threaded memory allocator for PDES applications" (HMalloc), sections 3.1 to 3.3.
 */
#ifndef HMALLOC_HMALLOC_H
#define HMALLOC_HMALLOC_H

#include <stddef.h>
#include <stdint.h>

#define HM_VERSION_MAJOR 0
#define HM_VERSION_MINOR 1
#define HM_VERSION_PATCH 0
#define HM_VERSION_STRING "0.1.0"

#ifdef __cplusplus
#define HM_NOEXCEPT noexcept
extern "C" {
#else
#define HM_NOEXCEPT
#endif

#define HM_API __attribute__((visibility("default")))
#define HM_ALLOC(...) __attribute__((malloc, warn_unused_result, alloc_size(__VA_ARGS__)))

/* "0.1.0": the version of the library that serves the calls. */
HM_API const char* hm_version(void) HM_NOEXCEPT;

/* ---- General blocks: malloc and its family under hm_ names, for any thread. ---------------------------------- */

HM_API void* hm_malloc(size_t size) HM_NOEXCEPT HM_ALLOC(1);
HM_API void* hm_calloc(size_t count, size_t size) HM_NOEXCEPT HM_ALLOC(1, 2);
HM_API void* hm_realloc(void* block, size_t size) HM_NOEXCEPT __attribute__((warn_unused_result, alloc_size(2)));
/* alignment must be a power of two, else NULL and EINVAL. */
HM_API void* hm_aligned_alloc(size_t alignment, size_t size) HM_NOEXCEPT HM_ALLOC(2);
HM_API void hm_free(void* block) HM_NOEXCEPT;
/* The same for a caller that knows the size it asked hm_malloc for: reads no metadata.  A wrong size is caught by the
 * checked library only, and so is a pointer that is no live block. */
HM_API void hm_free_sized(void* block, size_t size) HM_NOEXCEPT;
/* Bytes that may be used at block, at least the size asked for; 0 for NULL. */
HM_API size_t hm_usable_size(const void* block) HM_NOEXCEPT;

/* ---- Shared blocks: whole cache lines, for messages that other threads will free (section 3.2). --------------- */

/* Never shares a 64-byte line with another block. */
HM_API void* hm_shared_alloc(size_t size) HM_NOEXCEPT HM_ALLOC(1);
HM_API void hm_shared_free(void* block) HM_NOEXCEPT;
/* The same for a caller that knows the size it asked hm_shared_alloc for: reads no metadata.  A wrong size is
 * caught by the checked library only, and so is a pointer that is no live block. */
HM_API void hm_shared_free_sized(void* block, size_t size) HM_NOEXCEPT;

/* ---- A cache in the hand: for loops that allocate and free one size all the time. ------------------------------ */

/* The calling thread's cache of the blocks that hm_malloc, or hm_shared_alloc, gives for size: with it a block costs
 * neither a call nor a look at thread-local storage.  Only the thread that asked may use it, and until it ends.  The
 * blocks are like any others: any function frees them, on any thread.  NULL: there is none for this size (above 32 KB),
 * no memory, or the checked library, which has to see every block. */
struct hm_cache;
HM_API struct hm_cache* hm_cache_of(size_t size) HM_NOEXCEPT;
HM_API struct hm_cache* hm_shared_cache_of(size_t size) HM_NOEXCEPT;
/* Inline below.  Freeing reads no metadata: the block must be live, not NULL, and of the cache's size. */
static inline void* hm_cache_alloc(struct hm_cache* cache) HM_NOEXCEPT;
static inline void hm_cache_free(struct hm_cache* cache, void* block) HM_NOEXCEPT;

/* ---- Local blocks: bump and count, coalescence free (sections 3.1 and 3.3). ----------------------------------- */

/* Inline below.  Sizes above HM_LOCAL_MAX are served as general blocks, and freed the same way. */
static inline void* hm_local_alloc(size_t size) HM_NOEXCEPT;
static inline void hm_local_free(void* block) HM_NOEXCEPT;
HM_API void* hm_local_realloc(void* block, size_t size) HM_NOEXCEPT
    __attribute__((warn_unused_result, alloc_size(2)));
HM_API size_t hm_local_usable_size(const void* block) HM_NOEXCEPT;

/* ---- Memory back to the system, and numbers. ------------------------------------------------------------------ */

/* Gives every page that holds no block back to the system now: this thread's caches, the caches of ended threads
 * and the superblocks of all threads.  What a live thread holds in its block caches stays until that thread calls
 * (bounded; docs/design.md, "Footprint").  Returns 1 if memory went back, else 0. */
HM_API int hm_collect(void) HM_NOEXCEPT;

/* Starts a thread that gives memory back while the program makes no calls; HMALLOC_BACKGROUND=1 does it at load.  The
 * library starts none by itself.  The thread has every signal blocked and runs none of the program's code; but the process
 * has two threads from then on (unshare, setns), does not end by pthread_exit in main, and a forked child has no such
 * thread until it calls this itself.  Not async-signal-safe.  Returns 0, also if the thread runs already, or an error
 * number of pthread_create. */
HM_API int hm_background_start(void) HM_NOEXCEPT;

/* Gauges in bytes.  allocated <= active <= resident (roughly) <= mapped. */
struct hm_stats {
  uint64_t allocated;          /* in blocks the program holds */
  uint64_t cached;             /* in blocks that wait in block caches */
  uint64_t active;             /* in superblocks, local units and large blocks that hold a block */
  uint64_t resident;           /* active + metadata + freed pages not yet given back: an upper estimate */
  uint64_t retained;           /* mapped, holding no block: given back already, or about to be */
  uint64_t mapped;             /* address space held */
  uint64_t metadata;           /* descriptors, state bytes and heaps in use */
  uint64_t peak_active;        /* the largest active so far */
  uint64_t bound;              /* most that hmalloc keeps beyond the program's own peak (docs/design.md) */
  uint64_t cross_thread_frees; /* blocks of another heap's superblocks, counted where caches are flushed */
  uint64_t refills;            /* empty block caches filled */
  uint64_t flushes;            /* full block caches emptied by half */
  uint64_t purged;             /* bytes given back to the system so far */
  uint64_t os_calls;           /* mmap, munmap, mremap, madvise, mprotect so far */
  uint32_t heaps;              /* thread heaps in existence */
  uint32_t live_heaps;         /* of these, the ones that a thread uses now */
};
HM_API void hm_stats_get(struct hm_stats* out) HM_NOEXCEPT;
/* Writes the same, per class and per thread too, to a descriptor: text, or JSON if json != 0.  Allocates nothing. */
HM_API void hm_stats_print(int fd, int json) HM_NOEXCEPT;

/* ---- The inline fast paths.  Everything from here on is the implementation. ----------------------------------- */

/* A stack of pointers to blocks; below the first one lies NULL.  Statistics of other threads read top. */
struct hm_cache {
  void** top;
  void** limit; /* a push fails from here on */
};
HM_API void* hm_cache_refill_(struct hm_cache* cache) HM_NOEXCEPT;

static inline __attribute__((always_inline, malloc, warn_unused_result))
void* hm_cache_alloc(struct hm_cache* cache) HM_NOEXCEPT {
  void** top = cache->top;
  void* block = *top;
  if (__builtin_expect(block == NULL, 0)) return hm_cache_refill_(cache);
  __atomic_store_n(&cache->top, top - 1, __ATOMIC_RELAXED);
  return block;
}

static inline __attribute__((always_inline)) void hm_cache_free(struct hm_cache* cache, void* block) HM_NOEXCEPT {
  void** top = cache->top;
  /* Full, or freed last already: the long way tells. */
  if (__builtin_expect(top >= cache->limit || *top == block, 0)) { hm_free(block); return; }
  top[1] = block;
  __atomic_store_n(&cache->top, top + 1, __ATOMIC_RELAXED);
}

#define HM_LOCAL_MAX 1792u       /* largest local block: 112 granules of 16 bytes */
#define HM_LOCAL_CHUNK_ 0x200000 /* one chunk of local memory, aligned to its size */
#define HM_LOCAL_UNIT_ 0x10000   /* a coalescing unit: one bump region, two counts */
#define HM_LOCAL_COUNTS_ 0x10000 /* in a chunk: struct hm_local_unit_ of each 64 KB unit */
#define HM_LOCAL_SIZES_ 0x11000  /* in a chunk: one byte per granule, the size of the live block that starts there */

#define HM_LOCAL_CACHED_ 64      /* granules: larger blocks are not cached */
#define HM_LOCAL_SLOTS_ 32       /* of a cache, the first one null */
#define HM_LOCAL_IN_CACHE_ 128u  /* added to the byte of a block that waits in a cache */

/* The two counts of the paper: a unit whose blocks have all been freed is one free piece again. */
struct hm_local_unit_ {
  uint32_t allocated;
  uint32_t freed;
};

/* Blocks freed last, by granules: a stack each, aligned to its own size, so that its last slot is known by address. */
struct hm_local_cache_ {
  void** top[HM_LOCAL_CACHED_ + 1];
};

/* The calling thread's place in its local memory.  Written by that thread alone. */
struct hm_local_place_ {
  uintptr_t cursor;           /* where the next block starts */
  uintptr_t end;              /* end of the current unit */
  uintptr_t chunk;            /* chunk of the current unit */
  uintptr_t free_chunk;       /* chunk that the last local free fell into */
  struct hm_local_unit_* unit;
  struct hm_local_cache_* cache;
};

extern HM_API __thread struct hm_local_place_ hm_local_tls_ __attribute__((tls_model("initial-exec")));
HM_API void* hm_local_alloc_slow_(size_t size) HM_NOEXCEPT;
HM_API void hm_local_free_slow_(void* block) HM_NOEXCEPT;
HM_API void hm_local_coalesce_(void* block) HM_NOEXCEPT;

static inline __attribute__((always_inline)) uint8_t* hm_local_size_(uintptr_t block) HM_NOEXCEPT {
  uintptr_t offset = block & (HM_LOCAL_CHUNK_ - 1);
  return (uint8_t*)(block - offset + HM_LOCAL_SIZES_ + offset / 16);
}

/* One writer at a time; relaxed, because statistics look on. */
static inline __attribute__((always_inline)) void hm_local_set_size_(uint8_t* byte, size_t size) HM_NOEXCEPT {
  __atomic_store_n(byte, (uint8_t)size, __ATOMIC_RELAXED);
}

/* Sizes above 128 bytes are rounded up to a quarter of their power of two, so that a freed block fits more requests. */
static inline __attribute__((always_inline)) size_t hm_local_granules_(size_t size) HM_NOEXCEPT {
  size_t granules = (size + 15) / 16 + (size == 0);
  if (granules <= 8) return granules;
  size_t step = (size_t)1 << (61 - __builtin_clzl(granules - 1));
  return (granules + step - 1) & ~(step - 1);
}

static inline __attribute__((always_inline, malloc, warn_unused_result, alloc_size(1)))
void* hm_local_alloc(size_t size) HM_NOEXCEPT {
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

static inline __attribute__((always_inline)) void hm_local_free(void* block) HM_NOEXCEPT {
  uintptr_t chunk = hm_local_tls_.free_chunk;
  uintptr_t offset = (uintptr_t)block - chunk;
  /* Rotated, a misaligned offset is as far out of range as a foreign one. */
  uintptr_t granule = offset >> 4 | offset << 60;
  if (__builtin_expect(granule >= HM_LOCAL_CHUNK_ / 16, 0)) { hm_local_free_slow_(block); return; }
  uint8_t* state = (uint8_t*)(chunk + HM_LOCAL_SIZES_) + granule;
  size_t granules = *state;
  if (__builtin_expect((uint8_t)(granules - 1) >= HM_LOCAL_MAX / 16, 0)) { hm_local_free_slow_(block); return; }
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
  if (unit != hm_local_tls_.unit) { hm_local_coalesce_(block); return; }
  unit->allocated = unit->freed = 0;  /* coalescence free: the whole unit is one piece again */
  hm_local_tls_.cursor = (uintptr_t)block & ~(uintptr_t)(HM_LOCAL_UNIT_ - 1);
  hm_local_tls_.end = hm_local_tls_.cursor + HM_LOCAL_UNIT_;
}

#ifdef __cplusplus
}
#endif
#endif
