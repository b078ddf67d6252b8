// The ranks of a model in another language.
#pragma once

#include "pdes/mpi.h"

namespace pdes {

// Those of this process, which stay until it ends; null if it was not started as one of several.  The library that knows MPI
// is loaded for them, so that nobody else needs MPI.  Throws Error.
Ranks* ranks_of_process();

}  // namespace pdes
