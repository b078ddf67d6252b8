/* What runs out, or is refused: address space, commit charge, mappings, system calls; and huge pages on and off. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "case.h"
#include "links.h"

static void take_and_give_back(size_t size, size_t count) {
  size_t taken;
  Link* list = take_until_none(size, count, &taken);
  REQUIRE(taken == count);
  give_back(list, size, taken);
}

static void require_refused(void* block) { REQUIRE(block == NULL && errno == ENOMEM); }

static void limit(int resource, size_t bytes) {
  struct rlimit value = {bytes, bytes};
  REQUIRE(setrlimit(resource, &value) == 0);
}

/* ---- Address space. ---- */

/* To exhaustion, all back, then half as much again: for each size, with what the others left behind. */
CASE(oom_rlimit) {
  const size_t sizes[] = {64, 1000, 20000, 300000, 5 * MIB};
  free(malloc(1));
  limit(RLIMIT_AS, mapped_bytes() + 96 * MIB);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t first, most = 8 * KIB * MIB / sizes[i];
    Link* list = take_until_none(sizes[i], most, &first);
    REQUIRE(first > 0 && first < most);
    errno = 0;
    require_refused(calloc(sizes[i], 64 * KIB));
    give_back(list, sizes[i], first);
    take_and_give_back(sizes[i], first / 2);
  }
}

/* Almost all that there is, whatever size had it before.  At the least a fifth goes to headers, to the rounding of sizes
 * (100 KB may take 128), and to alignment; of blocks that take mappings of their own a tenth. */
CASE(oom_phases) {
  const size_t sizes[] = {64, 5000, 100 * KIB, 3 * MIB};
  free(malloc(1));
  limit(RLIMIT_AS, mapped_bytes() + 96 * MIB);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      size_t taken;
      Link* list = take_until_none(sizes[i], SIZE_MAX, &taken);
      REQUIRE_BELOW((i < 3 ? 66 : 86) * MIB, taken * sizes[i]);
      give_back(list, sizes[i], taken);
    }
  }
}

/* The threads exist before the limit does: only their first malloc meets it. */
static pthread_barrier_t limit_set;

static void* first_malloc_meets_limit(void* unused) {
  pthread_barrier_wait(&limit_set);
  for (size_t size = 1; size < 2 * MIB; size = size * 3 / 2 + 1) {
    errno = 0;
    void* block = malloc(size);
    if (block == NULL) {
      REQUIRE(errno == ENOMEM);
      continue;
    }
    mark(block, size, 11);
    free_marked(block, size, 11);
  }
  return unused;
}

CASE(oom_new_thread) {
  enum { kThreads = 8 };
  pthread_t threads[kThreads];
  REQUIRE(pthread_barrier_init(&limit_set, NULL, kThreads + 1) == 0);
  start_threads(threads, kThreads, first_malloc_meets_limit);
  limit(RLIMIT_AS, mapped_bytes());
  pthread_barrier_wait(&limit_set);
  join_threads(threads, kThreads);
}

CASE(oom_realloc) {
  const size_t sizes[] = {40, 3000, 60000, MIB, 20 * MIB};
  void* blocks[COUNT_OF(sizes)];
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) blocks[i] = take_marked(sizes[i], i);
  limit(RLIMIT_AS, mapped_bytes() + 96 * MIB);
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    errno = 0;
    require_refused(realloc(blocks[i], hidden_size(512 * MIB)));
    REQUIRE(is_marked(blocks[i], sizes[i], i));
    void* smaller = realloc(blocks[i], sizes[i] / 2 + 1);
    REQUIRE(smaller != NULL && ((unsigned char*)smaller)[0] == i + 1);
    free(smaller);
  }
}

/* ---- System calls. ---- */

static void deny(const int* calls, size_t count) {
  struct sock_filter program[16];
  size_t length = 0;
  program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < count; i++) {
    program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM);
  }
  program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = {(unsigned short)length, program};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* RLIMIT_DATA stops brk, which the filter cannot: a refused brk returns the old break, not an error. */
CASE(inject_mmap_fail) {
  const int calls[] = {SYS_mmap, SYS_mremap};
  take_and_give_back(2000, 8 * KIB);
  limit(RLIMIT_DATA, 1 * MIB);
  deny(calls, COUNT_OF(calls));
  size_t taken;
  Link* list = take_until_none(1000, 8 * MIB, &taken);
  REQUIRE(taken < 8 * MIB);
  errno = 0;
  require_refused(malloc(hidden_size(400 * MIB)));
  errno = 0;
  if (list != NULL) require_refused(realloc(hidden(list), hidden_size(400 * MIB)));
  give_back(list, 1000, taken);
  take_and_give_back(1000, taken / 2);
}

/* As at vm.max_map_count: nothing can be unmapped, advised or protected, yet freed memory must be used again. */
CASE(inject_munmap_fail) {
  const int calls[] = {SYS_munmap, SYS_madvise, SYS_mprotect};
  const size_t sizes[] = {48, 3000, 40000, 260000, 1500000, 6 * MIB};
  take_and_give_back(2000, 500);
  deny(calls, COUNT_OF(calls));
  size_t after_warm_up = 0;
  for (int round = 0; round < 24; round++) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) take_and_give_back(sizes[i], 24 * MIB / sizes[i]);
    void* block = realloc(take(9 * MIB), 20 * MIB);
    REQUIRE(block != NULL);
    errno = 4242;
    free(block);
    REQUIRE(errno == 4242);
    malloc_trim(0);
    if (round == 3) after_warm_up = mapped_bytes();
  }
  REQUIRE_BELOW(growth(mapped_bytes(), after_warm_up), 128 * MIB);
}

/* Every second page of a reservation with other rights: two mappings a page. */
static void use_up_mappings(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 300000;
  char* region = (char*)mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(region != MAP_FAILED);
  size_t i = 1;
  while (i < pages && mprotect(region + i * page, page, PROT_READ) == 0) i += 2;
  REQUIRE(i >= pages || errno == ENOMEM);
}

CASE(map_count) {
  for (size_t size = 16; size <= 32768; size *= 2) take_and_give_back(size, 4 * MIB / size);
  use_up_mappings();
  for (size_t size = 16; size <= 32768; size += size / 4) take_and_give_back(size, 2 * MIB / size);
  free(malloc(hidden_size(64 * MIB)));
}

/* ---- Settings of the machine. ---- */

CASE(thp_as_set) {
  size_t before = resident_bytes(), taken[8];
  Link* lists[8];
  for (size_t i = 0; i < COUNT_OF(lists); i++) lists[i] = take_until_none(16u << i, 8000 >> i, &taken[i]);
  REQUIRE_BELOW(growth(resident_bytes(), before), 24 * MIB);
  for (size_t i = 0; i < COUNT_OF(lists); i++) give_back(lists[i], 16u << i, taken[i]);
}

CASE(no_thp) {
  REQUIRE(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
  thp_as_set();
}

/* What vm.overcommit_memory=2 would charge: every writable private mapping, reserved with MAP_NORESERVE or not. */
CASE(overcommit_charge) {
  free(malloc(100));
  FILE* maps = fopen("/proc/self/smaps", "r");
  REQUIRE(maps != NULL);
  char line[512], rights[5];
  size_t charged = 0, begin, end, size = 0;
  int writable = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%zx-%zx %4s", &begin, &end, rights) == 3) {
      size = end - begin;
      writable = rights[1] == 'w' && rights[3] == 'p';
    } else if (strncmp(line, "VmFlags:", 8) == 0 && (writable || strstr(line, " ac") != NULL)) {
      charged += size;
    }
  }
  fclose(maps);
  REQUIRE_BELOW(charged, 128 * MIB);
}

/* RLIMIT_DATA counts writable private mappings as strict accounting does, so small reservations must do. */
CASE(overcommit_limit) {
  free(malloc(100));
  limit(RLIMIT_DATA, 160 * MIB);
  take_and_give_back(3000, 10000);
}

CASE_MAIN()
