#include "pdes/metis.h"

#include <metis.h>

#include "metis/divide.h"

namespace pdes {

Partitioner metis_partitioner() {
  using Linked = Metis<idx_t, real_t>;
  static_assert(Linked::kOk == METIS_OK && Linked::kNoMemory == METIS_ERROR_MEMORY);
  std::vector<idx_t> options(METIS_NOPTIONS);
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = 1;
  return [metis = Linked{METIS_PartGraphRecursive, METIS_PartGraphKway, options}](const LpGraph& graph, unsigned threads) {
    return metis.divide(graph, threads);
  };
}

}  // namespace pdes
