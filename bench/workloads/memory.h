// The allocator under test, chosen at compile time: local for memory that only the allocating thread frees, shared for
// memory that another thread may free.
//
//   (plain)                    malloc for both: the allocator that is preloaded
//   HM_BENCH_EXPLICIT          hmalloc's explicit API, each with its own functions
//   HM_BENCH_ALL_SHARED        hmalloc's shared memory for both: the HMalloc paper's baseline HMalloc-shared (section 4)
//   HM_BENCH_PAPER             HMalloc as published, each with its own functions (baselines/hmalloc_paper.h)
//   HM_BENCH_PAPER_ALL_SHARED  HMalloc-shared as published
//   HM_BENCH_NO_ALLOCATOR      no allocator at all
#pragma once

#include <cstddef>
#include <cstdlib>

#if defined(HM_BENCH_EXPLICIT) || defined(HM_BENCH_ALL_SHARED)
#include <hmalloc/hmalloc_local.h>
#elif defined(HM_BENCH_PAPER) || defined(HM_BENCH_PAPER_ALL_SHARED)
#include <baselines/hmalloc_paper.h>
#endif

namespace bench {

// Hides from the compiler where the pointer comes from and what happens to its memory.
template <class T>
inline void escape(T*& pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
}

// Every pointer escapes, so that the compiler cannot omit any call.
template <class Allocator>
struct Memory {
  static void* allocate(std::size_t size) {
    void* block = Allocator::allocate(size);
    escape(block);
    if (block == nullptr) std::abort();
    return block;
  }
  // Writes the first byte, so that the memory counts.
  static void* allocate_touched(std::size_t size) {
    void* block = allocate(size);
    *static_cast<volatile char*>(block) = 1;
    return block;
  }
  // size: as allocated.  Code that handles a block knows its type, and so its size.
  static void release(void* block, std::size_t size) { Allocator::release(block, size); }
};

#if defined(HM_BENCH_EXPLICIT) || defined(HM_BENCH_ALL_SHARED)

struct HmallocLocal {
  static void* allocate(std::size_t size) { return hm_local_alloc(size); }
  static void release(void* block, std::size_t size) { hm_local_free_sized(block, size); }
};
struct HmallocShared {
  static void* allocate(std::size_t size) { return hm_shared_alloc(size); }
  static void release(void* block, std::size_t size) { hm_shared_free_sized(block, size); }
};

using shared = Memory<HmallocShared>;
#if defined(HM_BENCH_EXPLICIT)
inline constexpr const char* kApi = "explicit";
using local = Memory<HmallocLocal>;
#else
inline constexpr const char* kApi = "all-shared";
using local = shared;
#endif

#elif defined(HM_BENCH_PAPER) || defined(HM_BENCH_PAPER_ALL_SHARED)

struct PaperLocal {
  static void* allocate(std::size_t size) { return hmp_local_alloc(size); }
  static void release(void* block, std::size_t) { hmp_local_free(block); }
};
struct PaperShared {
  static void* allocate(std::size_t size) { return hmp_shared_alloc(size); }
  static void release(void* block, std::size_t) { hmp_shared_free(block); }
};

using shared = Memory<PaperShared>;
#if defined(HM_BENCH_PAPER)
inline constexpr const char* kApi = "paper";
using local = Memory<PaperLocal>;
#else
inline constexpr const char* kApi = "paper-all-shared";
using local = shared;
#endif

#elif defined(HM_BENCH_NO_ALLOCATOR)

inline constexpr const char* kApi = "no-allocator";
// One thread takes the blocks of an array in turn.  What remains is the cost that no allocator can avoid.
struct NoAllocator {
  static void* allocate(std::size_t size) {
    constexpr std::size_t kBlocks = 8192;  // more than the queue and its batches hold
    alignas(4096) static char memory[kBlocks * 256];
    static std::size_t next = 0;
    char* block = memory + next;
    next += size;
    if (next == kBlocks * size) next = 0;
    return block;
  }
  static void release(void*, std::size_t) {}
};
using shared = Memory<NoAllocator>;

#else

inline constexpr const char* kApi = "malloc";
struct Malloc {
  static void* allocate(std::size_t size) { return std::malloc(size); }
  static void release(void* block, std::size_t) { std::free(block); }
};
using local = Memory<Malloc>;
using shared = Memory<Malloc>;

#endif

}  // namespace bench
