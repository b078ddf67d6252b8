// Superblocks and the region they live in.
//
// A region is 16 MB: all metadata in front, then slices of 32 KB.  A superblock is one slice (or four) of blocks of one
// class; a large run is any number of slices.  Each slice has a descriptor, found from any address within it by two
// masks.  Memory comes and goes by chunks of 2 MB, so that one can be a huge page; the first of a region has the metadata.
//
//   0         a guard: an overflow out of the mapping before ends here
//   0x010000  descriptors of slices, 128 bytes each; in place of the metadata's own: headers of chunks and region
//   0x020000  states of classes from 64 bytes up: 512 bytes for each slice
//   0x050000  states of the smaller classes: 2 KB for each slice.  Where those of the metadata's slices would be, which have
//             none, are the last of the line above
//   0x150000  a guard: an under-run ends here
//   0x160000  slice 44, the first that holds blocks
//
// Invariants
//  S1  A superblock is in exactly one place: current of one heap, in one SuperblockQueue, or in the hands of the
//      thread that just took it from there.  That thread is its holder; only the holder sweeps it.
//  S2  owner names the heap that held it last, by its shelf.  It is a hint: nothing but speed depends on it.
//  S3  The states of blocks that do not exist are FREE, and the state area of an unused slice is all FREE.
//  S4  A superblock goes back to its chunk only when its holder has seen every state FREE with acquire: then no block
//      of it is in the program's hands or in any cache.
//  S5  What a free by any thread reads here (the first line) changes only while no block is in anybody's hands,
//      except owner and witness.
#pragma once
#include "base/address_map.h"
#include "base/size_classes.h"
#include "hmalloc/block_state.h"

#include <atomic>

namespace hm {

class SuperblockQueue;
struct Shelf;  // of a heap (superblock_pool.h): what names the heap as an owner

enum class SliceKind : uint8_t {
  kUnused = 0,     // free, or in the allocator's hands
  kBlocks,         // the first slice of a superblock
  kBlocksTail,     // one of its others
  kLarge,          // the first slice of a large run
  kLargeTail,
};

inline constexpr size_t kRegion = 16 * kMiB;
inline constexpr size_t kChunksInRegion = kRegion / kChunk;
inline constexpr size_t kSlicesInRegion = kRegion / kSlice;
inline constexpr size_t kSlicesInChunk = kChunk / kSlice;
inline constexpr size_t kMetaSlices = 44;
inline constexpr size_t kDescriptors = 0x10000;
inline constexpr size_t kLineStates = 0x20000;
inline constexpr size_t kGranuleStates = 0x50000;
inline constexpr size_t kSecondGuard = 0x150000;
inline constexpr size_t kLineStatesArea = kSlice / kLine;    // one state for 64 bytes
inline constexpr size_t kHarvestGroup = 64;      // states of one line are taken together
inline constexpr size_t kGranuleStatesArea = kSlice / kGranule;   // one for 16

// Never FREE: the witness of superblocks that nobody waits for to become empty.
inline constinit BlockState no_last_block{BlockState::kTaken};

struct alignas(2 * kLine) Superblock {
  // ---- read by every thread that frees a block (S5); the same in all slices of a superblock, but for the kind
  uint32_t inverse = 0;       // ceil(2^32 / block size); 0 where there are no blocks, so that these leave the fast path
  uint16_t cache_offset = 0;  // of the class, in a heap's array of block caches
  std::atomic<SliceKind> kind_{SliceKind::kUnused};
  char* start = nullptr;      // of the first block
  BlockState* states = nullptr;
  std::atomic<Shelf*> owner_{nullptr};
  uint32_t block_size = 0;    // of a large run: its length
  uint32_t blocks = 0;
  // A state that was not FREE when somebody looked; each slice its own.  While a heap has the superblock, no_last_block.
  std::atomic<BlockState*> witness_{nullptr};
  // ---- written by the holder
  alignas(kLine) uint32_t cursor = 0;  // first state the sweep has not seen yet
  // ---- under the lock of the queue that it is in
  Superblock* next = nullptr;
  Superblock* previous = nullptr;
  std::atomic<SuperblockQueue*> home_{nullptr};

  static Superblock& of(uintptr_t address) noexcept {
    return *reinterpret_cast<Superblock*>(align_down(address, kRegion) + kDescriptors +
                                          (address / kSlice % kSlicesInRegion) * sizeof(Superblock));
  }
  uintptr_t region() const noexcept { return align_down(address_of(this), kRegion); }
  size_t slice() const noexcept { return (address_of(this) - region() - kDescriptors) / sizeof(Superblock); }
  char* base() const noexcept { return reinterpret_cast<char*>(region() + slice() * kSlice); }  // of its slice
  ClassIndex class_index() const noexcept { return static_cast<ClassIndex>(cache_offset / kCacheStride); }

  // Any thread.  Relaxed: a hint (S2).
  Shelf* owner() const noexcept { return owner_.load(std::memory_order_relaxed); }
  void set_owner(Shelf* heap) noexcept {  // the holder, of the first slice
    for (size_t i = 0; i < slices_of(class_index()); ++i) this[i].owner_.store(heap, std::memory_order_relaxed);
  }
  // The queue that it is in; null: it has a holder.  Changes under that queue's lock.  Any thread; relaxed, for who asks
  // takes the lock and asks again.
  SuperblockQueue* home() const noexcept { return home_.load(std::memory_order_relaxed); }
  void set_home(SuperblockQueue* queue) noexcept { home_.store(queue, std::memory_order_relaxed); }
  // Statistics walk all descriptors: acquire and release order the rest of the descriptor behind the kind.
  SliceKind kind() const noexcept { return kind_.load(std::memory_order_acquire); }
  void set_kind(SliceKind kind) noexcept { kind_.store(kind, std::memory_order_release); }

  void format(ClassIndex c) noexcept;  // a fresh run of slices_of(c) slices
  void clear() noexcept;               // before its slices go back
  void prefetch(ClassIndex c) const noexcept;  // what a holder will read first; c: its class, for that is not read yet
  // Counts free blocks, up to `enough` of them or a few more.  The holder.
  size_t free_blocks(size_t enough = SIZE_MAX) const noexcept;
  bool wholly_free() const noexcept;   // the holder (S4)
  // The holder of a block, whose state this is: whether another block is known not to be FREE, and, after a search, whether
  // all others are.  Relaxed: hints, for blocks come and go.
  bool has_witness_but(const BlockState& state) const noexcept {
    BlockState* witness = witness_.load(std::memory_order_relaxed);
    return witness != &state && !witness->looks_free();
  }
  bool all_free_but(const BlockState& state) noexcept;
  void set_witness(BlockState* state) noexcept { witness_.store(state, std::memory_order_relaxed); }
  // The holder: from now on whoever frees the last block is told, or nobody is.
  void watch(bool whether) noexcept;
  bool is_valid() const noexcept;      // the holder
  // Moves free blocks from the cursor on to `to`, in groups of 64, until there are `want` or the end is reached; at most
  // want + 63 of them.  Returns how many.  Of a group the lowest address comes last, so that a stack pops it first; then
  // the others by address, or eight blocks apart if they are smaller than a line and all of the group is free.
  // The holder.
  size_t harvest(void** to, size_t want) noexcept;

 private:
  void format_tail(const Superblock& first) noexcept;
  bool take_whole_group(void** to) noexcept;  // of the group at the cursor; false: it is not wholly free
  size_t take_group(void** to) noexcept;
};
static_assert(sizeof(Superblock) == 2 * kLine);

// Headers lie in place of the descriptors of the metadata slices, which hold no blocks: `no_blocks` lies where their inverse
// and kind would, so that a free of an address among the metadata finds an unused slice.  The slice pool's lock guards them.
struct alignas(2 * kLine) Chunk {
  uint64_t no_blocks = 0;
  Chunk* next = nullptr;       // all open chunks
  Chunk* previous = nullptr;
  Chunk* next_free = nullptr;  // those with free slices
  Chunk* previous_free = nullptr;
  Chunk* next_surplus = nullptr;   // those with a surplus
  Chunk* previous_surplus = nullptr;
  uint64_t free = 0;           // bit i: slice i of the chunk is free
  uint64_t used = 0;           // has been in use since its memory was last given back: it may not read as zero
  uint64_t dirty = 0;          // free and resident since the last purge round
  uint64_t dirty_before = 0;   // since the round before it
  uint64_t refused = 0;        // the system did not take these back (locked pages): no free asks again, rounds do
  bool huge = false;           // huge pages were asked for

  static Chunk* of_region(uintptr_t region) noexcept { return reinterpret_cast<Chunk*>(region + kDescriptors); }
  static Chunk& of(const Superblock& sb) noexcept { return of_region(sb.region())[sb.slice() / kSlicesInChunk]; }
  uintptr_t region() const noexcept { return align_down(address_of(this), kRegion); }
  size_t index() const noexcept { return (address_of(this) - region() - kDescriptors) / sizeof(Chunk); }
  uintptr_t start() const noexcept { return region() + index() * kChunk; }
};
inline constexpr size_t kRegionHeader = kDescriptors + kChunksInRegion * sizeof(Chunk);
inline constexpr uint8_t kAllChunks = (1u << kChunksInRegion) - 1;
struct alignas(2 * kLine) Region {
  uint64_t no_blocks = 0;
  Region* next = nullptr;      // all with chunks that are not open
  Region* previous = nullptr;
  Region* next_mapped = nullptr;  // all
  Region* previous_mapped = nullptr;
  uint8_t closed = kAllChunks; // bit i: chunk i is not open, nor about to be opened
  uint8_t guards = 0;          // how many of its two the system granted

  static Region& of(const Chunk& chunk) noexcept { return *reinterpret_cast<Region*>(chunk.region() + kRegionHeader); }
  uintptr_t start() const noexcept { return align_down(address_of(this), kRegion); }
};
static_assert(sizeof(Chunk) == sizeof(Superblock) && sizeof(Region) == sizeof(Superblock));
static_assert(offsetof(Superblock, kind_) < sizeof(Chunk::no_blocks) && kChunksInRegion < kMetaSlices);
static_assert(kDescriptors == kGuard && kDescriptors + kSlicesInRegion * sizeof(Superblock) == kLineStates);
static_assert(kLineStates + kSlicesInRegion * kLineStatesArea <= kGranuleStates + kMetaSlices * kGranuleStatesArea);
static_assert(kGranuleStates + kSlicesInRegion * kGranuleStatesArea == kSecondGuard && kSecondGuard % kGuard == 0);
static_assert(kSecondGuard + kGuard == kMetaSlices * kSlice && kMetaSlices < kSlicesInChunk);

// The block that an address lies in, found without a division: offset * ceil(2^32 / size) has the quotient above bit 32,
// and below it less than the factor if the remainder is zero.
class BlockPlace {
 public:
  BlockPlace(const Superblock& sb, uintptr_t address) noexcept
      : product_((address - address_of(sb.start)) * sb.inverse), inverse_(sb.inverse) {}
  bool exact() const noexcept { return static_cast<uint32_t>(product_) < inverse_; }  // the address is its start
  size_t index() const noexcept { return opaque(product_) >> 32; }

 private:
  uint64_t product_;
  uint32_t inverse_;
};

}  // namespace hm
