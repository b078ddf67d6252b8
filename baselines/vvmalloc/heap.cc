#include "baselines/vvmalloc/heap.h"

#include "base/address_map.h"
#include "base/os_pages.h"

namespace hm::vvmalloc {
namespace {

constexpr size_t kSegment = 32 * kMiB;  // of address space; pages cost memory only when touched

}  // namespace

// Under the lock, including the system call: other threads spin meanwhile.
bool Heap::new_segment(size_t least) noexcept {
  least = align_up(least + sizeof(Segment), kChunk);
  size_t bytes = least > kSegment ? least : kSegment;
  void* base = os::map(bytes, kChunk);
  // There may be a limit on address space.
  while (base == nullptr && bytes > least) {
    bytes = bytes / 2 > least ? bytes / 2 : least;
    base = os::map(bytes, kChunk);
  }
  if (base == nullptr) return false;
  char* start = static_cast<char*>(base);
  for (char* chunk = start; chunk < start + bytes; chunk += kChunk) AddressMap::set(chunk, ChunkKind::kRegions);
  auto* segment = static_cast<Segment*>(base);
  *segment = {newest_, start + sizeof(Segment), start + bytes};
  static_assert(sizeof(Segment) % kGranule == sizeof(Tag));
  newest_ = segment;
  return true;
}

char* Heap::extend(size_t bytes) noexcept {
  Holding held(lock_);
  uint64_t since = now_ns();
  char* start = nullptr;
  if ((newest_ != nullptr && newest_->room() >= bytes) || new_segment(bytes)) {
    start = newest_->top;
    newest_->top += bytes;
    account_.bytes += bytes;
    ++account_.extensions;
    // A request with a segment of its own leaves the previous one in use.
    Segment* before = newest_->older;
    if (before != nullptr && before->room() > newest_->room()) {
      newest_->older = before->older;
      before->older = newest_;
      newest_ = before;
    }
  }
  account_.lock_ns += now_ns() - since;
  return start;
}

Heap::Account Heap::account() noexcept {
  Holding held(lock_);
  Account account = account_;
  account.wait_ns = lock_.waited_ns();
  return account;
}

bool Heap::is_valid(size_t* free_blocks) noexcept {
  Holding held(lock_);
  *free_blocks = 0;
  for (Segment* segment = newest_; segment != nullptr; segment = segment->older) {
    size_t depth = 0;  // an arena may have been cut from the middle of another
    State before = State::kEpilogue;
    char* at = reinterpret_cast<char*>(segment + 1);
    while (at < segment->top) {
      Block* block = Block::at(at);
      State state = block->header.state();
      bool edge = state == State::kPrologue || state == State::kEpilogue;
      bool fits = block->size() <= static_cast<size_t>(segment->top - at);
      if (!fits || (edge ? block->size() != kEdge : block->size() < kMin)) return false;
      if (block->footer() != block->header) return false;
      if (state == State::kFree && before == State::kFree) return false;
      if (state == State::kEpilogue && depth-- == 0) return false;
      if (state == State::kPrologue) ++depth;
      if (!edge && depth == 0) return false;
      if (state == State::kFree && block->header.owner() != kNobody) ++*free_blocks;
      before = state;
      at = block->end();
    }
    if (at != segment->top || depth != 0) return false;
  }
  return true;
}

}  // namespace hm::vvmalloc
