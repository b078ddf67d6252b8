// The hardened library: what stands between the entry points and the allocator.  Names and results as in api/allocator.h.
// For any thread.  A mistake that is found ends the program with one line.
#pragma once
#include "base/sizes.h"

namespace hm {

struct OwnHeap;

namespace front {

void* allocate(size_t size) noexcept;
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void* reallocate(void* pointer, size_t size, const char* function) noexcept;
void deallocate(void* pointer, const char* function) noexcept;
size_t check_blocks() noexcept;                                          // <hmalloc/hmalloc.h>, hm_check
size_t usable_size(const void* pointer, const char* function) noexcept;  // as requested
void check_size(const void* pointer, size_t size, size_t alignment, const char* function) noexcept;  // exactly

void* allocate_in(OwnHeap& heap, size_t size) noexcept;
void* allocate_zeroed_in(OwnHeap& heap, size_t count, size_t size) noexcept;
void* allocate_aligned_in(OwnHeap& heap, size_t alignment, size_t size) noexcept;
OwnHeap* heap_of(const void* pointer, const char* function) noexcept;
void free_all_of(OwnHeap& heap) noexcept;

}  // namespace front
}  // namespace hm
