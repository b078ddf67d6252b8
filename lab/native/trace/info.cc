#include "info.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "profile.h"
#include "text.h"

namespace hm::trace {
namespace {

nlohmann::json to_json(const Profile& profile) {
  nlohmann::json result = profile.header;
  auto pairs = [](const auto& points) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [x, y] : points) list.push_back({x, y});
    return list;
  };
  double frees = static_cast<double>(std::max<uint64_t>(profile.header.frees, 1));
  result.update({{"operations", profile.header.operations()},
                 {"objects", profile.header.blocks()},
                 {"mean_size", profile.mean_size()},
                 {"max_in_use", profile.max_in_use},
                 {"cross_thread_frees", profile.cross_thread_frees},
                 {"cross_thread_share", static_cast<double>(profile.cross_thread_frees) / frees},
                 {"never_freed", profile.never_freed},
                 {"never_freed_bytes", profile.never_freed_bytes},
                 {"sizes", pairs(profile.sizes)},
                 {"lifetimes", pairs(profile.lifetimes)},
                 {"memory", pairs(profile.memory)}});
  return result;
}

void row(const char* name, const std::string& value) { std::printf("  %-14s %s\n", name, value.c_str()); }

// One character for each column, from empty to full.
std::string curve(const Profile& profile) {
  static constexpr const char* kLevels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr uint64_t kColumns = 64;
  uint64_t columns[kColumns + 1] = {};
  uint64_t highest = 1, last = 0, column = 0;
  for (auto [time, bytes] : profile.memory) {
    uint64_t at = profile.header.duration == 0
                      ? 0
                      : static_cast<uint64_t>(static_cast<double>(time) / static_cast<double>(profile.header.duration) *
                                              (kColumns - 1));
    while (column < at) columns[++column] = last;
    columns[at] = std::max(columns[at], bytes);
    last = bytes;
    highest = std::max(highest, bytes);
  }
  std::string text;
  for (uint64_t at = 0; at < kColumns; ++at) text += kLevels[(columns[at] * 8 + highest - 1) / highest];
  return text;
}

template <class Label>
void mix(const char* title, const Profile::Histogram& histogram, Label label) {
  if (histogram.empty()) return;
  uint64_t all = 0;
  for (auto [bound, number] : histogram) all += number;
  std::printf("\n%s\n", title);
  for (auto [bound, number] : histogram) {
    std::string bar;
    for (uint64_t part = 0; part < number * 40 / all; ++part) bar += "█";
    std::printf("  up to %-9s %7s  %s\n", label(bound).c_str(),
                share_text(static_cast<double>(number), static_cast<double>(all)).c_str(), bar.c_str());
  }
}

void print(const Profile& profile) {
  const Header& header = profile.header;
  bool has_clock = header.unit == "ns";
  auto time = [&](uint64_t value) {
    return has_clock ? time_text(static_cast<double>(value)) : grouped(value) + " operations";
  };
  std::printf("%s\n", header.program.c_str());
  row("recorded for", time(header.duration) + (header.allocator.empty() ? "" : " under " + header.allocator));
  row("threads", grouped(header.threads));
  row("operations", grouped(header.operations()) + ": " + grouped(header.mallocs) + " malloc, " + grouped(header.frees) +
                        " free, " + grouped(header.reallocs) + " realloc");
  row("objects", grouped(header.blocks()) + ", mean size " + bytes_text(static_cast<uint64_t>(profile.mean_size())));
  row("requested", bytes_text(header.requested) + ", at most " + bytes_text(profile.max_in_use) + " in use at once (U)");
  row("cross-thread", share_text(static_cast<double>(profile.cross_thread_frees), static_cast<double>(header.frees)) +
                          " of the frees, by another thread than the malloc");
  row("never freed", grouped(profile.never_freed) + ", " + bytes_text(profile.never_freed_bytes));
  if (header.foreign_frees + header.implied_frees > 0) {
    row("beside", grouped(header.foreign_frees) + " frees of blocks made beside the record, " +
                      grouped(header.implied_frees) + " blocks freed beside it");
  }
  if (!header.stopped.empty()) row("stopped early", header.stopped);
  std::printf("\nMemory in use, over time\n  %s\n", curve(profile).c_str());
  mix("Sizes", profile.sizes, [](uint64_t bytes) { return bytes_text(bytes); });
  mix("Lifetimes, of what was freed or reallocated", profile.lifetimes, time);
}

}  // namespace

void info(const std::filesystem::path& file, bool as_json) {
  Profile profile = Profile::of(file);
  if (as_json) {
    std::printf("%s\n", to_json(profile).dump().c_str());
  } else {
    print(profile);
  }
}

}  // namespace hm::trace
