/* Writes outside a block: the neighbour suffers, which is the program's own memory, or the write faults at a guard, but
 * never the allocator: everything it does afterwards must be right. */
#include <malloc.h>
#include <signal.h>

#include "case.h"

static char* volatile access_begin;
static char* volatile access_end;

static void judge_fault(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char* address = (char*)info->si_addr;
  REQUIRE(address >= access_begin && address < access_end && "the fault is the bad access's");
  _exit(0);
}

static void scribble(char* begin, char* end) {
  struct sigaction action = {.sa_sigaction = judge_fault, .sa_flags = SA_SIGINFO};
  REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
  access_begin = begin;
  access_end = end;
  for (char* at = (char*)hidden(begin); at < end; at++) *(volatile char*)at = 0x55;
}

static void require_sane_heap(void) {
  enum { kBlocks = 20000 };
  static void* blocks[kBlocks];
  for (int round = 0; round < 3; round++) {
    for (unsigned i = 0; i < kBlocks; i++) blocks[i] = take_marked(16 + i * 7 % 600, i);
    for (unsigned i = 0; i < kBlocks; i++) free_marked(blocks[i], 16 + i * 7 % 600, i);
  }
}

enum { kNeighbours = 64 };
static void* neighbours[kNeighbours];

static char* one_of_many(size_t size) {
  for (size_t i = 0; i < kNeighbours; i++) neighbours[i] = take(size);
  return (char*)neighbours[kNeighbours / 2];
}
static void free_neighbours(void) {
  free_all(neighbours, kNeighbours);
  require_sane_heap();
}

static void write_behind(size_t size, size_t count) {
  char* block = one_of_many(size);
  scribble(block + size, block + malloc_usable_size(block) + count);
  free_neighbours();
}
static void write_before(size_t size, size_t count) {
  char* block = one_of_many(size);
  scribble(block - count, block);
  free_neighbours();
}
static void write_freed(size_t size) {
  char* block = one_of_many(size);
  neighbours[kNeighbours / 2] = NULL;
  free(block);
  scribble(block, (char*)hidden(block) + (size < 64 ? size : 64));
  require_sane_heap();
  free_neighbours();
}

CASE(ovf1_24) { write_behind(24, 1); }
CASE(ovf8_56) { write_behind(56, 8); }
CASE(ovf8_400) { write_behind(400, 8); }
CASE(ovf64_120) { write_behind(120, 64); }
CASE(ovf_large) { write_behind(MIB, 4096); }
CASE(undf8_56) { write_before(56, 8); }
CASE(undf8_large) { write_before(MIB, 8); }
CASE(uaf_write) { write_freed(100); }
CASE(uaf_large) { write_freed(MIB); }

CASE_MAIN()
