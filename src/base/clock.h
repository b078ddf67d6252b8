// Clocks.  libc's functions may be replaced by other libraries, which allocate (system_call.h); so the function that the
// kernel maps into every process for this is called, or else the system.
//
// Any thread, any context, but for find_clock.
#pragma once
#include "base/sizes.h"

namespace hm::os {

void find_clock() noexcept;     // at load; until then, and where there is none, each reading is a system call
uint64_t now_ms() noexcept;     // a coarse monotonic clock
uint64_t recent_ms() noexcept;  // what it said last, to any thread
uint64_t cpu_ns() noexcept;     // the thread's

}  // namespace hm::os
