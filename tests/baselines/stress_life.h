// What one thread of the stress does from its start to its end.
#pragma once
#include <array>
#include <atomic>

#include "stress_blocks.h"

namespace stress {

extern std::atomic<bool> done;

// The blocks that a thread holds, and what it does to them.  Nothing in it comes from the process's own malloc.
class Life {
 public:
  explicit Life(uint32_t number) : number_(number), random_(seed * 7919 + number) {}

  void step();
  // A parcel of blocks goes out, or one that came in is opened and all in it freed.
  void send_parcel(size_t size);
  void receive_parcel();
  // Most of what is left goes to the table: a thread's blocks outlive it.
  void leave();
  uint64_t length() { return 100 + random_() % 3000; }

 private:
  Block* fresh() { return allocate(random_size(random_), number_, random_); }
  void drop(Block*& block);
  void hand_over(Block*& block);
  void burst();

  uint32_t number_;
  Random random_;
  std::array<Block*, 200> held_{};
};

void empty_parcels();

// A key whose destructor allocates, frees and comes again, as often as destructors are run.  Two of them, one made
// before the baseline makes its own and one after: destructors run in the order of their keys.
enum Lateness { kEarlyKey, kLateKey };
void make_key(Lateness which);

// A whole thread: be late one time in three, work until it is done, leave.  One in four only sends parcels and one in
// four only receives them: nothing but the allocator tells the sender when its blocks are free.
void live(uint32_t number);

}  // namespace stress
