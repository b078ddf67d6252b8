// Gauges and counters, computed on request: the fast paths count nothing.
#pragma once
#include <hmalloc/hmalloc.h>

#include "base/report.h"

namespace hm {

void gather(hm_stats& out) noexcept;
// form: one of HM_STATS_TEXT and its like.  By one write(2), at the latest when the writer ends, if it fits into the buffer.
void print_stats(FdWriter& out, int form) noexcept;

}  // namespace hm
