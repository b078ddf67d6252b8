#include "baselines/hoard/options.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "base/option_parser.h"
#include "base/os_pages.h"
#include "base/report.h"

namespace hm::hoard {

constinit Options options;

namespace {

constexpr OptionRow kRows[] = {
    {"SUPERBLOCK", OptionKind::kSize, &options.superblock},
    {"CLASS_BASE", OptionKind::kThousandths, &options.class_base},
    {"EMPTY_FRACTION", OptionKind::kThousandths, &options.empty_fraction},
    {"KEEP", OptionKind::kNumber, &options.keep},
    {"HEAPS", OptionKind::kNumber, &options.heaps},
};
constexpr OptionTable kTable = {"HOARD_", kRows, std::size(kRows)};

void hold_to_range(size_t& value, bool good, size_t otherwise, const char* rule) noexcept {
  if (good) return;
  FdWriter(STDERR_FILENO) << kLibraryName << ": " << rule << "; the default is used\n";
  value = otherwise;
}

// Those that the program may run on.
size_t processors() noexcept {
  int saved = errno;
  cpu_set_t set;
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;  // the set may be too small for the kernel's processors
  errno = saved;
  return known ? static_cast<size_t>(CPU_COUNT(&set)) : kMaxHeaps / 2;
}

}  // namespace

void read_options() noexcept {
  Options standard;
  if (standard.superblock < os::page_size()) standard.superblock = os::page_size();
  options = standard;
  hm::read_options(kTable);
  size_t superblock = options.superblock, steps = options.empty_fraction * kMaxSteps;
  hold_to_range(options.superblock,
                std::has_single_bit(superblock) && superblock >= os::page_size() && superblock <= kMaxSuperblock,
                standard.superblock, "HOARD_SUPERBLOCK is a power of two from a page to 1M");
  hold_to_range(options.class_base, options.class_base >= 1100 && options.class_base <= 4000, standard.class_base,
                "HOARD_CLASS_BASE lies between 1.1 and 4");
  hold_to_range(options.empty_fraction, steps >= kThousand && options.empty_fraction <= kThousand, standard.empty_fraction,
                "HOARD_EMPTY_FRACTION lies between 1/10 and 1");
  hold_to_range(options.keep, options.keep <= 1'000'000, standard.keep, "HOARD_KEEP is at most 1000000");
  hold_to_range(options.heaps, options.heaps <= kMaxHeaps, standard.heaps, "HOARD_HEAPS is at most 1024");
  if (options.heaps == 0) options.heaps = 2 * processors();
  if (options.heaps > kMaxHeaps) options.heaps = kMaxHeaps;
}

}  // namespace hm::hoard
