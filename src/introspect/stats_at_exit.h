// Statistics when the process ends, as HMALLOC_SHOW_STATS and HMALLOC_STATS_FILE say: by exit(), by a return from main,
// and by a SIGTERM that nobody else handles.  Once a process.
#pragma once

namespace hm {

// At load, after the options were read.
void watch_for_termination() noexcept;
void print_stats_at_exit() noexcept;
// In the child of a fork: it has an end of its own.
void stats_after_fork_in_child() noexcept;

}  // namespace hm
