/* misuse NAME [N [M]]: one misuse of the malloc family; cases.py says how each allocator answers it. */
#include <malloc.h>
#include <sys/mman.h>

#include "case.h"

__attribute__((weak)) void free_sized(void* block, size_t size);
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size);

static size_t n, m; /* a size first, where there is one */
static char* others[100000];
static char global_array[256] __attribute__((aligned(16)));

static char* used(size_t size) { return (char*)memset(take(size), 1, size); }
static void take_others(void) {
  for (size_t i = 0; i < m; i++) others[i] = used(n);
}
static void free_others(size_t from, size_t to) {
  for (size_t i = from; i < to; i++) free(others[i]);
}
static void free_address(uintptr_t address) { free(hidden((void*)address)); }
static void free_again(char* block) { free(hidden(block)); }
static char* take_and_free(void) {
  char* block = used(n);
  free(block);
  return (char*)hidden(block);
}

/* ---- Double frees, by how far the second lies from the first: in time, in other frees, in threads. ---- */

CASE(df) { free(take_and_free()); }

/* What is asked for again is kept when it is free.  M: the alignment. */
CASE(df_kept) {
  char* block = NULL;
  for (int i = 0; i < 2; i++) {
    free(block);
    REQUIRE((block = (char*)hidden(aligned_alloc(m, n))) != NULL);
  }
  free(block);
  free_again(block);
}

/* M other frees lie between: the block still waits in a cache. */
CASE(df_delayed) {
  take_others();
  char* block = take_and_free();
  free_others(0, m);
  free_again(block);
}

/* Both entries are in the cache, and leave it; but for one block, the superblock would go with the first. */
CASE(df_leaves_cache) {
  take_others();
  char* block = take_and_free();
  free_others(0, m - 1);
  free_again(block);
  malloc_trim(0);
}

/* No cache holds it any more; its memory may have gone back to the system. */
CASE(df_trimmed) {
  char *block = used(n), *neighbour = used(100);
  free(block);
  malloc_trim(0);
  free_again(block);
  free(neighbour);
}

CASE(df_region_gone) {
  take_others();
  for (size_t i = m; i-- > 0;) free(others[i]);
  malloc_trim(0);
  free_again(others[m - 1]);
}

/* So many frees, and a trim, that the block has left every cache. */
CASE(df_far) {
  take_others();
  char* block = used(n);
  free_others(0, m / 2);
  free(block);
  free_others(m / 2, m);
  malloc_trim(0);
  free_again(block);
}

/* The last of M, all free: more than some cache has room for. */
CASE(df_last) {
  take_others();
  free_others(0, m);
  free_again(others[m - 1]);
}

/* Not in a row, but before the frees that make a cache give its older blocks back. */
CASE(df_flushed) {
  take_others();
  free_others(0, 2);
  free_again(others[0]);
  free_others(2, m);
}

/* Free neighbours may be one block by now. */
CASE(df_merged) {
  char *block = used(n), *neighbour = used(n);
  free(block);
  free(neighbour);
  free_again(neighbour);
}

static void* free_it(void* block) {
  free(block);
  return NULL;
}

/* By a thread that has ended and never allocated. */
CASE(df_by_ended_thread) {
  char *block = used(n), *neighbour = used(n);
  join_thread(start_thread(free_it, block));
  free(neighbour);
  free_again(block);
}
CASE(df_by_ended_thread_trimmed) {
  char* block = used(n);
  join_thread(start_thread(free_it, block));
  malloc_trim(0);
  free_again(block);
}

static pthread_barrier_t step;

static void* free_it_and_stay(void* block) {
  free(block);
  pthread_barrier_wait(&step);
  pthread_barrier_wait(&step);
  return NULL;
}

/* By a thread that lives and keeps it in its cache. */
CASE(df_by_live_thread) {
  REQUIRE(pthread_barrier_init(&step, NULL, 2) == 0);
  char* block = used(n);
  pthread_t thread = start_thread(free_it_and_stay, block);
  pthread_barrier_wait(&step);
  free_again(block);
  pthread_barrier_wait(&step);
  join_thread(thread);
}

/* Each thread frees once; the first keeps the block in its cache. */
CASE(df_then_by_thread) { join_thread(start_thread(free_it, take_and_free())); }

/* The block has a new holder: the second free is as good as his own. */
CASE(df_reused) {
  char* block = take_and_free();
  (void)hidden(used(n));
  free_again(block);
}

CASE(realloc_freed) { (void)hidden(realloc(take_and_free(), m)); }
CASE(usable_freed) { (void)hidden_size(malloc_usable_size(take_and_free())); }

/* ---- Memory that malloc never gave. ---- */

CASE(free_stack) {
  char buffer[256] __attribute__((aligned(16)));
  free(hidden(buffer + 64));
}
CASE(realloc_stack) {
  char buffer[256] __attribute__((aligned(16)));
  (void)hidden(realloc(hidden(buffer), n));
}
CASE(free_global) { free(hidden(global_array)); }
CASE(realloc_global) { (void)hidden(realloc(hidden(global_array), n)); }
CASE(usable_global) { (void)hidden_size(malloc_usable_size(hidden(global_array))); }
CASE(free_text) { free_address((uintptr_t)&free_stack & ~(uintptr_t)15); }
CASE(free_made_up) { free_address(n); }
CASE(usable_made_up) { (void)hidden_size(malloc_usable_size(hidden((void*)n))); }

/* An address of more bits than the system gives by itself, asked for by a hint; made up where the machine has none. */
CASE(free_high) {
  char* hint = (char*)((uintptr_t)1 << n);
  char* mapped = (char*)mmap(hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  free_again(mapped != MAP_FAILED && (uintptr_t)mapped >> 48 != 0 ? mapped : hint);
}

static char* map_foreign(int content) {
  char* region = (char*)mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(region != MAP_FAILED);
  if (content != 0) memset(region, content, 16 * MIB);
  return region;
}
CASE(free_mapping) { free_again(map_foreign(0) + n); }
CASE(free_filled_mapping) { free_again(map_foreign(0x41) + n); }
/* At a boundary, where an allocator that masks addresses would look for its header and find zeros. */
CASE(free_masked_mapping) { free_address((((uintptr_t)map_foreign(0) + n - 1) & ~(n - 1)) + m); }
CASE(free_unmapped) {
  char* region = map_foreign(0);
  REQUIRE(munmap(region, 16 * MIB) == 0);
  free_again(region + n);
}

/* ---- Places within blocks and beside them. ---- */

CASE(free_inside) { free_again(used(n) + m); }
CASE(free_inside_freed) {
  char* block = used(n);
  free(block);
  free_again(block + m);
}
CASE(realloc_inside) { (void)hidden(realloc(used(n) + m, 500)); }
CASE(usable_inside) { (void)hidden_size(malloc_usable_size(used(n) + m)); }
CASE(free_inside_zeros) {
  char* block = used(n);
  memset(block, 0, n);
  free_again(block + m);
}
/* M away, or half a superblock, where none has been handed out yet. */
CASE(free_unallocated) { free_address((uintptr_t)used(n) ^ m); }
CASE(free_next) {
  char* block = used(n);
  free_again(block + malloc_usable_size(block));
}
/* M bytes behind the boundary of N below a block: what manages it. */
CASE(free_header) { free_address(((uintptr_t)used(100) & ~(n - 1)) + m); }

/* Where a block was before realloc moved its pages. */
CASE(free_moved) {
  char *block = used(n), *behind = used(n);
  char *grown = (char*)realloc(block, 40 * MIB), *grown_too = (char*)realloc(behind, 80 * MIB);
  free_again(grown_too == behind ? block : behind);
  free(grown);
}
CASE(free_overwritten) {
  char* block = used(n);
  ((char*)hidden(block))[malloc_usable_size(block)] ^= 1;
  free_again(block);
}

CASE(free_sized_wrong) { free_sized(used(n), m); }
CASE(free_aligned_sized_wrong) { free_aligned_sized(hidden(aligned_alloc(64, n)), 64, m); }

CASE(free_aligned_otherwise) { free_aligned_sized(hidden(aligned_alloc(64, n)), m, n); }

/* ---- Writes outside of what was asked for, and after it was freed. ---- */

enum {
  kEven = 0xee
}; /* No canary has such a byte, and no edge of these sizes ends in it: what changes nothing is not found. */
static void write_bytes(char* from, size_t bytes, int value) {
  volatile char* at = (volatile char*)hidden(from);
  for (size_t i = 0; i < bytes; i++) at[i] = (char)value;
}
CASE(written_behind) {
  char* block = used(n);
  write_bytes(block + n, m, kEven);
  free(block);
}
/* With blocks of its own size on all that is written to: memory that never had a block has no guard. */
CASE(written_far_behind) {
  char* lowest = used(n);
  for (size_t taken = 0; taken < 6 * MIB; taken += n) {
    char* block = used(n);
    if (block < lowest) lowest = block;
  }
  write_bytes(lowest + n, m, kEven);
  free(lowest);
}
/* As of a string that is one byte too long. */
CASE(zero_behind) {
  char* block = used(n);
  write_bytes(block + n, 1, 0);
  free(block);
}
/* The higher of two, which is not the first of its kind in its memory. */
CASE(written_in_front) {
  char *one = used(n), *other = used(n), *high = one > other ? one : other;
  for (size_t i = m; i-- > 0;) write_bytes(high - m + i, 1, kEven);
  free(high);
}
CASE(realloc_overwritten) {
  char* block = used(n);
  write_bytes(block + n, 1, kEven);
  (void)hidden(realloc(block, m));
}
/* Found out when the block may serve again, or the program ends. */
CASE(written_after_free) { write_bytes(take_and_free(), 1, 'A'); }
CASE(written_after_reuse) {
  write_bytes(take_and_free() + n / 2, 8, 'A');
  for (int i = 0; i < 10000; i++) free(used(n));
}
static void* write_after_free(void* block) {
  free(block);
  write_bytes((char*)block, 1, 'A');
  for (int i = 0; i < 10000; i++) free(used(n));
  return NULL;
}
CASE(written_after_free_by_thread) { join_thread(start_thread(write_after_free, used(n))); }

int main(int count, char** arguments) {
  n = count > 2 ? strtoull(arguments[2], NULL, 0) : 0;
  m = count > 3 ? strtoull(arguments[3], NULL, 0) : 0;
  return run_named_case(count, arguments);
}
