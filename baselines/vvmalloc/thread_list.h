// A thread's list of free blocks (Approach 2, Fig. 4).
//
//   malloc   foreign blocks of about that size -> own blocks, split -> an arena of the central queue -> the heap
//   free     an own block merges with its neighbours, and a run of an arena's size goes to the central queue;
//            a foreign block stays here, whole
//
// A list's own blocks are those of arenas that belong to it (T2 in block.h).  A block of another list's arena that this
// thread frees stays with this thread, as the report says; but it is used unchanged, neither split nor merged, and its
// tags are not touched (T3).
//
// A request that does not fit the smallest arena gets an arena of its own, from the queue or the heap; any thread that
// frees it gives that arena to the queue.
//
// L1  A block in own_ is this list's; a block in foreign_ is not, and its tags say used.
// L2  A list keeps one free run of an arena's size or more; otherwise a thread that frees its last block and allocates
//     again would go to the queue each time.  Further ones go to the central queue (garbage collection).
// L3  For the one thread that has the list.  Any thread may read counters.
#pragma once
#include "baselines/vvmalloc/central_queue.h"
#include "baselines/vvmalloc/count.h"
#include "baselines/vvmalloc/heap.h"
#include "baselines/vvmalloc/segregated_list.h"

namespace hm::vvmalloc {

// What all lists share.
struct Shared {
  CentralQueue central;
  Heap heap;
};

class ThreadList {
 public:
  constexpr ThreadList(ListId id, Shared& shared) : shared_(shared), own_(id) {}
  ThreadList(const ThreadList&) = delete;
  ThreadList& operator=(const ThreadList&) = delete;

  // Sizes of blocks, not of requests.  Null if there is no memory.
  Block* allocate(size_t size) noexcept;
  Block* allocate_aligned(size_t alignment, size_t size) noexcept;
  // Frees any list's block.  False if it was the last foreign one that this thread freed.
  bool free(Block* block) noexcept;

  ListId id() const noexcept { return own_.id(); }
  const SegregatedList& own() const noexcept { return own_; }
  size_t allocated() const noexcept { return allocated_.get(); }  // minus what this thread freed of others': may wrap
  uint64_t enqueues() const noexcept { return enqueues_.get(); }
  uint64_t dequeues() const noexcept { return dequeues_.get(); }
  // free_blocks: adds the number of own ones.
  bool is_valid(size_t* free_blocks) const noexcept;

  // For ThreadLists.
  ThreadList* next = nullptr;         // of all lists
  ThreadList* next_orphan = nullptr;  // of those whose threads have ended
  bool orphan = false;
  bool lost = false;  // in the child of a fork: its thread is not there

 private:
  Arena new_arena(size_t least) noexcept;
  bool refill(size_t size) noexcept;
  Block* allocate_whole(size_t alignment, size_t size) noexcept;
  void free_whole(Block* block) noexcept;
  bool collect(Block* run) noexcept;
  bool enqueue(Arena arena) noexcept;
  Block* counted(Block* block) noexcept;

  Shared& shared_;
  SegregatedList own_;
  FreeLists foreign_;
  Count allocated_, enqueues_, dequeues_;
};

}  // namespace hm::vvmalloc
