/* A claim (src/threads/claims.h): a collector takes from the cache of a thread that may be anywhere, in the middle of one
 * pop or push too.  Each statement is a step.  The thread's store to in_use waits in a buffer until a barrier, or until it
 * pleases; all else is in the order of the program, for which tests/litmus answers.
 * -DNO_MARGIN   the topmost entry is taken, too
 * -DNO_RECHECK  the thread does not look for a claim once it has said that it uses its heap
 * -DNO_LOCK     it does not wait for the end of the claim
 * -DNO_BARRIER  the collector does without the first barrier
 * -DNO_CLOSE    pushes still succeed while it takes
 * -DNO_FENCE    no null lies below the topmost entry meanwhile
 * -DNO_LOOK     it does not look where the top is in the end
 * -DNOT_BACK    the fence's block does not go back if the thread was awake
 */
#ifndef OPS
#define OPS 6
#endif
#define COLLECTS 2
#define BLOCKS 4
#define ROOM 4
#define NONE 0
#define WANTED 1
#define CLAIMED 2
#define EMPTIED 3
byte slot[ROOM + 3]; /* 0 is null; blocks are 1 to BLOCKS */
byte top, bottom, limit = ROOM, claim;
bool in_use, buffered; /* buffered: in_use has been set, and nobody else sees it yet */
bool locked;
bool is_free[BLOCKS + 1], held[BLOCKS + 1]; /* held by the program; of a cached block neither */
bool ended;

inline lock() { atomic { !locked -> locked = true; if :: buffered -> in_use = true; buffered = false :: else fi } }
inline give_back(b) { d_step { assert(b != 0 && !is_free[b] && !held[b]); is_free[b] = true } }
inline barrier() { d_step { if :: buffered -> in_use = true; buffered = false :: else fi } }

proctype StoreBuffer() {
  do
  :: atomic { buffered -> in_use = true; buffered = false }
  :: ended -> break
  od
}

inline open_cache() { /* only its thread is here; what it holds goes down to slot 1 */
  d_step {
    i = 0;
    do :: i <= top - bottom -> slot[i] = slot[bottom + i]; i++ :: else -> break od;
    top = top - bottom; bottom = 0; limit = ROOM; i = 0
  }
}
inline begin_use() {
  buffered = true;
#ifndef NO_RECHECK
  if
  :: claim != NONE ->
#ifndef NO_LOCK
     lock();
#endif
     if :: claim == EMPTIED -> open_cache() :: else fi;
     claim = NONE;
#ifndef NO_LOCK
     locked = false
#endif
  :: else
  fi
#endif
}
inline end_use() { d_step { buffered = false; in_use = false } }

inline got(which) { d_step { assert(!is_free[which] && !held[which]); held[which] = true } }

inline allocate() {
  t = top; b = slot[t];
  if
  :: b != 0 -> top = t - 1; got(b)
  :: else -> /* the slow path */
     begin_use();
     t = top; b = slot[t];
     if
     :: b != 0 -> top = t - 1; got(b)
     :: else -> /* two steps of a sweep: one block into the cache, one to the program */
        i = 1;
        do
        :: i <= BLOCKS && is_free[i] -> is_free[i] = false; top = top + 1; slot[top] = i; i++
        :: i <= BLOCKS && !is_free[i] -> i++
        :: i > BLOCKS || top - bottom == 2 -> break
        od;
        i = 0;
        t = top; b = slot[t];
        if :: b != 0 -> top = t - 1; got(b) :: else fi
     fi;
     end_use()
  fi;
  b = 0; t = 0
}
inline release() {
  select_held();
  if
  :: b != 0 ->
     held[b] = false; t = top;
     if
     :: t < limit -> slot[t + 1] = b; top = t + 1
     :: else -> begin_use(); /* the oldest goes, and this one */
        if :: bottom < top -> give_back(slot[bottom + 1]); d_step {
                i = bottom + 1;
                do :: i < top -> slot[i] = slot[i + 1]; i++ :: else -> break od;
                i = 0 } top = top - 1
           :: else
        fi;
        give_back(b); end_use()
     fi
  :: else
  fi;
  b = 0; t = 0
}
inline select_held() {
  if
  :: held[1] -> b = 1 :: held[2] -> b = 2 :: held[3] -> b = 3 :: held[4] -> b = 4
  :: else -> b = 0
  fi
}

proctype Thread() {
  byte t, b, i, n;
  do
  :: n < OPS -> n++; allocate()
  :: n < OPS -> n++; release()
  :: break /* it may sleep for ever after any operation, and before any step */
  od;
  begin_use(); /* nothing is lost: each block is in one place */
  i = 1;
  do :: i <= BLOCKS -> n = 0; t = bottom + 1;
        do :: t <= top -> if :: slot[t] == i -> n++ :: else fi; t++ :: else -> break od;
        assert(n + is_free[i] + held[i] == 1); i++
     :: else -> break
  od;
  end_use();
  ended = true
}

proctype Collector() {
  byte t, x, fence, round; bool mine;
  do
  :: round < COLLECTS ->
     round++;
     lock();
     if :: claim == NONE -> claim = WANTED :: else -> goto out fi;
#ifndef NO_BARRIER
     barrier();
#endif
     if :: in_use -> claim = NONE; goto out :: else -> claim = CLAIMED fi;
#ifndef NO_CLOSE
     limit = bottom;
#endif
     barrier();
     t = top;
#ifdef NO_MARGIN
     fence = t;
#else
     fence = (t > 0 -> t - 1 : 0);
#endif
     if :: fence > bottom -> skip :: else -> claim = EMPTIED; goto out fi;
     x = slot[fence];
#ifndef NO_FENCE
     slot[fence] = 0;
#endif
     barrier();
#ifdef NO_LOOK
     mine = true;
#else
#ifdef NO_MARGIN
     mine = (top >= fence);
#else
     mine = (top > fence);
#endif
#endif
     if
     :: mine ->
        do
        :: bottom + 1 < fence -> t = slot[bottom + 1]; slot[bottom + 1] = 0; bottom = bottom + 1; give_back(t)
        :: else -> break
        od;
        slot[fence] = 0; bottom = fence; give_back(x)
     :: else ->
#ifndef NOT_BACK
        slot[fence] = x
#endif
     fi;
     claim = EMPTIED;
out: skip;
     d_step { locked = false; t = 0; x = 0; fence = 0; mine = false }
  :: round == COLLECTS -> break
  od
}
init { atomic { is_free[1] = true; is_free[2] = true; is_free[3] = true; is_free[4] = true; run StoreBuffer(); run Thread(); run Collector() } }
