// What the fuzzers share.  A fuzzer is a function of one input (libFuzzer's, see replay.cc too).  The allocator lives on
// from one input to the next, as it does in a program; what an input leaves behind is given back at its end.
#pragma once
#include "stream.h"

namespace fuzz {

// Ends the process: one line on descriptor 2, then abort.
[[noreturn]] void fail(const char* what, const void* where = nullptr);
inline void expect(bool holds, const char* what, const void* where = nullptr) {
  if (!holds) fail(what, where);
}

// First thing in every fuzzer.  The last inputs are kept in the file that HM_FUZZ_HISTORY names, however the process
// ends: a fault may need what earlier inputs left behind.  `replay --history FILE` runs them again.
void remember(const uint8_t* data, size_t size);
struct History {
  static constexpr size_t kInputs = 256, kLongest = 4096;
  struct Entry {
    uint64_t number;  // 0: none
    uint64_t size;
    uint8_t data[kLongest];
  };
  Entry entries[kInputs];
};

// Bytes that depend on the seed.  All of a block up to 64 KB; of a larger one both ends and a sample between, so that one
// of 1 GB costs little.  `size` names the block, only what lies below `limit` is looked at.
void fill(char* block, size_t size, unsigned seed);
bool matches(const char* block, size_t size, size_t limit, unsigned seed);
bool is_zero(const char* block, size_t size);

// Registry, this thread's heap, superblocks and huge blocks examine themselves.  While no other thread is in the allocator.
void examine_everything();
// Gives everything back; no block may be left.
void expect_nothing_held();

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
