// Statistics that the process writes by itself: as HMALLOC_SHOW_STATS says when it ends, every HMALLOC_STATS_INTERVAL, and when
// somebody makes the file HMALLOC_STATS_TRIGGER; to HMALLOC_STATS_FILE or descriptor 2.
#pragma once
#include "pages/options.h"

namespace hm {

inline bool stats_are_written_while_running() noexcept {
  return options.stats_interval != 0 || options.stats_trigger[0] != '\0';
}
inline bool stats_are_asked_for() noexcept { return options.show_stats != 0 || stats_are_written_while_running(); }

// At load, after the options were read.
void watch_for_stats() noexcept;
// At the end of the process, after which there are no more.
void write_last_stats() noexcept;
// In the child of a fork, which has an interval of its own.
void stats_files_after_fork_in_child(uint32_t before) noexcept;

}  // namespace hm
