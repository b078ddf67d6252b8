#include "baselines/vvmalloc/thread_list.h"

namespace hm::vvmalloc {
namespace {

constexpr size_t kWholeArena = kArena - Arena::kOverhead;  // the single block of an arena that is all free

}  // namespace

Block* ThreadList::counted(Block* block) noexcept {
  if (block != nullptr) allocated_.add(block->size());
  return block;
}

Block* ThreadList::allocate(size_t size) noexcept {
  if (size > kWholeArena) return counted(allocate_whole(kGranule, size));
  Block* foreign = foreign_.find_close(size);
  if (foreign == nullptr) {
    if (Block* block = own_.allocate(size)) return counted(block);
    if (refill(size)) return counted(own_.allocate(size));
    foreign = foreign_.find(size);  // out of memory: take a large one for a small request
    if (foreign == nullptr) return nullptr;
  }
  foreign_.remove(foreign);
  return counted(foreign);
}

Block* ThreadList::allocate_aligned(size_t alignment, size_t size) noexcept {
  size_t least = SegregatedList::aligned_size(alignment, size);
  if (least > kWholeArena) return counted(allocate_whole(alignment, size));
  if (Block* block = own_.allocate_aligned(alignment, size)) return counted(block);
  return refill(least) ? counted(own_.allocate_aligned(alignment, size)) : nullptr;
}

// An arena without an owner, from the central queue or else from the heap.
Arena ThreadList::new_arena(size_t least) noexcept {
  Arena arena = shared_.central.dequeue(least);
  if (arena) {
    dequeues_.add(1);
    return arena;
  }
  arena.bytes = CentralQueue::rounded(least);
  arena.start = shared_.heap.extend(arena.bytes);
  if (!arena) return {};
  arena.write_prologue();
  arena.write_epilogue();
  return arena;
}

bool ThreadList::refill(size_t size) noexcept {
  Arena arena = new_arena(size + Arena::kOverhead);
  if (!arena) return false;
  own_.insert(arena.fill(own_.id()));
  return true;
}

// The block is not split: what would be split off could never be merged again once another thread frees the block.
Block* ThreadList::allocate_whole(size_t alignment, size_t size) noexcept {
  bool aligned = alignment > kGranule;
  Arena arena = new_arena((aligned ? SegregatedList::aligned_size(alignment, size) : size) + Arena::kOverhead);
  if (!arena) return nullptr;
  Block* block = arena.inside();
  size_t whole = arena.bytes - Arena::kOverhead, lead = aligned ? lead_of(block, alignment) : 0;
  if (lead > 0) block->set(State::kLead, lead, kNobody);
  block = Block::at(block->start() + lead);
  block->set(State::kWhole, whole - lead, kNobody);
  return block;
}

void ThreadList::free_whole(Block* block) noexcept {
  char* end = block->end() + kEdge;
  block->header = Tag(State::kFree, block->size(), kNobody);  // detects a second free, also behind a lead: see release()
  if (block->left_footer().state() == State::kLead) block = block->left();
  char* start = block->start() - kEdge;
  enqueue({start, static_cast<size_t>(end - start)});
}

bool ThreadList::free(Block* block) noexcept {
  bool whole = block->header.state() == State::kWhole, foreign = !whole && block->header.owner() != own_.id();
  if (foreign && foreign_.is_first(block)) return false;
  allocated_.take(block->size());
  if (whole) {
    free_whole(block);
  } else if (foreign) {
    foreign_.insert(block);
  } else {
    Block* run = own_.release(block);
    if (run->size() < kWholeArena || !own_.has(kWholeArena) || !collect(run)) own_.insert(run);
  }
  return true;
}

// Garbage collection: a free run of an arena's size, if not the only one, moves to the central queue.  Either it is all
// that its arena holds, or it is cut out and isolated by edges of its own.
bool ThreadList::collect(Block* run) noexcept {
  Arena arena{run->start() - kEdge, run->size() + Arena::kOverhead};
  if (run->left_footer().state() != State::kPrologue || run->right()->header.state() != State::kEpilogue) {
    arena = {run->start(), run->size()};
    if (arena.bytes < kArena) return false;
    arena.write_prologue();
    arena.write_epilogue();
  }
  return enqueue(arena);
}

// If the queue has no memory for a node, the arena becomes this list's.
bool ThreadList::enqueue(Arena arena) noexcept {
  arena.fill(kNobody);
  if (shared_.central.enqueue(arena)) enqueues_.add(1);
  else own_.insert(arena.fill(own_.id()));
  return true;
}

bool ThreadList::is_valid(size_t* free_blocks) const noexcept {
  bool foreign_valid = foreign_.is_valid([this](const Block& block) {
    return block.header.state() == State::kUsed && block.header.owner() != own_.id() && block.footer() == block.header;
  });
  return foreign_valid && own_.is_valid(free_blocks);
}

}  // namespace hm::vvmalloc
