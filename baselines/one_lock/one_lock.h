// One heap behind one lock: the baseline that every concurrent allocator should beat.
//
// The heap is as plain as possible: a list of free blocks for each power of two (the 4.2BSD malloc), cut from regions
// of 64 KB that hold blocks of one size each.  A block never merges with its neighbours and never changes its size.
// Requests above 32 KB are LargeBlocks.  Everything happens under the lock, as in C libraries of the nineties.
//
// baselines/contract.h says what each function promises.
#pragma once
#include "base/lock.h"
#include "base/report.h"
#include "base/usage.h"

namespace hm::one_lock {

void* allocate(size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void deallocate(void* block, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool comes_zeroed(const void* block) noexcept;
void* resize(void* block, size_t size) noexcept;

Usage usage() noexcept;
void write_counters(FdWriter& text) noexcept;
bool is_valid() noexcept;  // every block is the program's, or free once, in the list of its size

Lock& the_lock() noexcept;  // for tests

void start() noexcept;
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace hm::one_lock
