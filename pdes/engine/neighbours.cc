#include "engine/team.h"

namespace pdes {

void run_neighbours(Team& team, unsigned thread) { run_windows(team, thread); }

}  // namespace pdes
