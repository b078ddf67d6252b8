// The central queue of arenas from Approach 3 on: the lock-free first-in first-out queue of Michael and Scott ("Simple,
// Fast, and Practical Non-Blocking and Blocking Concurrent Queue Algorithms", 1996).  For any thread.
//
//   head_ ──▶ dummy ──▶ oldest ──▶ ... ──▶ newest ──▶ null
//                                   ▲         ▲
//                                 tail_ may lag by one
//
// Q1  The list from head_ never breaks; its first node is the dummy, whose arena has been handed out.
// Q2  tail_ is the last node of that list or the one before it, and never behind head_.
// Q3  Every swap of a link adds one to its count, and a node keeps its count when it goes to the pool and comes back.
// Q4  A node is in the queue, in the pool of free nodes, or held by one thread for one operation.
//
// Counted pointers.  Between a thread's read of a link and its compare-and-swap the node may leave the queue and come
// back: same node, other neighbours (ABA).  The count tells the two apart (Q3).  Nodes are numbered, so that number and
// count fit one word of 64 bits and no double-width compare-and-swap is needed: 2^32 nodes are more than the address
// space has arenas of 64 KB.  The count wraps after 2^32 changes of one word: a thread would have to stop between read
// and swap, for some minutes of all others at full speed, and continue exactly a multiple of 2^32 changes later with
// the same node in place.  To exclude even that takes 64-bit counts and the double-width instruction.
//
// Nodes are never unmapped: a late thread reads a node, finds that the count has moved on, and discards what it read.
//
// Fork.  The child's memory is the parent's at one moment: while the kernel copies, a thread either writes to pages that the
// child will share or waits in a page fault.  So a thread that the child lacks stopped between two of its stores.  If it had
// not linked its node, the node and its own arena are lost.  If it had, and not moved tail_, Q2 allows that, and the next
// operation moves it.  If it had moved head_ and not freed the old dummy, again a node and its own arena are lost.  There is
// no other place to stop at, so the queue keeps working and nothing has to be repaired.
#pragma once
#include <atomic>

#include "base/os_pages.h"

namespace hm::vvmalloc {

// Hooks for tests, between two steps of an operation.
enum class QueueStep : uint8_t { kTailRead, kBeforeLink, kLinked, kHeadRead, kBeforeAdvance, kAdvanced, kFreeRead };

struct QueueSetting {
  static constexpr uint32_t kFirstNodes = 64;  // in the queue itself; a power of two
  static constexpr uint32_t kMaxNodes = UINT32_MAX - kFirstNodes;
  static constexpr bool kCounts = true;  // false: shows what the counts are for
  static void at(QueueStep) noexcept {}
};

template <class Setting = QueueSetting>
class MsQueueOf {
 public:
  constexpr MsQueueOf() = default;
  MsQueueOf(const MsQueueOf&) = delete;
  MsQueueOf& operator=(const MsQueueOf&) = delete;

  // False if there is no memory for a node.  arena: not null.
  bool enqueue(void* arena, size_t bytes) noexcept {
    uint32_t fresh = new_node();
    if (fresh == kNull) return false;
    node(fresh).arena.store(arena, std::memory_order_relaxed);  // relaxed: the link publishes both
    node(fresh).bytes.store(bytes, std::memory_order_relaxed);
    for (;;) {
      Counted tail = tail_.read();
      Setting::at(QueueStep::kTailRead);
      Link& last = node(tail.index).next;
      Counted next = last.read();
      if (tail_.read() != tail) continue;  // otherwise next may belong to the node's next life
      if (next.index != kNull) {
        tail_.change(tail, next.index);  // it lags
        continue;
      }
      Setting::at(QueueStep::kBeforeLink);
      if (last.change(next, fresh)) {
        Setting::at(QueueStep::kLinked);
        tail_.change(tail, fresh);  // if it fails, another thread has done it
        return true;
      }
      count_retry();
    }
  }

  // Null if the queue is empty; *bytes is undefined then.
  void* dequeue(size_t* bytes) noexcept {
    for (;;) {
      Counted head = head_.read();
      Counted tail = tail_.read();
      Setting::at(QueueStep::kHeadRead);
      Counted next = node(head.index).next.read();
      if (head_.read() != head) continue;  // otherwise the three values do not belong together
      if (head.index == tail.index) {
        if (next.index == kNull) return nullptr;
        tail_.change(tail, next.index);  // before head_ could overtake it (Q2)
        continue;
      }
      // Before the swap: after it another thread may free the node.  Relaxed: the link was read with acquire, and the
      // swap is a release, so the node's next life comes after these two reads.
      void* arena = node(next.index).arena.load(std::memory_order_relaxed);
      *bytes = node(next.index).bytes.load(std::memory_order_relaxed);
      Setting::at(QueueStep::kBeforeAdvance);
      if (head_.change(head, next.index)) {
        Setting::at(QueueStep::kAdvanced);
        free_node(head.index);
        return arena;
      }
      count_retry();
    }
  }

  // Number of swaps that failed because another thread was faster.  Relaxed: statistics.
  uint64_t retries() const noexcept { return retries_.load(std::memory_order_relaxed); }
  // While no thread uses it.  vanished: threads that a fork may have cut off in an operation.
  bool is_valid(size_t vanished = 0) noexcept;

 private:
  static constexpr uint32_t kNull = 0, kDummy = 1;  // numbers of nodes; they start at 1

  struct alignas(8) Counted {
    uint32_t index = kNull;
    uint32_t count = 0;
    bool operator==(const Counted&) const = default;
  };

  class Link {
   public:
    constexpr Link() = default;
    constexpr explicit Link(uint32_t first) : word_(Counted{first, 0}) {}
    // Acquire, for two reasons.  The node that it names was filled before it was linked.  And a thread that reads what
    // the next life of a node wrote here comes after the end of its last life, so that the second read of head_ or
    // tail_ cannot be older than that.
    Counted read() const noexcept { return word_.load(std::memory_order_acquire); }
    // Release: the content of the node named, and all that this thread has read of nodes, come before.  A failed swap
    // returns nothing that is used: relaxed.
    bool change(Counted seen, uint32_t to) noexcept {
      Counted now{to, seen.count + (Setting::kCounts ? 1 : 0)};
      return word_.compare_exchange_strong(seen, now, std::memory_order_release, std::memory_order_relaxed);
    }
    // For the one thread that holds the node, so a relaxed read of its count is exact.  Release: a late reader that
    // sees this must also see that the node has left the queue.
    void set(uint32_t to) noexcept {
      word_.store({to, word_.load(std::memory_order_relaxed).count}, std::memory_order_release);
    }

   private:
    std::atomic<Counted> word_{};
    static_assert(sizeof(Counted) == 8 && std::atomic<Counted>::is_always_lock_free);
  };

  struct alignas(kLine) Node {  // a line each, which is little compared with an arena
    Link next;
    std::atomic<void*> arena{nullptr};  // atomic: late readers
    std::atomic<size_t> bytes{0};
  };

  // The pool.  Chunk 0 lies in the queue itself; chunk k has kFirstNodes << k nodes and is mapped when first needed.
  struct Place {
    size_t chunk, at;
  };
  static constexpr Place place_of(uint32_t index) noexcept {
    constexpr size_t first = Setting::kFirstNodes;
    size_t n = index - 1 + first;
    size_t chunk = static_cast<size_t>(std::bit_width(n) - std::bit_width(first));
    return {chunk, n - (first << chunk)};
  }
  // Acquire: pairs with the release of the thread that maps a chunk.
  Node* chunk(size_t k) noexcept { return k == 0 ? first_ : chunks_[k].load(std::memory_order_acquire); }
  Node& node(uint32_t index) noexcept {
    Place place = place_of(index);
    return chunk(place.chunk)[place.at];
  }

  // Two threads may map the same chunk; one of them unmaps its own, which nobody has seen.
  bool map_chunk(size_t k) noexcept {
    size_t bytes = (size_t{Setting::kFirstNodes} << k) * sizeof(Node);
    void* fresh = os::map(bytes, os::page_size());
    if (fresh == nullptr) return false;
    Node* none = nullptr;
    // Release, for chunk(); the loser reads the winner's chunk through chunk() too.
    if (!chunks_[k].compare_exchange_strong(none, static_cast<Node*>(fresh), std::memory_order_release,
                                            std::memory_order_relaxed))
      os::unmap(fresh, bytes);
    return true;
  }

  // A node that was never used.  Relaxed: only a number; the node is all zero.
  uint32_t first_use() noexcept {
    uint32_t used = used_.load(std::memory_order_relaxed);
    do {
      if (used == Setting::kMaxNodes) return kNull;
      size_t k = place_of(used + 1).chunk;
      if (chunk(k) == nullptr && !map_chunk(k)) return kNull;
    } while (!used_.compare_exchange_strong(used, used + 1, std::memory_order_relaxed));
    return used + 1;
  }

  uint32_t pop_free() noexcept {
    for (;;) {
      Counted top = free_.read();
      if (top.index == kNull) return kNull;
      uint32_t below = node(top.index).next.read().index;  // arbitrary if the node is gone; then the swap fails
      Setting::at(QueueStep::kFreeRead);
      if (free_.change(top, below)) return top.index;
      count_retry();
    }
  }

  uint32_t new_node() noexcept {
    uint32_t fresh = pop_free();
    if (fresh == kNull) fresh = first_use();
    if (fresh != kNull) node(fresh).next.set(kNull);
    return fresh;
  }

  void free_node(uint32_t index) noexcept {
    for (;;) {
      Counted top = free_.read();
      node(index).next.set(top.index);
      if (free_.change(top, index)) return;
      count_retry();
    }
  }

  void count_retry() noexcept { retries_.fetch_add(1, std::memory_order_relaxed); }  // relaxed: statistics

  // One line each: dequeuers write head_, enqueuers tail_.
  alignas(kLine) Link head_{kDummy};
  alignas(kLine) Link tail_{kDummy};
  alignas(kLine) Link free_;
  std::atomic<uint32_t> used_{kDummy};  // the highest number that a node has
  std::atomic<uint64_t> retries_{0};
  std::atomic<Node*> chunks_[32]{};
  Node first_[Setting::kFirstNodes]{};
};

// Both lists end, the tail is where Q2 says, and every node is in one of them (Q4).  Two lists through the same links
// share a node only if they share the last one.
template <class Setting>
bool MsQueueOf<Setting>::is_valid(size_t vanished) noexcept {
  size_t used = used_.load(std::memory_order_relaxed), seen = 0;  // relaxed: no thread uses it
  uint32_t last = kNull, before = kNull, last_free = kNull;
  bool tail_found = false;
  for (uint32_t i = head_.read().index; i != kNull; i = node(i).next.read().index) {
    if (i > used || ++seen > used) return false;
    tail_found = tail_found || i == tail_.read().index;
    before = last;
    last = i;
  }
  if (!tail_found || (tail_.read().index != last && tail_.read().index != before)) return false;
  for (uint32_t i = free_.read().index; i != kNull; i = node(i).next.read().index) {
    if (i > used || ++seen > used) return false;
    last_free = i;
  }
  return last != last_free && seen + vanished >= used;
}

using MsQueue = MsQueueOf<>;

}  // namespace hm::vvmalloc
