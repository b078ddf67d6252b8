// How the baselines serve requests that do not fit their superblocks, slabs and arenas: by pages that come straight
// from the system and go straight back.
//
// Up to 1 MB a block is a run of pages in a chunk of 2 MB, and its pages are given back when it is freed.  (That is
// equivalent to mapping each block, without running out of the mappings that the kernel allows a process.)  Above, it
// has a mapping of its own.  A mapping that the system refuses to take back is kept for a later request.
#pragma once
#include "base/address_map.h"
#include "base/lock.h"

namespace hm {

class LargeBlocks {
 public:
  // keep: freed runs and mappings stay, for an allocator that never returns memory; except mappings aligned to more
  // than a line, which are rarely requested.
  constexpr explicit LargeBlocks(bool keep = false) : keep_(keep) {}
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // True for an address in one of these blocks, as far as the address map knows.
  static bool holds(const void* address) noexcept {
    ChunkKind kind = AddressMap::kind(address_of(address));
    return kind == ChunkKind::kRuns || kind == ChunkKind::kHuge || kind == ChunkKind::kHugeAligned;
  }

  // size: at least 1; alignment: a power of two.  Null if there is no memory.
  void* allocate(size_t size, size_t alignment = kGranule) noexcept;
  // Both end the program if no live block starts there; function: the entry point, for the message.
  void free(void* block, const char* function) noexcept;
  size_t usable_size(const void* block, const char* function) noexcept;
  // In place, or by moving pages.  Null if neither is possible.
  void* resize(void* block, size_t size) noexcept;
  // Whether a block just allocated reads as zero.
  bool comes_zeroed(const void* block) const noexcept;

  size_t mapped() noexcept;                // bytes from the system, free runs included
  size_t allocated() noexcept;             // bytes of live blocks, in whole pages
  Lock& lock() noexcept { return lock_; }  // for fork
  bool is_valid() noexcept;                // if no other thread uses it, and none did when this process was forked

 private:
  static constexpr size_t kLargestRun = kMiB;
  struct Chunk;
  struct Mapping;
  // large_blocks.cc.  False and 0: no block starts there.
  void* allocate_run(size_t pages, size_t alignment) noexcept;
  bool free_run(void* block) noexcept;
  size_t run_size(const void* block) const noexcept;
  Chunk* new_chunk() noexcept;
  // large_mappings.cc
  void* allocate_mapping(size_t size, size_t alignment) noexcept;
  bool free_mapping(void* block) noexcept;
  size_t mapping_size(const void* block) const noexcept;
  bool is_fresh_mapping(const void* block) const noexcept;
  bool kept_are_valid(size_t& mapped) const noexcept;
  Mapping* map(size_t bytes, size_t lead, size_t alignment) noexcept;
  Mapping** find_kept(size_t bytes) noexcept;
  Mapping* take_kept(size_t bytes) noexcept;

  Lock lock_;
  bool keep_;
  Chunk* chunks_ = nullptr;
  Mapping* kept_ = nullptr;
  size_t mapped_ = 0, allocated_ = 0;
};

}  // namespace hm
