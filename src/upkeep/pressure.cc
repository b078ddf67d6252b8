#include "upkeep/pressure.h"

#include <sys/syscall.h>

#include <algorithm>

#include "base/system_call.h"
#include "pages/memory_limit.h"

namespace hm {

// One that is full, closed or no eventfd takes nothing.
void Pressure::say() noexcept {
  int fd = eventfd_.load(std::memory_order_relaxed);
  const uint64_t one = 1;
  if (fd >= 0) system_call(SYS_write, fd, system_call_argument(&one), sizeof one);
}

int Pressure::level() noexcept {
  if (options.limit == 0 || footprint.resident() <= memory_limit().soft()) {
    refused_.store(false, std::memory_order_relaxed);
    return 0;
  }
  return refused_.load(std::memory_order_relaxed) ? 2 : 1;
}

void Pressure::on_refusal() noexcept {
  if (options.limit == 0 || footprint.resident() <= memory_limit().soft()) return;
  refused_.store(true, std::memory_order_relaxed);
  say();
}

void Pressure::look_at_limit(ThreadHeap* heap) noexcept {
  static constinit thread_local uint32_t seen = 0;
  uint32_t reactions = reactions_.load(std::memory_order_relaxed);
  if (seen != reactions) {
    seen = reactions;
    if (heap != nullptr) heap->drain();
  }
  size_t now = footprint.resident(), soft = memory_limit().soft(), step = memory_limit().step();
  size_t acted_at = acted_at_.load(std::memory_order_relaxed);
  if (now <= soft) {
    refused_.store(false, std::memory_order_relaxed);
    if (acted_at != 0) acted_at_.store(now + step <= soft ? 0 : std::min(acted_at, soft), std::memory_order_relaxed);
    return;
  }
  if (acted_at != 0 && now < acted_at + step) return;
  if (!acted_at_.compare_exchange_strong(acted_at, now, std::memory_order_relaxed)) return;
  seen = reactions_.fetch_add(1, std::memory_order_relaxed) + 1;
  give_all_back_();
  acted_at_.store(std::max(footprint.resident(), soft), std::memory_order_relaxed);
  if (footprint.resident() > soft) say();
}

}  // namespace hm
