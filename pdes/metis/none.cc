// Replaces metis.cc where there is no METIS.
#include "pdes/metis.h"
#include "pdes/options.h"

namespace pdes {

Partitioner metis_partitioner() {
  throw Error("this program was built without METIS, and cannot divide the graph of the LPs among threads");
}

}  // namespace pdes
