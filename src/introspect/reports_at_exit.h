// What a process reports when it ends: statistics, as HMALLOC_SHOW_STATS and HMALLOC_STATS_FILE say, and a profile of its
// heap, as HMALLOC_PROFILE and HMALLOC_PROFILE_FILE say.  At exit(), at a return from main, and at a SIGTERM that nobody else
// handles.  Once per process.
#pragma once

namespace hm {

// Called at load, after the options were read.
void watch_for_termination() noexcept;
void report_at_exit() noexcept;
// In the child of a fork, which has reports of its own.
void reports_after_fork_in_child() noexcept;

}  // namespace hm
