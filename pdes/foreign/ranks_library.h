// Between libhmalloc-pdes.so and libhmalloc-pdes-mpi.so, which it loads.
#pragma once

#include <string>

#include "hmalloc/hmalloc.h"
#include "pdes/mpi.h"

namespace pdes {

// Null if this process is the only rank, or with an error, also if the other library is of another version.
using StartRanks = Ranks*(const char* version, std::string& error);
inline constexpr char kStartRanks[] = "hm_pdes_start_ranks";
inline constexpr char kRanksVersion[] = HM_VERSION_STRING;

}  // namespace pdes
