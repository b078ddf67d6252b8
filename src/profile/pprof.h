// The form of pprof (profile.proto, not compressed): https://github.com/google/pprof/tree/main/proto
#pragma once
#include "profile/samples.h"

namespace hm {

// Returns 0 or an error number.  Allocates nothing of the program's; one thread at a time writes, the others wait.
int write_pprof(int fd, const Snapshot& snapshot) noexcept;
void repair_pprof(uint32_t before) noexcept;

}  // namespace hm
