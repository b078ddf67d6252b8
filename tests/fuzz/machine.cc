#include "machine.h"

#include <fcntl.h>
#include <hmalloc/hmalloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/os_pages.h"
#include "fuzz.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "profile/samples.h"
#include "threads/registry.h"

namespace fuzz {
namespace {

// What the gauge of huge blocks counts beside the block itself: a header's page, or the 2 MB before an aligned one.
constexpr size_t kMaxFront = (2 << 20) + (64 << 10);

// A child that hangs is a deadlock of fork: found here and not by the fuzzer's own limit, which says less.
void wait_for(pid_t child) {
  for (int i = 0; i < 30'000; ++i) {
    int status = 0;
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child died");
    timespec pause{0, i < 100 ? 100'000 : 1'000'000};
    nanosleep(&pause, nullptr);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  fail("a forked child hangs");
}

}  // namespace

Machine::Stop Machine::run() {
  while (!in_.at_end())
    if (step()) return stop_;
  return Stop::kEnd;
}

// True: somebody else goes on.
bool Machine::step() {
  unsigned code = in_.byte();
  if (code < 160) return slot_step(code), false;
  switch (code % 32) {
    case 0:
    case 1:
    case 2:
    case 3: pile_up(); break;
    case 4:
    case 5:
    case 6:
    case 7: pile_down(); break;
    case 8:
    case 9:
    case 10:
    case 11:
      thread_ = in_.below(8);
      stop_ = Stop::kSwitch;
      return places_ != nullptr && !is_child_;
    case 12:
    case 13:
      late_ = in_.byte() % 2 == 0;
      stop_ = Stop::kExit;
      return places_ != nullptr && !is_child_;
    case 14:
    case 15:
    case 16: exchange(); break;
    case 17: reclaim_all(); break;
    case 18: compare_gauges(); break;
    case 19: set_option(); break;
    case 20: fail_calls(); break;
    case 21: fork_here(); break;
    case 22: shadow_.impossible(in_, slots_[in_.below(kSlots)]); break;
    case 23: examine_heap(); break;
    case 24: hm_thread_idle(); break;
    case 25: ask_for_pressure(); break;
    case 26: profile(); break;
    case 27: look_around_blocks(); break;
    default: slot_step(code); break;
  }
  return false;
}

// In use meanwhile, or another thread's collection might claim it.
void Machine::examine_heap() const {
  if (!hm::have_heap()) return;
  hm::HeapUse use(hm::my_thread_heap());
  expect(hm::my_heap()->is_valid(), "this thread's heap is not valid");
}

void Machine::slot_step(unsigned code) {
  Block& block = slots_[in_.below(kSlots)];
  if (block.at == nullptr) {
    block = shadow_.allocate(in_);
    return;
  }
  switch (code % 8) {
    case 0:
    case 1:
    case 2: shadow_.resize(block, in_); break;
    case 3: Shadow::check(block); break;
    case 4:
      Shadow::check(block);
      shadow_.rewrite(block);
      break;
    default: shadow_.free(block, in_.byte());
  }
}

void Machine::pile_up() {
  unsigned how = in_.byte();
  size_t size = in_.number(2) % (in_.byte() % 8 == 0 ? 40'000 : 1'800);
  for (size_t n = in_.below(600); n > 0 && piled_ < kPile; --n) {
    pile_[piled_] = shadow_.allocate_as(how, size, in_);
    if (pile_[piled_].at != nullptr) ++piled_;
  }
}

// In order, backwards, or every other one.
void Machine::pile_down() {
  unsigned order = in_.byte(), how = in_.byte();
  size_t n = std::min(in_.below(1200), piled_);
  size_t from = piled_ - n;
  if (order % 4 == 0) std::reverse(pile_ + from, pile_ + piled_);
  if (order % 4 == 1)
    for (size_t i = 0; i + 1 < n; i += 2) std::swap(pile_[from + i / 2], pile_[from + i]);
  if (order % 4 == 2) {
    std::swap_ranges(pile_, pile_ + std::min(n, from), pile_ + piled_ - std::min(n, from));
    order = 3;
  }
  while (piled_ > from) shadow_.free(pile_[--piled_], how);
}

// A block for one that another thread has left.
void Machine::exchange() {
  size_t place = in_.byte() % std::size(shelf_->places);
  Block& block = slots_[in_.below(kSlots)];
  if (places_ != nullptr || is_child_) return;  // threads that take turns have one table; a child must not call new
  Block* given = block.at == nullptr ? nullptr : new Block(block);
  if (given != nullptr) shadow_.hand_over(*given);
  std::unique_ptr<Block> taken(shelf_->places[place].exchange(given, std::memory_order_acq_rel));
  block = taken == nullptr ? Block{} : *taken;
  if (taken == nullptr) return;
  shadow_.take_over(block);
  Shadow::check(block);
}

void Machine::reclaim_all() {
  hm_collect();
  if (places_ != nullptr) examine_everything();
}

void Machine::compare_gauges() const {
  hm_stats stats;
  hm_stats_get(&stats);
  expect(stats.live_heaps <= stats.heaps, "more live heaps than heaps");
  if (places_ == nullptr || is_child_) return;
  size_t held = places_->bytes(), fronts = places_->huge() * kMaxFront;
  // The hardened library says how much was asked for, of blocks that are larger.
  size_t most = hm::kHardened ? SIZE_MAX : held + fronts;
  expect(stats.allocated >= held && stats.allocated <= most, "the gauge of allocated bytes is not what the program holds");
  expect(stats.allocated <= stats.active && stats.active <= stats.mapped, "gauges are out of order");
  expect(hm::footprint.resident() <= most_resident_, "more is resident than the limit allows");
}

// Nobody has written where it should not: that nothing is found is the test, also while other threads are at work and in the
// middle of what they did when this child was forked.
void Machine::look_around_blocks() const {
  size_t in_use = hm_check();
  if (!hm::kHardened) return expect(in_use == 0, "a library that knows of no bytes around blocks has looked at some");
  if (places_ == nullptr || is_child_) return;
  expect(in_use == places_->blocks(), "a check finds more or fewer blocks in use than the program holds");
}

// Any that the allocator reads again and again.  While nobody else reads them.
void Machine::set_option() {
  static constexpr size_t kRetain[] = {0, 128 << 10, 1 << 20, 64 << 20}, kCacheBytes[] = {0, 4 << 10, 256 << 10, 5 << 20},
                          kCacheBlocks[] = {1, 7, 64, 1023}, kHugePagesAfter[] = {0, 1 << 20, 16 << 20, SIZE_MAX},
                          kLimit[] = {0, 4 << 20, 16 << 20, 96 << 20}, kDecay[] = {0, 1, 5, 500};
  unsigned which = in_.byte(), value = which % 4;
  if (places_ == nullptr) return;
  switch (which / 4 % 8) {
    case 0: hm::options.retain_bytes = kRetain[value]; break;
    case 1: hm::options.cache_bytes = kCacheBytes[value]; break;
    case 2: hm::options.cache_blocks = kCacheBlocks[value]; break;
    case 3: hm::options.huge_pages_after = kHugePagesAfter[value]; break;
    case 4: set_limit(kLimit[value]); break;
    default: hm::options.decay_ms = kDecay[value]; break;
  }
}

// What is resident already may stay; only more is refused.
void Machine::set_limit(size_t bytes) {
  if (is_child_) return;
  hm::options.limit = bytes;
  most_resident_ = bytes == 0 ? SIZE_MAX : std::max(bytes, hm::footprint.resident());
  shadow_.expect_failures(may_fail());
}

void Machine::ask_for_pressure() const {
  int level = hm_pressure();
  expect(level >= 0 && level <= 2, "a pressure that there is not");
  expect(level == 0 || hm::options.limit != 0, "pressure without a limit");
}

void Machine::profile() {
  static constexpr size_t kRates[] = {1, 300, 64 << 10, 0};
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  unsigned what = in_.byte() % 8;
  if (what < 4) {
    [[maybe_unused]] int error = hm_profile_start(kRates[what]);
#if !defined(HM_FAULTS)
    expect(error == 0, "a profile does not start");
#endif
  }
  if (what == 4) expect(hm::samples.is_valid(), "the samples are not valid");
  if (what == 5) (void)hm_profile_dump(nowhere);  // there may be no memory
  if (what > 5) hm_profile_stop();
}

void Machine::fail_calls() {
  [[maybe_unused]] size_t after = in_.byte(), count = in_.byte();
#if defined(HM_FAULTS)
  if (places_ == nullptr) return;
  calls_fail_ = count > 0;
  shadow_.expect_failures(may_fail());
  hm::os::fail_after(after % 64, count % 32);
#endif
}

void Machine::fork_here() {
  if (is_child_ || forks_left_ == 0) return;
  --forks_left_;
  pid_t child = fork();
  expect(child >= 0, "fork fails");
  if (child == 0) be_child();
  wait_for(child);
}

// The child goes on with the same program for a while, all by itself, and with every block of its parent's.
void Machine::be_child() {
  is_child_ = true;
  for (size_t i = 0; i < kStepsInChild && !in_.at_end(); ++i) step();
  free_everything();
  hm_collect();
  expect(!hm::have_heap() || hm::my_heap()->is_valid(), "a child's heap is not valid");
  _exit(0);
}

void Machine::free_everything() {
  shadow_.expect_failures(false);
  for (Block& block : slots_)
    if (block.at != nullptr) shadow_.free(block, 0);
  while (piled_ > 0) shadow_.free(pile_[--piled_], 0);
}

}  // namespace fuzz
