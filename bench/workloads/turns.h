// Threads of which one runs at a time, in an order that the main thread sets: what they do is the same in every run, however
// busy the machine is.  The simulator (lab/native/cores) looks at a thread during its turns alone, so that handing over
// counts nothing.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cstdlib>
#include <vector>

#include "../../lab/native/cores/marks.h"

namespace bench {

// One core, and the thread that runs on it.  `work` is what it does in a turn.
template <class Work>
class Core {
 public:
  Core(unsigned index, Work& work) : index_(index), work_(work) {
    sem_init(&granted_, 0, 0);
    sem_init(&returned_, 0, 0);
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void start() {
    if (pthread_create(
            &thread_, nullptr, [](void* self) -> void* { return static_cast<Core*>(self)->live(), nullptr; }, this) != 0)
      std::abort();
  }

  void turn() {
    sem_post(&granted_);
    sem_wait(&returned_);
  }

  // The thread ends within its last turn, the destructors of its own objects included.
  void last_turn() {
    ends_ = true;
    sem_post(&granted_);
    pthread_join(thread_, nullptr);
    cores::say(cores::Say::end_turn);
    ends_ = false;
  }

 private:
  void live() {
    for (;;) {
      sem_wait(&granted_);
      cores::say(cores::Say::begin_turn, index_);
      work_.turn(index_);
      if (ends_) return cores::enter();  // what the allocator does when a thread ends is its work too
      cores::say(cores::Say::end_turn);
      sem_post(&returned_);
    }
  }

  const unsigned index_;
  Work& work_;
  sem_t granted_;
  sem_t returned_;
  pthread_t thread_{};
  bool ends_ = false;
};

}  // namespace bench
