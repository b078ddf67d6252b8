#include "engine/reducing_barrier.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "engine/cpu_pin.h"
#include "engine/cpu_quota.h"

namespace pdes {
namespace {

ReducingBarrier::Reduction both(ReducingBarrier::Reduction a, ReducingBarrier::Reduction b) noexcept {
  return {std::min(a.least, b.least), a.flags | b.flags};
}

}  // namespace

unsigned allowed_cpus() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;  // too many CPUs for the set: be careful
  const auto cpus = static_cast<unsigned>(CPU_COUNT(&set));
  const unsigned quota = cpu_quota();  // threads beyond it would be held up in turn
  return quota == 0 ? cpus : std::min(quota, cpus);
}

void Epoch::wait(std::uint32_t old, SpinPolicy policy) noexcept {
  if (spin_until(policy, [&] { return is_past(old); })) return;
  while (!is_past(old)) sleep(old);
  if (policy.has_home) CpuPin::return_home();
}

// The bit and the number are one word: advance sees the bit, or the kernel sees another number.
void Epoch::sleep(std::uint32_t old) noexcept {
  std::uint32_t expected = old;
  // Relaxed: is_past acquires.
  if (!word_.compare_exchange_strong(expected, old | kAsleep, std::memory_order_relaxed) && expected != (old | kAsleep))
    return;
  syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, old | kAsleep, nullptr, nullptr, 0);
}

void Epoch::wake() noexcept { syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

ReducingBarrier::ReducingBarrier(unsigned threads, unsigned cpus) : slots_(threads), crowded_(threads > cpus) {}

ReducingBarrier::Reduction ReducingBarrier::arrive_and_reduce(unsigned thread, Reduction mine, Waits* waits) noexcept {
  return crowded_ ? reduce_last(thread, mine, waits) : reduce_all(slots_[thread], mine, waits);
}

// Every thread reads every other's slot: one cache line transfer from each, and none of them twice.
ReducingBarrier::Reduction ReducingBarrier::reduce_all(Slot& own, Reduction mine, Waits* waits) noexcept {
  const std::uint32_t before = own.epoch.own();
  const std::uint32_t parity = before / Epoch::kStep % 2;
  own.words[parity] = mine;
  own.epoch.advance();
  Reduction all = mine;
  for (std::size_t other = 0; other < slots_.size(); ++other) {
    Slot& slot = slots_[other];
    if (!slot.epoch.is_past(before)) {
      const Stopwatch watch(waits, other);
      slot.epoch.wait(before, spin_policy());
    }
    all = both(all, slot.words[parity]);
  }
  return all;
}

// The last to arrive reduces for all; the others need not run for the barrier to complete.
ReducingBarrier::Reduction ReducingBarrier::reduce_last(unsigned thread, Reduction mine, Waits* waits) noexcept {
  const std::uint32_t before = meeting_.own();  // it cannot advance without this thread
  slots_[thread].words[0] = mine;
  // Releases our word, acquires those of all that came before.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < slots_.size()) {
    Stopwatch watch(waits);
    meeting_.wait(before, spin_policy());
    watch.on(last_);
    return result_;
  }
  Reduction all = mine;
  for (const Slot& slot : slots_) all = both(all, slot.words[0]);
  result_ = all;
  last_ = thread;
  arrived_.store(0, std::memory_order_relaxed);  // all see it with the advance
  meeting_.advance();
  return all;
}

}  // namespace pdes
