// The stack of a call of malloc or free, for whoever follows a sampled block.
//
// It is taken by the C library's unwinder, which may take a lock of its own: so its caller holds no lock, and no structure of the
// allocator's is open (docs/design.md, A).
#pragma once
#include "base/sizes.h"

namespace hm {

inline constexpr size_t kMostFrames = 62;

// Before the first stack: the unwinder may load a library, which allocates.  Returns 0; ENOTSUP: there is none; or ENOMEM.
int prepare_stacks() noexcept;
// The calling thread's: return addresses, the innermost first, at most kMostFrames.  0: there is none, or the code that has
// called, from `caller`, may hold a lock that the unwinder would want.
size_t stack_of_allocation(uintptr_t* frames, const void* caller) noexcept;
size_t stack_of_free(uintptr_t* frames, const void* caller) noexcept;

}  // namespace hm
