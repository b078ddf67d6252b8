// Plays a plan: as many threads as were recorded, each repeating its operations, waiting where memory was handed over.
#pragma once

#include <atomic>
#include <cstdint>

#include "plan.h"

namespace hm::trace {

class Stage {
 public:
  explicit Stage(const Plan& plan);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Plays the plan once.  The calling thread plays the first recorded one.
  void play();
  // Frees the blocks that the program never freed; returns how many.
  uint64_t clear();

  uint64_t elapsed_ns() const { return elapsed_; }  // over all plays: first start to last end
  double cpu_share() const;                         // how much of a CPU each thread had
  uint64_t mallocs() const { return mallocs_; }     // number done, over all plays
  uint64_t frees() const { return frees_; }
  uint64_t reallocs() const { return reallocs_; }

 private:
  struct Actor {
    Stage* stage;
    uint64_t number;
  };

  static void* enter(void* actor);
  void act(uint64_t thread);
  void perform(const Operation& operation);
  void change_epoch(uint32_t left, uint32_t entered);
  void spawn(uint64_t thread);
  void publish(const Operation& operation, void* block);
  void* take(uint32_t number);

  const Plan& plan_;
  Actor* actors_;
  std::atomic<uint64_t> acting_{0};
  std::atomic<uint64_t> last_end_{0};
  std::atomic<uint64_t> cpu_{0}, wall_{0};
  std::atomic<uint64_t> mallocs_{0}, frees_{0}, reallocs_{0};
  uint64_t elapsed_ = 0;
};

}  // namespace hm::trace
