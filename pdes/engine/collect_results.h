// Collects the results of a run when its threads have ended.
#pragma once

#include <exception>

#include "pdes/result.h"

namespace pdes {

struct Team;

// With ranks: called by all; the result is complete on rank 0, and covers only the rank itself elsewhere.  If an LP of any rank
// cannot report, there are no statistics, Team::failed is set, and that rank has the failure.
Result collect_results(Team& team, std::exception_ptr& failure);

}  // namespace pdes
