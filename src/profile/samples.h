// The sampled blocks that the program holds, and the stacks that allocated them.
//
// Whoever adds or removes one holds no lock, and no structure of the allocator's is open; so the stack is taken by the C
// library's unwinder, which may take a lock of its own (docs/design.md, A).
#pragma once
#include "base/lock.h"
#include "profile/mapped_array.h"

namespace hm {

inline constexpr size_t kMostFrames = 62;

struct Stack {
  uint64_t hash;
  uint32_t first_frame, frames;     // in the array of frames: return addresses, the innermost first
  double objects, bytes;            // allocated so far, estimated from samples
  double live_objects, live_bytes;  // in a snapshot: of these, what the program holds
};

struct Sample {
  uintptr_t block;  // 0: there is none here
  uint64_t size;
  double weight;  // how many blocks it stands for
  uint64_t stack;
};
static_assert(std::has_single_bit(sizeof(Sample)), "so that as many as fit into whole pages are a power of two");

struct Snapshot {
  MappedArray<Stack> stacks;
  MappedArray<uintptr_t> frames;
  size_t stack_count = 0;
  uint64_t lost = 0;  // samples for which there was no memory, or no stack
  bool complete = false;
  Snapshot() = default;
  ~Snapshot() { stacks.clear(), frames.clear(); }
};

class Samples {
 public:
  // At the start of a profile: the unwinder may load a library, which allocates.  Returns 0; ENOTSUP: there is none; or ENOMEM.
  static int prepare() noexcept;
  // The calling thread allocated it just now, by a call from `caller`.  False: it is not in the table.
  bool add(void* block, size_t size, double weight, const void* caller) noexcept;
  void remove(const void* block) noexcept;
  // Whether there may be any.  Relaxed: who frees a block has it from a thread that has added it before.
  bool any() const noexcept { return live_.load(std::memory_order_relaxed) != 0; }
  void take(Snapshot& out) noexcept;
  // In the child of a fork: it has what its parent had, unless another thread had the lock.
  void repair(uint32_t before) noexcept;
  bool is_valid() noexcept;

 private:
  bool make_room() noexcept;
  uint32_t intern(uintptr_t* frames, size_t n) noexcept;  // 0: no memory
  size_t slot_of(uintptr_t block) const noexcept;         // where it is, or would be
  void grow_index(size_t stacks) noexcept;

  Lock lock_;
  MappedArray<Sample> table_;    // open addressing, at most half full
  MappedArray<Stack> stacks_;    // the first is unused
  MappedArray<uint32_t> index_;  // of stacks, by hash; open addressing, at most half full
  MappedArray<uintptr_t> frames_;
  uint32_t stack_count_ = 0, frame_count_ = 0;
  std::atomic<size_t> live_{0};
  uint64_t lost_ = 0;
};
extern constinit Samples samples;

}  // namespace hm
