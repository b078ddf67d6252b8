#include "core/superblock.h"

#include "base/os_pages.h"
#include "base/process.h"
#include "base/secret.h"
#include "pages/footprint.h"

namespace hm {
namespace {

// States that fill only a part of their area start at different lines of it; otherwise the first lines of all
// superblocks would compete for the same few cache sets.
BlockState* place_states(const Superblock& head, ClassIndex c) noexcept {
  size_t slice = head.slice();
  bool wide = size_of(c) < kLine;
  size_t area = wide ? kGranuleStatesArea : kLineStatesArea;
  size_t lines = blocks_of(c) / kLine + 1;
  size_t spare = area / kLine >= lines ? area / kLine - lines : 0;
  size_t skew = slice * 11 % (spare + 1) * kLine;
  return reinterpret_cast<BlockState*>(head.region() + (wide ? kGranuleStates : kLineStates) + slice * area + skew);
}

}  // namespace

void Superblock::format(ClassIndex c) noexcept {
  size_t slices = slices_of(c);
  block_size = static_cast<uint32_t>(size_of(c));
  blocks = static_cast<uint32_t>(blocks_of(c));
  cache_offset = static_cast<uint16_t>(index_of(c) * kCacheStride);
  inverse = static_cast<uint32_t>(((uint64_t{1} << 32) + block_size - 1) / block_size);
  start = base();
  states = place_states(*this, c);
  set_witness(&no_last_block);
  states->give_back();  // it already is FREE, but a page that is read before it is written faults twice
  cursor = holes = 0;
  holes_refused = false;
  found = 0;
  next = nullptr;
  for (size_t i = 1; i < slices; ++i) this[i].format_tail(*this);
  set_kind(SliceKind::kBlocks);
}

void Superblock::format_tail(const Superblock& first) noexcept {
  inverse = first.inverse;
  cache_offset = first.cache_offset;
  start = first.start;
  states = first.states;
  set_witness(&no_last_block);
  block_size = first.block_size;
  blocks = first.blocks;
  set_kind(SliceKind::kBlocksTail);
}

void Superblock::prefetch(ClassIndex c) const noexcept {
  __builtin_prefetch(this);
  __builtin_prefetch(&cursor);
  __builtin_prefetch(place_states(*this, c));
}

void Superblock::clear() noexcept {
  size_t slices = slices_of(class_index());
  for (size_t i = 0; i < slices; ++i) {
    this[i].set_kind(SliceKind::kUnused);
    keep_order();  // a slice that a fork leaves half cleared is no longer a superblock
    this[i].inverse = 0;
  }
}

size_t Superblock::free_blocks(size_t enough) const noexcept {
  size_t free = 0, i = 0;
  for (size_t groups = blocks / kSweepGroup; groups > 0 && free < enough; --groups) {
    uint64_t sums = 0;  // each byte sums every eighth block
    for (size_t end = i + kSweepGroup; i < end; i += StateGroup::kBlocks) sums += StateGroup(states + i).free_mask();
    free += StateGroup::count(sums);
  }
  for (; i < blocks && free < enough; i += StateGroup::kBlocks) {
    size_t none = std::max(i + StateGroup::kBlocks, size_t{blocks}) - blocks;  // states behind the last block, all FREE (S3)
    free += StateGroup::count(StateGroup(states + i).free_mask()) - none;
  }
  return free;
}

bool Superblock::is_empty() const noexcept {
  for (size_t i = 0; i < blocks; i += StateGroup::kBlocks)
    if (!StateGroup(states + i).all_free()) return false;
  return true;
}

void Superblock::watch(bool whether) noexcept {
  for (size_t i = 0; i < slices_of(class_index()); ++i) this[i].set_witness(whether ? states : &no_last_block);
}

// The new witness is the last block or, if that is FREE, a taken block in the nearest word above or below, and farther
// away from this block while words have some, up to kFar.  So it is cheap to find, and lasts where blocks are freed in
// a row.
bool Superblock::all_free_but(const BlockState& state) noexcept {
  constexpr size_t kFar = 8;  // words
  set_witness(states + blocks - 1);
  if (has_witness_but(state)) return false;
  auto taken = [this](size_t word) { return StateGroup(states + word * StateGroup::kBlocks).taken(); };
  auto own = static_cast<size_t>(&state - states), words = divide_up(blocks, StateGroup::kBlocks);
  size_t up = own / StateGroup::kBlocks, down = up;
  uint64_t lower = (uint64_t{1} << own % StateGroup::kBlocks * 8) - 1, all = taken(up);
  uint64_t below = all & lower, above = all & ~lower & ~(lower << 8 | 0xff);
  while (above == 0 && below == 0) {
    if (++up < words) above = taken(up);
    else if (down == 0) return true;
    if (above == 0 && down > 0) below = taken(--down);
  }
  uint64_t more;
  if (above != 0) {
    for (size_t end = std::min(words, up + kFar); up + 1 < end && (more = taken(up + 1)) != 0; ++up) above = more;
    set_witness(states + up * StateGroup::kBlocks + static_cast<size_t>(63 - std::countl_zero(above)) / 8);
  } else {
    for (size_t end = down - std::min(down, kFar); down > end && (more = taken(down - 1)) != 0; --down) below = more;
    set_witness(states + down * StateGroup::kBlocks + static_cast<size_t>(std::countr_zero(below)) / 8);
  }
  return false;
}

bool Superblock::is_valid() const noexcept {
  if (kind() != SliceKind::kBlocks || inverse == 0 || start != base()) return false;
  ClassIndex c = class_index();
  if (block_size != size_of(c) || blocks != blocks_of(c) || cursor > align_up(blocks, kSweepGroup)) return false;
  for (size_t i = blocks; i < align_up(blocks, StateGroup::kBlocks); ++i)
    if (!states[i].is_free()) return false;  // S3
  return states == place_states(*this, c);
}

// Blocks smaller than a line: two threads may come to write neighbours, so each block lies eight behind the one before.
bool Superblock::take_whole_group(void** to) noexcept {
  constexpr size_t kWords = kSweepGroup / StateGroup::kBlocks;
  if (cursor + kSweepGroup > blocks) return false;
  uint64_t mask = StateGroup::kOnes;
  for (size_t word = 0; word < kWords; ++word) mask &= StateGroup(states + cursor + word * StateGroup::kBlocks).free_mask();
  if (mask != StateGroup::kOnes) return false;
  size_t size = block_size;
  char* block = start + cursor * size;
  for (size_t word = 0; word < kWords; ++word) {
    StateGroup(states + cursor + word * StateGroup::kBlocks).take_all();
#pragma GCC unroll 8
    for (size_t k = StateGroup::kBlocks; k > 0; --k, block += size) to[k * kWords - 1 - word] = block;
  }
  return true;
}

// at_most: states from the cursor on.
size_t Superblock::take_group(void** to, size_t at_most) noexcept {
  size_t taken = 0, size = block_size, end = std::min<size_t>(cursor + at_most, blocks);
  for (size_t at = align_up(end, StateGroup::kBlocks); at > cursor;) {
    at -= StateGroup::kBlocks;
    StateGroup group(states + at);
    uint64_t mask = group.free_mask();
    if (at + StateGroup::kBlocks > end) mask &= (uint64_t{1} << (end - at) * 8) - 1;
    if (at < cursor) mask &= ~uint64_t{0} << (cursor - at) * 8;
    char* block = start + at * size;
    if (mask == StateGroup::kOnes) {  // the common case, without a branch for each block
      group.take_all();
#pragma GCC unroll 8
      for (size_t k = StateGroup::kBlocks; k > 0; block += size) to[taken + --k] = block;
      taken += StateGroup::kBlocks;
      continue;
    }
    taken += StateGroup::count(mask);
    for (void** end_of_group = to + taken; mask != 0; mask &= mask - 1) {
      size_t k = static_cast<size_t>(std::countr_zero(mask)) / 8;
      group.take(k);
      *--end_of_group = block + k * size;
    }
  }
  return taken;
}

void Superblock::begin_sweep(Shelf* heap) noexcept {
  if (holes != 0) footprint.count_refilled(static_cast<size_t>(std::popcount(holes)) * os::page_size());
  cursor = holes = 0;
  holes_refused = false;
  found = 0;
  set_owner(heap);
}

namespace {

// Mixes the order of each kMixed neighbours, so that nobody can foresee which block lies behind which.  More of them would
// cost more lines of the cache.
void mix(void** blocks, size_t n) noexcept {
  constexpr size_t kMixed = 8;
  for (size_t first = 0; first < n; first += kMixed) {
    uint64_t random = next_random();
    for (size_t left = std::min(kMixed, n - first); left > 1; --left, random >>= 8)
      std::swap(blocks[first + left - 1], blocks[first + (random & 0xff) * left / 256]);
  }
}

}  // namespace

size_t Superblock::sweep(void** to, size_t want, bool alone) noexcept {
  size_t taken = sweep_in_order(to, want, alone);
  if (kHardened) mix(to, taken);
  return taken;
}

namespace {

uint64_t lowest_of(uint64_t mask) noexcept { return mask & -mask; }

uint64_t any_of(uint64_t mask) noexcept {
  for (size_t left = next_random() % StateGroup::count(mask); left > 0; --left) mask &= mask - 1;
  return lowest_of(mask);
}

}  // namespace

// Only the holder takes free blocks, so those that were found stay free until it comes back.
void* Superblock::take_next() noexcept {
  while (found == 0) {
    if (cursor >= blocks) return nullptr;
    size_t left = std::min<size_t>(blocks - cursor, StateGroup::kBlocks);
    found = StateGroup(states + cursor).free_mask() & (~uint64_t{0} >> (StateGroup::kBlocks - left) * 8);
    cursor += StateGroup::kBlocks;
  }
  uint64_t bit = kHardened ? any_of(found) : lowest_of(found);
  size_t i = cursor - StateGroup::kBlocks + static_cast<size_t>(std::countr_zero(bit)) / 8;
  found &= ~bit;
  keep_order();  // a fork that cuts another thread off here loses a block at most
  states[i].mark_own();
  return start + i * block_size;
}

void Superblock::free_all() noexcept {
  for (size_t i = 0; i < blocks; i += StateGroup::kBlocks) StateGroup(states + i).free_all();
}

size_t Superblock::sweep_in_order(void** to, size_t want, bool alone) noexcept {
  size_t taken = 0;
  if (block_size < kLine) {
    for (; cursor < blocks && taken < want; cursor += kSweepGroup)
      taken += !alone && take_whole_group(to + taken) ? kSweepGroup : take_group(to + taken, kSweepGroup);
    return taken;
  }
  while (cursor < blocks && taken < want) {
    size_t step = blocks > kSweepGroup ? align_up(want - taken, StateGroup::kBlocks) : want - taken;
    taken += take_group(to + taken, step);
    cursor = static_cast<uint32_t>(std::min<size_t>(cursor + step, blocks));
  }
  return taken;
}

}  // namespace hm
