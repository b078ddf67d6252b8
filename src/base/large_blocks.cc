#include "base/large_blocks.h"

#include <array>
#include <cstring>
#include <new>

#include "base/os_pages.h"
#include "base/report.h"

namespace hm {
namespace {

constexpr size_t kLargestRun = kMiB;
constexpr size_t kPagesMost = kChunk / (4 * kKiB);
constexpr size_t kLead = kLine;  // from the start of a mapping to its block, unless it is aligned to more
constexpr uint64_t kLive = 0x6c69766520626c6b;

size_t pages_of(size_t bytes) noexcept { return divide_up(bytes, os::page_size()); }

[[noreturn]] HM_COLD void no_block(const char* function, const void* block) noexcept {
  misuse(function, block, "not a block, or freed already");
}

}  // namespace

// In the first pages of its 2 MB.
struct LargeBlocks::Chunk {
  Chunk* next;
  size_t longest;  // no free run is longer
  std::array<uint16_t, kPagesMost> run;    // pages of the live run that starts here, or 0
  std::array<bool, kPagesMost> used;

  static Chunk& of(const void* address) noexcept {
    return *reinterpret_cast<Chunk*>(align_down(address_of(address), kChunk));
  }
  static size_t pages() noexcept { return kChunk / os::page_size(); }
  size_t page_of(const void* address) const noexcept { return address_of(address) % kChunk / os::page_size(); }
  char* address(size_t page) noexcept { return reinterpret_cast<char*>(this) + page * os::page_size(); }

  // The page where so many free ones begin, or 0: the first page is never free.
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
};

// At the start of a mapping; the block follows.
struct LargeBlocks::Mapping {
  uint64_t live;  // kLive, for as long as the mapping is there
  size_t mapped;
  char* block;

  static Mapping* of(const void* block) noexcept {
    uintptr_t base = align_down(address_of(block), kChunk);
    if (AddressMap::kind(address_of(block)) == ChunkKind::kHugeAligned) base -= kChunk;
    auto* mapping = reinterpret_cast<Mapping*>(base);
    return mapping->live == kLive && mapping->block == block ? mapping : nullptr;
  }
  size_t capacity() const noexcept { return mapped - static_cast<size_t>(block - reinterpret_cast<const char*>(this)); }
  void set_kinds(bool ours) noexcept {
    bool far = align_down(address_of(block), kChunk) != address_of(this);
    AddressMap::set(this, ours ? ChunkKind::kHuge : ChunkKind::kForeign);
    if (far) AddressMap::set(block, ours ? ChunkKind::kHugeAligned : ChunkKind::kForeign);
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
  auto* chunk = new (memory) Chunk;  // mapped memory is zero already
  chunk->longest = Chunk::pages();
  chunk->next = chunks_;
  chunks_ = chunk;
  mapped_ += kChunk;
  AddressMap::set(chunk, ChunkKind::kRuns);
  return chunk;
}

// First fit.  A chunk that had no room for a run is not searched again for one as long, until something in it is freed.
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

void* LargeBlocks::allocate_mapping(size_t size, size_t alignment) noexcept {
  size_t lead = alignment < kChunk ? (alignment > kLead ? alignment : kLead) : kChunk;
  size_t bytes = align_up(lead + size, os::page_size());
  size_t wide = alignment <= kChunk ? bytes : bytes + alignment;
  auto* start = static_cast<char*>(os::map(wide, kChunk));
  if (start == nullptr) return nullptr;
  char* base = start;
  if (wide != bytes) {  // the block at a multiple of its alignment, the header 2 MB before it
    base = reinterpret_cast<char*>(align_up(address_of(start) + kChunk, alignment) - kChunk);
    if (base > start) os::unmap(start, static_cast<size_t>(base - start));
    if (start + wide > base + bytes) os::unmap(base + bytes, static_cast<size_t>(start + wide - (base + bytes)));
  }
  auto* mapping = new (base) Mapping{kLive, bytes, base + lead};
  mapping->set_kinds(true);
  LockGuard guard(lock_);
  mapped_ += bytes;
  allocated_ += bytes;
  return mapping->block;
}

void LargeBlocks::free(void* block, const char* function) noexcept {
  if (AddressMap::kind(address_of(block)) == ChunkKind::kRuns) {
    Chunk& chunk = Chunk::of(block);
    if (!chunk.starts_run(block)) no_block(function, block);
    size_t page = chunk.page_of(block), pages = chunk.run[page], bytes = pages * os::page_size();
    // Before anybody else may have the pages.
    if (!keep_ && !os::purge(block, bytes)) memset(block, 0, bytes);
    LockGuard guard(lock_);
    chunk.run[page] = 0;
    chunk.mark(page, pages, false);
    allocated_ -= bytes;
    return;
  }
  Mapping* mapping = Mapping::of(block);
  if (mapping == nullptr) no_block(function, block);
  size_t bytes = mapping->mapped;
  mapping->set_kinds(false);
  bool gone = os::unmap(mapping, bytes);
  if (!gone) os::purge(mapping, bytes);  // the kernel's limit of mappings: at least its pages
  LockGuard guard(lock_);
  if (gone) mapped_ -= bytes;
  allocated_ -= bytes;
}

size_t LargeBlocks::usable_size(const void* block, const char* function) noexcept {
  if (AddressMap::kind(address_of(block)) == ChunkKind::kRuns) {
    const Chunk& chunk = Chunk::of(block);
    if (!chunk.starts_run(block)) no_block(function, block);
    return chunk.run[chunk.page_of(block)] * os::page_size();
  }
  const Mapping* mapping = Mapping::of(block);
  if (mapping == nullptr) no_block(function, block);
  return mapping->capacity();
}

void* LargeBlocks::resize(void* block, size_t size) noexcept {
  Mapping* mapping = AddressMap::kind(address_of(block)) == ChunkKind::kHuge ? Mapping::of(block) : nullptr;
  if (mapping == nullptr || size <= kLargestRun || size > kMaxRequest / 2) return nullptr;
  auto lead = static_cast<size_t>(mapping->block - reinterpret_cast<char*>(mapping));
  size_t old_bytes = mapping->mapped, new_bytes = align_up(lead + size, os::page_size());
  Mapping* result = mapping;
  if (new_bytes != old_bytes && !os::resize(mapping, old_bytes, new_bytes)) {
    void* target = os::map(new_bytes, kChunk);
    if (target == nullptr) return nullptr;
    mapping->set_kinds(false);
    if (!os::move(mapping, old_bytes, target, new_bytes)) {
      mapping->set_kinds(true);
      return nullptr;  // target may be unmapped already, and somebody else's by now: its address space is let go
    }
    result = static_cast<Mapping*>(target);
    result->block = static_cast<char*>(target) + lead;
    result->set_kinds(true);
  }
  result->mapped = new_bytes;
  LockGuard guard(lock_);
  mapped_ += new_bytes - old_bytes;
  allocated_ += new_bytes - old_bytes;
  return result->block;
}

bool LargeBlocks::comes_zeroed(const void* block) const noexcept {
  return !keep_ || AddressMap::kind(address_of(block)) != ChunkKind::kRuns;
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
