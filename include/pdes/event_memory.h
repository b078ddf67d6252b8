// Where the blocks of events come from and go to.  One per thread; a block may be freed through another thread's.
#pragma once

#include <hmalloc/hmalloc.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "pdes/event.h"
#include "pdes/options.h"

namespace pdes {

inline constexpr std::size_t kMaxPayload = 32768 - sizeof(Event);

class EventMemory {
 public:
  // shared: other threads release what is allocated here, and the other way round.
  EventMemory(Allocator allocator, Blocks blocks, bool shared) noexcept;
  ~EventMemory();
  EventMemory(const EventMemory&) = delete;
  EventMemory& operator=(const EventMemory&) = delete;

  // Between the two the calling thread alone uses it, and does so through handles to hmalloc's caches.
  void take_caches() noexcept;
  void drop_caches() noexcept;

  // size: of the event with its header.  Sets `block`.  Null: no memory.
  Event* allocate(std::size_t size) noexcept {
    void* memory;
    Block block = allocator_;
    switch (allocator_) {
      case Block::dense:
        if (size >= lines_from_) block = Block::lines;
        memory = from_hmalloc(size, block == Block::lines);
        break;
      case Block::free_list: memory = take(size); break;
      default: memory = std::malloc(size);
    }
    auto* event = static_cast<Event*>(memory);
    if (event != nullptr) [[likely]] {
      event->block = static_cast<std::uint16_t>(block);
      held_ += cost(size, block);
    }
    return event;
  }

  // size: as allocated.
  void release(Event* event, std::size_t size) noexcept {
    held_ -= cost(size, Block{event->block});
    switch (Block{event->block}) {
      case Block::dense: to_hmalloc(event, size, false); return;
      case Block::lines: to_hmalloc(event, size, true); return;
      case Block::free_list: give(event, size); return;
      case Block::malloc: std::free(event);
    }
  }

  // Chooses anew what later blocks will be, for so many pending events (docs/pdes-design.md has the measurements).  A line
  // to each event keeps threads out of each other's way; more events fit the cache without.
  void adapt(std::uint64_t pending) noexcept {
    if (blocks_ == Blocks::automatic && shared_) lines_from_ = pending <= kFewPending ? 0 : kLine;
  }
  // "dense", "lines", "dense and lines", "malloc", "free list": what events get.
  const char* kind() const noexcept;
  // Bytes allocated here less bytes released here, rounded to 16 or to lines: what events in flight take is the sum over
  // all threads.
  std::int64_t held() const noexcept { return held_; }

 private:
  enum class Block : std::uint16_t { dense, lines, malloc, free_list };
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kGranule = 16, kLists = 1040 / kGranule + 1;  // PHOLD's largest event: 1032 bytes
  static constexpr std::size_t kLine = 64, kNone = ~std::size_t{0};
  static constexpr std::uint64_t kFewPending = 16384;  // a megabyte of lines: about half of a second-level cache
  static std::size_t list_of(std::size_t size) noexcept { return (size + kGranule - 1) / kGranule; }

  // Handles to hmalloc's own caches, where this thread has them.
  void* from_hmalloc(std::size_t size, bool lines) noexcept {
    std::size_t list = list_of(size);
    if (hm_cache* cache = list < kLists ? caches_[lines][list] : nullptr) [[likely]]
      return hm_cache_alloc(cache);
    return lines ? hm_shared_alloc(size) : hm_malloc(size);
  }
  void to_hmalloc(void* block, std::size_t size, bool lines) noexcept {
    std::size_t list = list_of(size);
    if (hm_cache* cache = list < kLists ? caches_[lines][list] : nullptr) [[likely]]
      return hm_cache_free(cache, block);
    if (lines) hm_shared_free_sized(block, size);
    else hm_free_sized(block, size);
  }

  static std::int64_t cost(std::size_t size, Block block) noexcept {
    std::size_t granule = block == Block::lines ? kLine : kGranule;
    return static_cast<std::int64_t>((size + granule - 1) & ~(granule - 1));
  }
  void* take(std::size_t size) noexcept {
    std::size_t list = list_of(size);
    if (list >= kLists) [[unlikely]]
      return std::malloc(size);
    Free* block = lists_[list];
    if (block == nullptr) [[unlikely]]
      return carve(list);
    lists_[list] = block->next;
    return block;
  }
  void give(void* block, std::size_t size) noexcept {
    std::size_t list = list_of(size);
    if (list >= kLists) [[unlikely]]
      return std::free(block);
    lists_[list] = ::new (block) Free{lists_[list]};
  }
  void* carve(std::size_t list) noexcept;

  Block allocator_;
  Blocks blocks_;
  bool shared_;
  std::int64_t held_ = 0;
  std::size_t lines_from_;  // events of at least this size are given whole lines
  char* fresh_ = nullptr;   // of the free list: memory that was never used
  char* fresh_end_ = nullptr;
  std::array<Free*, kLists> lists_{};
  std::array<hm_cache*, kLists> caches_[2]{};  // dense, lines; null: the long way
  void* slabs_ = nullptr;                      // linked by their first word
};

}  // namespace pdes
