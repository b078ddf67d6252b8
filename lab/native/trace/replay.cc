#include "replay.h"

#include <algorithm>
#include <cstdio>

#include "kernel.h"
#include "plan.h"
#include "stage.h"
#include "text.h"
#include "trace.h"

namespace hm::trace {
namespace {

// A: the largest growth of the resident set.  The peak is read from a counter that may lag by some pages for each
// processor, so the exact count at the end may be larger.
uint64_t growth(long before_kb, long at_end_kb) {
  long peak = std::max(status_kb("VmHWM:"), at_end_kb);
  return static_cast<uint64_t>(std::max(peak - before_kb, 0L)) * 1024;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

// What is measured besides time.
struct Watched {
  uint64_t allocated = 0;  // A
  uint64_t left = 0;       // blocks that the program never freed, over all plays
  long faults = 0;
};

nlohmann::json result(const Plan::Numbers& numbers, const Stage& stage, const Watched& watched, unsigned repeats) {
  auto ops = static_cast<double>(numbers.operations * repeats);
  auto elapsed = static_cast<double>(stage.elapsed_ns());
  auto in_use = static_cast<double>(numbers.max_in_use);
  return {{"workload", "replay"},
          {"api", "malloc"},
          {"threads", numbers.threads},
          {"ops", numbers.operations * repeats},
          {"ns_per_op", elapsed / ops},
          {"seconds", elapsed / 1e9},
          {"kops_per_s", ops / elapsed * 1e6},
          {"cpu_share", stage.cpu_share()},
          {"max_in_use", numbers.max_in_use},
          {"max_allocated", watched.allocated},
          {"a_over_u", ratio(static_cast<double>(watched.allocated), in_use)},
          {"utilization", ratio(in_use, static_cast<double>(watched.allocated))},
          {"mallocs", stage.mallocs() / repeats},
          {"frees", stage.frees() / repeats},
          {"reallocs", stage.reallocs() / repeats},
          {"never_freed", watched.left / repeats},
          {"objects", numbers.blocks},
          {"mean_size", ratio(static_cast<double>(numbers.requested), static_cast<double>(numbers.blocks))},
          {"cross_thread_share", ratio(static_cast<double>(numbers.cross_thread_frees), static_cast<double>(numbers.frees))},
          {"vm_peak_kb", status_kb("VmPeak:")},
          {"vm_hwm_kb", status_kb("VmHWM:")},
          {"minor_faults", watched.faults},
          {"malloc_library", malloc_library()}};
}

void print(const std::filesystem::path& file, const nlohmann::json& said) {
  auto row = [](const char* name, const std::string& value) { std::printf("  %-12s %s\n", name, value.c_str()); };
  std::printf("%s, replayed on %s\n", file.c_str(), said["malloc_library"].get<std::string>().c_str());
  row("threads", grouped(said["threads"]));
  row("operations",
      grouped(said["mallocs"]) + " malloc, " + grouped(said["frees"]) + " free, " + grouped(said["reallocs"]) + " realloc");
  row("time", time_text(said["seconds"].get<double>() * 1e9) + ", " + time_text(said["ns_per_op"]) + " for an operation, " +
                  grouped(said["kops_per_s"].get<uint64_t>()) + " Kops/s");
  row("memory", bytes_text(said["max_allocated"]) + " at most (A) for " + bytes_text(said["max_in_use"]) +
                    " in use (U); utilisation U/A " + share_text(said["utilization"], 1));
}

}  // namespace

void replay(const std::filesystem::path& file, unsigned repeats, bool as_json) {
  Plan plan = Plan::read(file);
  Stage stage(plan);
  load_code();
  reset_peak_resident();
  long before = resident_kb();
  Watched watched{.faults = -minor_faults()};
  long at_end = 0;
  for (unsigned repeat = 0; repeat < repeats; ++repeat) {
    stage.play();
    at_end = std::max(at_end, resident_kb());
    watched.left += stage.clear();
  }
  watched.faults += minor_faults();
  watched.allocated = growth(before, at_end);
  nlohmann::json said = result(plan.numbers(), stage, watched, repeats);
  if (as_json) {
    std::printf("%s\n", said.dump().c_str());
  } else {
    print(file, said);
  }
}

}  // namespace hm::trace
