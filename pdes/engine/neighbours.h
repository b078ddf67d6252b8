// What threads share that follow each other's clocks (Sync::neighbours).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/channel.h"
#include "pdes/event.h"

namespace pdes {

// A thread's promise that it will not execute any event before this time, so whatever it may still send to another
// thread is at least the lookahead later.  Never falls.
//
// Sequentially consistent, as in Parker: the thread that raises a clock sees the sleeper, or the sleeper sees the clock.
class alignas(128) Clock {
 public:
  // For the owner, after publishing what it sent: a thread that reads the clock and then the channels misses nothing.
  void raise(Time time) noexcept { time_.store(time); }
  Time own() const noexcept { return time_.load(std::memory_order_relaxed); }
  // For any thread.
  Time read() const noexcept { return time_.load(); }

 private:
  std::atomic<Time> time_{0};
};

// Here a thread sleeps until another one's clock has reached some time.
class alignas(128) Parker {
 public:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  // For the owner.  Must be followed by a last look at the clock, then park() or get_up().
  void prepare_to_park(std::uint32_t until_thread, Time until) noexcept {
    until_.store(until, std::memory_order_relaxed);  // seen by threads that see state_
    state_.store(until_thread);
  }
  void park() noexcept {
    for (std::uint32_t state; (state = state_.load()) != kAwake;) state_.wait(state);
  }
  void cancel() noexcept { state_.store(kAwake); }

  // For other threads: one that has raised its clock, or one with news for all.
  void raised(std::uint32_t thread, Time clock) noexcept {
    if (state_.load() == thread && clock >= until_.load(std::memory_order_relaxed)) [[unlikely]]
      unpark();
  }
  void unpark() noexcept {
    if (state_.load() != kAwake && state_.exchange(kAwake) != kAwake) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t kAwake = kNobody - 1;
  std::atomic<std::uint32_t> state_{kAwake};
  std::atomic<Time> until_{0};
};

class NullMessageGroup {
 public:
  explicit NullMessageGroup(unsigned threads) : clocks(threads), parkers(threads), to(threads) {}

  // Calls all threads to barrier number + 1, the caller having passed `number` barriers.
  void call(std::uint32_t number) noexcept {
    called_.store(number + 1);
    for (Parker& parker : parkers) parker.unpark();
  }
  bool is_called(std::uint32_t number) const noexcept { return called_.load() != number; }
  // A lower bound, over all threads, of the times of future events.
  Time min_clock() const noexcept;

  std::vector<Clock> clocks;
  std::vector<Parker> parkers;
  // to[a][b] leads from thread a to thread b if a may send to b.  Made by a, then read by all.
  std::vector<std::vector<std::unique_ptr<Channel<Key>>>> to;

 private:
  std::atomic<std::uint32_t> called_{0};
};

// Throws Error unless `from` may have `to` as neighbour, because there is such an LP.
void check_neighbour(LpId from, LpId to, LpId lps);

}  // namespace pdes
