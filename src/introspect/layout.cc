// The record is names and numbers, so that a reader needs no header of this version: offsets of fields, sizes, values of
// enumerations, addresses of roots.  It is found by an ELF note, which stays in programs that are stripped or static.
#include "introspect/layout.h"

#include <hmalloc/hmalloc.h>

#include <algorithm>
#include <array>

#include "introspect/census.h"
#include "large/huge_store.h"
#include "pages/slice_pool.h"
#include "profile/samples.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"

// Both compilers know it of classes whose bases have fields, too.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace hm {
namespace {

struct Row {
  template <size_t n>
  constexpr Row(const char (&text)[n], uint64_t value) noexcept : name{}, number(value) {
    std::copy_n(text, n, name);
  }
  template <size_t n, class T>
  constexpr Row(const char (&text)[n], const T* root) noexcept : name{}, address(static_cast<const void*>(root)) {
    std::copy_n(text, n, name);
  }
  char name[24];
  union {
    uint64_t number;
    const void* address;
  };
};

template <size_t n>
struct Record {
  // Another one: a row has gone, or means something else.  More rows are no reason.
  static constexpr uint32_t kVersion = 2;

  char magic[16] = "hmalloc layout";
  uint32_t version = kVersion;
  uint32_t count = n;
  char library[16] = HM_VERSION_STRING;
  std::array<Row, n> rows;
};

constexpr size_t kHeapBytes = 0;  // a row that is known at run time

}  // namespace

// What others keep private.
struct Layout {
  static constexpr auto rows() noexcept {
    return std::to_array<Row>({
        {"heap.bytes", uint64_t{0}},
        {"map", AddressMap::units_.data()},
        {"map.chunks", AddressMap::kUnits},
        {"map.slices", uint64_t{static_cast<uint8_t>(ChunkKind::kSlices)}},

        {"regions", &slice_pool.mapped_},
        {"region.bytes", kRegion},
        {"region.header", kRegionHeader},
        {"region.next", offsetof(Region, next_mapped)},
        {"region.absent", offsetof(Region, absent)},
        {"region.metadata", kMetaSlices * kSlice},
        {"region.descriptors", kDescriptors},
        {"chunk.bytes", kChunk},
        {"chunk.free", offsetof(Chunk, free)},
        {"chunk.dirty", offsetof(Chunk, dirty)},
        {"chunk.dirty_before", offsetof(Chunk, dirty_before)},
        {"chunk.guards", offsetof(Chunk, guards)},

        {"slice.bytes", kSlice},
        {"slice.descriptor", sizeof(Slice)},
        {"slice.kind", offsetof(Slice, kind_)},
        {"slice.block_size", offsetof(Slice, block_size)},
        {"slice.is_blocks", uint64_t{static_cast<uint8_t>(SliceKind::kBlocks)}},
        {"slice.is_large", uint64_t{static_cast<uint8_t>(SliceKind::kLarge)}},
        {"superblock.blocks", offsetof(Superblock, blocks)},
        {"superblock.start", offsetof(Superblock, start)},
        {"superblock.states", offsetof(Superblock, states)},
        {"superblock.owner", offsetof(Superblock, owner_)},
        {"superblock.one_slice", kOneSliceMax},                      // blocks up to this size,
        {"superblock.slices", slices_of(ClassIndex(kClasses - 1))},  // and of larger ones it has so many
        {"state.free", uint64_t{BlockState::kFree}},
        {"state.taken", uint64_t{BlockState::kTaken}},
        {"state.cached", uint64_t{BlockState::kCached}},
        {"state.sampled", uint64_t{BlockState::kSampled}},
        {"state.own", uint64_t{BlockState::kOwn}},

        {"heaps", &registry.heaps_},
        {"heap.descriptor", sizeof(ThreadHeap)},
        {"heap.next", offsetof(ThreadHeap, next)},
        {"heap.number", offsetof(ThreadHeap, id)},
        {"heap.live", offsetof(ThreadHeap, live)},
        {"heap.thread", offsetof(ThreadHeap, thread)},
        {"heap.shelf", offsetof(ThreadHeap, shelf)},  // what owners are named by
        {"heap.stranded", offsetof(ThreadHeap, shelf) + offsetof(Shelf, stranded)},
        {"heap.refills", offsetof(ThreadHeap, refills)},
        {"heap.flushes", offsetof(ThreadHeap, flushes)},
        {"heap.foreign_frees", offsetof(ThreadHeap, cross_thread_frees)},
        {"heap.caches", offsetof(ThreadHeap, caches)},
        {"heap.classes", kClasses},
        {"cache.bytes", kCacheStride},
        {"cache.top", offsetof(BlockCache, top_)},
        {"cache.bottom", offsetof(BlockCache, bottom_)},
        {"heap.runs", offsetof(ThreadHeap, large) + offsetof(LargeCache, runs_)},
        {"heap.run_count", offsetof(ThreadHeap, large) + offsetof(LargeCache, count_)},
        {"heap.most_runs", LargeCache::kMostRuns},

        // Those of the program's own.  What they hold is found as all else is.
        {"own.slabs", &own_heaps.slabs_},
        {"own.next", offsetof(OwnHeaps::Slab, next)},
        {"own.used", offsetof(OwnHeaps::Slab, used)},
        {"own.place", kOwnHeapPlace},            // of each heap, and of what stands before the first
        {"own.name", offsetof(OwnHeap, name_)},  // 0: it is not live
        {"bound.own", bound_of_own_heap()},

        {"extents", &extent_table.slabs_},
        {"slab.next", offsetof(ExtentTable::Slab, next)},
        {"slab.extents", offsetof(ExtentTable::Slab, extents)},
        {"slab.count", ExtentTable::kInSlab},
        {"slab.bytes", ExtentTable::kPiece},
        {"extent.descriptor", sizeof(Extent)},
        {"extent.state", offsetof(Extent, state_)},
        {"extent.start", offsetof(Extent, start_)},
        {"extent.bytes", offsetof(Extent, bytes_)},
        {"extent.size", offsetof(Extent, size)},
        {"extent.slack", offsetof(Extent, slack)},
        {"extent.is_unused", uint64_t{static_cast<uint32_t>(ExtentState::kUnused)}},
        {"extent.is_kept", uint64_t{static_cast<uint32_t>(ExtentState::kKept)}},
        {"extent.is_live", uint64_t{static_cast<uint32_t>(ExtentState::kLive)}},

        {"counter.purged", &footprint.purged_},
        {"counter.foreign_frees", &footprint.cross_thread_frees_},
        {"counter.most_slices", &slice_pool.max_used_},
        {"counter.most_huge", &huge_store.max_active},
        {"counter.extent_pieces", &extent_table.pieces_},  // each of slab.bytes
        {"counter.os_calls", &os::call_count},
        {"counter.cache_bytes", &options.cache_bytes},
        {"bound.heap", bound_of_heap()},  // and a thread's block caches, of at most so many bytes
        {"bound.process", kBoundOfProcess},

        // Where a profile has the addresses of sampled blocks: no references to them.
        {"profile", &samples.table_},
        {"array.data", offsetof(MappedArray<Sample>, data_)},
        {"array.bytes", offsetof(MappedArray<Sample>, mapped_)},
    });
  }
};

extern "C" {
[[gnu::used, gnu::visibility("hidden")]] constinit Record<Layout::rows().size()> hm_layout_record{.rows = Layout::rows()};
}

// Type 1 of owner "hmalloc": where the record lies, from here.
asm(R"(
  .pushsection .note.hmalloc, "a", %note
  .p2align 2
  .4byte 8, 8, 1
  .asciz "hmalloc"
  .8byte hm_layout_record - .
  .popsection
)");

void complete_layout() noexcept { hm_layout_record.rows[kHeapBytes].number = sizeof(ThreadHeap) + SmallHeap::kBytesBehind; }

}  // namespace hm
