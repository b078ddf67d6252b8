// Which thread has which list.  With its first call a thread gets a list that an ended thread has left, or a new one.
// When a thread ends, its list, with all its free blocks and arenas, waits for the next one (the report does not say).
//
// A destructor of thread-specific data may allocate after that.  Such a thread borrows a waiting list for one
// operation, most often its own previous one; if none waits, it uses the late list, which is behind a lock.
#pragma once
#include "base/thread_exit.h"
#include "baselines/common/fork_locks.h"
#include "baselines/vvmalloc/thread_list.h"

namespace hm::vvmalloc {

extern constinit thread_local ThreadList* my_list;

class ThreadLists {
 public:
  constexpr explicit ThreadLists(Shared& shared) : shared_(shared), late_(kFirstList, shared) {}
  ThreadLists(const ThreadLists&) = delete;
  ThreadLists& operator=(const ThreadLists&) = delete;

  // For a thread that has none.  Null if its end has begun, or there is no memory for a list.
  ThreadList* attach() noexcept;
  // For one operation.  locked: it is the late list, whose lock must be released too.
  ThreadList* borrow(bool* locked) noexcept;
  void give_back(ThreadList* list, bool locked) noexcept;

  // Calls visit(list) for every list.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    LockGuard guard(lock_);
    visit(late_);
    for (ThreadList* list = all_; list != nullptr; list = list->next) visit(*list);
  }

  void before_fork() noexcept;
  void after_fork(bool in_child) noexcept;

 private:
  static void thread_ends(void* list) noexcept;
  ThreadList* inherit() noexcept;
  void leave(ThreadList* list) noexcept;
  ThreadList* make() noexcept;
  void mark_lost() noexcept;

  Shared& shared_;
  Lock late_lock_;
  ThreadList late_;
  Lock lock_;
  ThreadExit exit_{&ThreadLists::thread_ends};
  ThreadList* all_ = nullptr;
  ThreadList* orphans_ = nullptr;
  uint16_t last_ = static_cast<uint16_t>(kFirstList);  // the last number assigned
  char* room_ = nullptr;                               // for further lists
  char* room_end_ = nullptr;
  ForkLocks<4> held_for_fork_;
  bool fork_has_heap_ = false;
};

extern constinit ThreadLists thread_lists;

// The calling thread's list, for one operation.
class [[nodiscard]] MyList {
 public:
  MyList() noexcept : list_(my_list) {
    if (HM_LIKELY(list_ != nullptr) || (list_ = thread_lists.attach()) != nullptr) return;
    list_ = thread_lists.borrow(&locked_);
    borrowed_ = true;
  }
  ~MyList() {
    if (HM_UNLIKELY(borrowed_)) thread_lists.give_back(list_, locked_);
  }
  MyList(const MyList&) = delete;
  MyList& operator=(const MyList&) = delete;
  ThreadList* operator->() const noexcept { return list_; }

 private:
  ThreadList* list_;
  bool borrowed_ = false, locked_ = false;
};

}  // namespace hm::vvmalloc
