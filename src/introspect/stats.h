// Gauges and counters, computed when asked for: the fast paths count nothing.
#pragma once
#include <hmalloc/hmalloc.h>

#include "base/report.h"

namespace hm {

void gather(hm_stats& out) noexcept;
// One write(2), as far as it fits into the buffer.
void print_stats(FdWriter&& out, bool json) noexcept;

}  // namespace hm
