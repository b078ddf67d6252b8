#include "hmalloc/superblock.h"

namespace hm {
namespace {

// Superblocks whose states fill a part of their area start at different lines of it, or the first lines of all of
// them would fall into the same few sets of the cache.
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
  cache_offset = static_cast<uint16_t>(raw(c) * kCacheStride);
  inverse = static_cast<uint32_t>(((uint64_t{1} << 32) + block_size - 1) / block_size);
  start = base();
  states = place_states(*this, c);
  set_witness(states);
  states->give_back();  // it is FREE; but a page that is read before it is written costs a second fault
  cursor = 0;
  next = nullptr;
  for (size_t i = 1; i < slices; ++i) this[i].format_tail(*this);
  set_kind(SliceKind::kBlocks);
}

void Superblock::format_tail(const Superblock& first) noexcept {
  inverse = first.inverse;
  cache_offset = first.cache_offset;
  start = first.start;
  states = first.states;
  set_witness(states);
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
    this[i].inverse = 0;
    this[i].set_kind(SliceKind::kUnused);
  }
}

size_t Superblock::free_blocks(size_t enough) const noexcept {
  size_t free = 0, i = 0;
  for (size_t groups = blocks / kHarvestGroup; groups > 0 && free < enough; --groups) {
    uint64_t sums = 0;  // in each byte that of one block in eight
    for (size_t end = i + kHarvestGroup; i < end; i += StateGroup::kBlocks) sums += StateGroup(states + i).free_mask();
    free += StateGroup::count(sums);
  }
  for (; i < blocks && free < enough; i += StateGroup::kBlocks) {
    size_t none = std::max(i + StateGroup::kBlocks, size_t{blocks}) - blocks;  // behind the last block: FREE (S3)
    free += StateGroup::count(StateGroup(states + i).free_mask()) - none;
  }
  return free;
}

bool Superblock::wholly_free() const noexcept {
  for (size_t i = 0; i < blocks; i += StateGroup::kBlocks)
    if (!StateGroup(states + i).all_free()) return false;
  return true;
}

// The last block; or upwards from this one, to the end of the first row of taken ones; then from the start, to the first.
// So neither who frees upwards, even close behind who allocates, nor who frees downwards needs a new witness often.
bool Superblock::all_free_but(const BlockState& state) noexcept {
  set_witness(states + blocks - 1);
  if (has_witness_but(state)) return false;
  auto taken = [this](size_t word) { return StateGroup(states + word * StateGroup::kBlocks).taken(); };
  auto own = static_cast<size_t>(&state - states), byte = own % StateGroup::kBlocks * 8;
  size_t words = divide_up(blocks, StateGroup::kBlocks), own_word = own / StateGroup::kBlocks, word = own_word, bit;
  uint64_t row = taken(word) & ~uint64_t{0xff} << byte;
  while (row == 0 && ++word < words) row = taken(word);
  if (row != 0) {
    for (uint64_t more; word + 1 < words && (more = taken(word + 1)) != 0; ++word) row = more;
    bit = static_cast<size_t>(63 - std::countl_zero(row));
  } else {
    for (word = 0; word < own_word && (row = taken(word)) == 0;) ++word;
    if (row == 0) row = taken(word) & ((uint64_t{1} << byte) - 1);
    if (row == 0) return true;
    bit = static_cast<size_t>(std::countr_zero(row));
  }
  set_witness(states + word * StateGroup::kBlocks + bit / 8);
  return false;
}

bool Superblock::is_valid() const noexcept {
  if (kind() != SliceKind::kBlocks || inverse == 0 || start != base()) return false;
  ClassIndex c = class_index();
  if (block_size != size_of(c) || blocks != blocks_of(c) || cursor > align_up(blocks, kHarvestGroup)) return false;
  for (size_t i = blocks; i < align_up(blocks, StateGroup::kBlocks); ++i)
    if (!states[i].is_free()) return false;  // S3
  return states == place_states(*this, c);
}

// Blocks smaller than a line: neighbours may come to be written by two threads.  So each lies eight behind the one before.
bool Superblock::take_whole_group(void** to) noexcept {
  constexpr size_t kWords = kHarvestGroup / StateGroup::kBlocks;
  if (cursor + kHarvestGroup > blocks) return false;
  uint64_t mask = StateGroup::kOnes;
  for (size_t word = 0; word < kWords; ++word) mask &= StateGroup(states + cursor + word * StateGroup::kBlocks).free_mask();
  if (mask != StateGroup::kOnes) return false;
  size_t size = block_size;
  char* block = start + cursor * size;
  for (size_t word = 0; word < kWords; ++word) {
    StateGroup(states + cursor + word * StateGroup::kBlocks).take(mask);
#pragma GCC unroll 8
    for (size_t k = StateGroup::kBlocks; k > 0; --k, block += size) to[k * kWords - 1 - word] = block;
  }
  return true;
}

size_t Superblock::take_group(void** to) noexcept {
  size_t taken = 0, size = block_size, end = std::min<size_t>(cursor + kHarvestGroup, blocks);
  for (size_t at = align_up(end, StateGroup::kBlocks); at > cursor;) {
    at -= StateGroup::kBlocks;
    StateGroup group(states + at);
    uint64_t mask = group.free_mask();
    if (at + StateGroup::kBlocks > blocks) mask &= (uint64_t{1} << (blocks - at) * 8) - 1;
    group.take(mask);
    char* block = start + (at + StateGroup::kBlocks) * size;
    if (mask == StateGroup::kOnes) {  // the common case, without a branch for each block
#pragma GCC unroll 8
      for (size_t k = 0; k < StateGroup::kBlocks; ++k) to[taken + k] = block -= size;
      taken += StateGroup::kBlocks;
      continue;
    }
    for (; mask != 0; mask <<= 8) {
      block -= size;
      if (mask >> 56 != 0) to[taken++] = block;
    }
  }
  return taken;
}

size_t Superblock::harvest(void** to, size_t want) noexcept {
  size_t taken = 0;
  for (; cursor < blocks && taken < want; cursor += kHarvestGroup)
    taken += block_size < kLine && take_whole_group(to + taken) ? kHarvestGroup : take_group(to + taken);
  return taken;
}

}  // namespace hm
