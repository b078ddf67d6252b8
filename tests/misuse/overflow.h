// What the programs overflow_*.c share: each writes outside of its kind of block, from a byte to as much as a region has
// of metadata, upward and downward, then frees all blocks and allocates again.  Each time in a child, which must end in one of
// three ways: a fault at the bad write itself, one line and abort, or an allocator that is intact whatever the neighbours
// hold now.
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BLOCKS = 2048, PAGE = 4096, MEGABYTE = 1 << 20, METADATA = 0x150000, LOCAL_METADATA = 0x2f000 };

// What the words of an overflow point at: an allocator that trusts one of them writes there.
static uint64_t target[64];
static char* volatile write_begin;
static char* volatile write_end;

static void fail(const char* what) {
  if (write(STDERR_FILENO, what, strlen(what)) < 0) _exit(2);
  _exit(1);
}

static void judge_fault(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char* address = (char*)info->si_addr;
  if (address >= write_begin && address < write_end) _exit(0);
  fail("a fault that is not the bad write's\n");
}

// One byte is an 'A'; more are words that name the target.  Careful: only where there are zeros now, which is what an
// attacker does who leaves all that is checked as it is, and links what is not linked.
static inline void overwrite(char* begin, char* end, int downward, int careful) {
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

static void* checked(void* block) {
  if (block == NULL) fail("no memory\n");
  return block;
}

// Blocks of all kinds, each with its own number in its words, at its ends and in between.
static void use_the_allocator(void* (*get)(size_t), void (*put)(void*)) {
  static const size_t sizes[] = {16, 48, 100, 384, 1000, 1700, 5000, 20000, 32768, 100000, 1 << 20, 3 << 20};
  enum { ROUNDS = 2, EACH = 40, ALL = sizeof sizes / sizeof *sizes * EACH };
  static uint64_t* blocks[ALL];
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < ALL; i++) {
      size_t size = sizes[i / EACH], words = size / sizeof(uint64_t), stride = words < 512 ? 1 : 512;
      if (size > 1 << 19 && i % EACH >= 4) continue;
      blocks[i] = (uint64_t*)checked(get(size));
      for (size_t w = 0; w < words; w += stride) blocks[i][w] = i;
      blocks[i][words - 1] = i;
    }
    for (size_t i = 0; i < ALL; i++) {
      size_t size = sizes[i / EACH], words = size / sizeof(uint64_t), stride = words < 512 ? 1 : 512;
      if (blocks[i] == NULL) continue;
      for (size_t w = 0; w < words; w += stride)
        if (blocks[i][w] != i) fail("two blocks share memory\n");
      if (blocks[i][words - 1] != i) fail("two blocks share memory\n");
      put(blocks[i]);
      blocks[i] = NULL;
    }
  }
  for (size_t i = 0; i < sizeof target / sizeof *target; i++)
    if (target[i] != i) fail("the allocator wrote where an overflow told it to\n");
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

// victim: 0 the lowest block, 1 one in the middle, 2 the highest.
static inline void overflow(const struct kind* kind, struct reach reach, int downward, int victim) {
  static char* blocks[MOST_BLOCKS];
  for (size_t i = 0; i < sizeof target / sizeof *target; i++) target[i] = i;
  struct sigaction action = {.sa_sigaction = judge_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGBUS, &action, NULL) != 0) fail("no handler\n");
  alarm(20);
  for (size_t i = 0; i < kind->count; i++) memset(blocks[i] = (char*)checked(kind->get(kind->size)), 1, kind->size);
  if (kind->prepare != NULL) kind->prepare();
  size_t chosen = kind->count / 2;
  for (size_t i = 0; i < kind->count && victim != 1; i++)
    if (victim == 0 ? blocks[i] < blocks[chosen] : blocks[i] > blocks[chosen]) chosen = i;
  char *start = blocks[chosen], *end = start + kind->size;
  downward ? overwrite(start - reach.bytes, start, 1, reach.careful) : overwrite(end, end + reach.bytes, 0, reach.careful);
  write_begin = write_end = NULL;
  for (size_t i = 0; i < kind->count; i++) kind->put(blocks[(chosen + 1 + i) % kind->count]);  // neighbours first
  malloc_trim(0);  // looks at all there is
  use_the_allocator(kind->get, kind->put);
  if (kind->get != malloc) use_the_allocator(malloc, free);
  _exit(0);
}

// One line and abort, as run.py has it of all misuses.
static inline int is_one_message(const char* text, size_t length) {
  return length > 8 && memcmp(text, "hmalloc:", 8) == 0 && memchr(text, '\n', length) == text + length - 1;
}

static inline int ends_well(const struct kind* kind, struct reach reach, int downward, int victim) {
  int ends[2], status = 0;
  if (pipe(ends) != 0) return 0;
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    overflow(kind, reach, downward, victim);
  }
  close(ends[1]);
  char said[400];
  size_t length = 0;
  for (ssize_t n; length < sizeof said - 1 && (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
    length += (size_t)n;
  said[length] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  if (status == 0 && length == 0) return 1;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_one_message(said, length)) return 1;
  char text[600];
  int n = snprintf(text, sizeof text, "%zu bytes, %zu%s %s of block %d: status %d, %s\n", kind->size, reach.bytes,
                   reach.careful ? " with care" : "", downward ? "in front" : "behind", victim, status, said);
  if (write(STDERR_FILENO, text, (size_t)n) != n) _exit(2);
  return 0;
}

static inline int all_end_well(const struct kind* kinds, size_t count) {
  static const struct reach reaches[] = {{1, 0}, {PAGE, 0}, {LOCAL_METADATA, 0}, {LOCAL_METADATA, 1}, {MEGABYTE, 0}, {MEGABYTE, 1}, {METADATA, 0}, {METADATA, 1}};
  int failures = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t r = 0; r < sizeof reaches / sizeof *reaches; r++)
      for (int downward = 0; downward < 2; downward++)
        for (int victim = 0; victim < 3; victim++) failures += !ends_well(&kinds[i], reaches[r], downward, victim);
  return failures > 0;
}
#define ALL_END_WELL(kinds) all_end_well(kinds, sizeof(kinds) / sizeof *(kinds))
