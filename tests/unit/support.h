// What the unit tests share.
#pragma once
#include <gtest/gtest.h>
#include <hmalloc/hmalloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/address_map.h"
#include "base/size_classes.h"
#include "core/superblock.h"
#include "pages/slice_pool.h"
#include "system.h"
#include "threads/thread_heap.h"

namespace hm::test {

inline constexpr unsigned kSeed = 20240611;

// Behind the one line of a process that aborts: nothing.  An emulator of processes adds a line of its own.
#define HM_LAST_LINE "\n(qemu: [^\n]*\n)?$"
#define HM_DESCRIBED "\n(  [^\n]*\n)+(qemu: [^\n]*\n)?$"

// Names of all classes as a loop: for (ClassIndex c : all_classes()).
inline std::vector<ClassIndex> all_classes() {
  std::vector<ClassIndex> classes;
  for (size_t c = 0; c < kClasses; ++c) classes.push_back(ClassIndex(c));
  return classes;
}

// How many of the next calls of munmap fail, in the program that has high_addresses_test.cc.
inline size_t munmaps_to_refuse = 0;
// Called once, inside the next call of madvise, in the same program.
inline std::function<void()> during_next_advice;

// For tests that count pages: where the kernel uses huge pages always, a byte that is written makes 2 MB resident.  Advice is
// taken, and seen in its flags, but not followed.
inline void use_no_huge_pages() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

// Of an estimate of so many bytes: six standard deviations, and two samples because few are not normally distributed.
inline double slack(double bytes, double rate) { return 6 * std::sqrt(bytes * rate) + 2 * rate; }

// Runs on a thread of its own, to its end: its heap is dead afterwards.
inline void on_thread(const std::function<void()>& body) { std::thread(body).join(); }
// Runs body(0) to body(n - 1), each on a thread of its own, to their ends.
void on_threads(unsigned n, const std::function<void(unsigned)>& body);

// Calls it from code that has no unwind tables, where the machine's is known (x86-64).
void call_without_tables(const std::function<void()>& body);

// Whether the child of a fork ends with true, in time.
bool child_succeeds(const std::function<bool()>& body, pid_t (*way_to_fork)() = fork);

std::vector<void*> allocate_many(size_t n, size_t size, void* (*allocate)(size_t) = hm_malloc);
void free_all(const std::vector<void*>& blocks);
// At most 200 blocks, listed on the stack: a child that is forked meanwhile must not find AddressSanitizer's malloc locked.
void allocate_and_free(size_t n, size_t size);
// Of blocks of `size` bytes, takes the first of each slice out of the list.
std::vector<void*> take_one_of_each_slice(std::vector<void*>& blocks, size_t size);

// A block filled with a pattern that depends on the seed; matches() says whether all of it is still there.
void fill(void* block, size_t size, unsigned seed);
bool matches(const void* block, size_t size, unsigned seed);
bool is_zero(const void* block, size_t size);

// Allocates, resizes and frees blocks of these sizes at random, and looks at their contents each time.
struct RandomUse {
  void* (*allocate)(size_t);
  void* (*reallocate)(void*, size_t);
  void (*release)(void*);
  size_t (*size)(uint32_t random);
};
void use_at_random(const RandomUse& use, size_t slots, unsigned operations);

// A block above 1 MB, of a size that the program asks for again and again.
inline char* allocate_recurring(size_t size) {
  hm_free(hm_malloc(size));
  return static_cast<char*>(hm_malloc(size));
}
// Where one was that is kept now, with all of its pages.
inline char* keep_written(size_t size) {
  char* block = allocate_recurring(size);
  memset(block, 1, size);
  hm_free(block);
  return block;
}

inline ChunkKind kind_of(const void* block) { return AddressMap::kind(address_of(block)); }
// By the whole process, as RLIMIT_AS counts them.
size_t mapped_bytes();
// How many bytes of the whole pages therein are resident.
size_t resident(char* from, size_t bytes);

// What the process may write to between two addresses, as the system lists it; what touches is one.
using AddressRange = std::pair<uintptr_t, uintptr_t>;
std::vector<AddressRange> accessible_bytes(uintptr_t from, uintptr_t to);
bool is_guard(uintptr_t page);  // mapped, and not for writing

// A formatted superblock outside every heap and queue; the test is its holder.
Superblock& fresh_superblock(ClassIndex c);
// Releases it, whatever of its blocks is taken.
void drop(Superblock& sb);

hm_stats stats_now();
std::string printed_stats(int form);

// Bytes that the program holds, as the census sees them, after everything that may be given back has been.
size_t allocated_after_collect();
// Everything that is shared, every heap without a thread, and this thread's own.
bool everything_is_valid();
// Blocks of every kind can be had, and everything is valid, before a collection and after it.
bool allocator_works();

// Tests that free all that they allocate.
struct NothingIsLost : testing::Test {
  void TearDown() override {
    EXPECT_TRUE(everything_is_valid());
    EXPECT_EQ(allocated_after_collect(), 0u);
  }
};

}  // namespace hm::test
