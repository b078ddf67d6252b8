// What the classics do with requests that their superblocks, slabs and arenas do not hold: pages straight from the
// system, and straight back.
//
// Up to 1 MB a block is a run of pages in a chunk of 2 MB, its pages given back when it is freed (what mapping each
// block by itself would come to, without running out of the mappings that the kernel allows a process); above, it has a
// mapping of its own.
#pragma once
#include "base/address_map.h"
#include "base/lock.h"

namespace hm {

class LargeBlocks {
 public:
  // keep: the pages of a freed run stay, for an allocator that never returns memory.
  constexpr explicit LargeBlocks(bool keep = false) : keep_(keep) {}
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // True for an address in one of these blocks, as far as the address map knows.
  static bool holds(const void* address) noexcept {
    ChunkKind kind = AddressMap::kind(address_of(address));
    return kind == ChunkKind::kRuns || kind == ChunkKind::kHuge || kind == ChunkKind::kHugeAligned;
  }

  // alignment: a power of two.  Null: no memory.
  void* allocate(size_t size, size_t alignment = kGranule) noexcept;
  // Both end the program if no live block starts there; function: the entry point, for the message.
  void free(void* block, const char* function) noexcept;
  size_t usable_size(const void* block, const char* function) noexcept;
  // In place, or moved without copying.  Null: neither is possible.
  void* resize(void* block, size_t size) noexcept;
  // Whether a block just allocated reads as zero.
  bool comes_zeroed(const void* block) const noexcept;

  size_t mapped() noexcept;     // bytes from the system, free runs included
  size_t allocated() noexcept;  // bytes of live blocks, in whole pages
  Lock& lock() noexcept { return lock_; }  // for fork

 private:
  struct Chunk;
  struct Mapping;
  void* allocate_run(size_t pages, size_t alignment) noexcept;
  void* allocate_mapping(size_t size, size_t alignment) noexcept;
  Chunk* new_chunk() noexcept;

  Lock lock_;
  bool keep_;
  Chunk* chunks_ = nullptr;
  size_t mapped_ = 0, allocated_ = 0;
};

}  // namespace hm
