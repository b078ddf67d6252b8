#include "baselines/vvmalloc/thread_lists.h"

#include <new>

#include "base/os_pages.h"

namespace hm::vvmalloc {
namespace {

constexpr size_t kRoom = 64 * kKiB;  // mapped at a time for lists

constinit thread_local bool ended = false;

}  // namespace

constinit thread_local ThreadList* my_list = nullptr;

ThreadList* ThreadLists::inherit() noexcept {
  LockGuard guard(lock_);
  ThreadList* list = orphans_;
  if (list == nullptr) return nullptr;
  orphans_ = list->next_orphan;
  list->orphan = false;
  return list;
}

ThreadList* ThreadLists::make() noexcept {
  constexpr size_t size = align_up(sizeof(ThreadList), kLine);
  LockGuard guard(lock_);
  if (last_ == UINT16_MAX) return nullptr;
  if (static_cast<size_t>(room_end_ - room_) < size) {
    auto* room = static_cast<char*>(os::map(kRoom, os::page_size()));
    if (room == nullptr) return nullptr;
    room_ = room;
    room_end_ = room + kRoom;
  }
  auto* list = new (room_) ThreadList(ListId(++last_), shared_);
  room_ += size;
  list->next = all_;
  all_ = list;
  return list;
}

ThreadList* ThreadLists::attach() noexcept {
  if (ended) return nullptr;
  ThreadList* list = inherit();
  if (list == nullptr) list = make();
  if (list == nullptr) return nullptr;
  my_list = list;
  exit_.watch(list);  // without a key for that, the list will have no heir
  return list;
}

void ThreadLists::leave(ThreadList* list) noexcept {
  LockGuard guard(lock_);
  list->orphan = true;
  list->next_orphan = orphans_;
  orphans_ = list;
}

void ThreadLists::thread_ends(void* list) noexcept {
  my_list = nullptr;
  ended = true;
  thread_lists.leave(static_cast<ThreadList*>(list));
}

ThreadList* ThreadLists::borrow(bool* locked) noexcept {
  if (ThreadList* list = inherit()) return list;
  *locked = late_lock_.lock();
  return &late_;
}

void ThreadLists::give_back(ThreadList* list, bool locked) noexcept {
  if (list != &late_) leave(list);
  if (locked) late_lock_.unlock();
}

void ThreadLists::before_fork() noexcept {
  held_for_fork_.take(late_lock_);
  held_for_fork_.take(lock_);
  if (Lock* central = shared_.central.lock()) held_for_fork_.take(*central);
  fork_has_heap_ = shared_.heap.lock().lock();
}

// Their threads are not in the child and may have been in the middle of a change.
void ThreadLists::mark_lost() noexcept {
  for (ThreadList* list = all_; list != nullptr; list = list->next)
    if (list != my_list && !list->orphan) list->lost = true;
}

// In the child the thread has a new id; the locks that it holds must name that.
void ThreadLists::after_fork(bool in_child) noexcept {
  if (in_child) {
    uint32_t before = rename_thread();
    for (Lock* lock : {&late_lock_, &lock_, shared_.central.lock()})
      if (lock != nullptr) lock->adopt_after_fork(before);
    mark_lost();
  }
  if (fork_has_heap_) shared_.heap.lock().unlock();
  held_for_fork_.release();
}

}  // namespace hm::vvmalloc
