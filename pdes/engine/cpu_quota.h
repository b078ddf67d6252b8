// How much time of CPUs the control group of the process may use, such as a container's.
#pragma once

namespace pdes {

// The least quota of the group and the groups above it, in CPUs, rounded up; 0: there is none, or none that can be read.  In
// either version of control groups, mounted where they usually are.  The arguments are for tests.
unsigned cpu_quota(const char* membership = "/proc/self/cgroup", const char* root = "/sys/fs/cgroup") noexcept;

}  // namespace pdes
