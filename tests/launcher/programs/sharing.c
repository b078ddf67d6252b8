/* Threads that pass blocks on: sharing WAY [N].  Each thread has a name. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlock = 200, kMost = 1 << 16 };
static size_t count = 20000;
static void* passed[kMost];

__attribute__((noinline)) void* xmalloc(size_t size) {
  void* block = malloc(size);
  if (block == NULL) abort();
  return block;
}

__attribute__((noinline)) static void feed(void) {
  for (size_t i = 0; i < count; ++i) passed[i] = xmalloc(kBlock);
}
__attribute__((noinline)) static void consume(void) {
  for (size_t i = 0; i < count; ++i) free(passed[i]);
}
__attribute__((noinline)) static void keep_to_itself(void) {
  for (size_t i = 0; i < count; ++i) {
    void* block = malloc(kBlock / 2);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
  }
}

static void* run_feed(void* name) {
  prctl(PR_SET_NAME, name);
  feed();
  keep_to_itself();
  return NULL;
}
static void* run_consume(void* name) {
  prctl(PR_SET_NAME, name);
  consume();
  return NULL;
}
static void in_thread(void* (*run)(void*), const char* name) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, (void*)name);
  pthread_join(thread, NULL);
}
static void hand_over(void) {
  in_thread(run_feed, "feeder");
  in_thread(run_consume, "eater");
}

static void leave(int number) {
  (void)number;
  _Exit(7);
}
static void end(int number) {
  (void)number;
  exit(9);
}
static void ready(void) {
  if (write(1, "ready\n", 6) != 6) _exit(3);
}

int main(int words, char** word) {
  const char* way = words > 1 ? word[1] : "";
  if (words > 2) count = strtoul(word[2], NULL, 10);
  if (count > kMost) return 2;
  hand_over();
  if (strcmp(way, "pool") == 0)
    for (int i = 1; i <= 12; ++i) {
      char name[16];
      snprintf(name, sizeof name, "io_thd_%d", i);
      in_thread(run_feed, name);
      in_thread(run_consume, "eater");
    }
  if (strcmp(way, "odd-name") == 0) in_thread(run_feed, "\033[31m\nred"), in_thread(run_consume, "eater");
  if (strcmp(way, "code") == 0) return 5;
  if (strcmp(way, "fork") == 0)
    for (int i = 0; i < 2; ++i) {
      if (fork() == 0) return hand_over(), 0;
      wait(NULL);
    }
  if (strcmp(way, "killed") == 0) raise(SIGKILL);
  if (strcmp(way, "echo") == 0)
    for (int c; (c = getchar()) != EOF;) putchar(c);
  if (strcmp(way, "handles") == 0) signal(SIGINT, end);
  if (strcmp(way, "leaves") == 0) signal(SIGTERM, leave);
  if (strcmp(way, "wait") == 0 || strcmp(way, "handles") == 0 || strcmp(way, "leaves") == 0) {
    ready();
    for (;;) pause();
  }
  return 0;
}
