#include "blowup_patterns.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <semaphore>
#include <thread>

#include "override/allocator.h"

namespace blowup {

struct Crew::Member {
  std::function<void()> task;
  std::binary_semaphore wanted{0}, finished{0};
  std::thread thread{[this] {
    for (;;) {
      wanted.acquire();
      if (!task) return;
      task();
      finished.release();
    }
  }};
};

Crew::Crew() {
  for (size_t i = 0; i < kThreads; ++i) members_.push_back(std::make_unique<Member>());
}

Crew::~Crew() {
  for (auto& member : members_) {
    member->task = nullptr;
    member->wanted.release();
    member->thread.join();
  }
}

void Crew::on(size_t thread, std::function<void()> task) {
  Member& member = *members_[thread % kThreads];
  member.task = std::move(task);
  member.wanted.release();
  member.finished.acquire();
}

Block Live::made(size_t size) {
  void* memory = hm::allocate(size);
  if (memory == nullptr) {
    fprintf(stderr, "blowup: no memory\n");
    exit(1);
  }
  memset(memory, 1, std::min<size_t>(size, 64));
  now_ += size;
  max_ = std::max(max_, now_);
  return {memory, size};
}

void Live::allocate(size_t size) { blocks_.push_back(made(size)); }

void Live::free(size_t index) {
  hm::deallocate(blocks_[index].memory, "blowup");
  now_ -= blocks_[index].size;
  blocks_[index] = {nullptr, 0};
}

void Live::free_all() {
  for (size_t i = 0; i < blocks_.size(); ++i) free(i);
  forget_places();
}

void Live::replace(size_t index, size_t size) {
  free(index);
  blocks_[index] = made(size);
}

namespace {

void fill(Live& live, size_t size) {
  for (size_t bytes = 0; bytes + size <= kLive; bytes += size) live.allocate(size);
}

// Hoard, section 2.2: one thread allocates, another frees.
void hand_over(size_t, Crew& crew, Live& live, Live&) {
  crew.on(0, [&] { fill(live, 200); });
  crew.on(1, [&] { live.free_all(); });
}

// The same with two who free, every other block each: of no two neighbours does one thread get both.
void hand_over_to_two(size_t, Crew& crew, Live& live, Live&) {
  crew.on(0, [&] { fill(live, 200); });
  for (size_t who = 0; who < 2; ++who)
    crew.on(1 + who, [&] {
      for (size_t i = who; i < live.places(); i += 2) live.free(i);
    });
  live.forget_places();
}

// Hoard, section 6: of P threads thread i allocates, thread i + 1 frees, then it is the next one's turn.
template <size_t kTurns>
void round_robin(size_t round, Crew& crew, Live& live, Live&) {
  crew.on(round % kTurns, [&] { fill(live, 200); });
  crew.on((round + 1) % kTurns, [&] { live.free_all(); });
}

// Every round another size, and another thread, which frees what it allocates.
void phases(size_t round, Crew& crew, Live& live, Live&) {
  crew.on(round / 4, [&] {
    fill(live, 16 + 16 * (round * 37 % kRounds));
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
  if (live.places() == 0) crew.on(0, [&] { fill(live, 512); });
  crew.on(round, [&] {
    uint64_t state = round * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < live.places(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      live.replace(state >> 33 & (std::bit_floor(live.places()) - 1), 16 + (state >> 20) % 1000);
    }
  });
}

}  // namespace

const std::vector<Pattern> kPatterns = {
    {"hand-over", "one allocates, another frees", hand_over},
    {"hand-over-to-two", "one allocates, two free every other block each", hand_over_to_two},
    {"round-robin-4", "of 4 threads thread i allocates, thread i + 1 frees, in turn", round_robin<4>},
    {"round-robin-16", "the same with 16 threads", round_robin<16>},
    {"phases", "each round another size, now and then another thread", phases},
    {"pins", "one block of each round stays", pins},
    {"random", "random lifetimes, threads in turn", random_lifetimes},
};

}  // namespace blowup
