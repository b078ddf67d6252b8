// HMalloc as its paper describes it: "An efficient multi-threaded memory allocator for PDES applications", section 3.
//
//   superblock.h   local and shared superblocks of 64 KB and 4 MB, and the lists of them (Fig. 3 and 4)
//   flag.h         the flag of a shared block
//   local_heap.h   local memory: bump, count, coalescence free; LSL (Fig. 5 and 8)
//   shared_heap.h  shared memory: block cache list, VacantObjects, Index, SSL (Fig. 6 and 9)
//   threads.h      a heap for each thread, inherited by the next
//   api.cc         hmp_local_alloc and its like (include/baselines/hmalloc_paper.h)
//
// malloc and its family are the shared side.  Repairs are explained where they are made, and together in
// docs/baselines.md.  baselines/contract.h says what each function below promises.
#pragma once
#include "base/report.h"
#include "base/usage.h"
#include "baselines/hmalloc_paper/threads.h"

namespace hm::hmalloc_paper {

void* allocate(size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void deallocate(void* block, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool comes_zeroed(const void* block) noexcept;
void* resize(void* block, size_t size) noexcept;

void* allocate_local(size_t size) noexcept;  // for this thread only
void deallocate_local(void* block, const char* function) noexcept;

Usage usage() noexcept;
void write_counters(FdWriter& text) noexcept;
// While no thread uses it: checks every heap, list, header and flag, and that no block is in a cache twice.
bool is_valid() noexcept;

void start() noexcept;
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

// The fast paths.

// For threads without a heap: from the fallback, under its lock.
void* allocate_from_fallback(uint32_t size_class) noexcept;
void* allocate_local_from_fallback(size_t size) noexcept;
// For everything that is no block in a superblock of its side.
void deallocate_other(void* block, Superblock* superblock, const char* function) noexcept;
void deallocate_other_local(void* block, Superblock* superblock, const char* function) noexcept;

// Fig. 6.
inline void* allocate_block(uint32_t size_class) noexcept {
  Heap* heap = local_heap();
  if (HM_UNLIKELY(heap == nullptr)) return allocate_from_fallback(size_class);
  return heap->shared[size_class].allocate(size_class, heap->counts);
}
inline void* allocate(size_t size) noexcept {
  size_t bytes = block_size(size);
  return HM_LIKELY(bytes < kSharedLimit) ? allocate_block(size_to_class(bytes)) : large_blocks.allocate(size);
}

// Fig. 9.  The block cache list is the freeing thread's: two threads would race on the owner's.
inline void deallocate(void* block, const char* function) noexcept {
  Superblock* superblock = Superblock::of(block);
  if (HM_UNLIKELY(superblock == nullptr || superblock->kind != SuperblockKind::kShared))
    return deallocate_other(block, superblock, function);
  auto& shared = reinterpret_cast<SharedSuperblock&>(*superblock);
  Flag* flag = shared.flag_of(block);
  if (HM_UNLIKELY(flag == nullptr)) die_on_misuse(function, block, "points into a block, not to its start");
  Heap* heap = local_heap();
  if (HM_UNLIKELY(heap == nullptr)) return SharedHeap::reset(flag, function);
  heap->shared[shared.size_class].free(flag, function);
}

// Fig. 5.
inline void* allocate_local(size_t size) noexcept {
  Heap* heap = local_heap();
  return HM_LIKELY(heap != nullptr) ? heap->local.allocate(size) : allocate_local_from_fallback(size);
}

// Fig. 8.
inline void deallocate_local(void* block, const char* function) noexcept {
  Superblock* superblock = Superblock::of(block);
  Heap* heap = local_heap();
  if (HM_UNLIKELY(superblock == nullptr || superblock->kind != SuperblockKind::kLocal || heap == nullptr))
    return deallocate_other_local(block, superblock, function);
  heap->local.free(block, reinterpret_cast<LocalSuperblock&>(*superblock), function);
}

}  // namespace hm::hmalloc_paper
