// hmalloc as the allocator behind the malloc family.
#pragma once
#include "api/front.h"
#include "base/usage.h"
#include "introspect/stats.h"
#include "upkeep/reclaim.h"

namespace hm {

inline constexpr const char* kVersion = "hmalloc-" HM_VERSION_STRING;

inline Usage usage() noexcept {
  hm_stats stats;
  gather(stats);
  return {stats.mapped, stats.resident, stats.active, stats.allocated, stats.cached, stats.retained};
}
inline bool collect() noexcept { return reclaim_all(); }
inline void print_usage() noexcept { hm_stats_print(2, 0); }

}  // namespace hm
