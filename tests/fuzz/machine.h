// Runs the program that an input is, on the thread that calls.  Several can run at once, each with blocks of its own;
// they hand some to each other through `shelf`.
#pragma once
#include <atomic>

#include "shadow.h"

namespace fuzz {

struct Shelf {
  std::atomic<Block*> places[16]{};
};

class Machine {
 public:
  enum class Stop { kEnd, kSwitch, kExit };  // for who runs it: the next instruction is for another thread

  // `forks`: how many it may make.
  Machine(Stream in, Places* places, Shelf* shelf, size_t forks)
      : in_(in), shadow_(places), places_(places), shelf_(shelf), forks_left_(forks) {}

  Stop run();
  size_t thread() const { return thread_; }  // after kSwitch
  bool late() const { return late_; }        // after kExit: let a destructor of the thread allocate
  void free_everything();

 private:
  static constexpr size_t kSlots = 96, kPile = 3000, kStepsInChild = 40;
  bool step();
  void slot_step(unsigned code);
  void use_slot(Block& block);
  void pile_up();
  void pile_down();
  void exchange();
  void reclaim_all();
  void examine_heap() const;
  void compare_gauges() const;
  void look_around_blocks() const;
  void set_option();
  void set_limit(size_t bytes);
  bool may_fail() const { return calls_fail_ || most_resident_ != SIZE_MAX; }
  void ask_for_pressure() const;
  void profile();
  void fail_calls();
  void fork_here();
  [[noreturn]] void be_child();

  Stream in_;
  Shadow shadow_;
  Places* places_;
  Shelf* shelf_;
  Block slots_[kSlots];
  Block pile_[kPile];  // many of one size
  size_t piled_ = 0;
  size_t thread_ = 0;
  bool late_ = false, is_child_ = false;
  size_t forks_left_;
  bool calls_fail_ = false;
  size_t most_resident_ = SIZE_MAX;  // with a limit
  Stop stop_ = Stop::kEnd;
};

}  // namespace fuzz
