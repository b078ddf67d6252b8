#include "hmalloc/superblock_pool.h"

#include <utility>

#include "hmalloc/registry.h"
#include "hmalloc/slice_pool.h"

namespace hm {

constinit SuperblockPool superblock_pool;

namespace {
constexpr size_t kHandful = 4;  // superblocks taken out of a queue at a time
constexpr size_t least_free(ClassIndex c) { return blocks_of(c) / 32 + 1; }
}  // namespace

void release(Superblock& sb) noexcept {
  size_t slices = slices_of(sb.class_index());
  sb.clear();
  slice_pool.release(sb, slices);
}

size_t release_free(SuperblockQueue& queue, size_t looks) noexcept {
  size_t released = 0;
  for (size_t n = std::min(queue.count(), looks); n > 0; --n) {
    Superblock* sb = queue.pop();
    if (sb == nullptr) break;
    if (sb->wholly_free()) {
      release(*sb);
      ++released;
    } else {
      queue.push(*sb);
    }
  }
  return released;
}

Superblock* pop_with_room(SuperblockQueue& queue, size_t looks, size_t least, const ThreadHeap* mine) noexcept {
  Superblock* best = nullptr;
  size_t hand = 1;  // the oldest by itself: usually it will do, and the others keep their order
  for (size_t left = std::min(queue.count(), looks); left > 0 && (best == nullptr || best->owner() != mine);) {
    Superblock* sb = queue.pop_some(hand);
    left -= hand;
    hand = std::min(left, kHandful);
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

Superblock* SuperblockPool::claim(ClassIndex c, const ThreadHeap* mine, size_t looks) noexcept {
  return pop_with_room(queue(c), looks, least_free(c), mine);
}

size_t SuperblockPool::release_free(size_t looks) noexcept {
  size_t released = 0;
  for (SuperblockQueue& queue : queues_) released += hm::release_free(queue, looks);
  return released;
}

// Every superblock once: the free ones to their chunks, of the wanted class those with room to the front.
bool SuperblockPool::search(ClassIndex wanted) noexcept {
  size_t found = release_free(SIZE_MAX) + registry.release_retired();
  SuperblockQueue& queue = this->queue(wanted);
  for (size_t n = queue.count(); n > 0; --n) {
    Superblock* sb = queue.pop();
    if (sb == nullptr) break;
    bool roomy = sb->free_blocks(least_free(wanted)) >= least_free(wanted);
    roomy ? queue.push_front(*sb) : queue.push(*sb);
    found += roomy;
  }
  return found * 16 >= slice_pool.chunks() * kSlicesInChunk;
}

Superblock* SuperblockPool::fresh(ClassIndex c, const ThreadHeap* mine) noexcept {
  size_t slices = slices_of(c);
  SlicePool::Run run = slice_pool.allocate(slices, false);
  if (run.first == nullptr && slice_pool.chunks() >= search_at_chunks_.load(std::memory_order_relaxed)) {
    // A search that found little is not repeated before the footprint has grown by an eighth; one that found much has
    // paid for itself.
    if (!search(c))
      search_at_chunks_.store(slice_pool.chunks() + slice_pool.chunks() / 8 + 1, std::memory_order_relaxed);
    if (Superblock* sb = claim(c, mine)) return sb;
  }
  if (run.first == nullptr) run = slice_pool.allocate(slices, true);
  if (run.first == nullptr) {
    if (release_free(SIZE_MAX) == 0) return claim(c, mine);
    run = slice_pool.allocate(slices, false);
    if (run.first == nullptr) return claim(c, mine);
  }
  run.first->format(c);
  return run.first;
}

}  // namespace hm
