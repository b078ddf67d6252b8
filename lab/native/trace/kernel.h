// What the kernel says of this process.  Reading it allocates nothing.
#pragma once

#include <cstdint>

namespace hm::trace {

long status_kb(const char* field);  // of /proc/self/status, such as "VmHWM:"
long resident_kb();                 // counted page by page; VmRSS is late by up to a batch of pages per processor
void reset_peak_resident();         // VmHWM begins anew
long minor_faults();
uint64_t wall_ns();
uint64_t thread_cpu_ns();

// Maps what the program and its libraries have in their files, so that no code comes to memory while memory is watched.
void load_code();

// The file that malloc comes from.
const char* malloc_library();

}  // namespace hm::trace
