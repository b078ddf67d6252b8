// What is set when a process loads the library, and constant from then on: options, keys, the functions to be called.  The
// hardened library gives each of it pages of its own, which become read-only.  So whoever can write to one address of his choice
// switches nothing off, knows no key, and names no function.  In the other libraries it is an object like any other.
#pragma once
#include "base/os_pages.h"

namespace hm {

#if defined(__x86_64__)
inline constexpr size_t kLargestPage = 4 * kKiB;
#else
inline constexpr size_t kLargestPage = 64 * kKiB;
#endif

template <class T>
struct alignas(kHardened ? kLargestPage : alignof(T)) Frozen : T {
  // At load, when it has been set.  If the system refuses, it can be written to as before.
  void freeze() noexcept {
    if constexpr (kHardened) os::forbid_writing(this, sizeof *this);
  }
  void thaw() noexcept {  // for tests
    if constexpr (kHardened) os::open(this, sizeof *this);
  }
};

}  // namespace hm
