// VVMalloc (Ramsali and Kashyap, a course project): from the malloc lab's allocator behind one lock, in four steps, to
// lists of free blocks for each thread and a lock-free central queue of arenas.
//
//   approach.h        which approach this is            free_lists.h         lists by size
//   block.h           boundary tags, arenas             segregated_list.h    split and merge: Approach 1's heap
//   heap.h            the heap extension                thread_list.h        a thread's list, garbage collection
//   locks.h           locks that measure waiting        thread_lists.h       whose list it is; threads that end
//   fifo.h ms_queue.h queues: with a mutex, lock-free   central_queue.h      one queue for each range of sizes
//   global_lock.cc    the functions below: Approach 1   thread_heaps.cc      the same: Approaches 2 to 4
//
// baselines/contract.h says what each function promises.
#pragma once
#include "base/report.h"
#include "base/usage.h"

namespace hm::vvmalloc {

void* allocate(size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void deallocate(void* block, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool comes_zeroed(const void* block) noexcept;
void* resize(void* block, size_t size) noexcept;

struct Counters {
  uint64_t heap_wait_ns;  // waiting for the heap's lock: in Approach 1 the lock, from 2 on the spin lock
  uint64_t heap_lock_ns;  // holding the spin lock, system calls included
  uint64_t extensions;
  uint64_t queue_wait_ns;  // waiting for the central queue's mutex; lock-free: operations from their second attempt on
  uint64_t enqueues, dequeues, retries;
};
Counters counters() noexcept;

Usage usage() noexcept;
void write_counters(FdWriter& text) noexcept;
bool is_valid() noexcept;

void start() noexcept;
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace hm::vvmalloc
