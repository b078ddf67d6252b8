// Profiles of the heap: started and stopped, written, and what becomes of one in the child of a fork.
//
// For any thread, outside of the allocator's locks.
#pragma once
#include "base/sizes.h"

namespace hm {

// Samples one block in each `rate` bytes that are allocated from now on.  Returns 0; ENOTSUP: there is no
// unwinder; or ENOMEM.
int start_profile(size_t rate) noexcept;
// What was sampled is followed to its end.
void stop_profile() noexcept;
// Writes what was allocated since the first start, and what of it the program holds, as pprof reads it (pprof.h).  Returns 0 or
// an error number.
int write_profile(int fd) noexcept;

void repair_profile(uint32_t before) noexcept;

}  // namespace hm
