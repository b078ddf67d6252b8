// A FIFO queue of superblocks of one class, used by a heap for those it has exhausted and by the global pool.  A
// superblock in a queue has no holder (S1); the thread that takes it out becomes its holder.
//
// A queue outlives every superblock that may name it: queues belong to the pool or to heaps, and heaps are never freed.
//
// Invariant
//  Q1  The chain from head_ is complete after every instruction, and each superblock whose home is this queue is in it.
//      All else (previous, tail_, count_, missing homes) can be rebuilt from the chain.  The child of a fork does that with
//      a queue that another thread of the parent was changing.
#pragma once
#include "base/lock.h"
#include "core/superblock.h"

namespace hm {

class SuperblockQueue {
 public:
  void push(Superblock& sb) noexcept {
    LockGuard guard(lock_);
    append(sb);
    set_count(count() + 1);
  }
  void push_front(Superblock& sb) noexcept {
    LockGuard guard(lock_);
    sb.previous = nullptr;
    sb.next = head_;
    keep_order();
    (head_ == nullptr ? tail_ : head_->previous) = &sb;
    head_ = &sb;
    keep_order();
    sb.set_home(this);
    set_count(count() + 1);
  }
  Superblock* pop() noexcept { return pop_some(1); }
  // Up to n superblocks, linked by next.
  Superblock* pop_some(size_t n) noexcept {
    if (count() == 0) return nullptr;  // most queues are empty most of the time
    LockGuard guard(lock_);
    Superblock *first = head_, *rest = first, *last = nullptr;
    size_t popped = 0;
    for (; popped < n && rest != nullptr; ++popped) {
      last = rest;
      last->set_home(nullptr);
      rest = last->next;
    }
    keep_order();
    head_ = rest;
    keep_order();
    if (last != nullptr) last->next = nullptr;
    if (rest == nullptr) {
      tail_ = nullptr;
    } else {
      rest->previous = nullptr;
      if (n > 1) rest->prefetch(rest->class_index());  // it will be popped soon
    }
    set_count(count() - popped);
    return first;
  }
  // Pushes a list linked by next.
  void push_all(Superblock* first) noexcept {
    if (first == nullptr) return;
    LockGuard guard(lock_);
    size_t pushed = 0;
    for (Superblock* sb = first; sb != nullptr; ++pushed) {
      Superblock* next = sb->next;
      append(*sb);
      sb = next;
    }
    set_count(count() + pushed);
  }
  // Under the lock; sb is in this queue.
  void unlink(Superblock& sb) noexcept {
    sb.set_home(nullptr);
    keep_order();
    (sb.previous == nullptr ? head_ : sb.previous->next) = sb.next;
    (sb.next == nullptr ? tail_ : sb.next->previous) = sb.previous;
    set_count(count() - 1);
  }
  // For any thread; only a hint without the lock.
  size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  Lock& lock() noexcept { return lock_; }

  template <class Visit>
  void for_each(Visit visit) noexcept {
    LockGuard guard(lock_);
    for (Superblock* sb = head_; sb != nullptr; sb = sb->next) visit(*sb);
  }

  // In the child of a fork, with the lock that a thread of the parent held: Q1.
  void repair() noexcept {
    size_t found = 0;
    tail_ = nullptr;
    for (Superblock* sb = head_; sb != nullptr; sb = sb->next, ++found) {
      sb->previous = tail_;
      sb->set_home(this);
      tail_ = sb;
    }
    set_count(found);
  }
  bool is_valid() noexcept {
    LockGuard guard(lock_);
    size_t found = 0;
    Superblock* last = nullptr;
    for (Superblock* sb = head_; sb != nullptr; sb = sb->next, ++found) {
      if (found == count() || sb->previous != last || sb->home() != this) return false;
      last = sb;
    }
    return last == tail_ && found == count();
  }

 private:
  void append(Superblock& sb) noexcept {
    sb.previous = tail_;
    sb.next = nullptr;
    keep_order();
    (tail_ == nullptr ? head_ : tail_->next) = &sb;
    tail_ = &sb;
    keep_order();
    sb.set_home(this);
  }
  void set_count(size_t n) noexcept { count_.store(static_cast<uint32_t>(n), std::memory_order_relaxed); }
  Lock lock_;
  std::atomic<uint32_t> count_{0};
  Superblock* head_ = nullptr;
  Superblock* tail_ = nullptr;
};

}  // namespace hm
