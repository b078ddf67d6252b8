#pragma once

#include <string>

namespace pdes {

// In a catch: what was thrown, whatever its type, in one line.  With its place, unless it names that itself.
std::string failure_text(const std::string& place = {});

}  // namespace pdes
