// Approaches 2 to 4: a list for each thread.
#include "baselines/vvmalloc/checked.h"
#include "baselines/vvmalloc/thread_lists.h"
#include "baselines/vvmalloc/vvmalloc.h"

namespace hm::vvmalloc {
namespace {

constinit Shared shared;

void* payload_of(Block* block) noexcept { return block == nullptr ? nullptr : block->payload(); }

}  // namespace

constinit ThreadLists thread_lists(shared);

void* allocate(size_t size) noexcept {
  if (size > kMax) return nullptr;
  return payload_of(MyList()->allocate(block_size(size)));
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (size > kMax || alignment > kMax) return nullptr;
  return payload_of(MyList()->allocate_aligned(alignment, block_size(size)));
}

void deallocate(void* payload, const char* function) noexcept {
  Block* block = checked(payload, function);
  if (!MyList()->free(block)) die_on_misuse(function, payload, "double free");
}

Counters counters() noexcept {
  Heap::Account heap = shared.heap.account();
  Counters sum{.heap_wait_ns = heap.wait_ns,
               .heap_lock_ns = heap.lock_ns,
               .extensions = heap.extensions,
               .queue_wait_ns = shared.central.waited_ns(),
               .enqueues = 0,
               .dequeues = 0,
               .retries = shared.central.retries()};
  thread_lists.for_each([&](const ThreadList& list) {
    sum.enqueues += list.enqueues();
    sum.dequeues += list.dequeues();
  });
  return sum;
}

Usage usage() noexcept {
  size_t mapped = shared.heap.account().bytes, allocated = 0;
  thread_lists.for_each([&](const ThreadList& list) { allocated += list.allocated(); });
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = 0,
          .retained = mapped - allocated};
}

bool is_valid() noexcept {
  size_t listed = 0, free_blocks = 0, vanished = 0;
  bool valid = true;
  thread_lists.for_each([&](const ThreadList& list) {
    if (list.lost) ++vanished;
    else valid = valid && list.is_valid(&listed);
  });
  if (!valid || !shared.central.is_valid(vanished)) return false;
  if (vanished > 0) return true;  // their arenas may be in the middle of a change
  return shared.heap.is_valid(&free_blocks) && free_blocks == listed;
}

void before_fork() noexcept { thread_lists.before_fork(); }
void after_fork_in_parent() noexcept { thread_lists.after_fork(false); }
void after_fork_in_child() noexcept { thread_lists.after_fork(true); }

}  // namespace hm::vvmalloc
