// The allocator's common operations, for blocks of all kinds; the entry points are made of these.
#pragma once
#include "core/fast_path.h"

namespace hm {

struct OwnHeap;

// Those that allocate return null and set ENOMEM if there is no memory.
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;  // alignment: a power of two
void* reallocate(void* block, size_t size, const char* function) noexcept;
size_t usable_size(const void* block, const char* function) noexcept;
bool is_of_class(const void* block, ClassIndex c, const char* function) noexcept;
// Checked library: ends the program if a block of this size cannot be the result of a request of `size`.
void check_size(const void* block, size_t size, size_t alignment, const char* function) noexcept;
void* out_of_memory() noexcept;  // sets errno, returns null

// Heaps of the program's own (threads/own_heaps.h).  The first three as those without a heap; reallocate leaves a block in its
// heap.
void* allocate_in(OwnHeap& heap, size_t size) noexcept;
void* allocate_zeroed_in(OwnHeap& heap, size_t count, size_t size) noexcept;
void* allocate_aligned_in(OwnHeap& heap, size_t alignment, size_t size) noexcept;
OwnHeap* heap_of(const void* block, const char* function) noexcept;  // of a live block; null: none of the program's own
void free_all_of(OwnHeap& heap) noexcept;                            // its last use

// For the hardened library.  A block of its own mapping; size > 0.
void* allocate_large_block(size_t size, size_t alignment) noexcept;
void* allocate_large_block_in(OwnHeap& heap, size_t size, size_t alignment) noexcept;
// A small block that was SAMPLED is freed: a profile or a tracer no longer follows it.
void forget_sampled(const void* block, const void* by) noexcept;
// The two parts of free_all_of.  The second: nobody has the superblock any more, nor uses its blocks.
void free_large_of(OwnHeap& heap) noexcept;
void free_all_in(Superblock& sb, const void* by) noexcept;

}  // namespace hm
