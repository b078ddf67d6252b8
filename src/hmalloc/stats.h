// Gauges and counters, computed when asked for: the fast paths count nothing.
#pragma once
#include <hmalloc/hmalloc.h>

#include "base/sizes.h"

namespace hm {

void gather(hm_stats& out) noexcept;
void print_stats(int fd, bool json) noexcept;
void print_stats_at_exit() noexcept;  // as the options say

}  // namespace hm
