// A first-in first-out queue of superblocks of one class, used by a heap for the ones it has exhausted and by the
// global pool.  A superblock in a queue belongs to nobody (S1); whoever takes it out is its holder.
//
// Queues are never destroyed while a superblock may name them: they are the pool's or a heap's, and heaps stay.
//
// Invariant
//  Q1  The chain from head_ is whole at every instruction, and what names this queue as its home is in the chain.  All
//      else (previous, tail_, count_, missing homes) can be made anew from the chain: the child of a fork does so with a
//      queue that a thread was changing which it does not have.
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
      if (n > 1) rest->prefetch(rest->class_index());  // the next to be popped, before long
    }
    set_count(count() - popped);
    return first;
  }
  // All of a list linked by next.
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
  // Under the lock, of one that is in here.
  void unlink(Superblock& sb) noexcept {
    sb.set_home(nullptr);
    keep_order();
    (sb.previous == nullptr ? head_ : sb.previous->next) = sb.next;
    (sb.next == nullptr ? tail_ : sb.next->previous) = sb.previous;
    set_count(count() - 1);
  }
  // Any thread; a hint outside the lock.
  size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  Lock& lock() noexcept { return lock_; }

  template <class Visit>
  void for_each(Visit visit) noexcept {
    LockGuard guard(lock_);
    for (Superblock* sb = head_; sb != nullptr; sb = sb->next) visit(*sb);
  }

  // In the child of a fork, under the lock, which a thread held that is not there: Q1.
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
