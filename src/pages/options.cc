#include "pages/options.h"

#include <algorithm>
#include <iterator>

namespace hm {

constinit Options options;

namespace {

constexpr OptionRow kRows[] = {
#define HM_OPTION_ROW(field, name, kind, value, help) {name, OptionKind::kind, &options.field},
    HM_OPTIONS(HM_OPTION_ROW)
#undef HM_OPTION_ROW
};
constexpr OptionTable kTable = {"HMALLOC_", kRows, std::size(kRows), options.stats_file, "PAPER_"};

}  // namespace

void read_options() noexcept {
  read_options(kTable);
  options.cache_blocks = std::clamp<size_t>(options.cache_blocks, 1, 1023);
}

void print_options(int fd) noexcept { print_options(kTable, fd); }

}  // namespace hm
