// Fuzzer of the whole allocator: an input is a program of calls that is checked against what it must give.
//
// The first byte chooses.  Threads take turns: one table of blocks for up to eight threads, the input says who acts next
// and who ends; whole structures are examined, and options change.  Or two to four threads run at once, each its part of
// the input, and hand blocks to each other; what they find in them must be what was written.
#include <hmalloc/hmalloc_local.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "base/os_pages.h"
#include "crew.h"
#include "fuzz.h"
#include "machine.h"
#include "pages/options.h"

namespace fuzz {
namespace {

// So many of eight inputs.  Threads that take turns have no races, and ThreadSanitizer nothing to say.
#if defined(HM_SANITIZED_THREAD)
constexpr unsigned kTurns = 2;
#else
constexpr unsigned kTurns = 6;
#endif

pthread_key_t last_wish;

// The value counts the rounds that are left.
void wish(void* rounds) {
  auto left = reinterpret_cast<uintptr_t>(rounds) - 1;
  void* general = hm_malloc(100 * left);
  void* local = hm_local_alloc(50);
  void* large = hm_calloc(1, 100'000);
  if (large != nullptr)
    expect(is_zero(static_cast<char*>(large), 100'000), "calloc of an ending thread gave what is not zero");
  if (local != nullptr) hm_local_free(local);
  hm_free(general);
  hm_free(large);
  if (left > 0) pthread_setspecific(last_wish, reinterpret_cast<void*>(left));
}

void no_more_failures() {
#if defined(HM_FAULTS)
  hm::os::fail_after(0, 0);
#endif
}

}  // namespace

void Hand::end(bool late) {
  if (!thread_.joinable()) return;
  if (late) call([] { pthread_setspecific(last_wish, reinterpret_cast<void*>(uintptr_t{3})); });
  static const std::function<void()> nothing;
  {
    std::unique_lock guard(lock_);
    job_ = &nothing;
    changed_.notify_all();
  }
  thread_.join();
}

namespace {

void take_turns(Stream in, size_t forks) {
  Places places;
  Shelf shelf;
  auto machine = std::make_unique<Machine>(in, &places, &shelf, forks);
  std::array<Hand, 8> hands;  // 0: this thread
  size_t who = 0;
  auto stop = Machine::Stop::kSwitch;
  while (stop != Machine::Stop::kEnd) {
    if (who == 0) stop = machine->run();
    else hands[who].call([&] { stop = machine->run(); });
    if (stop == Machine::Stop::kExit) {
      hands[who].end(machine->late());
      who = 0;
    } else if (stop == Machine::Stop::kSwitch) {
      who = machine->thread();
    }
  }
  no_more_failures();
  if (who == 0) machine->free_everything();
  else hands[who].call([&] { machine->free_everything(); });
  for (Hand& hand : hands)
    if (hand.is_alive()) hand.call([] { hm_collect(); });
}

void run_at_once(Stream in, size_t threads, size_t forks) {
  Shelf shelf;
  std::vector<std::unique_ptr<Machine>> machines;
  for (size_t i = 0; i < threads; ++i)
    machines.push_back(std::make_unique<Machine>(in.part(i, threads), nullptr, &shelf, forks));
  std::vector<std::thread> running;
  for (size_t i = 1; i < threads; ++i) running.emplace_back([&, i] { machines[i]->run(); });
  machines[0]->run();
  for (std::thread& thread : running) thread.join();
  for (auto& machine : machines) machine->free_everything();
  Shadow shadow(nullptr);
  for (auto& place : shelf.places) {
    std::unique_ptr<Block> left(place.load());
    if (left != nullptr) shadow.free(*left, 0);
  }
}

}  // namespace
}  // namespace fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) { return pthread_key_create(&fuzz::last_wish, fuzz::wish); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  fuzz::Stream in(data, size);
  unsigned mode = in.byte();
  hm::options.thaw();
  hm::options = {};
  hm_profile_stop();
  hm::options.decay_ms = mode % 2 == 0 ? 500 : 0;
  hm::options.profile_frees = mode / 32 % 2;
  // A fork copies the tables of all pages: with one in each input little else would be done.
  size_t forks = mode / 64 == 0 ? 2 : 0;
  if (mode % 8 < fuzz::kTurns) fuzz::take_turns(in, forks);
  else fuzz::run_at_once(in, 2 + mode / 8 % 3, forks);
  fuzz::expect_nothing_held();
  return 0;
}
