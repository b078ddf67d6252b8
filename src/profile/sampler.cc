#include "profile/sampler.h"

#include <sys/syscall.h>

#include <bit>

#include "base/clock.h"
#include "base/option_parser.h"
#include "base/process.h"
#include "base/system_call.h"
#include "profile/samples.h"
#include "threads/registry.h"

namespace hm {

constinit Sampler sampler;

// The library uses nothing of libm's.
double minus_log(double u) noexcept {
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1, kOne = uint64_t{1023} << 52;
  constexpr double kLog2 = 0.69314718055994530942;
  auto bits = std::bit_cast<uint64_t>(u);
  auto exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1023);
  double mantissa = std::bit_cast<double>((bits & kFraction) | kOne);
  double t = (mantissa - 1) / (mantissa + 1), sum = 0;  // ln m = 2 (t + t^3 / 3 + t^5 / 5 + ...), and t is below 1/3
  for (int n = 21; n > 0; n -= 2) sum = sum * t * t + 1.0 / n;
  return -(exponent * kLog2 + 2 * t * sum);
}

double one_minus_exp(double x) noexcept {
  if (x > 40) return 1;
  if (x > 0.5) {
    double half = one_minus_exp(x / 2);
    return half * (2 - half);
  }
  double sum = 0;  // x - x^2 / 2! + x^3 / 3! - ...
  for (int n = 12; n > 0; --n) sum = (1 - sum) * x / n;
  return sum;
}

namespace {

constinit thread_local uint64_t random_state = 0;  // 0: there is no seed yet

// SplitMix64, for each thread from a seed of the system's.
uint64_t random_bits() noexcept {
  uint64_t& state = random_state;
  if (state == 0) {
    constexpr long kDoNotWait = 1;
    if (system_call(SYS_getrandom, system_call_argument(&state), sizeof state, kDoNotWait) != sizeof state)
      state = os::cpu_ns() ^ uint64_t { my_thread_id() } << 32 ^ address_of(&state);
  }
  uint64_t mixed = state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

double random_in_unit() noexcept { return static_cast<double>((random_bits() >> 11) + 1) * 0x1p-53; }  // (0, 1]

}  // namespace

// Exponentially distributed, so that what was counted before says nothing about the next.
int64_t Sampler::bytes_to_sample() const noexcept {
  return static_cast<int64_t>(std::min(minus_log(random_in_unit()) * static_cast<double>(rate()), 0x1p60));
}

// The last byte before the sample is in the block that ends the countdown.
bool Sampler::takes(Countdown& countdown, size_t size) noexcept {
  bool sampled = countdown.is_drawn() && is_sampling();
  countdown.set(bytes_to_sample() / static_cast<int64_t>(size));
  return sampled || (countdown.count() && is_sampling() && takes(countdown, size));
}

double Sampler::weight(size_t size) const noexcept {
  return 1 / one_minus_exp(static_cast<double>(std::max<size_t>(size, 1)) / static_cast<double>(rate()));
}

void Sampler::start(size_t rate) noexcept {
  LockGuard guard(lock_);
  profile_rate_.store(std::max<size_t>(rate, 1), std::memory_order_relaxed);
  sample_for(for_whom() | kProfile);
}

void Sampler::start_for_guard() noexcept {
  LockGuard guard(lock_);
  sample_for(for_whom() | kGuards);
}

void Sampler::stop() noexcept {
  LockGuard guard(lock_);
  sample_for(for_whom() & ~kProfile);
}

void Sampler::follow_tracer() noexcept {
  LockGuard guard(lock_);
  sample_for(tracer_listens() ? for_whom() | kTracer : for_whom() & ~kTracer);
}

void Sampler::rest() noexcept {
  LockGuard guard(lock_);
  stop_counting();
}

// Under the lock, as the next.
void Sampler::sample_for(int whom) noexcept {
  if (whom != 0) {
    rate_.store(whom & kProfile ? profile_rate() : kUsualRate, std::memory_order_relaxed);
    counting.prepare();
    registry.for_each([](ThreadHeap& heap) { heap.open_countdowns(); });  // anew: a rate may have been lower
  }
  for_whom_.store(static_cast<uint8_t>(whom), std::memory_order_relaxed);
  if (whom == 0) return stop_counting();
  count_allocations(true);
  show_caches(false);  // other threads do so on their next slow path
}

// What only a tracer was told of does not keep them counted: it has gone, and hears of no free.
void Sampler::stop_counting() noexcept {
  if (is_sampling() || samples.any_profiled_now()) return;
  count_allocations(false);
  show_caches(true);
}

// Another thread may have been in the middle of a change.  What comes next is drawn anew, so that processes that do the same do
// not sample the same.
void Sampler::repair(uint32_t before) noexcept {
  random_state = 0;
  if (have_heap() && counting.is_prepared()) my_heap()->open_countdowns();
  repair_after_fork(lock_, before, [this] {
    if (is_sampling()) sample_for(for_whom());
    else count_allocations(counting.is_on());
  });
}

}  // namespace hm
