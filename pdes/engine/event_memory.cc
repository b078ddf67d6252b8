#include "pdes/event_memory.h"

#include <new>

namespace pdes {
namespace {

constexpr std::size_t kSlab = 256 * 1024;

}  // namespace

EventMemory::EventMemory(Allocator allocator, Blocks blocks, bool shared) noexcept
    : allocator_(allocator == Allocator::hmalloc     ? Block::dense
                 : allocator == Allocator::free_list ? Block::free_list
                                                     : Block::malloc),
      blocks_(blocks),
      shared_(shared),
      lines_(blocks == Blocks::lines ? kAll : 0) {
  adapt(0);
}

EventMemory::~EventMemory() {
  while (slabs_ != nullptr) {
    void* slab = slabs_;
    slabs_ = *static_cast<void**>(slab);
    std::free(slab);
  }
}

void EventMemory::take_caches() noexcept {
  if (allocator_ != Block::dense) return;
  for (std::size_t list = 0; list < kLists; ++list)
    for (const Block block : {Block::dense, Block::lines}) {
      const std::size_t number = block == Block::dense ? list : kLists + list, size = list * kGranule;
      places_[number] = {block == Block::dense ? hm_cache_of(size) : hm_shared_cache_of(size),
                         static_cast<std::uint16_t>(number), static_cast<std::uint16_t>(cost(size, block))};
    }
  choose(lines_);
}

void EventMemory::drop_caches() noexcept {
  places_.fill({});
  chosen_.fill({});
}

void EventMemory::choose(std::uint64_t lines) noexcept {
  lines_ = lines;
  for (std::size_t list = 0; list < kLists; ++list)
    chosen_[list] = places_[(lines_ >> std::min(list, kMaxBit) & 1) != 0 ? kLists + list : list];
}

Event* EventMemory::allocate_without(std::size_t size) noexcept {
  const bool lines = allocator_ == Block::dense && (lines_ >> std::min(list_of(size), kMaxBit) & 1) != 0;
  const Block block = lines ? Block::lines : allocator_;
  auto* event = static_cast<Event*>(block == Block::dense       ? hm_malloc(size)
                                    : block == Block::lines     ? hm_shared_alloc(size)
                                    : block == Block::free_list ? take(size)
                                                                : std::malloc(size));
  if (event == nullptr) [[unlikely]]
    return nullptr;
  event->block = static_cast<std::uint16_t>(kWithout + static_cast<std::size_t>(block));
  held_ += cost(size, block);
  return event;
}

void EventMemory::release_without(Event* event, std::size_t size) noexcept {
  const Block block = event->block >= kWithout ? static_cast<Block>(event->block - kWithout)
                      : event->block < kLists  ? Block::dense
                                               : Block::lines;
  held_ -= cost(size, block);
  switch (block) {
    case Block::dense: return hm_free_sized(event, size);
    case Block::lines: return hm_shared_free_sized(event, size);
    case Block::free_list: return give(event, size);
    case Block::malloc: std::free(event);
  }
}

void* EventMemory::carve(std::size_t list) noexcept {
  std::size_t size = list * kGranule;
  if (static_cast<std::size_t>(fresh_end_ - fresh_) < size) {
    void* slab = std::malloc(kSlab);
    if (slab == nullptr) return nullptr;
    slabs_ = ::new (slab) void*(slabs_);
    fresh_ = static_cast<char*>(slab) + kGranule;
    fresh_end_ = static_cast<char*>(slab) + kSlab;
  }
  void* block = fresh_;
  fresh_ += size;
  return block;
}

const char* EventMemory::kind() const noexcept {
  if (allocator_ == Block::malloc) return "malloc";
  if (allocator_ == Block::free_list) return "free list";
  return lines_ == kAll ? "lines" : lines_ == 0 ? "dense" : "dense and lines";
}

}  // namespace pdes
