/* A heap and its threads (docs/design.md, R1, R2): a thread that ends parks its heap, clears its pointer to it, and
 * then publishes the heap as dead; another thread may take it over.  Destructors that run later still allocate.
 * -DPUBLISH_FIRST  the heap is published before the thread lets go of it
 * -DSTALE          the pointer is never cleared
 * -DFORGETFUL      the thread does not remember that it has ended: a late destructor gets it a heap once more
 * -DDRAIN_IN_LIST  who drains dead heaps leaves them in the list meanwhile
 */
#define THREADS 3
#define NONE 0
#define FALLBACK (THREADS + 1)
bool user[THREADS + 2]; /* somebody works in this heap right now; the last is the fallback */
bool dead[THREADS + 1]; /* the list, under the registry's lock: one step */
byte heaps, running = THREADS; /* heaps made so far, numbered from 1; threads that have not ended */

inline use(heap) { /* two steps, which nobody else may come between */
  d_step { assert(!user[heap]); user[heap] = true }
  user[heap] = false
}

inline take_dead() { /* my = one of the list, or NONE */
  if
  :: dead[1] -> dead[1] = false; my = 1
  :: dead[2] -> dead[2] = false; my = 2
  :: dead[3] -> dead[3] = false; my = 3
  :: !dead[1] && !dead[2] && !dead[3] -> my = NONE
  fi
}

inline allocate() {
  if
  :: my == NONE && ended -> atomic { !user[FALLBACK] -> user[FALLBACK] = true } user[FALLBACK] = false
  :: my == NONE && !ended ->
     atomic { take_dead(); if :: my == NONE -> heaps++; my = heaps :: else fi }
     use(my)
  :: my != NONE -> use(my)
  fi
}

proctype Thread() {
  byte my = NONE, mine; bool ended;
  do :: allocate() :: break od; mine = my;
  if
  :: mine == NONE /* it never had one */
  :: else -> /* the destructor among the thread-specific data */
#ifdef PUBLISH_FIRST
     dead[mine] = true;
     use(mine);
#else
     use(mine); /* park */
#endif
#ifndef FORGETFUL
     ended = true;
#endif
#ifndef STALE
     my = NONE;
#endif
#ifndef PUBLISH_FIRST
     dead[mine] = true;
#endif
     do :: allocate() :: break od /* late destructors */
  fi;
#ifndef STALE
  assert(my == NONE); /* nobody takes a heap into the grave */
#endif
  running--
}

proctype Collector() {
  byte my;
  do
#ifdef DRAIN_IN_LIST
  :: atomic { take_dead(); if :: my != NONE -> dead[my] = true :: else fi } if :: my != NONE -> use(my) :: else fi
#else
  :: atomic { take_dead() } if :: my != NONE -> use(my); dead[my] = true :: else fi
#endif
  :: running == 0 -> break
  od
}
init { atomic { run Thread(); run Thread(); run Thread(); run Collector() } }
