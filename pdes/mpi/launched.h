// Whether this process was started as one of several ranks; does not ask MPI, whose start takes a tenth of a second.
#pragma once

#include <cstdlib>

namespace pdes {

// Open MPI's mpirun passes the number of ranks.  Others say that a process has a rank, also if it is the only one; of these
// most tell the number as well.
inline bool launched_with_others() {
  if (const char* count = std::getenv("OMPI_COMM_WORLD_SIZE")) return std::atoi(count) > 1;
  if (std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return false;
  for (const char* name : {"PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* count = std::getenv(name)) return std::atoi(count) > 1;
  return true;
}

}  // namespace pdes
