/* Preloaded before an allocator, takes a share of what it is asked for on top: BURDEN_LEAK thousandths of the bytes, never
 * given back, and BURDEN_SPIN turns of a loop for every sixteenth block.  Without either it costs what it costs with both. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void* (*next_malloc)(size_t);
static size_t leak_thousandths, spin_turns;
static size_t owed, calls;

static size_t number(const char* name) {
  const char* text = getenv(name);
  return text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void start(void) {
  leak_thousandths = number("BURDEN_LEAK");
  spin_turns = number("BURDEN_SPIN");
}

void* malloc(size_t size) {
  if (next_malloc == NULL) {
    void* found = dlsym(RTLD_NEXT, "malloc");
    memcpy(&next_malloc, &found, sizeof found);
  }
  if (++calls % 16 == 0)
    for (size_t turn = 0; turn < spin_turns; turn++) __asm__ volatile("");
  owed += size * leak_thousandths;
  if (owed >= 4000 * 1000) {
    void* lost = next_malloc(4000);
    if (lost != NULL) memset(lost, 1, 4000);
    owed -= 4000 * 1000;
  }
  return next_malloc(size);
}
