// Collects the results of a run when its threads have ended.
#pragma once

#include "pdes/result.h"

namespace pdes {

struct Team;

// With ranks: called by all; the result is complete on rank 0, and covers only the rank itself elsewhere.
Result collect_results(Team& team);

}  // namespace pdes
