// A bounded queue from one producer to one consumer, designed to cost little compared with the allocator: each side
// keeps a copy of the other's index and publishes its own once per Batch entries, so that the index lines rarely move.
//
// 1. published_tail_ - published_head_ <= Capacity; both are multiples of Batch, except after flush().
// 2. A full queue has published every entry and an empty one has given back every slot, so neither side waits for ever.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

template <std::size_t Capacity, std::size_t Batch>
class SpscQueue {
 public:
  static_assert(Capacity % Batch == 0 && (Capacity & (Capacity - 1)) == 0);

  // For the producer.  False if the queue is full.
  bool push(void* item) {
    if (tail_ - known_head_ == Capacity) {
      known_head_ = published_head_.load(std::memory_order_acquire);
      if (tail_ - known_head_ == Capacity) return false;
    }
    slots_[tail_ % Capacity] = item;
    if (++tail_ % Batch == 0) flush();
    return true;
  }
  // For the producer.  Publishes every entry pushed so far.
  void flush() { published_tail_.store(tail_, std::memory_order_release); }
  // For the producer.
  std::size_t pushed() const { return tail_; }

  // For the consumer.  False if nothing published is left.
  bool pop(void*& item) {
    if (head_ == known_tail_) {
      known_tail_ = published_tail_.load(std::memory_order_acquire);
      if (head_ == known_tail_) return false;
    }
    item = slots_[head_ % Capacity];
    if (++head_ % Batch == 0) published_head_.store(head_, std::memory_order_release);
    return true;
  }

 private:
  // Two lines apart: the adjacent-line prefetcher pairs lines.
  alignas(128) std::atomic<std::size_t> published_tail_{0};
  alignas(128) std::atomic<std::size_t> published_head_{0};
  alignas(128) std::size_t tail_ = 0;  // producer's
  std::size_t known_head_ = 0;
  alignas(128) std::size_t head_ = 0;  // consumer's
  std::size_t known_tail_ = 0;
  alignas(128) std::array<void*, Capacity> slots_{};
};
