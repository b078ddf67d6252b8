#include "baselines/vvmalloc/central_queue.h"

namespace hm::vvmalloc {

// Relaxed here and below: used_ is a hint where to end a search.  A thread that sees an old value extends the heap.
bool CentralQueue::enqueue(Arena arena) noexcept {
  size_t queue = step_of(arena.bytes / kUnit);
  size_t used = used_.load(std::memory_order_relaxed);
  while (used <= queue && !used_.compare_exchange_weak(used, queue + 1, std::memory_order_relaxed)) {}
  Holding held(gate_);
  return queues_[queue].enqueue(arena.start, arena.bytes);
}

Arena CentralQueue::dequeue(size_t bytes) noexcept {
  size_t queue = queue_for(bytes), used = used_.load(std::memory_order_relaxed), got = 0;
  if (queue >= used) return {};
  Holding held(gate_);
  for (; queue < used; ++queue)
    if (void* arena = queues_[queue].dequeue(&got)) return {static_cast<char*>(arena), got};
  return {};
}

uint64_t CentralQueue::waited_ns() noexcept {
  uint64_t sum = gate_.waited_ns();
  for (const Fifo& queue : queues_) sum += queue.waited_ns();
  return sum;
}

uint64_t CentralQueue::retries() const noexcept {
  uint64_t sum = 0;
  for (const Fifo& queue : queues_) sum += queue.retries();
  return sum;
}

bool CentralQueue::is_valid(size_t vanished) noexcept {
  Holding held(gate_);
  for (Fifo& queue : queues_)
    if (!queue.is_valid(vanished)) return false;
  return true;
}

}  // namespace hm::vvmalloc
