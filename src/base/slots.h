// Moves entries of a table to lower slots, or to another table.
#pragma once
#include "base/sizes.h"

namespace hm {

// Does not use libc's memmove, nor may the compiler turn the loop into a call of it: a tool may interpose that name and
// allocate, and while its entries move, a table is inconsistent (invariant A in docs/design.md).
template <class T>
inline void move_slots(T* to, T* from, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
    asm volatile("" : : : "memory");
  }
}

}  // namespace hm
