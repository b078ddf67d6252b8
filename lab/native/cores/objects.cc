#include "objects.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>

namespace cores {

Objects::Objects() {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, std::uint64_t> bases;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end, &path_at) < 2) continue;
    std::string path = path_at > 0 ? line.substr(static_cast<std::size_t>(path_at)) : "";
    if (path.empty() || path.front() != '/') continue;
    mappings_.push_back({begin, end, path, bases.try_emplace(path, begin).first->second});
  }
}

Objects::Place Objects::find(std::uint64_t address) const {
  for (const Mapping& each : mappings_) {
    if (address >= each.begin && address < each.end) return {each.path, address - each.base};
  }
  return {};
}

}  // namespace cores
