// The plan of a replay: for each recorded thread the list of its operations, and the table of blocks by which threads
// hand memory to each other.
//
// Another process reads the trace and builds the plan in shared memory: the replaying process has allocated next to
// nothing before the clock starts, and its resident set contains the plan before and after alike.
//
// No replay can deadlock: an operation waits only for operations that come before it in the trace's order, so the first
// one in that order that is not yet done never waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace hm::trace {

enum class Step : uint8_t {
  kMalloc,  // the first five are the trace's kinds
  kCalloc,
  kAligned,
  kRealloc,
  kFree,
  kSpawn,  // begin thread `block`
  kEpoch,  // leave epoch `old` and enter epoch `block`, each unless kNoEpoch
};

struct Operation {
  uint64_t size : 48;
  uint64_t step : 8;
  uint64_t alignment : 8;  // its logarithm to base 2
  uint32_t block;          // made, or freed
  uint32_t old;            // reallocated
};
static_assert(sizeof(Operation) == 16);

class Plan {
 public:
  // A thread enters an epoch of the trace when all threads have left the one before the last: a thread far ahead of the
  // others would keep more memory in use at once than the program ever did.
  static constexpr uint64_t kEpochLength = 4096;  // operations of all threads together
  static constexpr uint32_t kNoEpoch = ~uint32_t{0};

  struct Numbers {
    uint64_t threads, epochs, blocks, steps;
    uint64_t operations, mallocs, frees, reallocs;
    uint64_t requested, max_in_use, cross_thread_frees;
  };
  struct List {
    const Operation* begin;
    const Operation* end;
  };

  // Throws Failure if the file cannot be read, after the reading process has printed why.
  static Plan read(const std::filesystem::path& file);

  const Numbers& numbers() const { return *numbers_; }
  List list(uint64_t thread) const { return {operations_ + begins_[thread], operations_ + begins_[thread + 1]}; }
  std::atomic<void*>& block(uint64_t number) const { return blocks_[number]; }  // null: not made yet, or freed
  // How many threads have not yet left the epoch.
  std::atomic<uint32_t>& waiting_for(uint64_t epoch) const { return waiting_[epoch]; }
  // Sets the epochs to their state before a replay.
  void reset() const;

 private:
  friend class Planner;
  explicit Plan(void* memory);
  static size_t size(const Numbers& numbers);

  Numbers* numbers_;
  uint64_t* begins_;  // of the threads' lists, and the end of the last
  Operation* operations_;
  std::atomic<void*>* blocks_;
  std::atomic<uint32_t>* waiting_;
  uint32_t* participants_;  // of each epoch
};

}  // namespace hm::trace
