// What a baseline must define: a few functions, from which this header makes those of override/allocator.h.
//
// The build defines HM_BASELINE, its namespace, and HM_BASELINE_HEADER, its header.  There, in namespace hm::HM_BASELINE:
//
//   allocate(size)                      a block of 16-byte alignment, size >= 1; null if there is no memory
//   allocate_aligned(alignment, size)   alignment: a power of two above 16
//   deallocate(block, function)         ends the program with a message if it can tell that block is not its own
//   usable_size(block, function)        the same
//   comes_zeroed(block)                 whether a block just allocated reads as zero
//   resize(block, size)                 the block, in place or by moving pages; null if neither is possible
//   usage()                             of everything
//   write_counters(text)                its counters, as members of a JSON object: ,"name":value
//   start()                             reads its options; only the first call has an effect
//   before_fork(), after_fork_in_parent(), after_fork_in_child()
//
// All of them may be called by any thread at any time, also before start(), and preserve errno.  The tests ask for one more:
// is_valid(), whether its structures agree, while no other thread is in here.
#pragma once
#include <cerrno>
#include <cstring>

#include "base/report.h"
#include "base/usage.h"
#include HM_BASELINE_HEADER

namespace hm {

namespace baseline = HM_BASELINE;

inline constexpr const char* kVersion = HM_LIBRARY_NAME;

inline void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

inline void* allocate(size_t size) noexcept {
  void* block = HM_LIKELY(size <= kMaxRequest) ? baseline::allocate(size + (size == 0)) : nullptr;
  return HM_LIKELY(block != nullptr) ? block : out_of_memory();
}

inline void deallocate(void* block, const char* function) noexcept {
  if (HM_LIKELY(block != nullptr)) baseline::deallocate(block, function);
}

inline void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  void* block = allocate(bytes);
  return block == nullptr || baseline::comes_zeroed(block) ? block : memset(block, 0, bytes);
}

inline void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= kGranule) return allocate(size);
  if (size > kMaxRequest || alignment > kMaxRequest - size) return out_of_memory();
  void* block = baseline::allocate_aligned(alignment, size + (size == 0));
  return block != nullptr ? block : out_of_memory();
}

inline size_t usable_size(const void* block, const char* function) noexcept {
  return block == nullptr ? 0 : baseline::usable_size(block, function);
}

// realloc(p, 0) frees and returns null, as glibc does.
inline void* reallocate(void* block, size_t size, const char* function) noexcept {
  if (block == nullptr) return allocate(size);
  size_t capacity = baseline::usable_size(block, function);
  if (size == 0) {
    baseline::deallocate(block, function);
    return nullptr;
  }
  if (size <= capacity && size + kGranule > capacity / 2) return block;  // hardly anything would be gained
  if (size > kMaxRequest) return out_of_memory();
  if (void* resized = baseline::resize(block, size)) return resized;
  void* fresh = allocate(size);
  if (fresh == nullptr) return size <= capacity ? block : nullptr;
  memcpy(fresh, block, size < capacity ? size : capacity);
  baseline::deallocate(block, function);
  return fresh;
}

inline void check_size(const void*, size_t, size_t, const char*) noexcept {}  // baselines have no checked library
inline bool collect() noexcept { return false; }                              // nor do they keep memory to give back

inline Usage usage() noexcept { return baseline::usage(); }
void print_usage() noexcept;  // common/start.cc

}  // namespace hm
