/* hmalloc-measure: runs one program and reports what it cost.
 *
 * In C because Linux passes a process's peak memory on through fork and exec: started by an interpreter of 20 MB, no
 * program ever seems to need less.  This process is smaller than any that it measures.
 *
 *   hmalloc-measure RESULT_FD STOP_AFTER_MS WATCH_MS PRELOAD PROGRAM ARGS...
 *
 * PRELOAD becomes the program's LD_PRELOAD (empty: none).  STOP_AFTER_MS 0 waits for the program's own end; otherwise
 * it gets SIGTERM after that time.  RESULT_FD receives "started PID", then one of
 *   failed ERRNO
 *   ended WAIT_STATUS STOPPED WALL_NS USER_US SYSTEM_US PEAK_KIB MINOR_FAULTS MAJOR_FAULTS VOLUNTARY INVOLUNTARY
 * where all but the times and the status include the descendants that the program waited for.  If WATCH_MS is not 0,
 * these come before "ended":
 *   instructions COUNT           in user space, with all descendants; absent if the machine does not count them
 *   resident MS KIB              of the program itself, MS after its start; WATCH_MS apart, in long runs more */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A server has this long to end after SIGTERM; then its whole process group is killed. */
static const long long kGraceNs = 10000000000LL;
static const long long kNever = -1;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void become_program(int result, const char* preload, char** program, const sigset_t* mask) {
  /* Its own group: a program that is stopped takes its children along, while this process and its parent stay. */
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (*preload) setenv("LD_PRELOAD", preload, 1);
  else unsetenv("LD_PRELOAD");
  execvp(program[0], program);
  dprintf(result, "failed %d\n", errno);
  _exit(127);
}

/* The resident set over time.  When the array is full every second sample is dropped and the pause doubles: a run of
 * any length keeps about as many samples, and the longer it takes the less it is disturbed. */
enum { kMaxSamples = 200 };
struct Sample {
  long long at_ns;
  long kib;
};
struct Watch {
  int statm;
  long long start, pause, next;
  int count;
  struct Sample samples[kMaxSamples];
};
static struct Watch watch;

static void start_watch(pid_t pid, long long start, long long pause) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  watch.statm = open(path, O_RDONLY | O_CLOEXEC);
  watch.start = start;
  watch.pause = pause;
  watch.next = pause && watch.statm >= 0 ? start + pause : kNever;
}

static long resident_kib(void) {
  char text[128];
  long total, resident;
  ssize_t length = pread(watch.statm, text, sizeof text - 1, 0);
  text[length > 0 ? length : 0] = 0;
  return sscanf(text, "%ld %ld", &total, &resident) == 2 ? resident * (sysconf(_SC_PAGESIZE) / 1024) : 0;
}

static void take_sample(long long now) {
  if (watch.count == kMaxSamples) {
    for (int i = 0; 2 * i < kMaxSamples; ++i) watch.samples[i] = watch.samples[2 * i + 1];
    watch.count = kMaxSamples / 2;
    watch.pause *= 2;
  }
  long kib = resident_kib();
  if (kib > 0) watch.samples[watch.count++] = (struct Sample){now - watch.start, kib}; /* 0: it is ending */
  watch.next = now + watch.pause;
}

/* Starts with the program's exec and covers its descendants; -1 if the machine counts no instructions. */
static int count_instructions(void) {
  struct perf_event_attr what = {.size = sizeof what,
                                 .type = PERF_TYPE_HARDWARE,
                                 .config = PERF_COUNT_HW_INSTRUCTIONS,
                                 .disabled = 1,
                                 .enable_on_exec = 1,
                                 .inherit = 1,
                                 .exclude_kernel = 1,
                                 .exclude_hv = 1};
  return (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void report_watch(int result, int counter) {
  uint64_t instructions;
  if (counter >= 0 && read(counter, &instructions, sizeof instructions) == sizeof instructions && instructions > 0)
    dprintf(result, "instructions %llu\n", (unsigned long long)instructions);
  for (int i = 0; i < watch.count; ++i)
    dprintf(result, "resident %.3f %ld\n", (double)watch.samples[i].at_ns * 1e-6, watch.samples[i].kib);
}

static long long time_left(long long deadline) {
  long long next = deadline == kNever ? watch.next : watch.next == kNever || deadline < watch.next ? deadline : watch.next;
  long long left = next == kNever ? 3600 * 1000000000LL : next - now_ns();
  return left > 0 ? left : 0;
}

/* Waits until the program has ended; returns whether it was told to.  All signals in `waited` are blocked. */
static int wait_for_end(pid_t pid, const sigset_t* waited, long long stop_after_ns) {
  long long deadline = stop_after_ns ? now_ns() + stop_after_ns : kNever;
  int told = 0;
  for (;;) {
    siginfo_t ended = {0};
    if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid) return told;
    long long left = time_left(deadline);
    struct timespec timeout = {left / 1000000000LL, left % 1000000000LL};
    int signal = sigtimedwait(waited, NULL, &timeout);
    long long now = now_ns();
    if (watch.next != kNever && now >= watch.next) take_sample(now);
    int interrupted = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    int due = signal < 0 && errno == EAGAIN && deadline != kNever && now >= deadline;
    if (!interrupted && !due) continue;
    if (told) kill(-pid, SIGKILL);
    else kill(pid, SIGTERM);
    told = 1;
    deadline = now_ns() + kGraceNs;
  }
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: hmalloc-measure RESULT_FD STOP_AFTER_MS WATCH_MS PRELOAD PROGRAM ARGS...\n");
    return 2;
  }
  int result = atoi(argv[1]);
  long long stop_after_ns = atoll(argv[2]) * 1000000LL, watch_ns = atoll(argv[3]) * 1000000LL;
  fcntl(result, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_PDEATHSIG, SIGTERM);

  sigset_t waited, before;
  sigemptyset(&waited);
  sigaddset(&waited, SIGCHLD);
  sigaddset(&waited, SIGINT);
  sigaddset(&waited, SIGTERM);
  sigaddset(&waited, SIGHUP);
  sigprocmask(SIG_BLOCK, &waited, &before);

  int counter = watch_ns ? count_instructions() : -1;
  long long start = now_ns();
  pid_t pid = fork();
  if (pid == 0) become_program(result, argv[4], argv + 5, &before);
  if (pid < 0) {
    dprintf(result, "failed %d\n", errno);
    return 1;
  }
  dprintf(result, "started %d\n", (int)pid);
  start_watch(pid, start, watch_ns);
  int told = wait_for_end(pid, &waited, stop_after_ns);
  long long wall = now_ns() - start;

  int status;
  struct rusage used;
  wait4(pid, &status, 0, &used);
  /* Nothing left behind by a stopped server or a crashed workload may disturb the next measurement. */
  if (told || watch_ns) kill(-pid, SIGKILL);
  if (watch_ns) report_watch(result, counter);
  dprintf(result, "ended %d %d %lld %lld %lld %ld %ld %ld %ld %ld\n", status, told, wall,
          used.ru_utime.tv_sec * 1000000LL + used.ru_utime.tv_usec, used.ru_stime.tv_sec * 1000000LL + used.ru_stime.tv_usec,
          used.ru_maxrss, used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw);
  return 0;
}
