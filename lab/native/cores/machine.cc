#include "machine.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <ctime>

namespace cores {

namespace {

// At 2e9 instructions a second on each core.  Programs read a day of this year off it, not the day of their start.
constexpr std::uint64_t kInstructionsPerNanosecond = 2;
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::time_t kStart = 1'750'000'000;

}  // namespace

void Machine::answers(unsigned thread, std::int64_t number, std::int64_t result) {
  const Arguments& asked = asked_[thread % kMostThreads];
  if (result < 0) return;
  if (number == SYS_clock_gettime) tell_time(asked[1]);
  if (number == SYS_sched_getaffinity) tell_cpus(asked[2], static_cast<std::uint64_t>(result));
  if (number == SYS_getrandom) tell_random(asked[0], static_cast<std::uint64_t>(result));
}

void Machine::tell_time(std::uint64_t address) const {
  std::uint64_t nanoseconds = instructions_ / kInstructionsPerNanosecond / cores_;
  timespec now{kStart + static_cast<std::time_t>(nanoseconds / kBillion), static_cast<long>(nanoseconds % kBillion)};
  std::memcpy(reinterpret_cast<void*>(address), &now, sizeof now);
}

void Machine::tell_cpus(std::uint64_t address, std::uint64_t bytes) const {
  auto* mask = reinterpret_cast<unsigned char*>(address);
  std::fill(mask, mask + bytes, static_cast<unsigned char>(0));
  for (unsigned cpu = 0; cpu < cores_ && cpu / 8 < bytes; ++cpu)
    mask[cpu / 8] = static_cast<unsigned char>(mask[cpu / 8] | 1U << cpu % 8);
}

void Machine::tell_random(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    reinterpret_cast<unsigned char*>(address)[i] = static_cast<unsigned char>(random_ >> 56);
  }
}

}  // namespace cores
