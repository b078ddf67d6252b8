/* Under HMALLOC_LIMIT, of CONFORMANCE_LIMIT bytes. */
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>

#include "case.h"
#include "links.h"

static size_t limit_bytes(void) { return strtoull(getenv("CONFORMANCE_LIMIT"), NULL, 10); }

static size_t resident(void) {
  char text[128] = "";
  int file = open("/proc/self/statm", O_RDONLY);
  REQUIRE(file >= 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  return strtoull(strchr(text, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Beyond the limit there is metadata, a sixteenth at most, and what is not the allocator's. */
static void require_within_limit(size_t before) { REQUIRE_BELOW(resident() - before, limit_bytes() / 16 * 17 + 2 * MIB); }

static void take_all_and_give_it_back(size_t before) {
  const size_t sizes[] = {64, 5000, 100 * KIB, 3 * MIB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t taken;
    Link* list = take_until_none(sizes[i], SIZE_MAX, &taken);
    require_within_limit(before);
    REQUIRE_BELOW(taken * sizes[i], limit_bytes() + 1);
    REQUIRE_BELOW(limit_bytes() / 100 * (i == 2 ? 70 : 88), taken * sizes[i]);
    give_back(list, sizes[i], taken);
  }
}

CASE(refused_at_limit) {
  size_t before = resident();
  for (int round = 0; round < 2; round++) take_all_and_give_it_back(before);
}

/* The last bytes are for small blocks. */
CASE(small_after_large) {
  size_t taken, few;
  Link* large = take_until_none(MIB + 1, SIZE_MAX, &taken);
  Link* medium = take_until_none(20000, SIZE_MAX, &few);
  for (size_t size = 16; size <= 2048; size *= 2) {
    size_t count;
    Link* small = take_until_none(size, 64 * KIB / size, &count);
    REQUIRE(count == 64 * KIB / size);
    give_back(small, size, count);
  }
  give_back(medium, 20000, few);
  give_back(large, MIB + 1, taken);
}

static atomic_bool over;

static void* churn(void* unused) {
  uint64_t random = 1;
  while (!over) {
    void* blocks[100];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      blocks[i] = malloc(random_next(&random) % 200 + 1);
      REQUIRE(blocks[i] != NULL);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
  }
  return unused;
}

CASE(others_continue) {
  enum { kThreads = 3 };
  pthread_t threads[kThreads];
  start_threads(threads, kThreads, churn);
  usleep(20000);
  size_t before = resident();
  for (int round = 0; round < 20; round++) {
    size_t taken;
    Link* list = take_until_none(300 * KIB, SIZE_MAX, &taken);
    require_within_limit(before);
    give_back(list, 300 * KIB, taken);
  }
  over = true;
  join_threads(threads, kThreads);
}

CASE(child_has_it_too) {
  size_t taken, before = resident();
  Link* list = take_until_none(MIB + 1, limit_bytes() / (2 * MIB), &taken);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    give_back(list, MIB + 1, taken);
    take_all_and_give_it_back(before);
    _exit(0);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  give_back(list, MIB + 1, taken);
}

static bool told(int fd) {
  struct pollfd each = {fd, POLLIN, 0};
  uint64_t count;
  return poll(&each, 1, 0) == 1 && read(fd, &count, sizeof count) == sizeof count;
}

CASE(pressure_is_told) {
  int (*pressure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "hm_pressure");
  void (*notify)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "hm_pressure_notify");
  REQUIRE(pressure != NULL && notify != NULL);
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  notify(fd);
  size_t half, most;
  Link* list = take_until_none(100 * KIB, limit_bytes() / (200 * KIB), &half);
  REQUIRE(pressure() == 0 && !told(fd));
  Link* rest = take_until_none(100 * KIB, SIZE_MAX, &most);
  REQUIRE(pressure() == 2 && told(fd) && !told(fd));
  give_back(rest, 100 * KIB, most);
  REQUIRE(pressure() == 0);
  rest = take_until_none(100 * KIB, most - 1, &most);
  REQUIRE(pressure() == 1 && told(fd));
  notify(-1);
  give_back(rest, 100 * KIB, most);
  rest = take_until_none(100 * KIB, SIZE_MAX, &most);
  REQUIRE(!told(fd));
  give_back(rest, 100 * KIB, most);
  give_back(list, 100 * KIB, half);
}

CASE_MAIN()
