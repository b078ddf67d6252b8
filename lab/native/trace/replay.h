#pragma once

#include <filesystem>

namespace hm::trace {

// Replays the trace on this process's malloc, and prints what that cost.
void replay(const std::filesystem::path& file, unsigned repeats, bool as_json);

}  // namespace hm::trace
