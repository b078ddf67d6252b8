// The slice pool in the child of a fork, which recomputes what follows from P1 and P2; and the pool's is_valid().
#include "base/intrusive_list.h"
#include "pages/slice_pool.h"

namespace hm {

bool SlicePool::is_open(const Chunk& chunk) const noexcept { return AddressMap::kind(chunk.start()) == ChunkKind::kSlices; }

bool SlicePool::is_in_hands(const Chunk& chunk) const noexcept {
  for (const Opener& opener : openers_)
    if (opener.chunk == &chunk) return true;
  return false;
}

// Drops whatever threads that the child does not have were changing.  If the surviving thread itself holds the pool's
// lock (its signal handler has forked), it will finish its own change, and what the others had taken is lost.
void SlicePool::repair(uint32_t before) noexcept {
  bool broken = false, purge_broken = false;
  for (Opener& opener : openers_)
    repair_after_fork(opener.lock, before, [&] {
      opener.chunk = nullptr;
      broken = true;
    });
  repair_after_fork(purge_lock_, before, [&] { purge_broken = broken = true; });
  repair_after_fork(lock_, before, [&] { broken = true; });
  if (!broken) return;
  bool whole = lock_.lock();
  if (whole && purge_broken) undo_purge();
  if (purge_broken) claimed_.chunk = nullptr;
  if (!whole) return;
  rebuild();
  lock_.unlock();
}

// Some of the claimed pages are gone, others are not.
void SlicePool::undo_purge() noexcept {
  if (claimed_.chunk == nullptr) return;
  claimed_.chunk->free |= claimed_.slices;
  claimed_.chunk->dirty |= claimed_.slices;
}

void SlicePool::rebuild() noexcept {
  Chunk* sample = density_sample_;
  with_ready_chunks_ = nullptr;
  index_.clear();
  all_ = density_sample_ = first_surplus_ = last_surplus_ = nullptr;
  regions_ = resident_ = 0;
  used_.store(0, std::memory_order_relaxed);
  surplus_.store(0, std::memory_order_relaxed);
  chunks_.store(0, std::memory_order_relaxed);
  Region* previous = nullptr;
  for (Region* region = mapped_; region != nullptr; region = region->next_mapped) {
    region->previous_mapped = previous;
    previous = region;
    rebuild(*region);
  }
  for (Chunk* chunk = all_; chunk != nullptr; chunk = chunk->next)
    if (chunk == sample) density_sample_ = sample;
}

void SlicePool::rebuild(Region& region) noexcept {
  ++regions_;
  Chunk* chunks = Chunk::of_region(region.start());
  for (size_t i = 0; i < kChunksInRegion; ++i) {
    chunks[i].step = chunks[i].surplus = 0;  // of a chunk that was being closed, too
    if ((region.closed >> i & 1) != 0) continue;
    if (is_open(chunks[i])) rebuild(chunks[i]);
    else if (!is_in_hands(chunks[i])) region.closed |= static_cast<uint8_t>(1u << i);
  }
  if (region.ready() != 0) link_first(with_ready_chunks_, region, &Region::next, &Region::previous);
}

namespace {

// Of what a purge has taken, what was used since its memory was last given back is still counted.
size_t resident_slices(const Chunk& chunk, uint64_t in_a_purge) noexcept {
  uint64_t dirty = chunk.dirty | chunk.dirty_before, used = all_slices(chunk) & ~chunk.free & ~in_a_purge;
  return slices_in(used | dirty | (in_a_purge & chunk.used));
}

}  // namespace

void SlicePool::rebuild(Chunk& chunk) noexcept {
  uint64_t slices = all_slices(chunk), elsewhere = claimed_.chunk == &chunk ? claimed_.slices : 0;
  chunk.dirty_before &= chunk.free;
  chunk.dirty = chunk.free & (chunk.dirty | chunk.used) & ~chunk.dirty_before;
  link_first(all_, chunk, &Chunk::next, &Chunk::previous);
  index_.update(chunk);
  used_.store(used() + slices_in(slices & ~chunk.free & ~elsewhere), std::memory_order_relaxed);
  recount(chunk);
  count_resident(resident_slices(chunk, elsewhere), 0);
  chunks_.store(chunks() + 1, std::memory_order_relaxed);
}

bool SlicePool::is_valid() noexcept {
  LockGuard guard(lock_);
  size_t open_chunks = 0, regions = 0, listed = 0, used = 0, resident = 0, surplus = 0, free_chunks = 0, with_surplus = 0;
  for (Region *region = mapped_, *previous = nullptr; region != nullptr; previous = region, region = region->next_mapped)
    if (++regions > regions_ || region->previous_mapped != previous || !is_valid(*region, open_chunks)) return false;
  for (Chunk *chunk = all_, *previous = nullptr; chunk != nullptr; previous = chunk, chunk = chunk->next) {
    uint64_t slices = all_slices(*chunk), elsewhere = claimed_.chunk == chunk ? claimed_.slices : 0;
    if (++listed > open_chunks || chunk->previous != previous || !is_open(*chunk)) return false;
    if (((chunk->free | elsewhere) & ~slices) != 0 || ((chunk->dirty | chunk->dirty_before) & ~chunk->free) != 0)
      return false;
    if ((chunk->free & chunk->used & ~chunk->dirty & ~chunk->dirty_before) != 0) return false;  // P2
    used += slices_in(slices & ~chunk->free & ~elsewhere);
    resident += resident_slices(*chunk, elsewhere);
    if (chunk->surplus != surplus_of(*chunk)) return false;
    surplus += chunk->surplus;
    with_surplus += chunk->surplus > 0;
    free_chunks += chunk->free != 0;
  }
  bool indexed = true;
  index_.for_each([&](Chunk& chunk, size_t step) {
    size_t longest = longest_run(chunk.free);
    indexed = indexed && chunk.step == step && ChunkIndex::step_of(longest) == step && index_.find(longest) != nullptr;
    --free_chunks;
  });
  Chunk* last = nullptr;
  for (Chunk* chunk = first_surplus_; chunk != nullptr; last = chunk, chunk = chunk->next_surplus)
    if (with_surplus-- == 0 || chunk->previous_surplus != last || chunk->surplus == 0) return false;
  return regions == regions_ && listed == open_chunks && open_chunks == chunks() && used == this->used() &&
         resident == resident_ && surplus == surplus_slices() && indexed && free_chunks == 0 && with_surplus == 0 &&
         last_surplus_ == last;
}

bool SlicePool::is_valid(Region& region, size_t& open_chunks) noexcept {
  Chunk* chunks = Chunk::of_region(region.start());
  for (size_t i = 0; i < kChunksInRegion; ++i) {
    bool closed = (region.closed >> i & 1) != 0, open = is_open(chunks[i]);
    open_chunks += open;
    if (closed + open + (!closed && !open && is_in_hands(chunks[i])) != 1) return false;  // P1
    if (!open && (chunks[i].step != 0 || chunks[i].surplus != 0)) return false;
  }
  bool roomy = false;
  for (Region* each = with_ready_chunks_; each != nullptr; each = each->next) roomy = roomy || each == &region;
  return roomy == (region.ready() != 0) && (region.absent & ~region.closed) == 0;
}

}  // namespace hm
