// What happens when the recorded processes have ended: their spools become traces.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace hm::trace {

inline constexpr const char* kSuffix = ".hmtrace";

// Writes the last program of process `pid` to `file`; its earlier programs, before an exec, and every further process
// go to files of their own beside it.  Prints what was recorded; false if there is nothing of `pid`.
bool harvest(const std::filesystem::path& spools, const std::filesystem::path& file, pid_t pid);

// Why the recorder may have recorded nothing of this program.
const char* why_nothing(const std::string& program);

}  // namespace hm::trace
