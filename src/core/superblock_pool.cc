#include "core/superblock_pool.h"

#include <utility>

#include "pages/footprint.h"

namespace hm {

constinit SuperblockPool superblock_pool;

namespace {
constexpr size_t kBatch = 4;         // superblocks taken out of a queue at a time
constexpr size_t kAside = 16;        // usable ones that a search of all moves to the front of a queue
constexpr size_t kNever = SIZE_MAX;  // more free blocks than a superblock can have
}  // namespace

void release(Superblock& sb) noexcept {
  size_t slices = slices_of(sb.class_index());
  sb.clear();
  slice_pool.release(sb, slices);
}

// Nobody can take the superblock out of a locked queue, so it may still be looked at after its last block became FREE.
// A thread's full superblocks stay where they are: its heap uses them next, or finds them empty at a tick.  A heap of the
// program's own has no ticks.
void give_back_perhaps_last(Superblock& sb, BlockState& state) noexcept {
  if (!sb.all_free_but(state)) return state.give_back();
  Superblock& first = Superblock::of(address_of(sb.start));  // the descriptor of the first slice
  while (SuperblockQueue* home = first.home()) {
    bool empty;
    {
      LockGuard guard(home->lock());
      if (first.home() != home) continue;  // it moved before we had the lock
      state.give_back();
      empty = (superblock_pool.owns(*home) || belongs_to_own_heap(first)) && first.is_empty();
      if (empty) home->unlink(first);
    }
    if (empty) release(first);
    return;
  }
  state.give_back();  // its holder will see it
}

namespace {

// Gives empty superblocks to their chunks, moves some of those with at least `least` free blocks to the front and the others
// to the end.  Returns how many were empty or have as many.  Only a few are out of the queue at a time, because the child of a
// fork would lose them.
size_t partition_by_occupancy(SuperblockQueue& queue, size_t probes, size_t least) noexcept {
  size_t found = 0, aside = 0;
  Superblock* usable = nullptr;  // pushed at the end, or they would be popped again
  for (size_t left = std::min(queue.count(), probes); left > 0;) {
    size_t batch = std::min(left, kBatch);
    left -= batch;
    Superblock* rest = nullptr;
    for (Superblock* sb = queue.pop_some(batch); sb != nullptr;) {
      Superblock* next = sb->next;
      if (sb->is_empty()) {
        release(*sb);
        ++found;
      } else if (least <= sb->blocks && sb->free_blocks(least) >= least) {
        sb->next = std::exchange(aside < kAside ? usable : rest, sb);
        ++aside;
        ++found;
      } else {
        sb->next = std::exchange(rest, sb);
      }
      sb = next;
    }
    queue.push_all(rest);
  }
  while (usable != nullptr) {
    Superblock* next = usable->next;
    usable->is_empty() ? release(*usable) : queue.push_front(*usable);  // it may have become so meanwhile
    usable = next;
  }
  return found;
}

}  // namespace

size_t release_free(SuperblockQueue& queue, size_t probes) noexcept { return partition_by_occupancy(queue, probes, kNever); }

Superblock* pop_usable(SuperblockQueue& queue, size_t probes, size_t least, const Shelf* mine) noexcept {
  Superblock* best = nullptr;
  size_t batch = 1;  // first the oldest alone: it usually will do, and the others keep their order
  for (size_t left = std::min(queue.count(), probes); left > 0 && (best == nullptr || best->owner() != mine);) {
    Superblock* sb = queue.pop_some(batch);
    left -= batch;
    batch = std::min(left, kBatch);
    Superblock* others = nullptr;
    while (sb != nullptr) {
      Superblock* next = sb->next;
      bool better = (best == nullptr || (sb->owner() == mine && best->owner() != mine)) && sb->free_blocks(least) >= least;
      Superblock* other = better ? std::exchange(best, sb) : sb;
      if (other != nullptr) other->next = std::exchange(others, other);
      sb = next;
    }
    queue.push_all(others);
  }
  return best;
}

Superblock* SuperblockPool::acquired(Superblock* sb) noexcept {
  if (sb == nullptr) return nullptr;
  if (sb->cursor >= sb->blocks) slice_pool.count_reuse();  // another may be swept for the first time: that is growth
  sb->watch(false);
  return sb;
}

Superblock* SuperblockPool::acquire_from_others(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept {
  size_t own = shard_of(mine), turn = next_turn_.fetch_add(1, std::memory_order_relaxed);
  Superblock* sb = nullptr;
  for (size_t left = probes < kMaxProbes ? 1 : kShards - 1; left > 0 && sb == nullptr; --left, ++turn)
    sb = pop_usable(queue((own + 1 + turn % (kShards - 1)) % kShards, c), probes, least, mine);
  return sb;
}

Superblock* SuperblockPool::acquire(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept {
  Superblock* sb = pop_usable(queue(shard_of(mine), c), probes, least, mine);
  return acquired(sb != nullptr ? sb : acquire_from_others(c, mine, probes, least));
}

Superblock* SuperblockPool::acquire_near(ClassIndex c, const Shelf* mine, size_t probes, size_t least) noexcept {
  Superblock* sb = pop_usable(queue(shard_of(mine), c), probes, least, mine);
  if (sb == nullptr && !slice_pool.has_resident(slices_of(c))) sb = acquire_from_others(c, mine, probes, least);
  return acquired(sb);
}

void SuperblockPool::add(Shelf& shelf) noexcept {
  LockGuard guard(shelves_lock_);
  shelf.shard = shelf_count_++ % kShards;
  shelf.next = shelves_;
  keep_order();
  shelves_ = &shelf;
}

namespace {

void repair_queue(SuperblockQueue& queue, uint32_t before) noexcept {
  repair_after_fork(queue.lock(), before, [&] { queue.repair(); });
}

}  // namespace

// The list of shelves is complete after every instruction: nothing ever leaves it.
void SuperblockPool::repair(uint32_t before) noexcept {
  repair_after_fork(shelves_lock_, before, [] {});
  for (auto& shard : queues_)
    for (SuperblockQueue& queue : shard) repair_queue(queue, before);
  for (Shelf* shelf = shelves_; shelf != nullptr; shelf = shelf->next)
    for (SuperblockQueue& queue : shelf->queues) repair_queue(queue, before);
}

bool SuperblockPool::is_valid() noexcept {
  LockGuard guard(shelves_lock_);
  bool valid = true;
  for (auto& shard : queues_)
    for (SuperblockQueue& queue : shard) valid = valid && queue.is_valid();
  for (Shelf* shelf = shelves_; shelf != nullptr; shelf = shelf->next)
    for (SuperblockQueue& queue : shelf->queues) valid = valid && queue.is_valid();
  return valid;
}

size_t SuperblockPool::release_shelved() noexcept {
  size_t released = 0;
  for (Shelf* shelf = first_shelf(); shelf != nullptr; shelf = shelf->next)
    for (size_t c = 0; c < kClasses && !shelf->stranded; ++c) released += hm::release_free(shelf->queues[c], SIZE_MAX);
  return released;
}

size_t SuperblockPool::release_free(size_t probes) noexcept {
  size_t released = 0;
  for (auto& shard : queues_)
    for (SuperblockQueue& queue : shard) released += hm::release_free(queue, probes);
  return released;
}

// Visits every superblock once.
bool SuperblockPool::scan(size_t wanted) noexcept {
  size_t found = release_shelved();
  for (auto& shard : queues_)
    for (size_t c = 0; c < kClasses; ++c)
      found += partition_by_occupancy(shard[c], SIZE_MAX, c == wanted ? min_free_blocks(ClassIndex(c)) : kNever);
  return found * 16 >= slice_pool.chunks() * kSlicesInChunk;
}

uint64_t SuperblockPool::made_free() noexcept {
  uint64_t bytes = footprint.cross_thread_bytes();
  for (Shelf* shelf = first_shelf(); shelf != nullptr; shelf = shelf->next) bytes += shelf->made_free.get();
  return bytes;
}

// Only one thread scans.  A scan that found little is not repeated before the footprint has grown by an eighth; one
// that found much has paid for itself.  There is none while less than a 4096th of the footprint has become FREE since the
// last one for this class, which makes at most one superblock in 128 usable: a program that only builds up would have each
// looked at nine times.
void SuperblockPool::scan_if_due(size_t wanted) noexcept {
  size_t chunks = slice_pool.chunks(), due_at = scan_at_chunks_.load(std::memory_order_relaxed);
  if (chunks < due_at) return;
  uint64_t now = made_free(), before = made_free_at_scan_[wanted].load(std::memory_order_relaxed);
  bool vain = now - before < chunks * kChunk / 4096;
  size_t next = chunks + (vain ? 0 : chunks / 8) + 1;
  if (!scan_at_chunks_.compare_exchange_strong(due_at, next, std::memory_order_relaxed) || vain) return;
  made_free_at_scan_[wanted].store(now, std::memory_order_relaxed);
  if (scan(wanted)) scan_at_chunks_.store(due_at, std::memory_order_relaxed);
}

SlicePool::Run SuperblockPool::fresh_run(size_t slices) noexcept {
  SlicePool::Run run = slice_pool.allocate(slices, false);
  if (run.first != nullptr) return run;
  scan_if_due(kClasses);
  return map_run(slices);
}

SlicePool::Run SuperblockPool::map_run(size_t slices) noexcept {
  SlicePool::Run run = slice_pool.allocate(slices, true);
  return run.first != nullptr || release_free(SIZE_MAX) == 0 ? run : slice_pool.allocate(slices, false);
}

void SuperblockPool::reclaim_before_growth(size_t bytes) noexcept {
  size_t wanted = slice_pool.chunks() * kChunk + footprint.huge() + bytes;
  if (wanted > reclaim_at_.load(std::memory_order_relaxed)) {
    reclaim_at_.store(wanted + wanted / 8, std::memory_order_relaxed);
    release_free(SIZE_MAX);
  }
  slice_pool.purge(SlicePool::Purge::kAll, bytes);
}

Superblock* SuperblockPool::fresh(ClassIndex c, const Shelf* mine) noexcept {
  size_t slices = slices_of(c);
  SlicePool::Run run = slice_pool.allocate(slices, false);
  if (run.first == nullptr) {
    scan_if_due(index_of(c));
    if (Superblock* sb = acquire(c, mine)) return sb;
    run = map_run(slices);
  }
  if (run.first == nullptr) return acquire(c, mine);
  Superblock& sb = Superblock::of(*run.first);
  sb.format(c);
  return &sb;
}

}  // namespace hm
