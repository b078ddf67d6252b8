/* Stands for a METIS with indices of 64 bits: divides vertices by whether their number is even.  For two at once it refuses. */
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

static atomic_int inside;

int METIS_SetDefaultOptions(int64_t* options) {
  for (int i = 0; i < 40; ++i) options[i] = -1;
  return 1;
}

int METIS_PartGraphRecursive(int64_t* nvtxs, int64_t* ncon, int64_t* xadj, int64_t* adjncy, int64_t* vwgt, int64_t* vsize,
                             int64_t* adjwgt, int64_t* nparts, float* tpwgts, float* ubvec, int64_t* options,
                             int64_t* edgecut, int64_t* part) {
  (void)xadj, (void)adjncy, (void)vwgt, (void)vsize, (void)adjwgt, (void)tpwgts, (void)ubvec, (void)options;
  if (*ncon != 1 || *nparts != 2) return -2;
  const int others = atomic_fetch_add(&inside, 1);
  for (int64_t i = 0; i < *nvtxs; ++i) part[i] = i % 2;
  *edgecut = 0;
  if (*nvtxs == 8) usleep(50000);
  atomic_fetch_sub(&inside, 1);
  return *nvtxs == 6 ? -3 : others > 0 ? -4 : 1;
}

int METIS_PartGraphKway(void) { return -2; }
