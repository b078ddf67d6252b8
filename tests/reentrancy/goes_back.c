/* 100 MB of blocks of each kind, freed in each order by whom it may be: the memory is back with the system when the last
 * free returns, without another call and without waiting.  Only what a program has lately asked for again needs more calls.
 * A process for each row. */
#include "case.h"

static const size_t kBytes = 100 * MIB;
enum { kSmallest = 200, kMax = 100 * 1024 * 1024 / kSmallest };
static void* blocks[kMax];

static const struct Kind {
  const char* name;
  size_t size;
  void* (*allocate)(size_t);
  void (*release)(void*);
} kinds[] = {{"small", 200, malloc, free},
             {"page", 4096, malloc, free},
             {"large", 100 * KIB, malloc, free},
             {"huge", 5 * MIB, malloc, free}};
static const char* const orders[] = {"first in, first out", "last in, first out", "random"};
static const char* const freers[] = {"by its thread", "by another", "after its thread ended"};
enum { kFirst, kLast, kRandom };
enum { kSame, kOther, kEnded };
enum { kDecay = 25 }; /* milliseconds: HMALLOC_DECAY_MS of the test */

typedef struct {
  const struct Kind* kind;
  size_t count;
  size_t peak;
} Work;

static void* fill(void* argument) {
  Work* work = argument;
  for (size_t i = 0; i < work->count; i++) {
    REQUIRE((blocks[i] = work->kind->allocate(work->kind->size)) != NULL);
    memset(blocks[i], 1, work->kind->size);
  }
  work->peak = resident_bytes();
  return NULL;
}
static void* release(void* argument) {
  Work* work = argument;
  for (size_t i = 0; i < work->count; i++) work->kind->release(blocks[i]);
  return NULL;
}

static void put_in_order(size_t count, int order) {
  uint64_t state = 88172645463325252u;
  for (size_t i = count - 1; order != kFirst && i >= (order == kLast ? (count + 1) / 2 : 1); i--) {
    size_t with = order == kLast ? count - 1 - i : ((size_t)random_next(&state) << 8 ^ random_next(&state)) % (i + 1);
    void* other = blocks[with];
    blocks[with] = blocks[i];
    blocks[i] = other;
  }
}

/* What is left, in bytes above what is allowed; 0: nothing. */
static size_t row(const struct Kind* kind, int order, int freer) {
  memset(blocks, 1, sizeof blocks);
  free(malloc(100));
  Work work = {kind, kBytes / kind->size, 0};
  size_t start = resident_bytes();
  if (freer == kEnded) join_thread(start_thread(fill, &work));
  else fill(&work);
  put_in_order(work.count, order);
  if (freer == kOther) join_thread(start_thread(release, &work));
  else release(&work);
  size_t left = resident_bytes(), most = start + start / 4 + 3 * MIB;
  printf("%-6s %-20s %-23s %6.1f MB at the start, %6.1f at most, %6.1f left%s\n", kind->name, orders[order], freers[freer],
         (double)start / MIB, (double)work.peak / MIB, (double)left / MIB, left > most ? "  too much" : "");
  fflush(stdout);
  REQUIRE(work.peak > start + kBytes * 9 / 10);
  return left > most ? left - most : 0;
}

/* More than the caches of a thread hold: what they serve tells nobody the time. */
static void do_a_little(void) {
  static void* few[3000];
  for (size_t i = 0; i < COUNT_OF(few); i++) few[i] = take(64);
  free_all(few, COUNT_OF(few));
}

/* A part of it, three times over.  With pauses of more than the decay time it is back after each; without, a program that
 * goes on doing a little has it back in time. */
static size_t phases(const struct Kind* kind, int pausing, int parts) {
  memset(blocks, 1, sizeof blocks);
  free(malloc(100));
  Work work = {kind, kBytes / (size_t)parts / kind->size, 0};
  size_t start = resident_bytes(), most = start + start / 4 + 3 * MIB, worst = 0;
  for (int phase = 0; phase < 3; phase++) {
    fill(&work);
    if (pausing) sleep_ms(2 * kDecay);
    release(&work);
    if (!pausing) continue;
    worst += growth(resident_bytes(), most);
    sleep_ms(2 * kDecay);
  }
  for (double end = seconds_now() + 2; !pausing && resident_bytes() > most && seconds_now() < end; sleep_ms(kDecay / 2))
    do_a_little();
  worst += growth(resident_bytes(), most);
  printf("%-6s three times, %-31s %6.1f MB at the start, %6.1f at most, %6.1f left%s\n", kind->name,
         pausing ? "with pauses" : "then a little now and then", (double)start / MIB, (double)work.peak / MIB,
         (double)resident_bytes() / MIB, worst > 0 ? "  too much" : "");
  fflush(stdout);
  return worst;
}

static int ends_well(size_t (*what)(const struct Kind*, int, int), const struct Kind* kind, int a, int b) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(what(kind, a, b) == 0 ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
  int bad = 0;
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    for (int order = kFirst; order <= kRandom; order++)
      for (int freer = kSame; freer <= kEnded; freer++) bad += !ends_well(row, &kinds[k], order, freer);
    for (int pausing = 0; pausing <= 1; pausing++) bad += !ends_well(phases, &kinds[k], pausing, 3);
  }
  return bad != 0;
}
