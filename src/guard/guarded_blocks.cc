#include "guard/guarded_blocks.h"

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/os_pages.h"
#include "base/report.h"
#include "base/secret.h"
#include "pages/slice_pool.h"

namespace hm {

constinit GuardedBlocks guarded_blocks;

namespace {

constexpr size_t kLeastLive = 8;                 // blocks may be live, and
constexpr size_t kSlicesForOne = kMiB / kSlice;  // one more for so many slices in use: 0.4 % of the memory

}  // namespace

bool GuardedBlocks::start(uint64_t pause_ms) noexcept {
  if (prepare_stacks() != 0) return false;
  size_t places = std::min(kMostPlaces, (kChunk / os::page_size() - 1) / 2);
  auto* all = static_cast<GuardedPlace*>(os::map_guarded(places * sizeof(GuardedPlace)));
  void* chunk = all == nullptr ? nullptr : os::map(kChunk, kChunk, 0, os::Access::kNone);
  if (chunk == nullptr) return false;
  all_ = all;
  base_ = address_of(chunk);
  AddressMap::set(chunk, ChunkKind::kGuarded);
  places_ = places;
  pause_ms_ = pause_ms;
  return true;
}

// One of the threads that ask at once gets it.
bool GuardedBlocks::is_due() noexcept {
  uint64_t last = last_ms_.load(std::memory_order_relaxed), now = os::now_ms();
  if (last != 0 && now < last + pause_ms_) return false;
  if (live() >= std::min(places_, kLeastLive + slice_pool.used() / kSlicesForOne)) return false;
  return last_ms_.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

char* GuardedBlocks::page_of(const GuardedPlace& place) const noexcept {
  return reinterpret_cast<char*>(base_) + static_cast<size_t>(2 * (&place - all_) + 1) * os::page_size();
}

GuardedPlace* GuardedBlocks::place_at(uintptr_t address) noexcept {
  size_t page = (address - base_) / os::page_size();
  return page % 2 == 1 && page / 2 < places_ ? &all_[page / 2] : nullptr;
}

GuardedPlace* GuardedBlocks::take() noexcept {
  for (size_t i = 0; i < places_; ++i) {
    GuardedPlace& place = all_[cursor_.fetch_add(1, std::memory_order_relaxed) % places_];
    if (place.take()) return &place;
  }
  return nullptr;
}

void* GuardedBlocks::allocate(size_t size, const void* caller) noexcept {
  size_t page = os::page_size(), rounded = align_up(std::max<size_t>(size, 1), kGranule);
  if (size > page || !is_due()) return nullptr;
  GuardedPlace* place = take();
  if (place == nullptr) return nullptr;
  char* start = page_of(*place);
  if (!os::open_between_guards(start, page, 2)) {
    place->give_up();
    return nullptr;
  }
  bool at_end = next_random() % 4 != 0;  // others show writes in front of them
  char* block = at_end ? start + page - rounded : start;
  place->block = address_of(block);
  place->size = rounded;
  place->allocated.take_allocation(caller);
  live_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(rounded, std::memory_order_relaxed);
  place->become_live();
  return block;
}

GuardedPlace& GuardedBlocks::live_place(const void* block, const char* function) noexcept {
  GuardedPlace* place = place_at(address_of(block));
  if (place == nullptr || place->block == 0) die_on_misuse(function, block, "not a block of hmalloc");
  if (address_of(block) != place->block) {
    bool aligned = address_of(block) % kGranule == 0;
    die(function, block, aligned ? "points into a block, not to its start" : "misaligned pointer", *place);
  }
  if (place->state() != GuardedPlace::kLive) die(function, block, "double free", *place);
  return *place;
}

void GuardedBlocks::free(void* block, const char* function, const void* caller) noexcept {
  GuardedPlace& place = live_place(block, function);
  if (!place.end_life()) die(function, block, "double free", place);
  place.freed.take_free(caller);
  char* page = page_of(place);
  os::purge(page, os::page_size());
  if (os::seal(page, os::page_size())) os::unguarded(2);
  live_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(place.size, std::memory_order_relaxed);
  place.give_up();
}

size_t GuardedBlocks::usable_size(const void* block, const char* function) noexcept {
  return live_place(block, function).size;
}

// On a guard: the block that ends or begins nearer to it, of those that are or were there.
GuardedBlocks::Found GuardedBlocks::find(uintptr_t address) const noexcept {
  size_t page = (address - base_) / os::page_size(), n = page / 2;
  auto place = [this](size_t i) { return i < places_ && all_[i].block != 0 ? &all_[i] : nullptr; };
  if (page % 2 == 1) return {place(n), true};
  const GuardedPlace *left = place(n - 1), *right = place(n);
  bool nearer_right = left == nullptr || (right != nullptr && right->block - address < address - left->block - left->size);
  const GuardedPlace* nearest = nearer_right ? right : left;
  return {nearest, nearest != nullptr && nearest->state() != GuardedPlace::kLive};
}

void GuardedBlocks::die(const char* function, const void* block, const char* reason, const GuardedPlace& place) noexcept {
  { FdWriter(2) << kLibraryName << ": " << function << "(" << block << "): " << reason << "\n"; }
  place.describe();
  abort();
}

}  // namespace hm
