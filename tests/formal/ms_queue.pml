/* The lock-free queue of baselines/vvmalloc/ms_queue.h, load by load and swap by swap, with reuse of nodes.
 * Processors are taken to agree on one order of all accesses; what weaker orders need is in loom/.
 *
 * A queue of the language itself (`ideal`) runs along: it changes at the swap that makes an operation take effect.
 *
 * -DTHREADS -DOPS        threads, and operations of all together: who does how many, and which, is tried in every way
 * faults, each of which must be found:
 * -DNO_COUNTS            the pointers have no count
 * -DNO_TAIL_RECHECK      an enqueuer does not look at tail again after it read the last node's link
 * -DNO_HEAD_RECHECK      a dequeuer does not look at head again
 * -DNO_SWING             a dequeuer does not move a lagging tail before head
 * -DFREE_EARLY           a dequeuer frees the old dummy, then reads the value of the new one
 * -DNO_HELP              an enqueuer that meets a lagging tail waits for the other thread to move it
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef OPS
#define OPS 5
#endif
#define NODES 3 /* numbered from 1; node 1 is the first dummy */

/* A counted pointer: number of the node in three bits, count in five. */
#define NODE(word) ((word) & 7)
#ifdef NO_COUNTS
#define CHANGED(word, to) (to)
#else
#define CHANGED(word, to) (((((word) >> 3) + 1) << 3) | (to))
#endif

byte head = 1, tail = 1, pool = 2;
byte next[NODES + 1], value[NODES + 1];
chan ideal = [NODES] of { byte };
byte left = OPS, busy;       /* threads within an operation */
byte was_empty;  /* one bit a thread: the ideal queue was empty at some time since its dequeue began */
hidden byte n, last, before, seen, g, tail_found;

/* Both lists end and hold every node that no operation has in hand; tail is the last node or the one before. */
inline check() {
  seen = 0; last = 0; before = 0; tail_found = 0; n = NODE(head);
  do
  :: n != 0 ->
     seen++; assert(seen <= NODES);
     before = last; last = n;
     if :: n == NODE(tail) -> tail_found = 1 :: else fi;
     n = NODE(next[n])
  :: else -> break
  od;
  assert(seen == len(ideal) + 1);
  assert(tail_found && (NODE(tail) == last || NODE(tail) == before));
  n = NODE(pool);
  do
  :: n != 0 -> seen++; assert(seen <= NODES); n = NODE(next[n])
  :: else -> break
  od;
  assert(seen + busy >= NODES);
  n = 0; last = 0; before = 0; seen = 0; tail_found = 0
}

/* By the one thread that has the node: the count stays. */
inline set(node, to) { d_step { next[node] = (next[node] & ~7) | (to) } }

inline swap(word, old, to) {
  d_step {
    ok = (word == old);
    if :: ok -> assert((old >> 3) < 31); word = CHANGED(old, to); check() :: else fi
  }
}

inline enqueue() { /* of `want` */
  do /* a node from the pool */
  :: h = pool;
     if :: NODE(h) == 0 -> mine = 0; break :: else fi;
     x = NODE(next[NODE(h)]);
     swap(pool, h, x);
     if :: ok -> mine = NODE(h); break :: else fi
  od;
  if
  :: mine == 0 /* none: the caller would ask the system */
  :: else ->
     set(mine, 0);
     value[mine] = want;
     do
     :: t = tail;
        x = next[NODE(t)];
#ifndef NO_TAIL_RECHECK
        if :: tail != t -> goto again_e :: else fi;
#endif
        if
        :: NODE(x) != 0 ->
#ifndef NO_HELP
           swap(tail, t, NODE(x))
#else
           skip
#endif
        :: else ->
           d_step {
             ok = (next[NODE(t)] == x);
             if :: ok -> next[NODE(t)] = CHANGED(x, mine); ideal!want; check() :: !ok fi
           }
           if :: ok -> swap(tail, t, mine); break :: else fi
        fi;
again_e: skip
     od
  fi
}

inline dequeue() {
  d_step { h = head; if :: len(ideal) == 0 -> was_empty = was_empty | (1 << id) :: else fi }
  do
  :: t = tail;
     x = next[NODE(h)];
#ifndef NO_HEAD_RECHECK
     if :: head != h -> goto again_d :: else fi;
#endif
     if
#ifndef NO_SWING
     :: NODE(h) == NODE(t) ->
        if :: NODE(x) == 0 -> assert(was_empty & (1 << id)); break :: else fi;
        swap(tail, t, NODE(x))
     :: else ->
#else
     :: NODE(h) == NODE(t) && NODE(x) == 0 -> assert(was_empty & (1 << id)); break
     :: else ->
#endif
        assert(NODE(x) != 0); /* there is no node 0 to read */
#ifndef FREE_EARLY
        mine = value[NODE(x)];
#endif
        d_step {
          ok = (head == h);
          if
          :: ok ->
             head = CHANGED(h, NODE(x));
             assert(len(ideal) > 0); ideal?want;
             if :: len(ideal) == 0 -> was_empty = (1 << THREADS) - 1 :: else fi;
             check()
          :: !ok
          fi
        }
        if
        :: ok ->
           do
           :: t = pool; set(NODE(h), NODE(t)); swap(pool, t, NODE(h));
              if :: ok -> break :: else fi
           od;
#ifdef FREE_EARLY
           mine = value[NODE(x)];
#endif
           assert(mine == want); /* the oldest, whole */
           break
        :: else
        fi
     fi;
again_d:
     h = head
  od
}

proctype Thread(byte id) {
  byte h, t, x, mine, want;
  bit ok;
  do
  :: d_step { left > 0 -> want = left; left--; busy++ }
     if
     :: enqueue()
     :: want = 0; dequeue()
     fi;
progress:
     skip;
     d_step { h = 0; t = 0; x = 0; mine = 0; want = 0; ok = 0; busy--; was_empty = was_empty & ~(1 << id) }
  :: left == 0 -> break
  od
}

init {
  atomic {
    for (n : 2 .. NODES - 1) { next[n] = n + 1 }
    next[NODES] = 0;
    for (g : 0 .. THREADS - 1) { run Thread(g) }
    n = 0; g = 0
  }
}
