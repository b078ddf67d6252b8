/* What the model in C and its test know. */
#ifndef FOREIGN_MODEL_H
#define FOREIGN_MODEL_H

#include "pdes/foreign.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hop {
  int64_t hops;
  char letter;
};
struct state {
  int64_t events, fault;
  hm_pdes_tally hops;
};
extern const hm_pdes_class foreign_nodes;

#ifdef __cplusplus
}
#endif
#endif
