#include "baselines/vvmalloc/segregated_list.h"

namespace hm::vvmalloc {

// Splitting: `size` bytes of a free block become a used one; what lies before and behind stays free if it is enough for
// a block.
Block* SegregatedList::take(Block* free, size_t lead, size_t size) noexcept {
  lists_.remove(free);
  size_t whole = free->size() - lead;
  if (lead > 0) {
    free->set(State::kFree, lead, id_);
    lists_.insert(free);
  }
  Block* block = Block::at(free->start() + lead);
  size_t rest = whole - size < kMin ? 0 : whole - size;
  block->set(State::kUsed, whole - rest, id_);
  if (rest > 0) {
    block->right()->set(State::kFree, rest, id_);
    lists_.insert(block->right());
  }
  return block;
}

Block* SegregatedList::allocate(size_t size) noexcept {
  Block* free = lists_.find(size);
  return free == nullptr ? nullptr : take(free, 0, size);
}

Block* SegregatedList::allocate_aligned(size_t alignment, size_t size) noexcept {
  Block* free = lists_.find(aligned_size(alignment, size));
  return free == nullptr ? nullptr : take(free, lead_of(free, alignment), size);
}

Block* SegregatedList::release(Block* block) noexcept {
  char* start = block->start();
  char* end = block->end();
  block->header = Tag(State::kFree, block->size(), id_);  // detects a second free even if the block is merged
  if (block->right()->header.state() == State::kFree) {
    end = block->right()->end();
    lists_.remove(block->right());
  }
  if (block->left_footer().state() == State::kFree) {
    start = block->left()->start();
    lists_.remove(block->left());
  }
  Block* run = Block::at(start);
  run->set(State::kFree, static_cast<size_t>(end - start), id_);
  return run;
}

bool SegregatedList::is_valid(size_t* free_blocks) const noexcept {
  return lists_.is_valid([this, free_blocks](const Block& block) {
    ++*free_blocks;
    auto& free = const_cast<Block&>(block);
    return free.header == Tag(State::kFree, free.size(), id_) && free.footer() == free.header &&
           free.right()->header.state() != State::kFree && free.left_footer().state() != State::kFree;
  });
}

}  // namespace hm::vvmalloc
