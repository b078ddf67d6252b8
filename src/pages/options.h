// hmalloc's options, one row each: HMALLOC_<NAME>.
//
// HM_OPTION(field, NAME, kind, default, help)
#pragma once
#include "base/frozen.h"
#include "base/option_parser.h"

#define HM_OPTIONS(HM_OPTION)                                                                                             \
  HM_OPTION(verbose, "VERBOSE", kFlag, 0, "say at start whether hmalloc is active, and the options in effect")            \
  HM_OPTION(show_stats, "SHOW_STATS", kStats, 0, "print statistics at exit: 1 as text, json, openmetrics")                \
  HM_OPTION(stats_interval, "STATS_INTERVAL", kTime, 0, "while it runs, print them each time this is over, too")          \
  HM_OPTION(profile, "PROFILE", kProfile, 0, "heap, or heap:rate=SIZE: write a profile of the heap at exit")              \
  HM_OPTION(profile_frees, "PROFILE_FREES", kFlag, 0, "profiles also say who frees what was sampled, where, and when")    \
  HM_OPTION(profile_peak, "PROFILE_PEAK", kFlag, 0, "while a profile runs, write one also when the program holds most")   \
  HM_OPTION(decay_ms, "DECAY_MS", kNumber, 500, "milliseconds that the program may take to ask again for what it freed")  \
  HM_OPTION(retain_bytes, "RETAIN", kSize, 128 * kKiB, "freed memory that stays resident in any case")                    \
  HM_OPTION(cache_bytes, "CACHE_BYTES", kSize, 5 * kMiB, "most that the block caches of one thread may grow to")          \
  HM_OPTION(cache_blocks, "CACHE_BLOCKS", kNumber, 1023, "most blocks in one block cache, 1 to 1023")                     \
  HM_OPTION(huge_pages_after, "HUGE_PAGES_AFTER", kSize, 16 * kMiB, "footprint from which huge pages are asked for")      \
  HM_OPTION(limit, "LIMIT", kLimit, 0, "most memory that may be resident, or its share of the control group's; 0: any")   \
  HM_OPTION(guard, "GUARD", kFlag, 0, "now and then a small block lies alone, so that a wrong access to it is found")     \
  HM_OPTION(tags, "TAGS", kFlag, 0, "hardened library, where the processor has memory tags: small blocks have them")      \
  HM_OPTION(quarantine_bytes, "QUARANTINE", kSize, 256 * kKiB, "hardened library: freed bytes that may wait in a thread") \
  HM_OPTION(slice_guards, "SLICE_GUARDS", kFlag, 1, "hardened library: one of sixteen slices of 32 KB is inaccessible")   \
  HM_OPTION(background, "BACKGROUND", kFlag, 0, "a thread gives memory back while the program idles")

namespace hm {

struct Options {
#define HM_OPTION_FIELD(field, name, kind, value, help) size_t field = value;
  HM_OPTIONS(HM_OPTION_FIELD)
#undef HM_OPTION_FIELD
  char stats_file[kMaxPath] = {};                 // HMALLOC_STATS_FILE: where statistics are written; empty: to descriptor 2
  char stats_trigger[kMaxPath] = {};              // HMALLOC_STATS_TRIGGER: who makes this file asks for statistics
  char profile_file[kMaxPath] = "hmalloc.%p.pb";  // HMALLOC_PROFILE_FILE: where PROFILE writes
  char profile_trigger[kMaxPath] = {};            // HMALLOC_PROFILE_TRIGGER: who makes this file asks for a profile
};
extern Frozen<Options> options;

inline constexpr size_t kLeastLimit = 4 * kMiB;  // smaller ones, unless 0, count as this

void read_options() noexcept;
void print_options(int fd) noexcept;

}  // namespace hm
