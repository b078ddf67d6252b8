// A first-in first-out queue of superblocks of one class, used by a heap for the ones it has exhausted and by the
// global pool.  A superblock in a queue belongs to nobody (S1); whoever pops it is its holder.
//
// Invariant
//  Q1  The chain from head_ is whole at every instruction, and tail_ and count_ say of it what could be counted: the child
//      of a fork repairs a queue that a thread was changing which it does not have.
#pragma once
#include "base/lock.h"
#include "hmalloc/superblock.h"

namespace hm {

class SuperblockQueue {
 public:
  void push(Superblock& sb) noexcept {
    LockGuard guard(lock_);
    sb.next = nullptr;
    append(&sb);
    tail_ = &sb;
    set_count(count() + 1);
  }
  void push_front(Superblock& sb) noexcept {
    LockGuard guard(lock_);
    sb.next = head_;
    keep_order();
    head_ = &sb;
    if (tail_ == nullptr) tail_ = &sb;
    set_count(count() + 1);
  }
  Superblock* pop() noexcept {
    if (count() == 0) return nullptr;  // most queues are empty most of the time
    LockGuard guard(lock_);
    Superblock* sb = head_;
    if (sb == nullptr) return nullptr;
    head_ = sb->next;
    keep_order();
    if (head_ == nullptr) tail_ = nullptr;
    set_count(count() - 1);
    return sb;
  }
  // Up to n superblocks, linked by next.
  Superblock* pop_some(size_t n) noexcept {
    if (count() == 0) return nullptr;
    LockGuard guard(lock_);
    Superblock *first = head_, *rest = first, *last = nullptr;
    size_t popped = 0;
    for (; popped < n && rest != nullptr; ++popped) rest = (last = rest)->next;
    head_ = rest;
    keep_order();
    if (last != nullptr) last->next = nullptr;
    if (head_ == nullptr) tail_ = nullptr;
    else if (last != nullptr) head_->prefetch(last->class_index());  // the next to be popped, before long
    set_count(count() - popped);
    return first;
  }
  // All of a list linked by next.
  void push_all(Superblock* first) noexcept {
    if (first == nullptr) return;
    size_t pushed = 1;
    Superblock* last = first;
    for (; last->next != nullptr; last = last->next) ++pushed;
    LockGuard guard(lock_);
    append(first);
    tail_ = last;
    set_count(count() + pushed);
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
    for (Superblock* sb = head_; sb != nullptr; sb = sb->next, ++found) tail_ = sb;
    set_count(found);
  }
  bool is_valid() noexcept {
    LockGuard guard(lock_);
    size_t found = 0;
    Superblock* last = nullptr;
    for (Superblock* sb = head_; sb != nullptr && found <= count(); sb = sb->next, ++found) last = sb;
    return last == tail_ && found == count();
  }

 private:
  void append(Superblock* first) noexcept {
    keep_order();
    (tail_ == nullptr ? head_ : tail_->next) = first;
    keep_order();
  }
  void set_count(size_t n) noexcept { count_.store(static_cast<uint32_t>(n), std::memory_order_relaxed); }
  Lock lock_;
  std::atomic<uint32_t> count_{0};
  Superblock* head_ = nullptr;
  Superblock* tail_ = nullptr;
};

}  // namespace hm
