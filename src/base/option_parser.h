// Options from the environment, by a table; read once when a library starts, ignored in setuid programs.
#pragma once
#include <span>

#include "base/sizes.h"

namespace hm {

enum class OptionKind : uint8_t {
  kFlag,  // 0 or 1, no or yes, off or on
  kNumber,
  kSize,         // bytes; takes K, M, G
  kTime,         // milliseconds; 0, or a number with ms, s, m or h
  kStats,        // 0, 1, json (2) or openmetrics (3)
  kThousandths,  // 1.2 and 6/5 are both 1200
  kLimit,        // bytes, with decimals, as 1.5G; or kShare and thousandths of a percent, for 80%
  kProfile       // 0, heap (kUsualRate) or heap:rate=512K: bytes from sample to sample
};
inline constexpr size_t kShare = size_t{1} << 63;
inline constexpr size_t kUsualRate = 512 * kKiB;

struct OptionRow {
  const char* name;  // without the prefix
  OptionKind kind;
  size_t* value;
};

inline constexpr size_t kMaxPath = 256;

struct FileRow {
  const char* name;
  char* path;  // kMaxPath bytes; empty: none
};

// Of the baselines: another part reads it.
inline constexpr const char* kReadElsewhere[] = {"STATS_FILE", nullptr};

struct OptionTable {
  const char* prefix;  // "HMALLOC_"
  const OptionRow* rows;
  size_t count;
  std::span<const FileRow> files = {};
  const char* const* others =
      kReadElsewhere;  // names with these prefixes belong to another library or tool; ends with a null
};

// Warns once each about unknown and bad options, on descriptor 2.  Call it before there is a second thread.
void read_options(const OptionTable& table) noexcept;
void print_options(const OptionTable& table, int fd) noexcept;

// Exported for tests: "64K" -> 65536, "10s" -> 10000, "1/4" -> 250, "1.5K" -> 1536, "80%" -> kShare | 80'000, "heap" ->
// kUsualRate.  False if the text has no such form.
bool parse_size(const char* text, size_t& out) noexcept;
bool parse_time(const char* text, size_t& out) noexcept;
bool parse_thousandths(const char* text, size_t& out) noexcept;
bool parse_limit(const char* text, size_t& out) noexcept;
bool parse_profile(const char* text, size_t& out) noexcept;

}  // namespace hm
