// A/U of one baseline (Hoard, definition 1) over the rounds of each pattern: A is what is mapped, U the most that was
// live.  The patterns' live memory never exceeds some 2 MB, however long they run; what each allocator takes from the
// system for them, blowup_expected.h says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <ostream>
#include <string_view>
#include <thread>
#include <vector>

#include "blowup_expected.h"
#include "override/allocator.h"

using namespace blowup;

namespace {

constexpr size_t kThreads = 16, kRounds = 64, kLive = size_t{2} << 20;

// Threads that live as long as the pattern and work one at a time: nothing depends on the scheduler.
class Crew {
 public:
  ~Crew() {
    for (size_t i = 0; i < kThreads; ++i) on(i, nullptr);
  }
  // On that thread; returns when it is done.
  void on(size_t thread, std::function<void()> task) {
    Member& member = members_[thread % kThreads];
    std::unique_lock guard(member.lock);
    member.task = std::move(task);
    member.wanted = true;
    member.changed.notify_one();
    member.changed.wait(guard, [&] { return !member.wanted; });
  }

 private:
  // No std::binary_semaphore: that of GCC 12 now and then sleeps for ever when it is released (its bug 104928).
  struct Member {
    std::mutex lock;
    std::condition_variable changed;
    std::function<void()> task;
    bool wanted = false;
    std::jthread thread{[this] {
      std::unique_lock guard(lock);
      do {
        changed.wait(guard, [this] { return wanted; });
        if (task) task();
        wanted = false;
        changed.notify_one();
      } while (task);
    }};
  };
  std::array<Member, kThreads> members_;
};

// The program's blocks, and how many bytes they have been at most.
class Live {
 public:
  void allocate(size_t size) { blocks_.push_back(made(size)); }
  void fill(size_t size) {
    for (size_t bytes = 0; bytes + size <= kLive; bytes += size) allocate(size);
  }
  void replace(size_t index, size_t size) {
    free(blocks_[index]);
    blocks_[index] = made(size);
  }
  void free_all() {
    for (const Block& block : blocks_) free(block);
    blocks_.clear();
  }
  size_t count() const { return blocks_.size(); }
  size_t most() const { return most_; }

 private:
  struct Block {
    void* memory;
    size_t size;
  };
  Block made(size_t size) {
    most_ = std::max(most_, now_ += size);
    return {memset(hm::allocate(size), 1, std::min<size_t>(size, 64)), size};
  }
  void free(const Block& block) {
    hm::deallocate(block.memory, "blowup");
    now_ -= block.size;
  }
  std::vector<Block> blocks_;
  size_t now_ = 0, most_ = 0;
};

// Hoard, section 2.2: one thread allocates, another frees.
void hand_over(size_t, Crew& crew, Live& live, Live&) {
  crew.on(0, [&] { live.fill(200); });
  crew.on(1, [&] { live.free_all(); });
}

// Hoard, section 6: of P threads thread i allocates, thread i + 1 frees, then it is the next one's turn.
void round_robin(size_t round, Crew& crew, Live& live, Live&) {
  crew.on(round, [&] { live.fill(200); });
  crew.on(round + 1, [&] { live.free_all(); });
}

// Every round another size, and now and then another thread, which frees what it allocates.
void phases(size_t round, Crew& crew, Live& live, Live&) {
  crew.on(round / 4, [&] {
    live.fill(16 + 16 * (round * 37 % kRounds));
    live.free_all();
  });
}

// One thread by itself; of each round's blocks one stays for ever, each time another one.
void pins(size_t round, Crew& crew, Live& live, Live& kept) {
  crew.on(0, [&] {
    for (size_t bytes = 0, i = 0; bytes + 56 <= kLive; bytes += 56, ++i) (i == round * 571 ? kept : live).allocate(56);
    live.free_all();
  });
}

// A table of blocks that the threads in turn replace at random: every block has another lifetime.
void random_lifetimes(size_t round, Crew& crew, Live& live, Live&) {
  if (live.count() == 0) crew.on(0, [&] { live.fill(512); });
  crew.on(round, [&] {
    uint64_t state = round * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < live.count(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      live.replace(state >> 33 & (std::bit_floor(live.count()) - 1), 16 + (state >> 20) % 1000);
    }
  });
}

struct Pattern {
  const char* name;
  void (*round)(size_t round, Crew& crew, Live& live, Live& kept);
  friend void PrintTo(const Pattern& pattern, std::ostream* out) { *out << pattern.name; }
};
constexpr Pattern kPatterns[] = {{"hand_over", hand_over},
                                 {"round_robin", round_robin},
                                 {"phases", phases},
                                 {"pins", pins},
                                 {"random", random_lifetimes}};

// Of the lines of this library and its family the one with the longest name.
const Expected& expected_of(std::string_view pattern) {
  const Expected* found = nullptr;
  for (const Expected& row : kExpected)
    if (row.pattern == pattern && std::string_view(HM_LIBRARY_NAME).starts_with(row.baseline))
      if (found == nullptr || strlen(row.baseline) > strlen(found->baseline)) found = &row;
  return *found;
}

class Blowup : public testing::TestWithParam<Pattern> {};

}  // namespace

TEST_P(Blowup, IsAsExpected) {
  // The same on every machine: as many heaps and arenas as threads.
  setenv("HOARD_HEAPS", "16", 1);
  setenv("AR_MALLOC_ARENAS", "16", 1);
  hm::baseline::start();
  Live live, kept;
  size_t before = hm::usage().mapped, mapped[4] = {};  // at the ends of the quarters
  {
    Crew crew;
    for (size_t round = 0; round < kRounds; ++round) {
      GetParam().round(round, crew, live, kept);
      mapped[round * 4 / kRounds] = hm::usage().mapped - before;
    }
  }
  double ratio = static_cast<double>(mapped[3]) / static_cast<double>(live.most() + kept.most());
  // Grows: the second half of the rounds brought more than half of what the first had brought.
  Course course = mapped[3] - mapped[1] > mapped[1] / 2 ? kGrows : kSteady;
  const Expected& expected = expected_of(GetParam().name);
  printf("A/U %.2f, %s: %s\n", ratio, course == kGrows ? "grows" : "steady", expected.why);
  EXPECT_EQ(course, expected.course);
  EXPECT_GE(ratio, expected.least);
  EXPECT_LE(ratio, expected.most);
}

INSTANTIATE_TEST_SUITE_P(, Blowup, testing::ValuesIn(kPatterns), [](const auto& of) { return of.param.name; });
