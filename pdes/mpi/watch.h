// Monitors the other ranks: each gives a sign of life now and then, also while it is busy, and announces when it
// leaves.  If a rank waits for one that is silent for too long, or has left, it ends the job with a line that says so.
//
// MPI is entered by one thread at a time, the one that holds mutex(): the thread of the simulation, or the one that
// gives signs of life for it.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace pdes {

class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // limit: of silence; 0: none.  crowded: this rank must give up its CPU at once when it waits.
  Watch(MPI_Comm world, Seconds limit, bool crowded);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Announces that this rank leaves, and waits until all others do too: afterwards no message is in transit.
  void leave();
  // Counts this rank's windows that are over.
  void window_is_over() noexcept { ++windows_; }
  // Whether the rank has left, but not before it saw the end of as many windows, and so owes nothing to the last of them.
  bool left_after(int rank, std::uint64_t windows) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    return left_[r] > 0 && windows_of_[r] >= windows;
  }

  std::mutex& mutex() noexcept { return mutex_; }
  [[noreturn]] void abort(const char* why) const;

  // How one wait behaves: it spins, then yields, then checks the ranks that it waits for.
  class Wait {
   public:
    explicit Wait(Watch& watch) noexcept : watch_(watch) {}
    // After a poll in vain; missing() names the ranks that have not answered.
    template <class Missing>
    void pause(Missing missing) {
      if (++polls_ > watch_.spins_ && yield()) watch_.check(missing(), step_);
    }

   private:
    bool yield();  // true: time for a check
    Watch& watch_;
    unsigned polls_ = 0;
    Clock::time_point checked_{};  // the last check, or when it began to yield
    Seconds step_{};               // of waiting since the previous check
  };

 private:
  // MPI's own progress is part of a poll, so these take some ten microseconds.
  static constexpr unsigned kSpins = 100;
  static constexpr std::chrono::milliseconds kCheck{100};

  void give_signs(const std::stop_token& stop);
  void give_sign(bool leaving);
  void hear();
  void check(const std::vector<int>& missing, Seconds step);

  const Seconds limit_;
  const unsigned spins_;
  MPI_Comm comm_;  // its own communicator
  int rank_, count_;
  std::vector<Seconds> silent_;            // by rank: since its last sign, or since this wait began
  std::vector<unsigned> left_;             // by rank: checks since it announced that it leaves
  std::vector<std::uint64_t> windows_of_;  // by rank: that were over when it left
  std::uint64_t windows_ = 0;
  Clock::time_point given_{};
  std::mutex mutex_;
  std::jthread signs_;
};

}  // namespace pdes
