/* overflow KIND: writes outside of its kind of block, from a byte to as much as a region has of metadata, upward and
 * downward, then frees all blocks and allocates again.  Each time in a child, which must end in one of three ways: a fault
 * at the bad write itself, one line and abort, or an allocator that is intact whatever the neighbours hold now. */
#include <malloc.h>
#include <signal.h>

#include "case.h"

enum { MOST_BLOCKS = 2048, PAGE = 4096, METADATA = 0x150000 };

// What the words of an overflow point at: an allocator that trusts one of them writes there.
static uint64_t target[64];
static char* volatile write_begin;
static char* volatile write_end;

static void judge_fault(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char* address = (char*)info->si_addr;
  REQUIRE(address >= write_begin && address < write_end && "the fault is the bad write's");
  _exit(0);
}

// One byte is an 'A'; more are words that name the target.  Careful: only where there are zeros now, which is what an
// attacker does who leaves all that is checked as it is, and links what is not linked.
static void overwrite(char* begin, char* end, int downward, int careful) {
  __asm__ volatile("" : "+r"(begin), "+r"(end));  // the compiler must not see whose bytes these are
  write_begin = begin;
  write_end = end;
  if (end - begin == 1) {
    *(volatile char*)begin = 'A';
    return;
  }
  uint64_t word = (uintptr_t)&target[32];
  size_t words = (size_t)(end - begin) / sizeof word;
  for (size_t i = 0; i < words; i++) {
    char* at = downward ? end - (i + 1) * sizeof word : begin + i * sizeof word;
    static const char zeros[sizeof word];
    if (careful && memcmp(at, zeros, sizeof word) != 0) continue;
    memcpy(at, &word, sizeof word);
    __asm__ volatile("" ::: "memory");
  }
}

// Blocks of all kinds, each with its own number in its words, at its ends and in between.
static void use_the_allocator(void* (*get)(size_t), void (*put)(void*)) {
  static const size_t sizes[] = {16, 48, 100, 384, 1000, 1700, 5000, 20000, 32768, 100000, 1 << 20, 3 << 20};
  enum { PASSES = 4, EACH = 40, ALL = COUNT_OF(sizes) * EACH };
  static uint64_t* blocks[ALL];
  for (int pass = 0; pass < PASSES; pass++)
    for (size_t i = 0; i < ALL; i++) {
      size_t size = sizes[i / EACH], last = size / sizeof(uint64_t) - 1, stride = last < 511 ? 1 : 512;
      if (size > 1 << 19 && i % EACH >= 4) continue;
      if (pass % 2 == 0) REQUIRE((blocks[i] = (uint64_t*)get(size)) != NULL);
      for (size_t w = 0; w <= last; w = w < last && w + stride > last ? last : w + stride) {
        if (pass % 2 == 0) blocks[i][w] = i;
        REQUIRE(blocks[i][w] == i && "alone in its memory");
      }
      if (pass % 2 == 1) put(blocks[i]);
    }
  for (size_t i = 0; i < COUNT_OF(target); i++) REQUIRE(target[i] == i && "not written where an overflow pointed to");
}

struct reach {
  size_t bytes;
  int careful;
};
struct kind {
  size_t size, count;
  void* (*get)(size_t);
  void (*put)(void*);
  void (*prepare)(void);  // or null: when all blocks are there
};

static void get_ready(void) {
  for (size_t i = 0; i < COUNT_OF(target); i++) target[i] = i;
  struct sigaction action = {.sa_sigaction = judge_fault, .sa_flags = SA_SIGINFO};
  REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

// victim: 0 the lowest block, 1 one in the middle, 2 the highest.
static void overflow(const struct kind* kind, struct reach reach, int downward, int victim) {
  static char* blocks[MOST_BLOCKS];
  get_ready();
  alarm(20);
  for (size_t i = 0; i < kind->count; i++) {
    REQUIRE((blocks[i] = (char*)kind->get(kind->size)) != NULL);
    memset(blocks[i], 1, kind->size);
  }
  if (kind->prepare != NULL) kind->prepare();
  size_t chosen = kind->count / 2;
  for (size_t i = 0; i < kind->count && victim != 1; i++)
    if (victim == 0 ? blocks[i] < blocks[chosen] : blocks[i] > blocks[chosen]) chosen = i;
  char *start = blocks[chosen], *end = start + kind->size;
  downward ? overwrite(start - reach.bytes, start, 1, reach.careful) : overwrite(end, end + reach.bytes, 0, reach.careful);
  write_begin = write_end = NULL;
  for (size_t i = 0; i < kind->count; i++) kind->put(blocks[(chosen + 1 + i) % kind->count]);  // neighbours first
  malloc_trim(0);                                                                              // looks at all there is
  use_the_allocator(kind->get, kind->put);
  if (kind->get != malloc) use_the_allocator(malloc, free);
  _exit(0);
}

// One line, another that says more of the block, and abort, as run.py has it of all misuses.
static int is_one_message(const char* text) {
  const char *first = strchr(text, '\n'), *second = first == NULL ? NULL : strchr(first + 1, '\n');
  return strncmp(text, "hmalloc:", 8) == 0 && second == text + strlen(text) - 1 && strncmp(first + 1, "  ", 2) == 0;
}

static int ends_well(const struct kind* kind, struct reach reach, int downward, int victim) {
  int ends[2], status = 0;
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    overflow(kind, reach, downward, victim);
  }
  close(ends[1]);
  char said[800] = "";
  size_t length = 0;
  for (ssize_t n; (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;) length += (size_t)n;
  close(ends[0]);
  waitpid(child, &status, 0);
  char* emulators = strstr(said, "\nqemu: uncaught target signal");
  if (emulators != NULL) emulators[1] = '\0';
  if (status == 0 && length == 0) return 1;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_one_message(said)) return 1;
  dprintf(STDERR_FILENO, "%zu bytes, %zu%s %s of block %d: status %d, %s\n", kind->size, reach.bytes,
          reach.careful ? " with care" : "", downward ? "in front" : "behind", victim, status, said);
  return 0;
}

static void all_end_well(const struct kind* kinds, size_t count) {
  static const struct reach reaches[] = {{1, 0}, {PAGE, 0}, {MIB, 0}, {MIB, 1}, {METADATA, 0}, {METADATA, 1}};
  int failures = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t r = 0; r < COUNT_OF(reaches); r++)
      for (int downward = 0; downward < 2; downward++)
        for (int victim = 0; victim < 3; victim++) failures += !ends_well(&kinds[i], reaches[r], downward, victim);
  REQUIRE(failures == 0);
}

// Blocks of superblocks: few, and as many as fill a region, so that one is in its first slice and one in its last.
CASE(small) {
  static const struct kind kinds[] = {{16, 100, malloc, free, NULL},   {64, 1000, malloc, free, NULL},
                                      {384, 1000, malloc, free, NULL}, {5000, 100, malloc, free, NULL},
                                      {20000, 50, malloc, free, NULL}, {32768, 1000, malloc, free, NULL}};  // two regions
  all_end_well(kinds, COUNT_OF(kinds));
}

// Runs of slices, few and two regions of them.
CASE(large) {
  static const struct kind kinds[] = {
      {40000, 5, malloc, free, NULL}, {131072, 250, malloc, free, NULL}, {MIB, 20, malloc, free, NULL}};
  all_end_well(kinds, COUNT_OF(kinds));
}

enum { THREADS = 4 };
static pthread_t threads[THREADS];
static pthread_barrier_t ready, done;
static int started;

static void* have_a_heap(void* nothing) {
  free(malloc(100));
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&done);
  return nothing;
}

static void* with_a_thread(size_t size) {
  void* block = malloc(size);
  if (started == THREADS) return block;
  if (started == 0) {
    pthread_barrier_init(&ready, NULL, 2);
    pthread_barrier_init(&done, NULL, THREADS + 1);
  }
  threads[started++] = start_thread(have_a_heap, NULL);
  pthread_barrier_wait(&ready);
  return block;
}

static void end_threads(void) {
  pthread_barrier_wait(&done);
  join_threads(threads, THREADS);
}
static void* aligned(size_t size) { return aligned_alloc(8 << 20, size); }

// Blocks with an extent each, and between them the heaps of threads, mapped as they are.  The threads end before the
// overflow, for it may run over their stacks.
CASE(huge) {
  static const struct kind kinds[] = {{3 << 20, 6, malloc, free, NULL},
                                      {3 << 20, 6, with_a_thread, free, end_threads},
                                      {4 << 20, 6, malloc, free, NULL},
                                      {(3 << 20) + 5000, 6, aligned, free, NULL}};
  all_end_well(kinds, COUNT_OF(kinds));
}

// One linear overflow that runs from a block of 3 MB right to the start of the next, and a little into it; then the next
// is freed.  A header there would be all words that name the target, or have them where it has zeros now.
CASE(into_next_huge) {
  enum { SIZE = 3 << 20 };
  get_ready();
  for (int careful = 1; careful >= 0; careful--) {
    char *one = take(SIZE), *other = take(SIZE);
    char *low = one < other ? one : other, *high = one < other ? other : one;
    memset(low, 1, SIZE);
    memset(high, 1, SIZE);
    overwrite(low + SIZE, high + 80, 0, careful);
    write_begin = write_end = NULL;
    free(high);
    free(take(SIZE));
    free(take(5 << 20));
    free(low);
    use_the_allocator(malloc, free);
  }
}
CASE_MAIN()
