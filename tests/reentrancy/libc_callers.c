/* libc allocates under locks of its own: of its stacks, its files, its modules, its environment, its functions at exit.
 * Four threads do all of that at once, one forks meanwhile; an allocator that calls libc back, or that holds a lock while
 * libc takes one of these, waits for ever. */
#include <dlfcn.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <stdatomic.h>
#include <wchar.h>

#include "case.h"

enum { kCallers = 4, kAtExit = 500 };
static atomic_int stopping, at_exit, forks;
static atomic_long steps;
/* libc's getenv may not be called beside its setenv, and many of the others call it. */
static pthread_rwlock_t environment = PTHREAD_RWLOCK_INITIALIZER;

static __thread char own_storage[3000]; /* what a thread is made with is allocated too */
static void* touch_storage(void* seed) {
  mark(own_storage, sizeof own_storage, (unsigned)(uintptr_t)seed);
  free(malloc(300));
  return seed;
}
static void threads_come_and_go(uint64_t* state) {
  pthread_t made[4];
  for (size_t i = 0; i < COUNT_OF(made); i++) made[i] = start_thread(touch_storage, (void*)(uintptr_t)random_next(state));
  join_threads(made, COUNT_OF(made));
}

static void files_have_buffers(uint64_t* state) {
  char *text = NULL, *line = NULL;
  size_t size = 0, room = 0;
  FILE* out = open_memstream(&text, &size);
  REQUIRE(out != NULL);
  for (int i = 0; i < 200; i++) fprintf(out, "%d %s\n", i, "a line that makes the stream's buffer grow");
  if (random_next(state) % 4 == 0) fflush(NULL);
  REQUIRE(fclose(out) == 0 && size > 8000);
  free(text);
  FILE* in = fopen("/proc/self/status", "r");
  REQUIRE(in != NULL);
  while (getline(&line, &room, in) > 0) {}
  fclose(in);
  free(line);
}

static void modules_come_and_go(uint64_t* state) {
  static const char* const names[] = {"libresolv.so.2", "libutil.so.1", "libnss_dns.so.2", "libBrokenLocale.so.1",
                                      "none.so"};
  void* library = dlopen(names[random_next(state) % COUNT_OF(names)], RTLD_NOW);
  if (library != NULL) dlclose(library);
  else REQUIRE(dlerror() != NULL);
}

static void environment_grows(uint64_t* state) {
  char name[32];
  REQUIRE(pthread_rwlock_unlock(&environment) == 0 && pthread_rwlock_wrlock(&environment) == 0);
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "CALLERS_%u", random_next(state) % 100);
    if (i % 3 == 0) REQUIRE(unsetenv(name) == 0);
    else REQUIRE(setenv(name, "some value", 1) == 0 && getenv(name) != NULL);
  }
  static char put[] = "CALLERS_PUT=1";
  REQUIRE(putenv(put) == 0);
}

static void nothing(void) {}
static void functions_at_exit(uint64_t* state) {
  (void)state;
  if (atomic_fetch_add(&at_exit, 1) < kAtExit) REQUIRE(atexit(nothing) == 0);
}

static int by_number_with_blocks(const void* a, const void* b) {
  free(malloc(48));
  return (*(const uint32_t*)a > *(const uint32_t*)b) - (*(const uint32_t*)a < *(const uint32_t*)b);
}
static void sorting(uint64_t* state) {
  static __thread uint32_t numbers[2000]; /* more than qsort has on its stack */
  for (size_t i = 0; i < COUNT_OF(numbers); i++) numbers[i] = random_next(state);
  qsort(numbers, COUNT_OF(numbers), sizeof *numbers, by_number_with_blocks);
  REQUIRE(numbers[0] <= numbers[1] && numbers[1000] <= numbers[1999]);
}

static void conversions(uint64_t* state) {
  static const char* const codes[] = {"UTF-16", "UTF-32", "ISO-8859-15", "CP1252"};
  iconv_t opened = iconv_open(codes[random_next(state) % COUNT_OF(codes)], "UTF-8");
  if (opened == (iconv_t)-1) return; /* a system without the modules */
  char from[] = "text", to[64], *in = from, *out = to;
  size_t left = 4, room = sizeof to;
  REQUIRE(iconv(opened, &in, &left, &out, &room) != (size_t)-1);
  REQUIRE(iconv_close(opened) == 0);
}

static void names_of_hosts(uint64_t* state) {
  struct addrinfo* found = NULL;
  struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
  if (random_next(state) % 2 != 0) wanted.ai_flags = 0;
  if (getaddrinfo(wanted.ai_flags != 0 ? "127.0.0.1" : "localhost", NULL, &wanted, &found) == 0) freeaddrinfo(found);
  char text[2000];
  struct passwd entry, *user = NULL;
  getpwuid_r(0, &entry, text, sizeof text, &user);
}

static void wide_strings(uint64_t* state) {
  wchar_t* text = NULL;
  size_t size = 0;
  FILE* out = open_wmemstream(&text, &size);
  REQUIRE(out != NULL);
  for (int i = 0; i < 50; i++) fwprintf(out, L"%ls %*d\n", L"wide characters", (int)(random_next(state) % 3000), i);
  REQUIRE(fclose(out) == 0 && size > 50 * 16);
  free(text);
  locale_t made = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  if (made != (locale_t)0) freelocale(made);
}

static void (*const callers[])(uint64_t*) = {threads_come_and_go, files_have_buffers, modules_come_and_go,
                                             environment_grows,   functions_at_exit,  sorting,
                                             conversions,         names_of_hosts,     wide_strings};

static void* call_on(void* seed) {
  uint64_t state = 0x9e3779b97f4a7c15u * ((uintptr_t)seed + 1);
  while (!atomic_load(&stopping)) {
    REQUIRE(pthread_rwlock_rdlock(&environment) == 0);
    callers[random_next(&state) % COUNT_OF(callers)](&state);
    REQUIRE(pthread_rwlock_unlock(&environment) == 0);
    atomic_fetch_add(&steps, 1);
  }
  return NULL;
}

static void* fork_on(void* unused) {
  while (!atomic_load(&stopping)) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(60);
      for (size_t size = 16; size < 3 * MIB; size *= 3) free(hidden(malloc(size)));
      _exit(0);
    }
    require_good_end(child);
    atomic_fetch_add(&forks, 1);
    sleep_ms(3);
  }
  return unused;
}

int main(void) {
  alarm(240);
  pthread_t threads[kCallers + 1];
  threads[kCallers] = start_thread(fork_on, NULL);
  start_threads(threads, kCallers, call_on);
  sleep_ms(4000);
  atomic_store(&stopping, 1);
  join_threads(threads, COUNT_OF(threads));
  printf("%ld steps, %d forks\n", atomic_load(&steps), atomic_load(&forks));
  return 0;
}
