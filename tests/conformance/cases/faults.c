/* The kernel refuses: system calls denied by a seccomp filter, and the limit on the number of mappings reached. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "exhaust.h"

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

static void hold_and_free(size_t bytes) {
  enum { kPiece = 2000 };
  size_t taken;
  Link* list = take_until_none(kPiece, bytes / kPiece, &taken);
  give_back_all(list, kPiece, taken);
}

/* RLIMIT_DATA stops brk, which the filter cannot: a refused brk returns the old break, not an error. */
CASE(inject_mmap_fail) {
  const int calls[] = {SYS_mmap, SYS_mremap};
  hold_and_free(16 * MIB);
  limit(RLIMIT_DATA, 1 * MIB);
  deny(calls, COUNT_OF(calls));
  size_t taken;
  Link* list = take_until_none(1000, 8 * MIB, &taken);
  REQUIRE(taken < 8 * MIB);
  void* large = NULL;
  errno = 0;
  REQUIRE(malloc(hidden_size(400 * MIB)) == NULL && errno == ENOMEM);
  void* kept = list == NULL ? NULL : hidden(list);
  errno = 0;
  if (kept != NULL) REQUIRE((large = realloc(kept, hidden_size(400 * MIB))) == NULL && errno == ENOMEM);
  give_back_all(list, 1000, taken);
  size_t again;
  list = take_until_none(1000, taken / 2, &again);
  REQUIRE(again == taken / 2);
  give_back_all(list, 1000, again);
}

/* As at vm.max_map_count: nothing can be unmapped, advised or protected, yet freed memory must be used again. */
CASE(inject_munmap_fail) {
  const int calls[] = {SYS_munmap, SYS_madvise, SYS_mprotect};
  const size_t sizes[] = {48, 3000, 40000, 260000, 1500000, 6 * MIB};
  hold_and_free(MIB);
  deny(calls, COUNT_OF(calls));
  size_t after_warm_up = 0;
  for (int round = 0; round < 24; round++) {
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
      size_t taken;
      Link* list = take_until_none(sizes[i], 24 * MIB / sizes[i], &taken);
      REQUIRE(taken == 24 * MIB / sizes[i]);
      give_back_all(list, sizes[i], taken);
    }
    errno = 4242;
    void* block = take(9 * MIB);
    block = realloc(block, 20 * MIB);
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
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t pages = 300000;
  char* region = (char*)mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(region != MAP_FAILED);
  for (size_t i = 1; i < pages; i += 2) {
    if (mprotect(region + i * page, page, PROT_READ) != 0) {
      REQUIRE(errno == ENOMEM);
      return;
    }
  }
}

CASE(map_count) {
  for (size_t size = 16; size <= 32768; size *= 2) {
    size_t taken;
    Link* list = take_until_none(size, 4 * MIB / size, &taken);
    give_back_all(list, size, taken);
  }
  use_up_mappings();
  for (size_t size = 16; size <= 32768; size += size / 4) {
    size_t taken;
    Link* list = take_until_none(size, 2 * MIB / size, &taken);
    REQUIRE(taken == 2 * MIB / size);
    give_back_all(list, size, taken);
  }
  void* large = malloc(hidden_size(64 * MIB));
  free(large);
}

CASE_MAIN()
