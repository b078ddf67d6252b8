// A queue of items from one thread to another, in order and bounded only by memory.  Thread safety: one producer calls
// push and publish, one consumer drain.
//
// 1. The consumer gets what was published, and nothing else.
// 2. Chunks are linked from the oldest to the one being filled; the producer reuses those that the consumer has left.
// 3. A steady flow allocates nothing; after a burst the producer keeps kSpare chunks.
//
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace pdes {

template <class T>
class Channel {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kChunk = 128;  // items
  static constexpr std::size_t kSpare = 2;    // chunks

  Channel() = default;
  ~Channel() {
    while (oldest_ != nullptr) delete std::exchange(oldest_, oldest_->next);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // For the producer.  The item is invisible before publish().
  void push(const T& item) {
    if (written_ % kChunk == 0 && written_ != 0) extend();
    newest_->items[written_ % kChunk] = item;
    ++written_;
  }
  // Release: a thread that sees the count sees the items and the links between their chunks.
  void publish() noexcept { published_.store(written_, std::memory_order_release); }
  std::size_t bytes() const noexcept { return chunks_ * sizeof(Chunk); }

  // For the consumer.  Calls take(item) for all that was published; returns how many.  An item whose take throws is gone.
  template <class Take>
  std::size_t drain(Take&& take) {
    const std::uint64_t begin = read_, end = published_.load(std::memory_order_acquire);
    while (read_ != end) {
      if (read_ % kChunk == 0 && read_ != 0) leave();
      take(current_->items[read_++ % kChunk]);
    }
    return static_cast<std::size_t>(end - begin);
  }

 private:
  struct Chunk {
    std::array<T, kChunk> items;
    Chunk* next = nullptr;
  };

  void extend() {
    // Acquire: the consumer has read what was in the chunks that it left.
    const std::uint64_t left = left_.load(std::memory_order_acquire);
    for (; left - reused_ > kSpare; ++reused_, --chunks_) delete std::exchange(oldest_, oldest_->next);
    Chunk* chunk;
    if (left == reused_) {
      chunk = new Chunk;
      ++chunks_;
    } else {
      chunk = std::exchange(oldest_, oldest_->next);
      chunk->next = nullptr;
      ++reused_;
    }
    newest_ = newest_->next = chunk;
  }

  void leave() noexcept {
    current_ = current_->next;
    left_.store(left_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Written by the producer.
  alignas(128) Chunk* newest_ = new Chunk;
  Chunk* oldest_ = newest_;
  std::size_t chunks_ = 1;
  std::uint64_t written_ = 0, reused_ = 0;  // items; chunks that the consumer had left
  std::atomic<std::uint64_t> published_{0};
  // Written by the consumer.
  alignas(128) Chunk* current_ = newest_;
  std::uint64_t read_ = 0;
  std::atomic<std::uint64_t> left_{0};  // chunks
};

}  // namespace pdes
