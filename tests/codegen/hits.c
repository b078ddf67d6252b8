/* Runs each entry point once on a hit, one instruction at a time, and prints where it went: a line for each entry, the
 * object it starts in, and the addresses of its instructions in that object's file.  Exit 77: the system allows no
 * single steps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hmalloc/hmalloc_local.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

void* _Znwm(size_t);         /* operator new */
void _ZdlPv(void*);          /* operator delete */
void _ZdlPvm(void*, size_t); /* sized */

enum { kSize = 64, kMaxSteps = 400 };

/* As they are inline in a program, which knows the size. */
__attribute__((noinline)) void* inline_local_alloc(size_t size) { return (void)size, hm_local_alloc(kSize); }
__attribute__((noinline)) void inline_local_free_sized(void* block, size_t size) {
  (void)size, hm_local_free_sized(block, kSize);
}

/* The two calls to watch lie between breakpoints; everything else runs at full speed. */
static __attribute__((noinline)) void* watch_alloc(void* (*entry)(size_t)) {
  __asm__ volatile("int3");
  void* block = entry(kSize);
  __asm__ volatile("int3" ::: "memory");
  return block;
}
static __attribute__((noinline)) void watch_free(void (*entry)(void*), void* block) {
  __asm__ volatile("int3");
  entry(block);
  __asm__ volatile("int3" ::: "memory");
}
static __attribute__((noinline)) void watch_free_sized(void (*entry)(void*, size_t), void* block) {
  __asm__ volatile("int3");
  entry(block, kSize);
  __asm__ volatile("int3" ::: "memory");
}

static const struct Entry {
  const char* name;
  void* (*alloc)(size_t);
  void (*release)(void*);
  void (*release_sized)(void*, size_t);
} kEntries[] = {
    {"malloc", malloc, free, NULL},
    {"free", malloc, free, NULL},
    {"operator_new", _Znwm, _ZdlPv, NULL},
    {"operator_delete", _Znwm, _ZdlPv, NULL},
    {"operator_delete_sized", _Znwm, NULL, _ZdlPvm},
    {"hm_malloc", hm_malloc, hm_free, NULL},
    {"hm_free", hm_malloc, hm_free, NULL},
    {"hm_free_sized", hm_malloc, NULL, hm_free_sized},
    {"hm_shared_alloc", hm_shared_alloc, hm_shared_free, NULL},
    {"hm_shared_free", hm_shared_alloc, hm_shared_free, NULL},
    {"hm_shared_free_sized", hm_shared_alloc, NULL, hm_shared_free_sized},
    {"hm_local_alloc", hm_local_alloc, NULL, hm_local_free_sized},
    {"hm_local_free_sized", hm_local_alloc, NULL, hm_local_free_sized},
    {"inline_local_alloc", inline_local_alloc, NULL, inline_local_free_sized},
    {"inline_local_free_sized", inline_local_alloc, NULL, inline_local_free_sized},
};
enum { kEntriesCount = sizeof kEntries / sizeof *kEntries };
static int watches_alloc(const struct Entry* e) { return e == kEntries || (e->alloc != (e - 1)->alloc); }
static void* watched(const struct Entry* e) {
  return watches_alloc(e) ? (void*)e->alloc : e->release ? (void*)e->release : (void*)e->release_sized;
}

/* Enough live blocks that a free finds no full cache, and an allocation finds a block. */
static void give(const struct Entry* e, void* block) { e->release ? e->release(block) : e->release_sized(block, kSize); }
static void run_watched(const struct Entry* e) {
  void* blocks[40];
  for (int i = 0; i < 40; ++i) blocks[i] = e->alloc(kSize);
  for (int i = 0; i < 20; ++i) give(e, blocks[i]);
  void* block = watches_alloc(e) ? watch_alloc(e->alloc) : e->alloc(kSize);
  if (watches_alloc(e)) give(e, block);
  else if (e->release) watch_free(e->release, block);
  else watch_free_sized(e->release_sized, block);
  for (int i = 20; i < 40; ++i) give(e, blocks[i]);
}

static void child(void) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
  raise(SIGSTOP);
  for (int i = 0; i < kEntriesCount; ++i) run_watched(&kEntries[i]);
  _exit(0);
}

static unsigned long long where(pid_t pid) {
  struct user_regs_struct registers;
  ptrace(PTRACE_GETREGS, pid, NULL, &registers);
  return registers.rip;
}
static int next_stop(pid_t pid, int request) {
  int status;
  if (ptrace(request, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return -1;
  return WSTOPSIG(status);
}

/* From the breakpoint to the entry, then to the instruction after the call. */
static void trace(pid_t pid, const struct Entry* e) {
  Dl_info object;
  unsigned long long entry = (unsigned long long)watched(e), caller = 0;
  if (next_stop(pid, PTRACE_CONT) != SIGTRAP || !dladdr((void*)entry, &object)) exit(1);
  while (where(pid) != entry) {
    caller = where(pid);
    if (next_stop(pid, PTRACE_SINGLESTEP) != SIGTRAP) exit(1);
  }
  printf("%s %s", e->name, object.dli_fname);
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    unsigned long long at = where(pid);
    if (at > caller && at <= caller + 8) break; /* a call is at most eight bytes long */
    printf(" %llx", at - (unsigned long long)object.dli_fbase);
    if (next_stop(pid, PTRACE_SINGLESTEP) != SIGTRAP) exit(1);
  }
  printf("\n");
  if (next_stop(pid, PTRACE_CONT) != SIGTRAP) exit(1);
}

int main(void) {
  pid_t pid = fork();
  if (pid == 0) child();
  int status;
  waitpid(pid, &status, 0);
  if (!WIFSTOPPED(status)) return 77;
  for (int i = 0; i < kEntriesCount; ++i) trace(pid, &kEntries[i]);
  return next_stop(pid, PTRACE_CONT) == -1 ? 0 : 1;
}
