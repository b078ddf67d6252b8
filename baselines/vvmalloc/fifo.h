// First in, first out: the two kinds of queue that the central queue is made of, and the guard of each.
#pragma once
#include "baselines/vvmalloc/approach.h"
#include "baselines/vvmalloc/block.h"
#include "baselines/vvmalloc/locks.h"
#include "baselines/vvmalloc/ms_queue.h"

namespace hm::vvmalloc {

// Approach 2: one mutex for all of them.
class MutexGate {
 public:
  constexpr MutexGate() = default;
  bool lock() noexcept { return mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  uint64_t waited_ns() noexcept {
    Holding held(mutex_);
    return mutex_.waited_ns();
  }
  Lock* base() noexcept { return &mutex_.base(); }

 private:
  Mutex mutex_;
};

// Used under the gate, so it needs no synchronisation.  The links lie in the arenas' own free blocks.
class GuardedFifo {
 public:
  constexpr GuardedFifo() = default;
  bool enqueue(void* arena, size_t bytes) noexcept;
  void* dequeue(size_t* bytes) noexcept;
  uint64_t retries() const noexcept { return 0; }
  uint64_t waited_ns() const noexcept { return 0; }  // the gate knows
  bool is_valid(size_t vanished) noexcept;

 private:
  struct Node {
    Node* next;
    void* arena;
    size_t bytes;
  };
  Node* head_ = nullptr;
  Node* tail_ = nullptr;
};

// From Approach 3 on there is no guard.
class NoGate {
 public:
  constexpr NoGate() = default;
  bool lock() noexcept { return false; }
  void unlock() noexcept {}
  uint64_t waited_ns() noexcept { return 0; }
  Lock* base() noexcept { return nullptr; }
};

// An operation that must retry, because another thread was faster, counts as waiting from its second attempt to its
// end.
class LockFreeFifo {
 public:
  constexpr LockFreeFifo() = default;
  bool enqueue(void* arena, size_t bytes) noexcept;
  void* dequeue(size_t* bytes) noexcept;
  uint64_t retries() const noexcept { return queue_.retries(); }
  uint64_t waited_ns() const noexcept { return waited_ns_.load(std::memory_order_relaxed); }  // relaxed: statistics
  bool is_valid(size_t vanished) noexcept { return queue_.is_valid(vanished); }

 private:
  struct Setting : QueueSetting {
    static constexpr uint32_t kFirstNodes = 16;  // there are many queues, and most stay short
    static void at(QueueStep step) noexcept;
  };
  void count_wait() noexcept;

  MsQueueOf<Setting> queue_;
  std::atomic<uint64_t> waited_ns_{0};
};

template <bool kLockFree>
struct Kind {
  using Fifo = GuardedFifo;
  using Gate = MutexGate;
};
template <>
struct Kind<true> {
  using Fifo = LockFreeFifo;
  using Gate = NoGate;
};
using Fifo = Kind<(kApproach >= 3)>::Fifo;
using Gate = Kind<(kApproach >= 3)>::Gate;

}  // namespace hm::vvmalloc
