// ar_malloc, from "Analysis of a Parallel Memory Allocator" (2012): arenas, slabs of a fixed size, thread-local caches.
//
//   up to 1024 B   the thread's cache, and behind it the arena that the thread is bound to      thread_cache.h
//   up to 8 KB     the arena: the article assumes that there are no such requests             arena.h, slab.h
//   above          LargeBlocks, kept when freed
//
// "never frees memory to the system".  With HM_AR_MALLOC_GLOBAL_LOCK it is the variant that the article compares with:
// one arena, no caches, and one lock around everything.
//
// Options: AR_MALLOC_ARENAS, 0 for as many as processors; AR_MALLOC_CACHE, blocks in a cache's list, 0 for no caches.
//
// baselines/contract.h says what each function promises.
#pragma once
#include "base/report.h"
#include "base/usage.h"

namespace hm::ar_malloc {

void* allocate(size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void deallocate(void* block, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool comes_zeroed(const void* block) noexcept;
void* resize(void* block, size_t size) noexcept;

Usage usage() noexcept;
void write_counters(FdWriter& text) noexcept;
bool is_valid() noexcept;  // every arena and this thread's cache

void start() noexcept;
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace hm::ar_malloc
