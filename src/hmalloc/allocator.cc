#include "hmalloc/allocator.h"

#include <cerrno>
#include <cstring>

#include "base/report.h"
#include "hmalloc/decay.h"
#include "hmalloc/footprint.h"
#include "hmalloc/large.h"
#include "hmalloc/registry.h"

namespace hm {
namespace {

// A live block of any kind, found from its address.
struct Found {
  enum Kind : uint8_t { kNothing, kSmall, kLarge, kHuge, kLocal } kind;
  Superblock* sb;        // small, large
  BlockState* state;     // small
  Extent* huge;
  size_t capacity;
};

[[noreturn]] HM_COLD void not_a_block(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  misuse(function, block, aligned ? "not a block of hmalloc" : "misaligned pointer");
}

[[noreturn]] HM_COLD void interior(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  misuse(function, block, aligned ? "points into a block, not to its start" : "misaligned pointer");
}

[[noreturn]] HM_COLD void not_live(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  misuse(function, block, aligned ? "double free, or never a block" : "misaligned pointer");
}

Found find_small(Superblock& sb, const void* block, const char* function) noexcept {
  BlockPlace place(sb, address_of(block));
  if (place.index() >= sb.blocks) not_a_block(function, block);
  if (!place.exact()) interior(function, block);
  BlockState& state = sb.states[place.index()];
  if (state.is_free() || (kChecked && state.is_cached())) misuse(function, block, "double free, or never a block");
  return {Found::kSmall, &sb, &state, nullptr, sb.block_size};
}

Found find_in_slices(const void* block, const char* function) noexcept {
  Superblock& slice = Superblock::of(address_of(block));
  switch (slice.kind()) {
    case SliceKind::kUnused: misuse(function, block, "double free, or never a block");
    case SliceKind::kBlocks:
    case SliceKind::kBlocksTail: return find_small(slice, block, function);
    case SliceKind::kLargeTail: interior(function, block);
    case SliceKind::kLarge: break;
  }
  if (slice.base() != block) interior(function, block);
  return {Found::kLarge, &slice, nullptr, nullptr, large_capacity(slice)};
}

// Ends the program unless block is null or live.
Found find(const void* block, const char* function) noexcept {
  switch (AddressMap::kind(address_of(block))) {
    case ChunkKind::kForeign:
    case ChunkKind::kRegions:  // these four: of allocators that are in other libraries
    case ChunkKind::kWideRegions:
    case ChunkKind::kRuns:
    case ChunkKind::kHugeAligned:
      if (block != nullptr) not_a_block(function, block);
      return {Found::kNothing, nullptr, nullptr, nullptr, 0};
    case ChunkKind::kSlices: return find_in_slices(block, function);
    case ChunkKind::kLocal: {
      size_t size = local_size(block);
      if (size == 0) misuse(function, block, "not a live local block");
      return {Found::kLocal, nullptr, nullptr, nullptr, size};
    }
    case ChunkKind::kGone: not_live(function, block);
    case ChunkKind::kHuge: break;
  }
  Extent* extent = huge_extent(block);
  if (extent == nullptr) interior(function, block);
  if (!huge_is_live(*extent)) not_live(function, block);
  return {Found::kHuge, nullptr, nullptr, extent, huge_capacity(*extent)};
}

constexpr size_t kMaxWeight = 64;  // of an operation, for the clock
constexpr uint32_t kReportedFrees = 64;  // by a thread without a heap, at a time

// Large requests move the clock too: a program may make no others.
void tick_here(size_t bytes) noexcept {
  if (have_heap()) tick(*my_heap(), static_cast<uint32_t>(std::min<size_t>(bytes / kSlice, kMaxWeight)));
}

// A heap without a thread does not count what others free: whoever frees sees to it, once for a number of units.
void note_disturbed_unit() noexcept {
  footprint.count_disturbed_unit();
  tick_here(kMaxWeight / 4 * kSlice);
}

void* allocate_from(ThreadHeap& heap, ClassIndex c) noexcept {
  void* block = heap.caches[raw(c)].pop();
  if (block == nullptr) {
    block = heap.refill(c);
    tick(heap);
  }
  if (kChecked && block != nullptr) find_block(block).state.mark_taken();
  return block;
}

void* allocate_class(ClassIndex c) noexcept {
  if (!have_heap() && (thread_has_ended() || registry.attach() == nullptr))
    return registry.with_fallback([c](ThreadHeap& heap) { return allocate_from(heap, c); });
  return allocate_from(*my_heap(), c);
}

FreshBlock allocate_large_or_collect(size_t size, size_t alignment) noexcept {
  tick_here(size);
  FreshBlock got = have_heap() && alignment <= kSlice ? my_heap()->large.take(size) : FreshBlock{};
  if (got.block == nullptr) got = allocate_large(size, alignment);
  if (got.block == nullptr && size < kMaxRequest / 2) {
    collect();
    got = allocate_large(size, alignment);
  }
  return got;
}

void* allocate_small(ClassIndex c) noexcept {
  void* block = allocate_class(c);
  if (block == nullptr) {
    collect();
    block = allocate_class(c);
  }
  return block != nullptr ? block : out_of_memory();
}

// In place if the block is of a fitting size already, or can be made so.
void* resize_in_place(const Found& found, void* block, size_t size) noexcept {
  switch (found.kind) {
    case Found::kLarge: return resize_large(*found.sb, size) ? block : nullptr;
    case Found::kHuge: return resize_huge(*found.huge, size);
    case Found::kSmall:
    case Found::kLocal: return size <= found.capacity && size > found.capacity / 2 ? block : nullptr;
    case Found::kNothing: break;
  }
  return nullptr;
}

}  // namespace

void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

void* allocate_slow(size_t size) noexcept {
  if (size <= kSmallMax) return allocate_small(class_of(size == 0 ? 1 : size));
  FreshBlock got = allocate_large_or_collect(size, kGranule);
  return got.block != nullptr ? got.block : out_of_memory();
}

// A thread that only frees gets no heap: its blocks become FREE one by one.  It counts them by itself, and reports now and
// then, for a counter that all of them write would cost more than the free.
constinit thread_local uint32_t frees_to_report = kReportedFrees;

HM_COLD void report_frees(Superblock& sb, BlockState& state) noexcept {
  static constinit thread_local uint32_t reports = 0;
  frees_to_report = kReportedFrees;
  give_back(sb, state);
  footprint.count_cross_thread_frees(kReportedFrees);
  if (++reports % (kOperationsPerTick / kReportedFrees) == 0) look_after_process();
}

HM_NOINLINE void free_without_heap(Superblock& sb, BlockState& state) noexcept {
  HM_UNLIKELY(--frees_to_report == 0) ? report_frees(sb, state) : give_back(sb, state);
}

HM_NOINLINE void free_into_full_cache(void* block, Superblock& sb, BlockState& state) noexcept {
  my_heap()->overflow(block, sb, state);
  tick(*my_heap());
}

// The cache is full, or the thread has no heap.  Both go on from here without a frame.
void free_full(void* block, Superblock& sb, BlockState& state) noexcept {
  have_heap() ? free_into_full_cache(block, sb, state) : free_without_heap(sb, state);
}

void free_slow(void* block, const char* function) noexcept {
  if (AddressMap::kind(address_of(block)) == ChunkKind::kLocal) {
    if (free_local(block, function)) note_disturbed_unit();
    return;
  }
  Found found = find(block, function);
  switch (found.kind) {
    case Found::kSmall: misuse(function, block, "double free");  // it was not live a moment ago
    case Found::kLarge:
      if (!have_heap() || !my_heap()->large.keep(*found.sb)) free_large(*found.sb);
      return tick_here(found.capacity);
    case Found::kHuge:
      if (!free_huge(*found.huge)) not_live(function, block);  // another thread was quicker
      return tick_here(found.capacity);
    case Found::kLocal:
    case Found::kNothing: return;
  }
}

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  if (bytes <= kSmallMax) {
    void* block = allocate(bytes);
    return block == nullptr ? nullptr : memset(block, 0, bytes);
  }
  FreshBlock got = allocate_large_or_collect(bytes, kGranule);
  if (got.block == nullptr) return out_of_memory();
  return memset(got.block, 0, std::min(got.dirty, bytes));
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= kGranule) return allocate(size);
  size_t c = aligned_class(size, alignment);
  if (c < kClasses) return allocate(kClassSize[c]);
  FreshBlock got = allocate_large_or_collect(std::max(size, size_t{1}), alignment);
  return got.block != nullptr ? got.block : out_of_memory();
}

// realloc(p, 0) frees and returns null, as glibc does.
void* reallocate(void* block, size_t size, const char* function) noexcept {
  if (block == nullptr) return allocate(size);
  Found found = find(block, function);
  if (size == 0) {
    deallocate(block, function);
    return nullptr;
  }
  if (void* same = resize_in_place(found, block, size)) return same;
  int before = errno;
  void* fresh = allocate(size);
  if (fresh == nullptr) {
    if (size > found.capacity) return nullptr;
    errno = before;
    return block;
  }
  memcpy(fresh, block, std::min(size, found.capacity));
  deallocate(block, function);
  return fresh;
}

size_t usable_size(const void* block, const char* function) noexcept { return find(block, function).capacity; }

// A block may be larger than its class's last request: a realloc that shrinks by less than half stays where it is.
void check_size(const void* block, size_t size, size_t alignment, const char* function) noexcept {
  if (!kChecked || block == nullptr) return;
  Found found = find(block, function);
  size_t c = aligned_class(size, alignment);
  bool own_class = found.kind == Found::kSmall && c < kClasses && found.capacity == kClassSize[c];
  bool fits = size <= found.capacity && (size > found.capacity / 2 || own_class || alignment > kGranule);
  if (!fits && found.kind != Found::kLocal) misuse(function, block, "freed with a size it was not allocated with");
}

}  // namespace hm
