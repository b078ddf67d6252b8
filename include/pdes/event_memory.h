// Allocates and frees the blocks of events.  One per thread; a block may be freed through another thread's.
#pragma once

#include <hmalloc/hmalloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

#include "pdes/event.h"
#include "pdes/options.h"

namespace pdes {

inline constexpr std::size_t kMaxPayload = 32768 - sizeof(Event);

class EventMemory {
 public:
  // shared: other threads release what is allocated here, and vice versa.
  EventMemory(Allocator allocator, Blocks blocks, bool shared) noexcept;
  ~EventMemory();
  EventMemory(const EventMemory&) = delete;
  EventMemory& operator=(const EventMemory&) = delete;

  // From the first call on only the calling thread uses it, through handles to its caches of hmalloc, until it drops them or
  // another thread takes its own.
  void take_caches() noexcept;
  void drop_caches() noexcept;

  // size: of the event with its header.  Sets `block`.  Null if there is no memory.
  Event* allocate(std::size_t size) noexcept {
    const Place& place = chosen_[std::min(list_of(size), kLists)];
    if (place.cache == nullptr) [[unlikely]]
      return allocate_without(size);
    auto* event = static_cast<Event*>(hm_cache_alloc(place.cache));
    if (event == nullptr) [[unlikely]]
      return nullptr;
    event->block = place.number;
    held_ += place.cost;
    return event;
  }

  // size: as allocated.
  void release(Event* event, std::size_t size) noexcept {
    const Place& place = places_[event->block];
    if (place.cache == nullptr) [[unlikely]]
      return release_without(event, size);
    held_ -= place.cost;
    hm_cache_free(place.cache, event);
  }

  // Decides the kind of later blocks for this many pending events (docs/pdes-design.md has the measurements).  With a
  // line to each event threads stay out of each other's way; without, more events fit the cache.  If they do not fit
  // anyway, an event that lies across the end of a line costs an access more: of each four blocks of 48 bytes two do.
  void adapt(std::uint64_t pending) noexcept {
    if (blocks_ != Blocks::automatic) return;
    std::uint64_t lines = !shared_ ? 0 : pending <= kFewPending ? kAll : kAll << list_of(kLine);
    if (pending > kManyPending) lines |= std::uint64_t{1} << list_of(48);
    if (lines != lines_) choose(lines);
  }
  // What the next events get, by their sizes: "dense", "lines", "dense and lines", "malloc" or "free list".
  const char* kind() const noexcept;
  // Bytes allocated here minus bytes released here, rounded to 16 or to lines; the sum over all threads is what the
  // events in flight take.
  std::int64_t held() const noexcept { return held_; }

 private:
  enum class Block : std::uint16_t { dense, lines, malloc, free_list };
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kGranule = 16, kLists = 1040 / kGranule + 1;  // PHOLD's largest event: 1032 bytes
  static constexpr std::size_t kLine = 64;
  static constexpr std::uint64_t kFewPending = 16384;    // a megabyte of lines: about half of a second-level cache
  static constexpr std::uint64_t kManyPending = 262144;  // of a thread: 12 MB of blocks of 48 bytes, beyond its caches
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static constexpr std::size_t kMaxBit = 63;
  static constexpr std::size_t list_of(std::size_t size) noexcept { return (size + kGranule - 1) / kGranule; }

  // Where a block came from and goes back to, by its number: first the lists of dense blocks, then those of lines, each with
  // its handle to hmalloc's cache while this thread has it; then the kinds of Block, for what is had without a handle.
  struct Place {
    hm_cache* cache;
    std::uint16_t number, cost;
  };
  static constexpr std::size_t kWithout = 2 * kLists, kKinds = 4;

  void choose(std::uint64_t lines) noexcept;
  Event* allocate_without(std::size_t size) noexcept;
  void release_without(Event* event, std::size_t size) noexcept;

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
  std::uint64_t lines_;    // bit i: events of list i get whole lines; the last bit is for all larger ones, too
  char* fresh_ = nullptr;  // free list: memory that was never used
  char* fresh_end_ = nullptr;
  std::array<Free*, kLists> lists_{};
  std::array<Place, kWithout + kKinds> places_{};
  std::array<Place, kLists + 1> chosen_{};  // for the next events, by list; the last is for larger ones
  void* slabs_ = nullptr;                   // linked by their first word
};

}  // namespace pdes
