// Clocks.  libc's functions may be replaced by other libraries, which allocate (system_call.h).  So this calls the
// function that the kernel maps into every process for the purpose, or else the system.
//
// For any thread in any context, except find_clock.
#pragma once
#include "base/sizes.h"

namespace hm::os {

void find_clock() noexcept;     // at load; before, and where there is none, each reading is a system call
uint64_t now_ms() noexcept;     // a coarse monotonic clock
uint64_t recent_ms() noexcept;  // what now_ms returned last, to any thread
uint64_t now_ns() noexcept;     // the monotonic clock, not coarse
uint64_t cpu_ns() noexcept;     // CPU time of the thread

}  // namespace hm::os
