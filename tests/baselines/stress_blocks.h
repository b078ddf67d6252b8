// Blocks that say whose they are.  The first sixteen bytes hold the size, the owner and a word made of both and of the
// address; the word stands again at every stride and at the very end.  A block that is handed out twice, moved wrongly
// or written by somebody else is noticed by whoever looks at it next.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "override/allocator.h"

namespace stress {

// Small and without an allocation of its own: it also runs in the child of a fork.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u | 1) {}
  uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 11;
  }
  bool one_in(uint64_t n) { return (*this)() % n == 0; }

 private:
  uint64_t state_;
};

struct Block {
  uint32_t size;
  uint32_t owner;
  uint64_t word;
};
inline constexpr size_t kMin = sizeof(Block);

// Mostly small; a few up to 2 MB; often right at a power of two.
size_t random_size(Random& random);

// By one of the entry points that make a block: plain, zeroed, aligned.
Block* allocate(size_t size, uint32_t owner, Random& random);
// The same block with another owner, perhaps elsewhere.  What it held must come along.
Block* resize(Block* block, size_t size, uint32_t owner);
void release(Block* block);
void check(const Block* block);

// Where threads hand blocks over: who puts one in takes out what was there.
class Table {
 public:
  Block* exchange(uint64_t slot, Block* block) { return slots_[slot % kSlots].exchange(block, std::memory_order_acq_rel); }
  void empty() {
    for (auto& slot : slots_)
      if (Block* block = slot.exchange(nullptr)) release(block);
  }

 private:
  static constexpr size_t kSlots = 512;
  std::atomic<Block*> slots_[kSlots]{};
};
extern Table table;

// Says what is wrong and ends the process, without allocating.
[[noreturn]] void fail(const char* what, const void* where = nullptr);
extern uint64_t seed;

}  // namespace stress
