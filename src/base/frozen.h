// What is set when a process loads the library, and constant from then on: options, keys, the functions to be called.  The
// hardened library gives each of it pages of its own, which become read-only.  So whoever can write to one address of his choice
// switches nothing off, sets no key, and names no function.  In the other libraries it is an object like any other.
#pragma once
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/system_call.h"

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
    if constexpr (kHardened) allow(PROT_READ);
  }
  void thaw() noexcept {  // for tests
    if constexpr (kHardened) allow(PROT_READ | PROT_WRITE);
  }

 private:
  void allow(int access) noexcept {
    system_call(SYS_mprotect, system_call_argument(this), static_cast<long>(sizeof *this), access);
  }
};

}  // namespace hm
