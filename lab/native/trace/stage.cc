#include "stage.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernel.h"
#include "trace.h"

namespace hm::trace {
namespace {

constexpr size_t kPage = 4096;

// Threads of the replay cannot throw past each other, and there is no memory for a long message.
[[noreturn]] void give_up(const char* why, uint64_t number) {
  std::fprintf(stderr, "hmalloc trace: replay: %s (%llu)\n", why, static_cast<unsigned long long>(number));
  _Exit(1);
}

// Most hand-overs are near; with more threads than processors another thread has to run first, and in long waits the
// thread sleeps.
class Patience {
 public:
  void wait() {
    ++tries_;
    if (tries_ < 64) return pause();
    if (tries_ < 1024) {
      sched_yield();
      return;
    }
    timespec nap{0, 50'000};
    nanosleep(&nap, nullptr);
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  unsigned tries_ = 0;
};

void touch(void* block, size_t size) {
  for (size_t at = 0; at < size; at += kPage) static_cast<volatile char*>(block)[at] = 1;
}

}  // namespace

// In memory of its own: what the replay needs does not come from the allocator that it measures.
Stage::Stage(const Plan& plan) : plan_(plan) {
  size_t bytes = plan.numbers().threads * sizeof(Actor);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw Failure("no memory for the threads of the replay");
  actors_ = static_cast<Actor*>(memory);
  for (uint64_t number = 0; number < plan.numbers().threads; ++number) actors_[number] = {this, number};
}

Stage::~Stage() { munmap(actors_, plan_.numbers().threads * sizeof(Actor)); }

void Stage::play() {
  plan_.reset();
  acting_ = 1;
  uint64_t start = wall_ns();
  act(0);
  for (uint64_t left = acting_; left != 0; left = acting_) acting_.wait(left);
  elapsed_ += last_end_ - start;
}

uint64_t Stage::clear() {
  uint64_t left = 0;
  for (uint64_t number = 0; number < plan_.numbers().blocks; ++number) {
    void* block = plan_.block(number).exchange(nullptr, std::memory_order_relaxed);
    left += block != nullptr;
    std::free(block);
  }
  return left;
}

double Stage::cpu_share() const { return wall_ == 0 ? 1 : static_cast<double>(cpu_) / static_cast<double>(wall_); }

void* Stage::enter(void* actor) {
  auto [stage, number] = *static_cast<Actor*>(actor);
  stage->act(number);
  return nullptr;
}

void Stage::act(uint64_t thread) {
  uint64_t start = wall_ns();
  uint64_t cpu = thread_cpu_ns();
  uint64_t done[7] = {};
  Plan::List list = plan_.list(thread);
  for (const Operation* operation = list.begin; operation != list.end; ++operation) {
    perform(*operation);
    ++done[operation->step];
  }
  auto number = [&](Step step) { return done[static_cast<size_t>(step)]; };
  mallocs_ += number(Step::kMalloc) + number(Step::kCalloc) + number(Step::kAligned);
  frees_ += number(Step::kFree);
  reallocs_ += number(Step::kRealloc);
  cpu_ += thread_cpu_ns() - cpu;
  uint64_t end = wall_ns();
  wall_ += end - start;
  for (uint64_t last = last_end_; last < end && !last_end_.compare_exchange_weak(last, end);) {}
  if (--acting_ == 0) acting_.notify_all();
}

void Stage::perform(const Operation& operation) {
  size_t size = operation.size;
  switch (Step{static_cast<uint8_t>(operation.step)}) {
    case Step::kMalloc: return publish(operation, std::malloc(size));
    case Step::kCalloc: return publish(operation, std::calloc(1, size));
    case Step::kAligned: {
      void* block = nullptr;
      int error = posix_memalign(&block, size_t{1} << operation.alignment, size);
      return publish(operation, error == 0 ? block : nullptr);
    }
    case Step::kRealloc: return publish(operation, std::realloc(take(operation.old), size));
    case Step::kFree: return std::free(take(operation.block));
    case Step::kSpawn: return spawn(operation.block);
    case Step::kEpoch: return change_epoch(operation.old, operation.block);
  }
}

void Stage::publish(const Operation& operation, void* block) {
  if (block == nullptr) give_up("out of memory, bytes asked for", operation.size);
  touch(block, operation.size);
  plan_.block(operation.block).store(block, std::memory_order_release);
}

// Each block is taken once: by its free or by its realloc.
void* Stage::take(uint32_t number) {
  std::atomic<void*>& slot = plan_.block(number);
  void* block;
  for (Patience patience; (block = slot.load(std::memory_order_acquire)) == nullptr;) patience.wait();
  slot.store(nullptr, std::memory_order_relaxed);
  return block;
}

void Stage::change_epoch(uint32_t left, uint32_t entered) {
  if (left != Plan::kNoEpoch && --plan_.waiting_for(left) == 0) plan_.waiting_for(left).notify_all();
  if (entered == Plan::kNoEpoch || entered < 2) return;
  std::atomic<uint32_t>& waiting = plan_.waiting_for(entered - 2);
  for (uint32_t number = waiting; number != 0; number = waiting) waiting.wait(number);
}

// Detached, so that the next thread can use the stack of one that has ended, as in the program.
void Stage::spawn(uint64_t thread) {
  ++acting_;
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t ignored;
  if (int error = pthread_create(&ignored, &detached, enter, &actors_[thread])) { give_up(std::strerror(error), thread); }
  pthread_attr_destroy(&detached);
}

}  // namespace hm::trace
