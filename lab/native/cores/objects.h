// Which file an address of this process comes from, and where in that file's own addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cores {

class Objects {
 public:
  struct Place {
    std::string object;  // empty: from no file
    std::uint64_t offset = 0;
  };

  Objects();  // as they are mapped now

  Place find(std::uint64_t address) const;

 private:
  struct Mapping {
    std::uint64_t begin, end;
    std::string path;
    std::uint64_t base;  // where the file's first page lies
  };

  std::vector<Mapping> mappings_;
};

}  // namespace cores
