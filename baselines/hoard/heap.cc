#include "baselines/hoard/heap.h"

namespace hm::hoard {

// Fig. 2, malloc line 4: "from most full to least".
Superblock* Heap::fullest_with_space(size_t size_class) noexcept {
  for (size_t g = kUpToF; g < kGroups; ++g)
    if (Superblock* s = groups_[g][size_class].front(); s != nullptr) return s;
  return nullptr;
}

// Lines 15 and 16.
void* Heap::take_block(Superblock& s) noexcept {
  void* block = s.take_block();
  set_u(u() + s.block_size());
  if (s.fullness_group() != s.group()) {
    unlink(s);
    link(s);
  }
  return block;
}

// Fig. 2, free lines 5 to 7.  "Whenever we free a block in a superblock, we move the superblock to the front of its
// fullness group."
void Heap::put_block(Superblock& s, void* block) noexcept {
  s.put_block(block);
  set_u(u() - s.block_size());
  unlink(s);
  link(s);
}

// Line 9, with an allowance for a.
bool Heap::is_too_empty(size_t allowance) const noexcept {
  size_t a = a_ > allowance ? a_ - allowance : 0;
  return u() + options.keep * options.superblock < a && u() * kThousand < (kThousand - options.empty_fraction) * a;
}

void Heap::link(Superblock& s) noexcept {
  s.set_group(s.fullness_group());
  groups_[s.group()][s.size_class()].push_front(s);
}

Superblock* Heap::emptiest(size_t size_class) noexcept {
  for (size_t g = kEmpty; g > kUpToF; --g)
    if (Superblock* s = groups_[g][size_class].front(); s != nullptr) return s;
  return nullptr;
}

// Within a group the largest blocks go first: they are requested least often.
Superblock* Heap::emptiest() noexcept {
  for (size_t g = kEmpty; g > kUpToF; --g)
    for (size_t c = classes.count(); c-- > 0;)
      if (Superblock* s = groups_[g][c].front(); s != nullptr) return s;
  return nullptr;
}

Superblock* Heap::completely_empty() noexcept {
  for (size_t c = 0; c < classes.count(); ++c)
    if (Superblock* s = groups_[kEmpty][c].front(); s != nullptr) return s;
  return nullptr;
}

void Heap::insert(Superblock& s) noexcept {
  set_u(u() + s.u());
  a_ += s.a();
  link(s);
  s.set_owner(this);
}

void Heap::remove(Superblock& s) noexcept {
  set_u(u() - s.u());
  a_ -= s.a();
  unlink(s);
}

bool Heap::is_valid(bool global) const noexcept {
  size_t sum_u = 0, sum_a = 0;
  for (size_t g = kFull; g < kGroups; ++g)
    for (size_t c = 0; c < classes.count(); ++c) {
      if (!groups_[g][c].is_linked()) return false;
      for (const Superblock* s = groups_[g][c].front(); s != nullptr; s = SuperblockList::after(s)) {
        if (s->owner() != this || s->size_class() != c || s->group() != g) return false;  // 1
        if (!s->is_valid() || s->fullness_group() != g) return false;
        if (global && g <= kUpToF) return false;  // 4
        sum_u += s->u();
        sum_a += s->a();
      }
    }
  return sum_u == u() && sum_a == a_ && (global || !is_too_empty_for_malloc());  // 2, 3
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
