/* hmalloc_paper: HMalloc as its paper describes it, for comparison.  Your own programs should use hmalloc/hmalloc.h.
 *
 * libhmalloc_paper, linked or preloaded, replaces malloc and its family, with all blocks on the shared side.  This header
 * adds the paper's two sides, by which a program says what it knows about a block: it is local (only this thread frees it)
 * or shared (others may).
 *
 * Units     sizes are bytes.
 * Alignment every block is aligned to 16 bytes.
 * Ownership every block belongs to the caller until freed.  A shared block may be freed by any thread, with
 *           hmp_shared_free or free.  A local block must be freed with hmp_local_free by the thread that allocated it:
 *           the paper has no way for other threads, and counts would be lost.  The program then ends with a line on
 *           descriptor 2 if the superblock's owner shows the mistake.  It always does, except for requests that went to
 *           the system (32 KB and more while the thread has only its first superblock of 64 KB, 2 MB and more afterwards);
 *           those any thread may free.  Local blocks that are live when their thread ends belong to the thread that
 *           inherits its heap; nobody may free them before.
 * Threads   every function may be called from any thread at any time; none is async-signal-safe.
 * Errors    allocation returns NULL and sets errno to ENOMEM.  Freeing NULL does nothing, and freeing never changes
 *           errno.  A pointer that is no block of the right side ends the program: a line on descriptor 2, then abort.
 *           A second free is detected only by what the paper itself keeps: if a local superblock no longer holds a block
 *           there, or if a shared block's flag says free.  Otherwise it goes unnoticed and does harm.
 * Source    "An efficient multi-threaded memory allocator for PDES applications" (HMalloc), sections 3.1 to 3.3.
 */
#ifndef BASELINES_HMALLOC_PAPER_H
#define BASELINES_HMALLOC_PAPER_H

#include <stddef.h>

#ifdef __cplusplus
#define HMP_NOEXCEPT noexcept
extern "C" {
#else
#define HMP_NOEXCEPT
#endif

#define HMP_API __attribute__((visibility("default")))

/* Section 3.2, Fig. 5: the next bytes of the thread's current local superblock. */
HMP_API void* hmp_local_alloc(size_t size) HMP_NOEXCEPT __attribute__((malloc, warn_unused_result, alloc_size(1)));
/* Section 3.3, Fig. 8: counts, and clears a superblock whose blocks have all been freed (coalescence free). */
HMP_API void hmp_local_free(void* block) HMP_NOEXCEPT;

/* Section 3.2, Fig. 6: a block of whole cache lines, its flag included. */
HMP_API void* hmp_shared_alloc(size_t size) HMP_NOEXCEPT __attribute__((malloc, warn_unused_result, alloc_size(1)));
/* Section 3.3, Fig. 9: into this thread's block cache list or, if that holds 100, by resetting the block's flag. */
HMP_API void hmp_shared_free(void* block) HMP_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
