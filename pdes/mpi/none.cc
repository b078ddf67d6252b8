// Replaces ranks.cc where there is no MPI.
#include "mpi/launched.h"
#include "pdes/mpi.h"
#include "pdes/options.h"

namespace pdes {

std::unique_ptr<Ranks> start_ranks(int*, char***) {
  if (launched_with_others()) throw Error("this program was built without MPI and cannot be one of several ranks");
  return nullptr;
}

}  // namespace pdes
