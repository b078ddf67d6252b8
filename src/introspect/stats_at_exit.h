// Statistics when the process ends, as HMALLOC_SHOW_STATS and HMALLOC_STATS_FILE say: at exit(), at a return from main,
// and at a SIGTERM that nobody else handles.  Once per process.
#pragma once

namespace hm {

// Called at load, after the options were read.
void watch_for_termination() noexcept;
void print_stats_at_exit() noexcept;
// In the child of a fork, which prints statistics of its own.
void stats_after_fork_in_child() noexcept;

}  // namespace hm
