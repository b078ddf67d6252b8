/* How much memory the same work needs the second time: freed blocks must serve whoever comes next. */
#include <stdatomic.h>

#include "case.h"

static void* take_used(size_t size) { return memset(take(size), 1, size); }

enum { kDrained = 200000 };
static void* drained[kDrained];
static pthread_barrier_t filled;
static pthread_barrier_t emptied;

static void* free_each_round(void* rounds) {
  for (uintptr_t round = 0; round < (uintptr_t)rounds; round++) {
    pthread_barrier_wait(&filled);
    free_all(drained, kDrained);
    pthread_barrier_wait(&emptied);
  }
  return NULL;
}

CASE(remote_drain_reuse) {
  enum { kRounds = 10 };
  REQUIRE(pthread_barrier_init(&filled, NULL, 2) == 0 && pthread_barrier_init(&emptied, NULL, 2) == 0);
  pthread_t thread = start_thread(free_each_round, (void*)(uintptr_t)kRounds);
  size_t first = 0, last = 0;
  for (int round = 0; round < kRounds; round++) {
    for (size_t i = 0; i < kDrained; i++) drained[i] = take_used(500);
    last = resident_bytes();
    if (round == 0) first = last;
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&emptied);
  }
  join_thread(thread);
  REQUIRE_BELOW(last, first * 5 / 4);
}

static void* peak_of_30_mib(void* size_argument) {
  size_t size = (size_t)(uintptr_t)size_argument;
  size_t count = 30 * MIB / size;
  void** blocks = (void**)take_used(count * sizeof(void*));
  for (size_t i = 0; i < count; i++) blocks[i] = take_used(size);
  free_all(blocks, count);
  free(blocks);
  return NULL;
}

CASE(phase_shift) {
  size_t before = resident_bytes(), most = 0;
  for (uintptr_t i = 0; i < 12; i++) {
    join_thread(start_thread(peak_of_30_mib, (void*)((uintptr_t)64 << i % 6)));
    size_t now = resident_bytes();
    most = now > most ? now : most;
  }
  REQUIRE_BELOW(growth(most, before), 2 * 34 * MIB);
}

enum { kPinned = 1000000, kPinEvery = 10000, kPinSize = 100 };
static void* pinned[kPinned];

static void pin_and_refill(size_t refill_size, double most) {
  size_t before = resident_bytes();
  for (size_t i = 0; i < kPinned; i++) pinned[i] = take_used(kPinSize);
  size_t first = growth(resident_bytes(), before);
  for (size_t i = 0; i < kPinned; i++)
    if (i % kPinEvery != 0) free(pinned[i]);
  size_t left = (size_t)kPinned / kPinEvery * (kPinEvery - 1) * kPinSize / refill_size;
  for (size_t i = 0; left > 0; i++) {
    if (i % kPinEvery == 0) continue;
    pinned[i] = take_used(refill_size);
    left--;
  }
  REQUIRE_BELOW(growth(resident_bytes(), before), most * (double)first);
}

CASE(sparse_pin) { pin_and_refill(kPinSize, 1.25); }
CASE(sparse_pin_resize) { pin_and_refill(200, 2.25); }

static void* free_all_given(void* blocks) {
  for (void** block = (void**)blocks; *block != NULL; block++) free(*block);
  return NULL;
}

/* One block of each batch lives for ever, each time another one: the rest must not be lost with it. */
CASE(index_starve) {
  enum { kBatch = 2000, kRounds = 600 };
  static void* blocks[kBatch + 1];
  static void* immortal[kRounds];
  size_t before = resident_bytes();
  for (size_t round = 0; round < kRounds; round++) {
    for (size_t i = 0; i < kBatch; i++) blocks[i] = take_used(64);
    size_t keep = round * 37 % kBatch;
    immortal[round] = blocks[keep];
    blocks[keep] = blocks[kBatch - 1];
    blocks[kBatch - 1] = NULL;
    if (round % 8 == 7) join_thread(start_thread(free_all_given, blocks));
    else free_all_given(blocks);
  }
  REQUIRE_BELOW(growth(resident_bytes(), before), 8 * MIB);
  free_all(immortal, kRounds);
}

enum { kLive = 20000, kWorkers = 4, kReplacements = 600000 };
static _Atomic(void*) live[kLive];

static size_t* take_random(uint64_t* state) {
  size_t size = 16 + random_next(state) % 1000;
  size_t* block = (size_t*)take_used(size);
  *block = size;
  return block;
}

static void* replace_randomly(void* seed) {
  uint64_t state = ((uintptr_t)seed + 1) * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < kReplacements; i++) {
    size_t* block = take_random(&state);
    free(atomic_exchange(&live[random_next(&state) % kLive], block));
  }
  return NULL;
}

/* By its page tables. Before Linux 6.2, what statm says lacks what a thread's last 63 faults have brought, of 16 pages each
 * where code is mapped: 1.2 MB of a program that has only just been loaded. */
static size_t exactly_resident_bytes(void) {
  char text[400] = {0};
  int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
  close(fd);
  const char* line = strstr(text, "\nRss:");
  REQUIRE(line != NULL);
  return strtoul(line + strlen("\nRss:"), NULL, 10) * KIB;
}

CASE(larson_random) {
  uint64_t state = 42;
  size_t before = exactly_resident_bytes(), in_use = 0;
  for (size_t i = 0; i < kLive; i++) atomic_store(&live[i], take_random(&state));
  run_threads(kWorkers, replace_randomly);
  for (size_t i = 0; i < kLive; i++) in_use += *(size_t*)atomic_load(&live[i]);
  REQUIRE_BELOW((double)growth(exactly_resident_bytes(), before) / (double)in_use, 1.5);
}

CASE_MAIN()
