// Approach 1: the malloc lab's heap, with everything behind one lock.
#include "baselines/common/fork_locks.h"
#include "baselines/vvmalloc/checked.h"
#include "baselines/vvmalloc/heap.h"
#include "baselines/vvmalloc/segregated_list.h"
#include "baselines/vvmalloc/vvmalloc.h"

namespace hm::vvmalloc {
namespace {

constexpr size_t kExtension = 4 * kKiB;  // the minimum, as in the lab

constinit Mutex the_lock;
constinit SegregatedList the_list{kFirstList};
constinit Heap heap;
constinit char* heap_end = nullptr;  // behind the epilogue
constinit size_t allocated = 0;
constinit ForkLocks<1> held_for_fork;
constinit bool fork_has_heap = false;

// Moves the epilogue up; what was between becomes one free block with the last one.  A new segment starts a new arena.
bool extend(size_t size) noexcept {
  size_t least = size + Arena::kOverhead;
  size_t bytes = least < kExtension ? kExtension : least;
  char* start = heap.extend(bytes);
  if (start == nullptr) return false;
  Arena arena{start, bytes};
  if (start == heap_end) arena = {start - Arena::kOverhead, bytes + Arena::kOverhead};
  else arena.write_prologue();
  heap_end = start + bytes;
  arena.write_epilogue();
  the_list.insert(the_list.release(arena.fill(kFirstList)));
  return true;
}

// The block that find() returns, if necessary after an extension for one of min_free bytes.
template <class Find>
void* allocate_by(Find find, size_t min_free) noexcept {
  Holding held(the_lock);
  Block* block = find();
  if (block == nullptr && extend(min_free)) block = find();
  if (block == nullptr) return nullptr;
  allocated += block->size();
  return block->payload();
}

}  // namespace

void* allocate(size_t request) noexcept {
  if (request > kMax) return nullptr;
  size_t size = block_size(request);
  return allocate_by([size] { return the_list.allocate(size); }, size);
}

void* allocate_aligned(size_t alignment, size_t request) noexcept {
  if (request > kMax || alignment > kMax) return nullptr;
  size_t size = block_size(request);
  return allocate_by([=] { return the_list.allocate_aligned(alignment, size); },
                     SegregatedList::aligned_size(alignment, size));
}

void deallocate(void* payload, const char* function) noexcept {
  Block* block = checked(payload, function);
  Holding held(the_lock);
  allocated -= block->size();
  the_list.insert(the_list.release(block));
}

Counters counters() noexcept {
  Holding held(the_lock);
  Heap::Account account = heap.account();
  return {.heap_wait_ns = the_lock.waited_ns(),
          .heap_lock_ns = account.lock_ns,
          .extensions = account.extensions,
          .queue_wait_ns = 0,
          .enqueues = 0,
          .dequeues = 0,
          .retries = 0};
}

Usage usage() noexcept {
  Holding held(the_lock);
  size_t mapped = heap.account().bytes;
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = 0,
          .retained = mapped - allocated};
}

bool is_valid() noexcept {
  Holding held(the_lock);
  size_t listed = 0, free_blocks = 0;
  return the_list.is_valid(&listed) && heap.is_valid(&free_blocks) && listed == free_blocks;
}

void before_fork() noexcept {
  held_for_fork.take(the_lock.base());
  fork_has_heap = heap.lock().lock();
}
void after_fork_in_parent() noexcept {
  if (fork_has_heap) heap.lock().unlock();
  held_for_fork.release();
}

// The thread has a new id in the child; a lock that it holds must name that.
void after_fork_in_child() noexcept {
  the_lock.base().adopt_after_fork(rename_thread());
  after_fork_in_parent();
}

}  // namespace hm::vvmalloc
