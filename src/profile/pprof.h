// The form of pprof (profile.proto, not compressed): https://github.com/google/pprof/tree/main/proto
#pragma once
#include "profile/samples.h"

namespace hm {

// Returns 0 or an error number.  Allocates nothing of the program's, and holds no lock while it writes.
int write_pprof(int fd, const Snapshot& snapshot) noexcept;

}  // namespace hm
