// Hoard, as published: E. Berger, K. McKinley, R. Blumofe, P. Wilson, "Hoard: A Scalable Memory Allocator for
// Multithreaded Applications", ASPLOS 2000.
//
//   options.h        S, b, f, K and the number of heaps
//   size_classes.h   sizes of blocks, a factor of b apart
//   superblock.h     S bytes of blocks of one size, and their free list
//   heap.h           superblocks in fullness groups, u and a, the emptiness threshold and its invariant
//   heaps.h          the processors' heaps and the global heap, and the transfer of superblocks
//   hoard.cc         malloc and free: Fig. 2
//   upkeep.cc        what a C library also needs: fork, counters, is_valid
//
// baselines/contract.h says what each function promises.
#pragma once
#include "base/report.h"
#include "base/usage.h"

namespace hm::hoard {

void* allocate(size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void deallocate(void* block, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool comes_zeroed(const void* block) noexcept;
void* resize(void* block, size_t size) noexcept;

Usage usage() noexcept;
void write_counters(FdWriter& text) noexcept;
bool is_valid() noexcept;  // the invariants of heap.h, in all heaps

void start() noexcept;
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace hm::hoard
