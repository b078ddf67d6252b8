// The memory limit of the control group that the process is in.
#pragma once
#include "base/sizes.h"

namespace hm {

// The least limit of the group and the groups above it, in bytes; 0: none, or none that can be read.  In either version of
// control groups, mounted where they usually are.  The arguments are for tests.
size_t control_group_limit(const char* membership = "/proc/self/cgroup", const char* root = "/sys/fs/cgroup") noexcept;

}  // namespace hm
