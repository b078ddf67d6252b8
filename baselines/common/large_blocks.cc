#include "baselines/common/large_blocks.h"

#include <array>
#include <cstring>

#include "base/os_pages.h"
#include "base/report.h"

namespace hm {
namespace {

constexpr size_t kMaxPages = kChunk / (4 * kKiB);

size_t pages_of(size_t bytes) noexcept { return divide_up(bytes, os::page_size()); }

[[noreturn]] HM_COLD void no_block(const char* function, const void* block) noexcept {
  die_on_misuse(function, block, "not a block, or freed already");
}

}  // namespace

// The header in the first pages of a chunk of 2 MB.
struct LargeBlocks::Chunk {
  Chunk* next;
  size_t longest;                       // no free run is longer
  std::array<uint16_t, kMaxPages> run;  // pages of the live run that starts here, or 0
  std::array<bool, kMaxPages> used;

  static Chunk& of(const void* address) noexcept {
    return *reinterpret_cast<Chunk*>(align_down(address_of(address), kChunk));
  }
  static size_t pages() noexcept { return kChunk / os::page_size(); }
  size_t page_of(const void* address) const noexcept { return address_of(address) % kChunk / os::page_size(); }
  char* address(size_t page) noexcept { return reinterpret_cast<char*>(this) + page * os::page_size(); }

  // The first page of `count` free ones, or 0: page 0 is never free.
  size_t find(size_t count, size_t step) noexcept {
    size_t end = pages(), page = align_up(pages_of(sizeof(Chunk)), step);
    while (page + count <= end) {
      size_t free = 0;
      while (free < count && !used[page + free]) ++free;
      if (free == count) return page;
      page = align_up(page + free + 1, step);
    }
    return 0;
  }
  void mark(size_t page, size_t count, bool taken) noexcept {
    for (size_t i = page; i < page + count; ++i) used[i] = taken;
    if (!taken) longest = pages();
  }
  bool starts_run(const void* block) const noexcept {
    return address_of(block) % os::page_size() == 0 && run[page_of(block)] != 0;
  }
  // Every used page, except the header's, lies in exactly one live run.
  bool is_valid() const noexcept {
    size_t page = 0, end = pages(), own = pages_of(sizeof(Chunk));
    for (; page < own; ++page)
      if (used[page] || run[page] != 0) return false;
    while (page < end) {
      size_t past = page + (run[page] == 0 ? 1 : run[page]);
      if (past > end) return false;
      for (size_t i = page; i < past; ++i)
        if (used[i] != (run[page] != 0) || (i > page && run[i] != 0)) return false;
      page = past;
    }
    return true;
  }
};

void* LargeBlocks::allocate(size_t size, size_t alignment) noexcept {
  if (size > kMaxRequest / 2 || alignment > kMaxRequest / 4) return nullptr;
  if (size <= kLargestRun && alignment <= kLargestRun / 2) return allocate_run(pages_of(size), alignment);
  return allocate_mapping(size, alignment);
}

LargeBlocks::Chunk* LargeBlocks::new_chunk() noexcept {
  void* memory = os::map(kChunk, kChunk);
  if (memory == nullptr) return nullptr;
  auto* chunk = static_cast<Chunk*>(memory);  // already zero
  chunk->longest = Chunk::pages();
  chunk->next = chunks_;
  chunks_ = chunk;
  mapped_ += kChunk;
  AddressMap::set(chunk, ChunkKind::kRuns);
  return chunk;
}

// First fit.  A chunk that had no room for a run is not searched again for one as long until something in it is freed.
void* LargeBlocks::allocate_run(size_t pages, size_t alignment) noexcept {
  size_t step = alignment <= os::page_size() ? 1 : alignment / os::page_size();
  LockGuard guard(lock_);
  size_t page = 0;
  Chunk* chunk = chunks_;
  for (; chunk != nullptr; chunk = chunk->next) {
    if (chunk->longest < pages) continue;
    page = chunk->find(pages, step);
    if (page != 0) break;
    if (step == 1) chunk->longest = pages - 1;
  }
  if (chunk == nullptr) {
    chunk = new_chunk();
    if (chunk == nullptr) return nullptr;
    page = chunk->find(pages, step);
  }
  chunk->mark(page, pages, true);
  chunk->run[page] = static_cast<uint16_t>(pages);
  allocated_ += pages * os::page_size();
  return chunk->address(page);
}

// In two steps, so that if two threads free the same block, one finds that it is no block.
bool LargeBlocks::free_run(void* block) noexcept {
  Chunk& chunk = Chunk::of(block);
  size_t page = chunk.page_of(block), bytes;
  {
    LockGuard guard(lock_);
    bytes = run_size(block);
    if (bytes == 0) return false;
    chunk.run[page] = 0;
  }
  if (!keep_ && !os::purge(block, bytes)) memset(block, 0, bytes);  // before any other thread can get the pages
  LockGuard guard(lock_);
  chunk.mark(page, bytes / os::page_size(), false);
  allocated_ -= bytes;
  return true;
}

void LargeBlocks::free(void* block, const char* function) noexcept {
  bool run = AddressMap::kind(address_of(block)) == ChunkKind::kRuns;
  if (!(run ? free_run(block) : free_mapping(block))) no_block(function, block);
}

size_t LargeBlocks::run_size(const void* block) const noexcept {
  const Chunk& chunk = Chunk::of(block);
  return chunk.starts_run(block) ? chunk.run[chunk.page_of(block)] * os::page_size() : 0;
}

size_t LargeBlocks::usable_size(const void* block, const char* function) noexcept {
  bool run = AddressMap::kind(address_of(block)) == ChunkKind::kRuns;
  size_t size = run ? run_size(block) : mapping_size(block);
  if (size == 0) no_block(function, block);
  return size;
}

bool LargeBlocks::comes_zeroed(const void* block) const noexcept {
  return AddressMap::kind(address_of(block)) == ChunkKind::kRuns ? !keep_ : is_fresh_mapping(block);
}

bool LargeBlocks::is_valid() noexcept {
  LockGuard guard(lock_);
  size_t idle = 0, live = 0;  // bytes in no live mapping; bytes of live runs
  for (Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
    if (!chunk->is_valid()) return false;
    idle += kChunk;
    for (uint16_t pages : chunk->run) live += pages * os::page_size();
  }
  return kept_are_valid(idle) && live <= allocated_ && allocated_ - live <= mapped_ - idle;
}

size_t LargeBlocks::mapped() noexcept {
  LockGuard guard(lock_);
  return mapped_;
}

size_t LargeBlocks::allocated() noexcept {
  LockGuard guard(lock_);
  return allocated_;
}

}  // namespace hm
