// What the tests of the hardened library share.
#pragma once
#include <csignal>

#include "support.h"

namespace hm::test {

inline const auto kAborted = testing::KilledBySignal(SIGABRT);
inline const auto kFault = testing::KilledBySignal(SIGSEGV);
inline constexpr char kBehind[] = "written to behind its end" HM_DESCRIBED;
inline constexpr char kInFront[] = "written to in front of its start" HM_DESCRIBED;
inline constexpr char kAfterFree[] = "written to after it was freed" HM_DESCRIBED;
inline constexpr char kDoubleFree[] = "double free";

inline char* allocate(size_t size) { return static_cast<char*>(hm_malloc(size)); }

// The optimizer must not know that the block is freed, or that what is written to it is never read.
inline void write_to(char* block, ptrdiff_t at, char value) { const_cast<volatile char*>(block)[at] = value; }

// Frees as many blocks of this size as it takes until one that is freed now can serve again.
inline void age(size_t size, size_t n) {
  for (size_t i = 0; i < n; ++i) hm_free(hm_malloc(size));
}

// Two threads free it at the same time.
inline void free_twice_at_once(void* block) {
  std::atomic<int> ready{0};
  on_threads(2, [&](unsigned) {
    ++ready;
    while (ready < 2) {}
    hm_free(block);
  });
}

}  // namespace hm::test
