// What the kernel tells about this process.  Reading it allocates nothing.
#pragma once

#include <cstdint>

namespace hm::trace {

long status_kb(const char* field);  // of /proc/self/status, such as "VmHWM:"
long resident_kb();                 // counted page by page; VmRSS lags by up to a batch of pages per processor
void reset_peak_resident();         // VmHWM starts anew
long minor_faults();
uint64_t wall_ns();
uint64_t thread_cpu_ns();

// Loads the files of the program and its libraries into memory, so that no code is paged in while memory is watched.
void load_code();

// The file that malloc comes from.
const char* malloc_library();

}  // namespace hm::trace
