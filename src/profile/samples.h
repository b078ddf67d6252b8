// The sampled blocks that the program holds, and the stacks that allocated them.
//
// Whoever adds or removes one holds no lock, and no structure of the allocator's is open; so the stack is taken by the C
// library's unwinder, which may take a lock of its own (docs/design.md, A).
#pragma once
#include "base/lock.h"
#include "profile/call_trace.h"
#include "profile/lives.h"

namespace hm {

struct Stack {
  uint64_t hash;
  uint32_t first_frame, frames;     // in the array of frames: return addresses, the innermost first
  double objects, bytes;            // allocated so far, estimated from samples
  double live_objects, live_bytes;  // in a snapshot: of these, what the program holds
};

struct Sample {
  uintptr_t block;  // 0: there is none here
  uint64_t size;
  double weight;       // how many blocks it stands for
  uint32_t stack;      // 0: it is in no profile
  uint32_t thread;     // that allocated it, its row (lives.h)
  uint32_t thread_id;  // of that thread
  uint32_t inside;     // how many of the stack's frames lie inside the allocator
  uint64_t born_ns;    // by the monotonic clock; 0: how its life ends is not asked for
};

inline double bytes_of(const Sample& sample) noexcept { return sample.weight * static_cast<double>(sample.size); }

// A sampled block that was freed.
struct EndedSample {
  Sample was;
  uint32_t freed_at, freed_inside;  // as of the allocation; 0: no stack was taken
  uint32_t freed_by;
};

struct Snapshot {
  MappedArray<Stack> stacks;
  MappedArray<uintptr_t> frames;
  MappedArray<Life> lives;
  MappedArray<SampledThread> threads;
  uint32_t stack_count = 0, life_count = 0, thread_count = 0;
  uint64_t lost = 0;  // samples for which there was no memory, or no stack
  bool complete = false;
  Snapshot() = default;
  ~Snapshot() { stacks.clear(), frames.clear(), lives.clear(), threads.clear(); }
};

class Samples {
 public:
  // The calling thread allocated it just now, by a call from `caller`.  False: it is not in the table.
  bool add(void* block, size_t size, double weight, const void* caller) noexcept;
  bool add_without_stack(const void* block) noexcept;
  bool drop(const void* block) noexcept;  // it was not sampled after all; false: it was not in the table
  // The calling thread frees it, or makes it another size, by a call from `caller`.  False: it was not in the table.
  bool remove(const void* block, const void* caller, bool is_freed = true) noexcept;
  // Whether there may be any.  Relaxed: who frees a block has it from a thread that has added it before.
  bool any() const noexcept { return live_.load(std::memory_order_relaxed) != 0; }
  bool any_profiled() const noexcept { return profiled_.load(std::memory_order_relaxed) != 0; }  // relaxed: as above
  // For a stop: of it and the end of the last one, whichever comes second under the lock sees the other.
  bool any_profiled_now() noexcept {
    LockGuard guard(lock_);
    return any_profiled();
  }
  // What the program holds, estimated.  Relaxed: it is a number alone.
  uint64_t held_bytes() const noexcept { return held_bytes_.load(std::memory_order_relaxed); }
  void take(Snapshot& out) noexcept;
  // Where it was allocated and freed, on descriptor 2, as far as that is known: it is in the table, or was not long ago.  For who
  // ends the program; if the lock is taken, nothing is known.
  void describe(const void* block) noexcept;
  // In the child of a fork: it has what its parent had, unless another thread had the lock.
  void repair(uint32_t before) noexcept;
  bool is_valid() noexcept;

 private:
  friend struct Layout;
  bool make_room() noexcept;
  void enter(const Sample& sample) noexcept;
  void remember(const EndedSample& ended) noexcept { ended_[ended_count_++ % kEnded] = ended; }
  const EndedSample* find_ended(uintptr_t block) const noexcept;  // the last; null: none of the last ones
  CallTrace trace_of(uint32_t stack, uint32_t inside, uint32_t thread_id) const noexcept;
  void count(const Sample& sample, bool more) noexcept;
  uint32_t intern(uintptr_t* frames, size_t n) noexcept;  // 0: no memory
  size_t slot_of(uintptr_t block) const noexcept;         // where it is, or would be
  Sample take_out(uintptr_t block) noexcept;              // all zero: it was not there

  Lock lock_;
  MappedArray<Sample> table_;  // open addressing, at most half full
  size_t slots_ = 0;           // of the table, a power of two
  NumberedRows<Stack> stacks_;
  MappedArray<uintptr_t> frames_;
  Lives lives_;
  static constexpr size_t kEnded = 256;
  EndedSample ended_[kEnded]{};
  size_t ended_count_ = 0;  // ever
  uint32_t frame_count_ = 0;
  uint32_t epoch_ = 0;                         // numbers of stacks are of one
  std::atomic<size_t> live_{0}, profiled_{0};  // in the table, and those of them that have a stack
  std::atomic<size_t> held_bytes_{0};
  uint64_t lost_ = 0;
  uint64_t in_this_process_since_ = 0;  // of a child: what is older was allocated by its parent; 0: it is none
};
extern constinit Samples samples;

}  // namespace hm
