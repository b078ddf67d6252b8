/* A model in C: its header is of C, too.  foreign_test.cc has the same in C++. */
#include "foreign_model.h"

static double delay(hm_pdes_lp* lp) { return lp->lookahead + hm_pdes_exponential(lp, 1, 1 - lp->lookahead); }

static int start(hm_pdes_lp* lp, void* place, const void* event) {
  const struct state* state = place;
  (void)event;
  for (int64_t i = 0; i < state->events; ++i) {
    const struct hop hop = {.hops = i, .letter = 'a'};
    hm_pdes_send(lp, lp->id, delay(lp), 0, &hop, 0);
  }
  return 1;
}

static int hop(hm_pdes_lp* lp, void* place, const void* event) {
  const struct hop* arrived = event;
  struct state* state = place;
  int64_t to = hm_pdes_uniform(lp, 0) < 0.5 ? hm_pdes_integer(lp, 0, lp->lp_count) : lp->id;
  const struct hop next = {.hops = arrived->hops + 1, .letter = arrived->letter};
  state->hops.count += 1;
  state->hops.sum += (double)arrived->hops;
  if ((double)arrived->hops < state->hops.least) state->hops.least = (double)arrived->hops;
  if ((double)arrived->hops > state->hops.most) state->hops.most = (double)arrived->hops;
  if (state->fault == 1) return 0;
  if (state->fault == 2) hm_pdes_fail(lp, "as was asked for");
  hm_pdes_send(lp, state->fault == 3 ? -1 : to, delay(lp), state->fault == 4, &next, state->fault == 5 ? 64 : 0);
  return 1;
}

static int report(hm_pdes_report* report, void* place) {
  const struct state* state = place;
  hm_pdes_report_count(report, "events", state->hops.count);
  hm_pdes_report_sum(report, "sum", state->hops.sum);
  hm_pdes_report_tally(report, "hops", &state->hops);
  return state->fault != 6;
}

static const hm_pdes_handler handlers[] = {hop};
const hm_pdes_class foreign_nodes = {
    .name = "Node", .size = sizeof(struct state), .streams = 1, .start = start, .handlers = handlers, .report = report};
