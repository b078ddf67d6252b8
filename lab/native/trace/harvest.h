// What is left when the recorded processes have ended: their spools become traces.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace hm::trace {

inline constexpr const char* kSuffix = ".hmtrace";

// The last program that process `pid` was goes into `file`; what it was before an exec, and every further process, into
// files of their own beside it.  Says what was recorded; false: nothing of `pid`.
bool harvest(const std::filesystem::path& spools, const std::filesystem::path& file, pid_t pid);

// Why the recorder may have seen nothing of this program.
const char* why_nothing(const std::string& program);

}  // namespace hm::trace
