#include "introspect/stats.h"

#include <cerrno>

#include "base/os_pages.h"
#include "base/process.h"
#include "core/superblock_pool.h"
#include "large/runs.h"
#include "pages/footprint.h"
#include "pages/options.h"
#include "pages/slice_pool.h"
#include "threads/registry.h"

namespace hm {
namespace {

struct ClassGauges {
  uint64_t superblocks, held_blocks, cached_blocks;  // held: by the program or by a cache
};
struct Census {
  hm_stats total{};
  std::array<ClassGauges, kClasses> classes{};
  uint64_t active_in_superblocks = 0;
  uint64_t cached_runs = 0;  // bytes
  uint64_t large_blocks = 0, large_bytes = 0;
};

void count_slices(Census& census) noexcept {
  slice_pool.for_each([&](Slice& first) {
    if (first.kind() == SliceKind::kLarge) {
      ++census.large_blocks;
      census.large_bytes += large_capacity(first);
      return;
    }
    Superblock& sb = Superblock::of(first);
    ClassGauges& gauges = census.classes[index_of(sb.class_index())];
    size_t held = sb.blocks - sb.free_blocks();
    ++gauges.superblocks;
    gauges.held_blocks += held;
    if (held > 0) census.active_in_superblocks += slices_of(sb.class_index()) * kSlice;
  });
}

void count_heaps(Census& census) noexcept {
  registry.for_each([&](ThreadHeap& heap) {
    ++census.total.heaps;
    census.total.live_heaps += heap.live;
    census.total.refills += heap.refills.get();
    census.total.flushes += heap.flushes.get();
    census.total.cross_thread_frees += heap.cross_thread_frees.get();
    census.total.metadata += sizeof(ThreadHeap);
    if (heap.shelf.stranded) return;
    for (size_t c = 0; c < kClasses; ++c) {
      size_t cached = heap.cached_blocks(c);
      census.classes[c].cached_blocks += cached;
      census.total.cached += cached * kClassSize[c];
    }
    census.cached_runs += heap.large.bytes();
  });
}

// What may be held beyond the program's own peak: docs/design.md, "Footprint".
uint64_t bound_beyond(uint64_t peak, uint64_t huge_peak, uint64_t heaps) noexcept {
  uint64_t superblocks = (ThreadHeap::kMaxFull + ThreadHeap::kProducerReuseDistance) * slices_of(ClassIndex{kClasses - 1});
  for (size_t c = 0; c < kClasses; ++c) superblocks += slices_of(ClassIndex(c));
  uint64_t of_heap = options.cache_bytes + LargeCache::kMaxBytes + superblocks * kSlice;
  return (peak + huge_peak) / 4 + heaps * of_heap + 2 * kChunk + kMaxKept;
}

Census take_census() noexcept {
  Census census;
  hm_stats& total = census.total;
  total.cross_thread_frees = footprint.cross_thread_frees();
  count_slices(census);
  count_heaps(census);
  HugeGauges huge = huge_gauges();
  SlicePool::Gauges slices = slice_pool.gauges();
  uint64_t held = 0;
  for (size_t c = 0; c < kClasses; ++c) held += census.classes[c].held_blocks * kClassSize[c];
  total.active += census.active_in_superblocks + census.large_bytes + huge.active;
  total.allocated = (held > total.cached ? held - total.cached : 0) + census.large_bytes + huge.active;
  total.cached += census.cached_runs;
  total.mapped += slices.chunks * kChunk + slices.space + huge.mapped;
  total.metadata += slices.chunks * kSlicesInChunk * sizeof(Slice) + huge.descriptors;
  for (size_t c = 0; c < kClasses; ++c) total.metadata += census.classes[c].superblocks * blocks_of(ClassIndex(c));
  uint64_t superblocks = 0;
  for (size_t c = 0; c < kClasses; ++c) superblocks += census.classes[c].superblocks * slices_of(ClassIndex(c)) * kSlice;
  total.resident = superblocks + census.large_bytes + census.cached_runs + total.metadata + slices.dirty_slices * kSlice +
                   huge.active + huge.kept;
  total.active += census.cached_runs;
  total.retained = total.mapped > total.active + total.metadata ? total.mapped - total.active - total.metadata : 0;
  total.purged = footprint.purged();
  total.os_calls = os::calls();
  total.peak_active = std::max(total.active, slices.max_used_slices * kSlice + huge.max_active);
  total.bound = bound_beyond(total.peak_active, huge.max_active, total.heaps);
  return census;
}

struct Row {
  const char* name;
  uint64_t hm_stats::* field;
  const char* meaning;
};
constexpr Row kRows[] = {
    {"allocated", &hm_stats::allocated, "held by the program"},
    {"cached", &hm_stats::cached, "waiting in block caches"},
    {"active", &hm_stats::active, "superblocks and large blocks in use"},
    {"resident", &hm_stats::resident, "active, metadata, freed and not yet given back"},
    {"retained", &hm_stats::retained, "mapped and unused"},
    {"mapped", &hm_stats::mapped, "address space"},
    {"metadata", &hm_stats::metadata, "descriptors, states, heaps"},
    {"peak_active", &hm_stats::peak_active, "largest active so far, slices and huge blocks each at their peak"},
    {"bound", &hm_stats::bound, "most that is kept beyond the program's peak"},
    {"purged", &hm_stats::purged, "given back so far"},
    {"cross_thread_frees", &hm_stats::cross_thread_frees, "blocks, seen when caches were flushed"},
    {"refills", &hm_stats::refills, "of block caches"},
    {"flushes", &hm_stats::flushes, "of block caches"},
    {"os_calls", &hm_stats::os_calls, "mmap, munmap, mremap, madvise, mprotect"},
};

// Without the registry's lock: a pipe may be full until a thread has read it, and that may be about to get its heap.
template <class Visit>
void for_each_heap(Visit visit) noexcept {
  for (ThreadHeap* heap = registry.newest(); heap != nullptr; heap = heap->next) visit(*heap, registry.is_live(*heap));
}

void print_text(FdWriter& text, const Census& census) noexcept {
  text << "hmalloc " << HM_VERSION_STRING << " statistics of process " << uint64_t{id_of_process()} << " ("
       << program_invocation_short_name << "), bytes, except counts\n";
  for (const Row& row : kRows) text.padded(census.total.*row.field, 16) << "  " << row.name << ": " << row.meaning << "\n";
  text.padded(census.total.heaps, 16) << "  heaps, " << uint64_t{census.total.live_heaps} << " of them live\n";
  text.padded(census.large_bytes, 16) << "  in " << census.large_blocks << " large blocks\n";
  text << "      class  superblocks    allocated       cached\n";
  for (size_t c = 0; c < kClasses; ++c) {
    const ClassGauges& g = census.classes[c];
    if (g.superblocks == 0) continue;
    text.padded(kClassSize[c], 11).padded(g.superblocks, 13);
    text.padded(g.held_blocks - std::min(g.held_blocks, g.cached_blocks), 13).padded(g.cached_blocks, 13) << "\n";
  }
  text << "       heap       cached      refills      flushes  cross frees\n";
  for_each_heap([&](ThreadHeap& heap, bool live) {
    uint64_t cached = 0;
    for (size_t c = 0; c < kClasses && !heap.shelf.stranded; ++c) cached += heap.cached_blocks(c) * kClassSize[c];
    text.padded(heap.id, 11).padded(cached, 13).padded(heap.refills.get(), 13).padded(heap.flushes.get(), 13);
    text.padded(heap.cross_thread_frees.get(), 13) << (live ? "\n" : "  (no thread)\n");
  });
}

// A file name may contain any bytes; those that are not plain ASCII are written as if they were Latin-1.
void print_json_string(FdWriter& text, const char* bytes) noexcept {
  text << "\"";
  for (; *bytes != '\0'; ++bytes) {
    auto byte = static_cast<unsigned char>(*bytes);
    if (byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\') text.put(*bytes);
    else (text << "\\u00").put("0123456789abcdef"[byte >> 4]).put("0123456789abcdef"[byte & 15]);
  }
  text << "\"";
}

void print_json(FdWriter& text, const Census& census) noexcept {
  text << "{\"version\":\"" << HM_VERSION_STRING << "\",\"pid\":" << uint64_t{id_of_process()} << ",\"program\":";
  print_json_string(text, program_invocation_short_name);
  for (const Row& row : kRows) text << ",\"" << row.name << "\":" << census.total.*row.field;
  text << ",\"heaps\":" << uint64_t{census.total.heaps} << ",\"live_heaps\":" << uint64_t{census.total.live_heaps};
  text << ",\"large_blocks\":" << census.large_blocks << ",\"large_bytes\":" << census.large_bytes;
  text << ",\"classes\":[";
  const char* comma = "";
  for (size_t c = 0; c < kClasses; ++c) {
    const ClassGauges& g = census.classes[c];
    if (g.superblocks == 0) continue;
    text << comma << "{\"size\":" << uint64_t{kClassSize[c]} << ",\"superblocks\":" << g.superblocks
         << ",\"held_blocks\":" << g.held_blocks << ",\"cached_blocks\":" << g.cached_blocks << "}";
    comma = ",";
  }
  text << "],\"threads\":[";
  comma = "";
  for_each_heap([&](ThreadHeap& heap, bool live) {
    text << comma << "{\"heap\":" << uint64_t{heap.id} << ",\"live\":" << (live ? "true" : "false")
         << ",\"refills\":" << heap.refills.get() << ",\"flushes\":" << heap.flushes.get()
         << ",\"cross_thread_frees\":" << heap.cross_thread_frees.get() << "}";
    comma = ",";
  });
  text << "]}\n";
}

}  // namespace

void gather(hm_stats& out) noexcept { out = take_census().total; }

void print_stats(FdWriter& out, bool json) noexcept {
  Census census = take_census();
  json ? print_json(out, census) : print_text(out, census);
}

}  // namespace hm
