#include "engine/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace pdes {
namespace {

namespace fs = std::filesystem;
constexpr double kNone = std::numeric_limits<double>::infinity();

// "max", and the -1 of version 1, are no quotas.
double quota_of(const fs::path& folder, bool first_version) {
  std::ifstream file(folder / (first_version ? "cpu.cfs_quota_us" : "cpu.max"));
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  file >> quota;
  (first_version ? period_file : file) >> period;
  return quota > 0 && period > 0 ? quota / period : kNone;
}

// Of the group and those above it.  A container may be told the path that its host sees, and find only the root.
double least_quota(const fs::path& root, fs::path group, bool first_version) {
  for (double least = kNone;; group = group.parent_path()) {
    least = std::min(least, quota_of(root / group, first_version));
    if (group.empty()) return least;
  }
}

}  // namespace

unsigned cpu_quota(const char* membership, const char* root) noexcept try {
  std::ifstream lines(membership);
  double least = kNone;
  // A line is "number:controllers:/group".  That of version 2 names no controllers.
  for (std::string number, controllers, group;
       std::getline(lines, number, ':') && std::getline(lines, controllers, ':') && std::getline(lines, group);) {
    const fs::path path = fs::path(group).relative_path();
    if (controllers.empty()) least = std::min(least, least_quota(root, path, false));
    if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      least = std::min(least, least_quota(fs::path(root) / "cpu", path, true));
  }
  return least < std::numeric_limits<unsigned>::max() ? static_cast<unsigned>(std::ceil(least)) : 0;
} catch (const std::exception&) { return 0; }

}  // namespace pdes
