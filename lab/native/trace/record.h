#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hm::trace {

// Runs the program with the recorder, writes FILE (and a file for each further process), and returns the program's exit
// code as a shell would.  file: empty for the program's name.
int record(const std::vector<std::string>& command, std::filesystem::path file, uint64_t limit);

}  // namespace hm::trace
