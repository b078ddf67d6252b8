// Keeps an eye on the other ranks: each gives a sign of life now and then, also while it is busy, and says when it
// leaves.  A rank that waits for one that is silent for too long, or has left, ends the job with a line that says so.
//
// MPI is entered by one thread at a time, the one that holds mutex(): the thread of the simulation, or the one that
// gives signs of life for it.
#pragma once

#include <mpi.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace pdes {

class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // limit: of silence; 0: none.  crowded: this rank must hand over its CPU at once when it waits.
  Watch(MPI_Comm world, Seconds limit, bool crowded);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Says so to all others and waits until they leave too: afterwards no message is under way.
  void leave();

  std::mutex& mutex() noexcept { return mutex_; }
  [[noreturn]] void abort(const char* why) const;

  // Politeness of one wait: spins, then yields, then looks after the ranks it waits for.
  class Wait {
   public:
    explicit Wait(Watch& watch) noexcept : watch_(watch) {}
    // After a poll in vain; missing() names the ranks waited for.
    template <class Missing>
    void pause(Missing missing) {
      if (++polls_ > watch_.spins_ && yield()) watch_.check(missing(), step_);
    }

   private:
    bool yield();  // true: time for a check
    Watch& watch_;
    unsigned polls_ = 0;
    Clock::time_point checked_{};  // last, or when it began to yield
    Seconds step_{};               // of waiting since the check before
  };

 private:
  // MPI's own progress is part of a poll, so that these are some ten microseconds.
  static constexpr unsigned kSpins = 100;
  static constexpr std::chrono::milliseconds kCheck{100};

  void give_signs(const std::stop_token& stop);
  void give_sign(bool leaving);
  void hear();
  void check(const std::vector<int>& missing, Seconds step);

  const Seconds limit_;
  const unsigned spins_;
  MPI_Comm comm_;  // of its own
  int rank_, count_;
  std::vector<Seconds> silent_;  // by rank, since its last sign or since this wait began
  std::vector<unsigned> left_;   // by rank, checks since it said that it leaves
  Clock::time_point given_{};
  std::mutex mutex_;
  std::jthread signs_;
};

}  // namespace pdes
