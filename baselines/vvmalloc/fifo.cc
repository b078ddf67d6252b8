#include "baselines/vvmalloc/fifo.h"

namespace hm::vvmalloc {
namespace {

// For this thread's operation on a lock-free queue.
constinit thread_local uint32_t looks = 0;
constinit thread_local uint64_t waits_since = 0;

}  // namespace

bool GuardedFifo::enqueue(void* arena, size_t bytes) noexcept {
  auto* node = static_cast<Node*>(Arena{static_cast<char*>(arena), bytes}.inside()->payload());
  *node = {nullptr, arena, bytes};
  if (tail_ != nullptr) tail_->next = node;
  else head_ = node;
  tail_ = node;
  return true;
}

void* GuardedFifo::dequeue(size_t* bytes) noexcept {
  Node* node = head_;
  if (node == nullptr) return nullptr;
  head_ = node->next;
  if (head_ == nullptr) tail_ = nullptr;
  *bytes = node->bytes;
  return node->arena;
}

bool GuardedFifo::is_valid(size_t) noexcept {
  Node* last = nullptr;
  for (Node* node = head_; node != nullptr; node = node->next) {
    Arena arena{static_cast<char*>(node->arena), node->bytes};
    if (arena.inside()->header != Tag(State::kFree, arena.bytes - Arena::kOverhead, kNobody)) return false;
    last = node;
  }
  return last == tail_;
}

void LockFreeFifo::Setting::at(QueueStep step) noexcept {
  if (step != QueueStep::kTailRead && step != QueueStep::kHeadRead) return;
  if (++looks == 2) waits_since = now_ns();
}

// Relaxed: statistics.
void LockFreeFifo::count_wait() noexcept {
  if (looks >= 2) waited_ns_.fetch_add(now_ns() - waits_since, std::memory_order_relaxed);
}

bool LockFreeFifo::enqueue(void* arena, size_t bytes) noexcept {
  looks = 0;
  bool done = queue_.enqueue(arena, bytes);
  count_wait();
  return done;
}

void* LockFreeFifo::dequeue(size_t* bytes) noexcept {
  looks = 0;
  void* arena = queue_.dequeue(bytes);
  count_wait();
  return arena;
}

}  // namespace hm::vvmalloc
