#pragma once

#include <filesystem>

namespace hm::trace {

// Prints what is in a trace, for people or as JSON.
void info(const std::filesystem::path& file, bool as_json);

}  // namespace hm::trace
