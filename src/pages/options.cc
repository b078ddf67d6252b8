#include "pages/options.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/control_group.h"
#include "base/report.h"

namespace hm {

constinit Frozen<Options> options;

namespace {

constexpr OptionRow kRows[] = {
#define HM_OPTION_ROW(field, name, kind, value, help) {name, OptionKind::kind, &options.field},
    HM_OPTIONS(HM_OPTION_ROW)
#undef HM_OPTION_ROW
};
constexpr const char* kOthers[] = {"PAPER_", "INSTALL_PACKAGES", nullptr};  // HMalloc's as published, and the launcher's
constexpr FileRow kFiles[] = {{"STATS_FILE", options.stats_file},
                              {"STATS_TRIGGER", options.stats_trigger},
                              {"PROFILE_FILE", options.profile_file},
                              {"PROFILE_TRIGGER", options.profile_trigger}};
constexpr OptionTable kTable = {"HMALLOC_", kRows, std::size(kRows), kFiles, kOthers};

// Of a control group only if a share of it is asked for: a process does not know what else is in its group.
size_t limit_in_bytes(size_t asked) noexcept {
  if ((asked & kShare) != 0) {
    size_t whole = control_group_limit();
    if (whole == 0) FdWriter(STDERR_FILENO) << kLibraryName << ": no control group limits memory; HMALLOC_LIMIT ignored\n";
    asked = whole / 100'000 * (asked & ~kShare);
  }
  return asked == 0 ? 0 : std::max(asked, kLeastLimit);
}

}  // namespace

void read_options() noexcept {
  read_options(kTable);
  options.limit = limit_in_bytes(options.limit);
  options.cache_blocks = std::clamp<size_t>(options.cache_blocks, 1, 1023);
}

void print_options(int fd) noexcept { print_options(kTable, fd); }

}  // namespace hm
