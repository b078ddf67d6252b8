/* hmalloc-os-noise: how much of this machine's CPU time other programs have at present.
 *
 *   hmalloc-os-noise MS
 *
 * One thread on each CPU reads the clock for MS milliseconds.  Two readings further apart than kGapNs mean that
 * something else ran in between: another process, the kernel, another guest of the same host.  Prints one line for
 * each CPU: its number, the share of the time lost in such gaps, the longest gap in microseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const long long kGapNs = 20000; /* a timer interrupt takes less */

struct Probe {
  pthread_t thread;
  int cpu;
  long long duration, lost, longest;
};

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void* watch_clock(void* argument) {
  struct Probe* probe = argument;
  long long start = now_ns();
  for (long long last = start, now; last < start + probe->duration; last = now) {
    now = now_ns();
    long long gap = now - last;
    if (gap <= kGapNs) continue;
    probe->lost += gap;
    if (gap > probe->longest) probe->longest = gap;
  }
  return NULL;
}

static int start(struct Probe* probe) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)probe->cpu, &one);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
  return pthread_create(&probe->thread, &attributes, watch_clock, probe);
}

int main(int argc, char** argv) {
  long long duration = argc == 2 ? atoll(argv[1]) * 1000000LL : 0;
  if (duration <= 0) {
    fprintf(stderr, "usage: hmalloc-os-noise MS\n");
    return 2;
  }
  static struct Probe probes[CPU_SETSIZE];
  cpu_set_t ours;
  sched_getaffinity(0, sizeof ours, &ours);
  int count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET((size_t)cpu, &ours)) continue;
    probes[count] = (struct Probe){.cpu = cpu, .duration = duration};
    if (start(&probes[count]) == 0) ++count;
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(probes[i].thread, NULL);
    printf("%d %.6f %.1f\n", probes[i].cpu, (double)probes[i].lost / (double)duration, (double)probes[i].longest * 1e-3);
  }
  return 0;
}
