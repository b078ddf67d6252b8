#include "baselines/ar_malloc/arena.h"

#include "base/report.h"

namespace hm::ar_malloc {

constinit std::array<Arena, kMaxArenas> arenas{};
constinit Regions slab_memory(kSlab);

void Arena::Counters::add(const Counters& other) noexcept {
  locks += other.locks;
  out += other.out;
  back += other.back;
  foreign += other.foreign;
  slabs += other.slabs;
  cuts += other.cuts;
  bytes_out += other.bytes_out;
}

// An empty slab of this arena, whatever its last class, or a new one.
Slab* Arena::add_slab(ClassIndex c) noexcept {
  Slab* slab = empty_.first;
  if (slab != nullptr) {
    empty_.remove(*slab);
  } else {
    slab = static_cast<Slab*>(slab_memory.take());
    if (slab == nullptr) return nullptr;
    slab->older = all_;
    all_ = slab;
    ++counters_.slabs;
  }
  slab->cut(*this, c);
  ++counters_.cuts;
  bin(c).push(*slab);
  return slab;
}

Blocks Arena::take(ClassIndex c, uint32_t count) noexcept {
  LockGuard guard(lock_);
  ++counters_.locks;
  Blocks taken;
  for (FreeBlock** end = &taken.first; taken.count < count; ++taken.count) {
    Slab* slab = bin(c).first != nullptr ? bin(c).first : add_slab(c);
    if (slab == nullptr) break;
    auto* block = static_cast<FreeBlock*>(slab->take());
    if (slab->free == 0) bin(c).remove(*slab);
    *end = block;
    end = &block->next;
    *end = nullptr;
  }
  counters_.out += taken.count;
  counters_.bytes_out += taken.count * size_of(c);
  return taken;
}

// A slab without a block in use may serve any class again.  But a class keeps its last one; otherwise a program that
// allocates and frees a single block would have a slab cut each time.
void Arena::give_back_one(Slab& slab, FreeBlock* block) noexcept {
  SlabList& list = bin(slab.size_class);
  slab.give_back(block);
  if (slab.free == 1) list.push(slab);
  if (slab.free == slab.blocks && (slab.next != nullptr || slab.previous != nullptr)) {
    list.remove(slab);
    empty_.push(slab);
  }
  ++counters_.back;
  counters_.bytes_out -= slab.block_size;
}

FreeBlock* Arena::give_back(FreeBlock* list, const Arena* giver, const char* function) noexcept {
  LockGuard guard(lock_);
  ++counters_.locks;
  FreeBlock* others = nullptr;
  while (list != nullptr) {
    FreeBlock* block = list;
    list = block->next;
    Slab& slab = Slab::of(block);
    if (slab.arena != this) {
      block->next = others;
      others = block;
      continue;
    }
    if (slab.has_free(block)) die_on_misuse(function, block, "freed already");
    give_back_one(slab, block);
    if (giver != this) ++counters_.foreign;
  }
  return others;
}

Arena::Counters Arena::counters() noexcept {
  LockGuard guard(lock_);
  return counters_;
}

// A slab that has a free block, and no other, is in the list of its class or among the empty ones.
bool Arena::is_valid() noexcept {
  LockGuard guard(lock_);
  size_t slabs = 0, unlisted = 0, listed = 0;
  size_t bytes_out = 0;
  for (const Slab* slab = all_; slab != nullptr; slab = slab->older, ++slabs) {
    if (slab->arena != this || !slab->is_valid()) return false;
    if (slab->free == 0) ++unlisted;
    bytes_out += size_t{slab->blocks - slab->free} * slab->block_size;
  }
  for (const SlabList& list : bins_)
    for (const Slab *slab = list.first, *before = nullptr; slab != nullptr; before = slab, slab = slab->next)
      if (++listed > slabs || slab->previous != before || slab->free == 0 ||
          index_of(slab->size_class) != static_cast<size_t>(&list - bins_.data()))
        return false;
  for (const Slab* slab = empty_.first; slab != nullptr; slab = slab->next)
    if (++listed > slabs || slab->free != slab->blocks) return false;
  return slabs == counters_.slabs && listed + unlisted == slabs && bytes_out == counters_.bytes_out;
}

}  // namespace hm::ar_malloc
