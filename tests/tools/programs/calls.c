/* Calls the malloc family a known number of times:  calls WHAT NUMBER
 * With NUMBER 0 it makes the calls of libc and of the threads alone. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kSize = 100 };

static long number;
static void** handed_over[kThreads];

/* 2 malloc, 2 free: one here, one where `handed_over` goes. */
static void* work(void* index) {
  void** mine = handed_over[(intptr_t)index];
  for (long i = 0; i < number; ++i) {
    mine[i] = malloc(kSize);
    free(malloc(kSize));
  }
  return NULL;
}

static void each_thread(void* (*body)(void*), pthread_t* threads) {
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, body, (void*)i);
}

static void hand_over(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) handed_over[i] = malloc(8 * (size_t)number + 8);
  each_thread(work, threads);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    for (long j = 0; j < number; ++j) free(handed_over[i][j]);
  }
}

/* A program that spins for its turn on a busy machine waits whole time slices of others. */
static void wait_a_moment(unsigned* turns) {
  struct timespec moment = {0, 1000};
  if (++*turns > 2000) nanosleep(&moment, NULL);
}

/* One slot, given and taken by turns: every free is of the other thread's block, and addresses come back at once. */
static void* volatile slot;
static void* consume(void* unused) {
  for (long i = 0; i < number; ++i) {
    void* block;
    unsigned turns = 0;
    while ((block = __atomic_exchange_n(&slot, NULL, __ATOMIC_ACQ_REL)) == NULL) wait_a_moment(&turns);
    free(block);
  }
  return unused;
}
static void ping(void) {
  pthread_t consumer;
  pthread_create(&consumer, NULL, consume, NULL);
  for (long i = 0; i < number; ++i) {
    void* block = malloc(kSize);
    unsigned turns = 0;
    while (__atomic_load_n(&slot, __ATOMIC_ACQUIRE) != NULL) wait_a_moment(&turns);
    __atomic_store_n(&slot, block, __ATOMIC_RELEASE);
  }
  pthread_join(consumer, NULL);
}

/* One thread after the other. */
static void* one_block(void* unused) {
  free(malloc(kSize));
  return unused;
}
static void churn(void) {
  for (long i = 0; i < number; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, one_block, NULL);
    pthread_join(thread, NULL);
  }
}

/* 12 malloc of all kinds, 11 free, 4 realloc; the rest fails or does nothing. */
static void family(void) {
  for (long i = 0; i < number; ++i) {
    char* block = realloc(NULL, 10); /* a malloc */
    block = realloc(block, 100000);
    block = reallocarray(block, 5, 3);
    char* same = realloc(block, SIZE_MAX / 4); /* fails */
    free(same ? same : block);
    block = malloc(50);
    if (realloc(block, 0) != NULL) _exit(3); /* glibc: a free */
    void* aligned = NULL;
    if (posix_memalign(&aligned, 64, 100) != 0 || (uintptr_t)aligned % 64 != 0) _exit(3);
    free(aligned);
    if (posix_memalign(&aligned, 3, 100) == 0) _exit(3); /* fails */
    free(aligned_alloc(4096, 8192));
    free(memalign(256, 1));
    free(valloc(1));
    free(pvalloc(1));
    free(malloc(0));
    block = calloc(3, 1000);
    block = realloc(block, 3001);
    block = realloc(block, 1);
    free(block);
    free(calloc(SIZE_MAX / 2, 3)); /* fails */
    free(malloc(SIZE_MAX / 4));    /* fails */
    free(NULL);
    free(malloc(7));
    free(calloc(1, 1) ? malloc(1) : NULL); /* one is lost */
    free(NULL);
  }
}

static void make(long blocks) {
  for (long i = 0; i < blocks; ++i) memset(malloc(kSize), 1, kSize);
}

static int made;
static void* make_and_sleep(void* unused) {
  make(number);
  __atomic_fetch_add(&made, 1, __ATOMIC_RELEASE);
  pause();
  return unused;
}

static void rest(void) {
  struct timespec moment = {0, 300000000};
  nanosleep(&moment, NULL);
}

static void with_threads_alive(void) {
  pthread_t threads[kThreads];
  each_thread(make_and_sleep, threads);
  while (__atomic_load_n(&made, __ATOMIC_ACQUIRE) < kThreads) rest();
}

/* The child frees a block that its parent made, and gets its records into a file of its own. */
static void in_child(void) {
  void* inherited = malloc(kSize);
  make(number);
  pid_t child = fork();
  if (child == 0) {
    free(inherited);
    make(2 * number);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

/* A child that goes on for a minute after its parent, and frees what it makes. */
static void leave_a_child(void) {
  make(number);
  pid_t child = fork();
  if (child != 0) {
    rest();
    return;
  }
  close(1);
  close(2);
  for (time_t end = time(NULL) + 60; time(NULL) < end;) free(malloc(kSize));
  _exit(0);
}

static void without_descriptors(void) {
  make(number);
  for (int file = 0; file < 1024; ++file) close(file);
  make(number);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  free(malloc(1)); /* there is something to record */
  number = atol(words[2]);
  const char* what = words[1];
  if (!strcmp(what, "hand-over")) hand_over();
  if (!strcmp(what, "ping")) ping();
  if (!strcmp(what, "churn")) churn();
  if (!strcmp(what, "family")) family();
  if (!strcmp(what, "fork")) in_child();
  if (!strcmp(what, "leave")) leave_a_child();
  if (!strcmp(what, "close")) without_descriptors();
  if (!strcmp(what, "alive")) with_threads_alive();
  if (strstr("make exit kill crash wait exec", what)) make(number);
  if (!strcmp(what, "exit")) _exit(7);
  if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(what, "crash")) *(volatile char*)8 = 1;
  if (!strcmp(what, "wait") && write(1, "up\n", 3) == 3) pause();
  if (!strcmp(what, "exec")) {
    char twice[32];
    snprintf(twice, sizeof twice, "%ld", 2 * number);
    execl(words[0], words[0], "make", twice, (char*)NULL);
  }
  return 0;
}
