// The two kinds of superblocks (section 3.1), their headers, and the lists that they are in.
//
// Invariants
//  P1  A header's first line is written before the first of its blocks leaves, and never again: any thread may read it.
//  P2  Only the heap that holds the superblock, hence only one thread, uses the rest.
#pragma once
#include "baselines/hmalloc_paper/flag.h"
#include "baselines/hmalloc_paper/memory.h"

namespace hm::hmalloc_paper {

struct LocalHeap;

enum class SuperblockKind : uint8_t { kNone = 0, kLocal, kShared };

// The common head of both kinds.
struct Superblock {
  SuperblockKind kind;
  size_t size;  // kFirstSuperblock or kNextSuperblock

  // ExtractSuperblock of Fig. 8: the superblock of an address in one; otherwise null, or of kind kNone.  The paper
  // masks the address, but there are two masks; the address map knows which, and rejects wild addresses.
  static Superblock* of(const void* address) noexcept {
    switch (AddressMap::kind(address_of(address))) {
      case ChunkKind::kRegions: return Regions::of<Superblock>(address, kFirstSuperblock);
      case ChunkKind::kWideRegions: return Regions::of<Superblock>(address, kNextSuperblock);
      default: return nullptr;
    }
  }
};

// Fig. 3: blocks of any size, one after the other.
struct LocalSuperblock {
  Superblock head;
  LocalHeap* owner;
  char* start_addr;

  alignas(kLine) char* current_addr;  // where the next block starts
  size_t allocated_num, freed_num;
  LocalSuperblock *next, *previous;  // in the LSL

  // Null if there is no memory.
  static LocalSuperblock* make(size_t size, LocalHeap& owner) noexcept;

  char* end() noexcept { return reinterpret_cast<char*>(this) + head.size; }
  size_t available_space() noexcept { return static_cast<size_t>(end() - current_addr); }
  bool holds(const void* block) const noexcept {
    return address_of(block) - address_of(start_addr) < address_of(current_addr) - address_of(start_addr) &&
           address_of(block) % kGranule == 0;
  }

  // Fig. 5, lines 5 to 7.
  void* take(size_t size) noexcept {
    char* block = current_addr;
    current_addr += size;
    ++allocated_num;
    return block;
  }
  // Fig. 8, lines 5 to 10: coalescence free.
  void give_back() noexcept {
    if (++freed_num != allocated_num) return;
    allocated_num = freed_num = 0;
    current_addr = start_addr;
  }
  bool is_valid() noexcept;
};

// Fig. 4: blocks of one size, a multiple of a line, each with its flag in front.
struct SharedSuperblock {
  Superblock head;
  uint32_t size_class;
  uint32_t object_size;  // flag included
  uint32_t total_objects;
  uint32_t span;  // bytes of all of them
  char* start_addr;

  alignas(kLine) char* current_addr;  // the next block that was never allocated
  size_t vacant_objects;              // number of blocks that were never allocated; a free does not add to it
  size_t index;                       // the one block that is considered once there are none
  SharedSuperblock *next, *previous;  // in the SSL of its class

  static SharedSuperblock* make(size_t size, uint32_t size_class) noexcept;

  // Fig. 6, lines 11 to 13.
  Flag* take_vacant() noexcept {
    char* block = current_addr;
    current_addr += object_size;
    --vacant_objects;
    return reinterpret_cast<Flag*>(block);
  }
  Flag* index_th() noexcept { return reinterpret_cast<Flag*>(start_addr + index * object_size); }
  // Lines 20 and 21, and the wrap-around that only the text has: without it the next block would lie past the superblock.
  Flag* take_index_th() noexcept {
    Flag* block = index_th();
    if (++index == total_objects) index = 0;
    return block;
  }
  // The flag of a block, by the program's address; null if the address shows that no block starts there.
  Flag* flag_of(const void* block) noexcept;
  bool is_valid() noexcept;
};
static_assert(offsetof(LocalSuperblock, current_addr) == kLine && sizeof(LocalSuperblock) == 2 * kLine);
static_assert(offsetof(SharedSuperblock, current_addr) == kLine && sizeof(SharedSuperblock) == 2 * kLine);

// LSL and SSL: doubly linked, the oldest entry first.
template <class T>
struct SuperblockList {
  T *first, *last;

  void append(T& superblock) noexcept {
    superblock.next = nullptr;
    superblock.previous = last;
    (last == nullptr ? first : last->next) = &superblock;
    last = &superblock;
  }
  void remove(T& superblock) noexcept {
    (superblock.previous == nullptr ? first : superblock.previous->next) = superblock.next;
    (superblock.next == nullptr ? last : superblock.next->previous) = superblock.previous;
  }
};

// A payload at line + 16 belongs to a plain block; an aligned one lies at a multiple of 32 (see allocate_aligned).
inline Flag* SharedSuperblock::flag_of(const void* block) noexcept {
  uintptr_t offset = address_of(block) - address_of(start_addr);
  if (HM_UNLIKELY(offset >= span)) return nullptr;
  if (HM_LIKELY(offset % kLine == sizeof(Flag))) return reinterpret_cast<Flag*>(address_of(block) - sizeof(Flag));
  if (offset % (2 * kGranule) != 0) return nullptr;
  return reinterpret_cast<Flag*>(start_addr + offset / object_size * object_size);
}

}  // namespace hm::hmalloc_paper
