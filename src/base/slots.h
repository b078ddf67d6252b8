// Entries of a table that move to where lower ones, or none, are.
#pragma once
#include "base/sizes.h"

namespace hm {

// Not by libc's memmove, nor may the compiler make a call of it: a tool may stand in front of that name and allocate,
// and while entries move their table is open (A).
template <class T>
inline void move_slots(T* to, T* from, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
    asm volatile("" : : : "memory");
  }
}

}  // namespace hm
