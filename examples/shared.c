/* Messages from one thread to another.  A shared block fills whole cache lines, and the receiver's free is as cheap as
 * the sender's: no lock, no atomic read-modify-write. */
#include <hmalloc/hmalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { kMessages = 100000, kSlots = 256 };

struct message {
  long number;
};

static _Atomic(struct message*) mailbox[kSlots];

static void* produce(void* unused) {
  (void)unused;
  for (long i = 0; i < kMessages; ++i) {
    struct message* message = hm_shared_alloc(sizeof *message);
    if (message == NULL) return NULL;
    message->number = i;
    _Atomic(struct message*)* slot = &mailbox[i % kSlots];
    while (atomic_load_explicit(slot, memory_order_acquire) != NULL) sched_yield();
    atomic_store_explicit(slot, message, memory_order_release);
  }
  return NULL;
}

int main(void) {
  pthread_t producer;
  if (pthread_create(&producer, NULL, produce, NULL) != 0) return 1;
  long sum = 0;
  for (long i = 0; i < kMessages; ++i) {
    _Atomic(struct message*)* slot = &mailbox[i % kSlots];
    struct message* message;
    while ((message = atomic_load_explicit(slot, memory_order_acquire)) == NULL) sched_yield();
    atomic_store_explicit(slot, NULL, memory_order_release);
    sum += message->number;
    hm_shared_free_sized(message, sizeof *message);
  }
  pthread_join(producer, NULL);
  printf("sum %ld\n", sum);
  return sum == 4999950000 ? 0 : 1;
}
