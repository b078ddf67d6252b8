/* The life of a block (docs/design.md): one byte, written by whoever holds the block.  Thread 0 owns the superblock;
 * any thread frees.  -DCHECKED: the checked library, which tells CACHED from TAKEN.
 * What the program does wrong, and what the default library (it probes for FREE, and at the block freed last) or both
 * are documented to miss:
 * -DDOUBLE_FREE    frees once more what it has freed, before it is handed out again
 * -DREUSED         frees once more what has been handed out again meanwhile
 * -DSIMULTANEOUS   frees a block by two threads at the same instant
 * Faults of the allocator:
 * -DNO_CHECK       free does not look at the byte
 * -DFREE_IN_CACHE  the byte says FREE while the block is in a cache
 * -DTOUCH_AFTER    a thread reads the superblock once more after it has stored FREE
 */
#define ROOM 2 /* of a block cache */
mtype = { FREE, TAKEN, CACHED };
mtype state[2] = FREE;
byte cache[4], top[2];
bool live[2];       /* handed out, and not freed */
byte freed[2];      /* by the program: 1 being freed, 2 freed; 0 once it is handed out again */
bool caught, gone;  /* the program was ended; the superblock went back to its chunk */
#ifdef CHECKED
#define IN_CACHE CACHED
#else
#define IN_CACHE TAKEN
#endif
#if defined(DOUBLE_FREE)
#define WRONG(n) freed[n] == 2
#elif defined(SIMULTANEOUS)
#define WRONG(n) freed[n] == 1
#elif defined(REUSED)
#define WRONG(n) live[n]
#else
#define WRONG(n) false
#endif

inline push() { d_step { cache[t * ROOM + top[t]] = b; top[t]++ } }
inline pop() { d_step { top[t]--; b = cache[t * ROOM + top[t]] } }
inline give_back() {
  state[b] = FREE;
#ifdef TOUCH_AFTER
  assert(!gone)
#endif
}

proctype Thread(bit t) {
  byte b; mtype s;
  do
  :: caught || gone -> break
  :: else ->
end: if
  :: top[t] > 0 -> pop(); /* malloc, from the cache */
     d_step { state[b] = TAKEN; assert(!live[b]); live[b] = true; freed[b] = 0 }
  :: top[t] > 0 -> pop(); give_back() /* flush */
  :: t == 0 && top[t] < ROOM -> /* the owner's sweep takes a block */
     if :: b = 0 :: b = 1 fi;
     if :: state[b] == FREE -> state[b] = IN_CACHE; push() :: else fi
  :: t == 0 -> /* every state seen FREE: the superblock goes back */
     if :: state[0] == FREE -> if :: state[1] == FREE -> gone = true :: else fi :: else fi
  :: d_step { live[0] -> live[0] = false; freed[0] = 1; b = 0; s = state[0] } goto read
  :: d_step { live[1] -> live[1] = false; freed[1] = 1; b = 1; s = state[1] } goto read
  :: d_step { WRONG(0) -> b = 0; s = state[0] } goto read
  :: d_step { WRONG(1) -> b = 1; s = state[1] }
read: /* free has read the byte */
#ifndef NO_CHECK
     if :: s != TAKEN || (top[t] > 0 && cache[t * ROOM + top[t] - 1] == b) -> caught = true; break :: else fi;
#endif
     assert(!gone); /* class and owner are read */
     if
#ifdef FREE_IN_CACHE
     :: top[t] < ROOM -> state[b] = FREE; push()
#else
     :: top[t] < ROOM -> state[b] = IN_CACHE; push()
#endif
     :: else -> give_back()
     fi;
     d_step { if :: freed[b] == 1 -> freed[b] = 2 :: else fi }
     fi
  od
}
init { atomic { run Thread(0); run Thread(1) } }
