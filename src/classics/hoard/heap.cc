#include "classics/hoard/heap.h"

namespace hm::hoard {

// Fig. 2, malloc line 4: "from most full to least".
Superblock* Heap::fullest_with_space(size_t size_class) noexcept {
  const auto& groups = bins_[size_class].groups;
  for (size_t g = kUpToF; g < kGroups; ++g)
    if (groups[g].front() != nullptr) return groups[g].front();
  return nullptr;
}

void* Heap::take_block(Superblock& s) noexcept {
  void* block = s.take_block();
  ++bins_[s.size_class()].u;
  if (s.fullness_group() != s.group()) {
    unlink(s);
    link(s);
  }
  return block;
}

// "Whenever we free a block in a superblock, we move the superblock to the front of its fullness group."
void Heap::put_block(Superblock& s, void* block) noexcept {
  s.put_block(block);
  --bins_[s.size_class()].u;
  unlink(s);
  link(s);
}

// Fig. 2, free line 9.
bool Heap::crosses_emptiness_threshold(size_t size_class) const noexcept {
  const Bin& bin = bins_[size_class];
  return bin.u + options.keep * classes[size_class].blocks < bin.a &&
         bin.u * kThousand < (kThousand - options.empty_fraction) * bin.a;
}

// With K = 0 also a heap that has just got a superblock has too much, until its next free.
bool Heap::is_not_too_empty(size_t size_class) const noexcept {
  const Bin& bin = bins_[size_class];
  size_t keep = options.keep > 0 ? options.keep : 1;
  return bin.u + keep * classes[size_class].blocks >= bin.a ||
         bin.u * kThousand >= (kThousand - options.empty_fraction) * bin.a;
}

void Heap::link(Superblock& s) noexcept {
  s.set_group(s.fullness_group());
  bins_[s.size_class()].groups[s.group()].push_front(s);
}

Superblock* Heap::emptiest(size_t size_class) noexcept {
  const auto& groups = bins_[size_class].groups;
  for (size_t g = kEmpty; g > kUpToF; --g)
    if (groups[g].front() != nullptr) return groups[g].front();
  return nullptr;
}

Superblock* Heap::completely_empty() noexcept {
  for (size_t c = 0; c < classes.count(); ++c)
    if (Superblock* s = bins_[c].groups[kEmpty].front(); s != nullptr) return s;
  return nullptr;
}

void Heap::insert(Superblock& s) noexcept {
  Bin& bin = bins_[s.size_class()];
  bin.u += s.in_use();
  bin.a += s.blocks();
  link(s);
  s.set_owner(this);
}

void Heap::remove(Superblock& s) noexcept {
  Bin& bin = bins_[s.size_class()];
  bin.u -= s.in_use();
  bin.a -= s.blocks();
  unlink(s);
}

size_t Heap::bytes_in_use() const noexcept {
  size_t bytes = 0;
  for (size_t c = 0; c < classes.count(); ++c) bytes += bins_[c].u * classes[c].size;
  return bytes;
}

bool Heap::is_valid(size_t size_class, bool global) const noexcept {
  const Bin& bin = bins_[size_class];
  size_t u = 0, a = 0;
  for (size_t g = kFull; g < kGroups; ++g) {
    if (!bin.groups[g].is_linked()) return false;
    for (const Superblock* s = bin.groups[g].front(); s != nullptr; s = SuperblockList::after(s)) {
      if (s->owner() != this || s->size_class() != size_class || s->group() != g) return false;  // 1
      if (!s->is_valid() || s->fullness_group() != g || (global && g <= kUpToF)) return false;          // 1, 4
      u += s->in_use();
      a += s->blocks();
    }
  }
  return u == bin.u && a == bin.a && (global || is_not_too_empty(size_class));  // 2, 3
}

bool Heap::is_valid(bool global) const noexcept {
  for (size_t c = 0; c < classes.count(); ++c)
    if (!is_valid(c, global)) return false;
  return true;
}

OwnerGuard::OwnerGuard(const Superblock& s) noexcept {
  for (;;) {
    heap_ = s.owner();
    mine_ = heap_->lock.lock();
    if (s.owner() == heap_) return;
    if (mine_) heap_->lock.unlock();
  }
}

}  // namespace hm::hoard
