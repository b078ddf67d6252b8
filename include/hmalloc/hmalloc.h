/* hmalloc: a memory allocator that distinguishes thread-local from shared memory.
 *
 * libhmalloc, linked or preloaded, replaces malloc and its family.  This header adds the explicit API, by which a program
 * says what it knows about a block: it is shared (other threads will free it), or local (only this thread will).
 *
 * Units     sizes and alignments are bytes.
 * Alignment every block is aligned to at least 16 bytes.
 * Ownership every block belongs to the caller until freed.  Any thread may free any block, by any of the functions; only
 *           blocks of heaps are not for all of them (below).
 * Threads   every function may be called from any thread at any time; none is async-signal-safe.
 * Errors    allocation functions return NULL and set errno to ENOMEM; the old block of a failed realloc stays intact.
 *           Freeing never changes errno.  A pointer that is no live block ends the program: one line on descriptor 2,
 *           what is known of the block on others, then abort.  Not so in hm_free_sized, hm_shared_free_sized,
 *           hm_local_free_sized and hm_cache_free, which trust their caller.
 * Source    "An efficient multi-threaded memory allocator for PDES applications" (HMalloc), sections 3.1 to 3.3.
 */
#ifndef HMALLOC_HMALLOC_H
#define HMALLOC_HMALLOC_H

#include <stddef.h>
#include <stdint.h>

#define HM_VERSION_MAJOR 0
#define HM_VERSION_MINOR 2
#define HM_VERSION_PATCH 0
#define HM_VERSION_STRING "0.2.0"

#ifdef __cplusplus
#define HM_NOEXCEPT noexcept
extern "C" {
#else
#define HM_NOEXCEPT
#endif

#define HM_API __attribute__((visibility("default")))
#define HM_ALLOC(...) __attribute__((malloc, warn_unused_result, alloc_size(__VA_ARGS__)))

/* "0.2.0": the version of the library that serves the calls. */
HM_API const char* hm_version(void) HM_NOEXCEPT;

/* ---- General blocks: malloc and its family under hm_ names, for any thread. ---------------------------------- */

HM_API void* hm_malloc(size_t size) HM_NOEXCEPT HM_ALLOC(1);
HM_API void* hm_calloc(size_t count, size_t size) HM_NOEXCEPT HM_ALLOC(1, 2);
HM_API void* hm_realloc(void* block, size_t size) HM_NOEXCEPT __attribute__((warn_unused_result, alloc_size(2)));
/* alignment must be a power of two; otherwise NULL and EINVAL. */
HM_API void* hm_aligned_alloc(size_t alignment, size_t size) HM_NOEXCEPT HM_ALLOC(2);
HM_API void hm_free(void* block) HM_NOEXCEPT;
/* Like hm_free, for callers that know the size they asked hm_malloc, hm_calloc, hm_local_alloc or hm_local_realloc for:
 * reads no metadata.  Only the checked library detects a size that the block cannot have, or a pointer that is no live block. */
HM_API void hm_free_sized(void* block, size_t size) HM_NOEXCEPT;
/* Bytes that may be used at block, at least the size requested; 0 for NULL. */
HM_API size_t hm_usable_size(const void* block) HM_NOEXCEPT;

/* ---- Shared blocks: whole cache lines, for messages that other threads will free (section 3.2). --------------- */

/* Never shares a 64-byte line with another block. */
HM_API void* hm_shared_alloc(size_t size) HM_NOEXCEPT HM_ALLOC(1);
HM_API void hm_shared_free(void* block) HM_NOEXCEPT;
/* Like hm_shared_free, for callers that know the size they asked hm_shared_alloc for: reads no metadata.  Only the
 * checked library detects a size that the block cannot have, or a pointer that is no live block. */
HM_API void hm_shared_free_sized(void* block, size_t size) HM_NOEXCEPT;

/* ---- Local blocks: for memory that the thread which allocated it will also free (sections 3.1, 3.3). ------------- */

/* A local block should be freed by the thread that allocated it: it then waits in that thread's cache for the next request.  It
 * is an ordinary block otherwise, which any function frees, on any thread.  These are functions of the library; a program
 * that includes hmalloc_local.h instead has hm_local_alloc and hm_local_free_sized inline, which is what makes them fast. */
HM_API void* hm_local_alloc(size_t size) HM_NOEXCEPT HM_ALLOC(1);
HM_API void hm_local_free(void* block) HM_NOEXCEPT;
/* Like hm_local_free, for callers that know the size that they asked hm_local_alloc or hm_local_realloc for last: reads no
 * metadata.  Only the checked library detects a size that the block cannot have, or a pointer that is no live block. */
HM_API void hm_local_free_sized(void* block, size_t size) HM_NOEXCEPT;
/* Moves the block unless it has the size of a fresh one: so it can fail for a smaller size, too. */
HM_API void* hm_local_realloc(void* block, size_t size) HM_NOEXCEPT __attribute__((warn_unused_result, alloc_size(2)));
HM_API size_t hm_local_usable_size(const void* block) HM_NOEXCEPT;

/* ---- Cache handles: for hot loops over one block size. --------------------------------------------------------- */

/* The calling thread's cache of the blocks that hm_malloc, or hm_shared_alloc, returns for size.  Through it a block costs
 * neither a call nor an access to thread-local storage.  Only the thread that asked may use it, until that thread ends or
 * calls hm_thread_idle.  The blocks are ordinary ones: any function frees them, on any thread.  NULL if there is no cache
 * for this size (above 32 KB), no memory, while a profile of the heap runs, and in the checked library, which has to see every
 * block. */
struct hm_cache;
HM_API struct hm_cache* hm_cache_of(size_t size) HM_NOEXCEPT;
HM_API struct hm_cache* hm_shared_cache_of(size_t size) HM_NOEXCEPT;
/* Inline below, and in the library for languages that cannot include this.  Freeing reads no metadata: the block must be
 * live, not NULL, and of the cache's size. */
HM_API void* hm_cache_alloc(struct hm_cache* cache) HM_NOEXCEPT __attribute__((malloc, warn_unused_result));
HM_API void hm_cache_free(struct hm_cache* cache, void* block) HM_NOEXCEPT;

/* ---- Heaps of one's own: blocks that can be freed all at once. --------------------------------------------------- */

/* A heap holds the blocks of one purpose (a request, a plug-in, a tree), apart from all others: no other block lies in the same
 * 32 KB.  Any thread allocates from it, one at a time (a lock, and a few ns more than hm_malloc), and nothing of it belongs to
 * a thread: it takes as much memory as it needs however many threads use it, at least 32 KB for each class of sizes.
 *
 * A block of a heap is freed like any other, by free or hm_free, on any thread, also by operator delete; or with all others by
 * hm_heap_destroy.  realloc and hm_realloc leave it in its heap, and what asks about a block works on it as well.  But never
 * give one to a function that trusts its caller: hm_free_sized, hm_shared_free_sized, hm_local_free_sized and hm_cache_free put
 * it into the thread's cache, where it is when its heap is destroyed; nor to hm_local_realloc, which makes it a local block.
 * The other functions are for blocks of heaps, too.  (In the checked and the hardened library all functions are.)
 *
 * A handle that is no live heap ends the program: one line on descriptor 2, then abort; also that of a heap that was destroyed,
 * until some 2000 others have been made in its place.  A heap may be used and destroyed in the child of a fork that has
 * inherited it; this changes nothing for the parent. */
struct hm_heap;
/* NULL and ENOMEM if there is no memory.  A heap takes 2 KB until it has a block. */
HM_API struct hm_heap* hm_heap_create(void) HM_NOEXCEPT;
/* Frees all blocks of the heap, and the heap; what held nothing else goes back as after any free.  No thread may use the heap
 * or one of its blocks meanwhile, nor later.  Costs per superblock, not per block (in the hardened library per block: it looks at
 * each, and ends the program if something was written to that is no part of it).  NULL: does nothing. */
HM_API void hm_heap_destroy(struct hm_heap* heap) HM_NOEXCEPT;
HM_API void* hm_heap_malloc(struct hm_heap* heap, size_t size) HM_NOEXCEPT HM_ALLOC(2);
HM_API void* hm_heap_calloc(struct hm_heap* heap, size_t count, size_t size) HM_NOEXCEPT HM_ALLOC(2, 3);
/* alignment must be a power of two; otherwise NULL and EINVAL. */
HM_API void* hm_heap_aligned_alloc(struct hm_heap* heap, size_t alignment, size_t size) HM_NOEXCEPT HM_ALLOC(3);
/* As realloc, of a block of this heap, or NULL; any other block ends the program. */
HM_API void* hm_heap_realloc(struct hm_heap* heap, void* block, size_t size) HM_NOEXCEPT
    __attribute__((warn_unused_result, alloc_size(3)));

struct hm_heap_stats {
  size_t size;        /* set it to sizeof(struct hm_heap_stats): of what later versions know, as much is filled in as fits */
  uint64_t blocks;    /* that the program holds */
  uint64_t allocated; /* bytes in these, as hmalloc rounds them up */
  uint64_t held;      /* bytes of memory that no other request is served from */
};
/* Counted on request, at a few ns for each block; exact as long as no other thread allocates from the heap or frees in it. */
HM_API void hm_heap_stats_get(struct hm_heap* heap, struct hm_heap_stats* out) HM_NOEXCEPT;

/* ---- Giving memory back, and statistics. ---------------------------------------------------------------------- */

/* Gives every page that holds no block back to the system now: from this thread's caches, the caches of ended threads
 * and the superblocks of all threads.  Of the caches of another live thread, if it sleeps, one block of each class stays; of
 * one that works, or has handles of caches, all (bounded; docs/design.md, "Footprint").  Returns 1 if memory went back, else
 * 0. */
HM_API int hm_collect(void) HM_NOEXCEPT;

/* For a thread that is going to sleep for long.  Gives back what its heap holds (block caches, the superblocks that it
 * allocates from) and the heap itself, which another thread may then have.  The thread's blocks stay its own, any thread may
 * free them as before, and its next allocation finds it a heap, as a new thread's does.  Handles from hm_cache_of and
 * hm_shared_cache_of are invalid afterwards: ask again.  What is freed goes back to the system as after any free; hm_collect
 * gives back the rest.  Does nothing for a thread that has no heap. */
HM_API void hm_thread_idle(void) HM_NOEXCEPT;

/* Hardened library: looks at what lies around all blocks in use, of all threads, and at what waits to serve again, of the large
 * blocks and of this thread's small ones.  Where something was written to that is no part of a live block, the program ends as
 * it would when that block is freed.  Other threads may go on; a small block that they are allocating, freeing or resizing at
 * that moment is not looked at.  Takes some 30 ns for each small block; meanwhile other threads open no superblocks, and, for
 * a part of it, neither allocate nor free blocks above 32 KB.  Returns how many blocks are in use; 0 in the other libraries,
 * which know of no bytes around them. */
HM_API size_t hm_check(void) HM_NOEXCEPT;

/* How near the process is to HMALLOC_LIMIT: 0 below seven eighths of it, or without a limit; 1 above, where all that is free
 * has gone back; 2 above, and a request was refused.  A few loads: ask where the program could drop what it can do without. */
HM_API int hm_pressure(void) HM_NOEXCEPT;
/* An eventfd of the program's, to which 1 is added whenever hm_pressure may have become 1 or 2: to wait for, beside what else
 * a loop waits for.  It stays the program's: name another, or -1, before closing it.  A forked child names its own.  There
 * is no callback: malloc may be called where no code of the program's can run. */
HM_API void hm_pressure_notify(int eventfd) HM_NOEXCEPT;

/* Starts a thread that gives memory back while the program makes no calls; HMALLOC_BACKGROUND=1 does so at load.  The
 * library starts none by itself.  The thread has every signal blocked and runs none of the program's code.  But with it the
 * process has two threads (which matters to unshare and setns) and does not end by pthread_exit in main, and a forked child
 * has no such thread until it calls this itself.  Not async-signal-safe.  Returns 0, also if the thread already runs, or
 * the error number of pthread_create. */
HM_API int hm_background_start(void) HM_NOEXCEPT;

/* Gauges in bytes.  allocated <= active <= resident (roughly) <= mapped. */
struct hm_stats {
  uint64_t allocated;          /* in blocks the program holds */
  uint64_t cached;             /* in blocks that wait in block caches */
  uint64_t active;             /* in superblocks and large blocks that hold a block */
  uint64_t resident;           /* active + metadata + freed pages not yet given back: an upper estimate */
  uint64_t retained;           /* mapped, holding no block: already given back, or about to be */
  uint64_t mapped;             /* address space held */
  uint64_t metadata;           /* descriptors, state bytes and heaps in use */
  uint64_t peak_active;        /* the largest active so far */
  uint64_t bound;              /* most that hmalloc keeps beyond the program's own peak (docs/design.md) */
  uint64_t cross_thread_frees; /* blocks of another heap's superblocks, counted when caches are flushed */
  uint64_t refills;            /* empty block caches filled */
  uint64_t flushes;            /* full block caches emptied by half */
  uint64_t purged;             /* bytes given back to the system so far */
  uint64_t os_calls;           /* mmap, munmap, mremap, madvise, mprotect so far */
  uint32_t heaps;              /* thread heaps in existence */
  uint32_t live_heaps;         /* of these, the ones that have a thread now */
};
HM_API void hm_stats_get(struct hm_stats* out) HM_NOEXCEPT;
/* Writes the same to a descriptor, also per class and per thread, as text for people, as JSON (docs/stats.schema.json), or as
 * OpenMetrics 1.0.  Allocates nothing. */
enum { HM_STATS_TEXT = 0, HM_STATS_JSON = 1, HM_STATS_OPENMETRICS = 2 };
HM_API void hm_stats_print(int fd, int form) HM_NOEXCEPT;

/* ---- Profiles of the heap. -------------------------------------------------------------------------------------- */

/* Begins to sample: of the bytes allocated from now on, one in `rate` on average (0: 512 KB) has its block put into the
 * profile, with the stack that allocated it.  Estimates made of that favour no size, thread or lifetime.  Again: changes the
 * rate.  HMALLOC_PROFILE=heap does it at load.  While a profile runs, malloc counts (free of a small block pays nothing), local
 * blocks take the general path, other threads' after their next call that is not inline, and there are no new cache handles.
 * Older handles pass it by: what they hand out is not in it, and a sampled block that they take is not seen to be freed.
 * Returns 0; ENOTSUP where no stacks can be taken, by glibc's backtrace() and libgcc_s.so.1; or ENOMEM. */
HM_API int hm_profile_start(size_t rate) HM_NOEXCEPT;
/* Samples no more.  Blocks that were sampled stay in the profile until they are freed; until the last one is, malloc counts. */
HM_API void hm_profile_stop(void) HM_NOEXCEPT;
/* Writes the profile to a descriptor, as pprof reads it: objects and bytes allocated since the first start, and those of them
 * that the program holds now, for each stack.  Bytes are those of blocks: of the class of a small one, as requested of a large
 * one.  Allocates nothing, and holds no lock while it writes.  Returns 0 or an error number: also EAGAIN, after a part of it,
 * where the descriptor does not block and is full. */
HM_API int hm_profile_dump(int fd) HM_NOEXCEPT;

/* ---- The inline fast paths.  All that follows is implementation. ---------------------------------------------- */

/* Where it is not inlined, a call reaches the library's function of the same name.  The library itself defines this as
 * nothing once, and so has those functions. */
#ifndef HM_INLINE_
#define HM_INLINE_ extern inline __attribute__((gnu_inline, always_inline))
#endif

/* A stack of pointers to blocks, with NULL below the first one.  Statistics read top from other threads. */
struct hm_cache {
  void** top;
  void** limit; /* a push fails from here on */
};
HM_API void* hm_cache_refill_(struct hm_cache* cache) HM_NOEXCEPT;

HM_INLINE_ void* hm_cache_alloc(struct hm_cache* cache) HM_NOEXCEPT {
  void** top = cache->top;
  void* block = *top;
  if (__builtin_expect(block == NULL, 0)) return hm_cache_refill_(cache);
  __atomic_store_n(&cache->top, top - 1, __ATOMIC_RELAXED);
  return block;
}

HM_INLINE_ void hm_cache_free(struct hm_cache* cache, void* block) HM_NOEXCEPT {
  void** top = cache->top;
  /* Full, or the block was freed last already: the slow path finds out. */
  if (__builtin_expect(top >= cache->limit || *top == block, 0)) {
    hm_free(block);
    return;
  }
  top[1] = block;
  __atomic_store_n(&cache->top, top + 1, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif
