// Gathers what a run has to tell when its threads have ended.
#pragma once

#include "pdes/result.h"

namespace pdes {

struct Team;

// With ranks: called by all; complete on rank 0, elsewhere of that rank alone.
Result collect_results(Team& team);

}  // namespace pdes
