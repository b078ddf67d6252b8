// Whether this process was started as one of several ranks; does not ask MPI, whose start takes a tenth of a second.
#pragma once

#include <cstdlib>

namespace pdes {

// Open MPI's mpirun passes the number of ranks; other launchers reveal only that the process has a rank.
inline bool launched_with_others() {
  if (const char* count = std::getenv("OMPI_COMM_WORLD_SIZE")) return std::atoi(count) > 1;
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr;
}

}  // namespace pdes
