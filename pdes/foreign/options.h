// Options of a simulation as text: "end=80 lookahead=0.1 queue=heap".
#pragma once

#include <string_view>

#include "pdes/options.h"

namespace pdes {

// Throws Error.
Options options_of(std::string_view text);

}  // namespace pdes
