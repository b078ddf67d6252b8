// Files that a profile of the heap is written to: HMALLOC_PROFILE_FILE at the end of the process and when somebody makes the
// file HMALLOC_PROFILE_TRIGGER, and one beside it, NAME.peak, as of the moment at which the program held most.
//
// For any thread that holds no lock of the allocator's.
#pragma once
#include "pages/options.h"

namespace hm {

// At load, after the options were read.
void watch_for_profile_trigger() noexcept;
// At the end of the process, after which there are no more.
void write_last_profile() noexcept;

void look_for_reasons() noexcept;
// After each sample, and each end of one: what else would change a profile?
inline void write_profile_if_asked_for() noexcept {
  if (HM_UNLIKELY(options.profile_peak != 0 || options.profile_trigger[0] != '\0')) look_for_reasons();
}

// In the child of a fork: what the parent has written is none of its.
void profile_files_after_fork_in_child(uint32_t before) noexcept;

}  // namespace hm
