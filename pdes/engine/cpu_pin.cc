#include "engine/cpu_pin.h"

namespace pdes {
namespace {

thread_local const CpuPin* current = nullptr;

}  // namespace

CpuPin::CpuPin(unsigned thread, bool pinned) noexcept
    : known_(sched_getaffinity(0, sizeof allowed_, &allowed_) == 0), pinned_(pinned) {
  if (!known_) return;
  auto left = static_cast<int>(thread) % CPU_COUNT(&allowed_);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed_) || left-- > 0) ++cpu;
  CPU_ZERO(&home_);
  CPU_SET(cpu, &home_);
  move();
  current = this;
}

CpuPin::~CpuPin() {
  if (known_) sched_setaffinity(0, sizeof allowed_, &allowed_);
  current = nullptr;
}

void CpuPin::return_home() noexcept {
  if (current == nullptr || current->pinned_ || CPU_ISSET(sched_getcpu(), &current->home_)) return;
  current->move();
}

// Moves to the home CPU; then, unless pinned, lets the system move the thread.
void CpuPin::move() const noexcept {
  sched_setaffinity(0, sizeof home_, &home_);
  if (!pinned_) sched_setaffinity(0, sizeof allowed_, &allowed_);
}

}  // namespace pdes
