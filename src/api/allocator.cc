#include "api/allocator.h"

#include <cerrno>
#include <cstring>

#include "api/misuse.h"
#include "guard/guarded_blocks.h"
#include "introspect/profile_files.h"
#include "pages/footprint.h"
#include "profile/sampler.h"
#include "profile/samples.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"
#include "upkeep/pressure.h"
#include "upkeep/reclaim.h"

namespace hm {
namespace {

[[noreturn]] HM_COLD void not_a_block(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  die(function, block, aligned ? "not a block of hmalloc" : "misaligned pointer");
}

[[noreturn]] HM_COLD void interior(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  die(function, block, aligned ? "points into a block, not to its start" : "misaligned pointer");
}

[[noreturn]] HM_COLD void not_live(const char* function, const void* block) noexcept {
  bool aligned = address_of(block) % kGranule == 0;
  die(function, block, aligned ? "double free, or never a block" : "misaligned pointer");
}

// Each of these ends the program unless a live block of its kind starts at the address.

[[gnu::always_inline]] inline Superblock& live_small(Slice& slice, const void* block, const char* function) noexcept {
  Superblock& sb = Superblock::of(slice);
  BlockPlace place(sb, address_of(block));
  if (place.index() >= sb.blocks) not_a_block(function, block);
  if (!place.exact()) interior(function, block);
  BlockState& state = sb.states[place.index()];
  if (state.is_free() || (kChecked && state.is_cached())) die(function, block, "double free, or never a block");
  return sb;
}

Slice& live_run(Slice& slice, const void* block, const char* function) noexcept {
  if (slice.kind() == SliceKind::kLarge && slice.base() == block) return slice;
  Slice* first = &slice;
  while (first->kind() == SliceKind::kLargeTail) --first;
  size_t offset = address_of(block) - address_of(first->base());
  bool within = first->kind() == SliceKind::kLarge && offset > 0 && offset < large_capacity(*first);
  within ? interior(function, block) : not_live(function, block);
}

Extent& live_extent(const void* block, const char* function) noexcept {
  Extent* extent = huge_extent(block);
  if (extent == nullptr) interior(function, block);
  if (!huge_is_live(*extent)) not_live(function, block);
  return *extent;
}

// A live block of any kind.
struct LiveBlock {
  enum Kind : uint8_t { kNull, kSmall, kGuarded, kRun, kHuge } kind;
  size_t capacity = 0;
  Slice* slice = nullptr;  // of a small block, or the first of a run
  Extent* extent = nullptr;

  bool is_large() const noexcept { return kind == kRun || kind == kHuge; }
};

// Describes a live block, or null; anything else ends the program.  Inline: a realloc takes a seventh fewer instructions.
[[gnu::always_inline]] inline LiveBlock lookup(const void* block, const char* function) noexcept {
  switch (AddressMap::kind(address_of(block))) {
    case ChunkKind::kSlices: {
      Slice& slice = Slice::of(address_of(block));
      if (slice.is_small()) return {LiveBlock::kSmall, live_small(slice, block, function).block_size, &slice};
      Slice& run = live_run(slice, block, function);
      return {LiveBlock::kRun, large_capacity(run), &run};
    }
    case ChunkKind::kHuge: {
      Extent& extent = live_extent(block, function);
      return {LiveBlock::kHuge, huge_capacity(extent), nullptr, &extent};
    }
    case ChunkKind::kGuarded: return {LiveBlock::kGuarded, guarded_blocks.usable_size(block, function)};
    case ChunkKind::kGone: not_live(function, block);
    default: break;  // not ours
  }
  if (block != nullptr) not_a_block(function, block);
  return {LiveBlock::kNull};
}

// Null: it belongs to none of the program's own.
OwnHeap* heap_of(const LiveBlock& live) noexcept {
  switch (live.kind) {
    case LiveBlock::kSmall: return heap_of(Superblock::of(*live.slice));
    case LiveBlock::kRun: return LargeRun::of(*live.slice).heap;
    case LiveBlock::kHuge: return live.extent->heap;
    default: return nullptr;
  }
}

HM_COLD void* refused() noexcept {
  pressure.on_refusal();
  return out_of_memory();
}

constexpr uint32_t kReportedFrees = 64;  // by a thread without a heap; it reports that many at a time

constexpr uint32_t kLargeCallsPerLook = 16;  // of a thread without a heap

// A program may make no other requests than for large blocks.
void after_large(size_t bytes) noexcept {
  if (have_heap()) return tick_after_large(my_thread_heap(), bytes);
  static constinit thread_local uint32_t calls = 0;
  pressure.look(nullptr);
  if (++calls % kLargeCallsPerLook == 0) look_without_heap();
}

void* allocate_from(ThreadHeap& heap, ClassIndex c) noexcept {
  void* block = heap.caches[index_of(c)].pop();
  if (block == nullptr) {
    block = heap.refill(c);
    tick(heap);
  }
  if (kChecked && block != nullptr) find_block(block).state.mark_taken();
  return block;
}

// While allocations are counted: where malloc was called last, in as far as its cache was empty or a sample was due.
constinit thread_local const void* caller = nullptr;

// The block is in the profile from here on, if one runs and there is room in it; or a tracer follows it.  False: neither.
bool sample(void* block, size_t size, bool has_state) noexcept {
  double weight = sampler.weight(size);
  bool profiled = sampler.has_profile() && samples.add(block, size, weight, caller);
  if (profiled && !sampler.is_sampling()) profiled = !samples.drop(block);  // it was stopped meanwhile, and would not count
  bool traced = !profiled && sampler.has_tracer() && (has_state || samples.add_without_stack(block));
  if (profiled || traced) probe_alloc(block, size, rounded(weight * static_cast<double>(size)));
  return profiled || traced;
}

// A sample may be due.  Nothing is open now.  Another block may be handed out in place of this one.
HM_COLD void* sample_small(Countdown& countdown, void* block, ClassIndex c, size_t size) noexcept {
  sampler.look_for_tracer();  // there may be no other slow path
  if (!sampler.takes(countdown, size_of(c))) return block;
  void* guarded = sampler.has_guard() ? guarded_blocks.allocate(size, caller) : nullptr;
  if (guarded != nullptr) {
    deallocate(block, "malloc");
    block = guarded;
  }
  if (sample(block, size_of(c), guarded == nullptr) && guarded == nullptr) find_block(block).state.mark_sampled();
  write_profile_if_asked_for();
  return block;
}

// Of a block that is freed, or may have another size from now on.
void end_sample(const void* block) noexcept {
  probe_free(block);
  if (counting.is_on() && !sampler.is_sampling() && !samples.any_profiled()) sampler.rest();
}

// size: what was asked for.
void* allocate_class(ClassIndex c, size_t size) noexcept {
  ThreadHeap* heap = heap_or_attach();
  if (heap == nullptr) return registry.with_fallback([c](ThreadHeap& shared) { return allocate_from(shared, c); });
  void* block;
  {
    HeapUse use(*heap);
    block = allocate_from(*heap, c);
    show_caches(!counting.is_on());
  }
  if (HM_UNLIKELY(counting.is_on()) && block != nullptr && heap->countdown(c).count())
    return sample_small(heap->countdown(c), block, c, size);
  return block;
}

// For blocks that have no state byte: before it is the program's, and after it is no longer.
void sample_large(void* block, size_t size) noexcept {
  if (block == nullptr || HM_LIKELY(!sampler.chooses(size))) return;
  sample(block, size, false);
  write_profile_if_asked_for();
}
// True if it was sampled: a stack was taken, perhaps, and another thread may have been quicker.
bool forget_large(const void* block, const void* by, bool is_freed = true) noexcept {
  if (HM_LIKELY(!samples.any()) || !samples.remove(block, by, is_freed)) return false;
  end_sample(block);
  return true;
}

// Of the runs that the thread's heap keeps.
FreshBlock take_kept(size_t size) noexcept {
  if (!have_heap()) return {};
  HeapUse use(my_thread_heap());
  return my_thread_heap().large.take(size);
}

bool keep(Slice& run) noexcept {
  if (!have_heap()) return false;
  HeapUse use(my_thread_heap());
  return my_thread_heap().large.keep(run);
}

// More than there are in a process: nothing that goes back could help.
constexpr size_t kAddresses = AddressMap::kUnits * kChunk;

// heap: of the program's own, or null.
FreshBlock allocate_large_or_collect(size_t size, size_t alignment, OwnHeap* heap = nullptr) noexcept {
  after_large(size);
  FreshBlock got = alignment <= kSlice && heap == nullptr ? take_kept(size) : FreshBlock{};
  if (got.block == nullptr) got = allocate_large(size, alignment);
  if (got.block == nullptr && size < kAddresses && alignment < kAddresses) {
    reclaim_before_refusal();
    got = allocate_large(size, alignment);
  }
  if (heap != nullptr && got.block != nullptr) heap->add(got.block);
  sample_large(got.block, size);
  return got;
}

void* allocate_small(size_t size) noexcept {
  ClassIndex c = class_of(size);
  void* block = allocate_class(c, size);
  if (block == nullptr) {
    reclaim_before_refusal();
    block = allocate_class(c, size);
  }
  return block != nullptr ? block : refused();
}

// In place if the block already has a fitting size or can get one.  To a profile, another size of a large block is another
// allocation.
void* resize_in_place(const LiveBlock& live, void* block, size_t size) noexcept {
  if (!live.is_large()) return size <= live.capacity && size > live.capacity / 2 ? block : nullptr;
  // Before it moves: then the address may be another's at once.  What cannot be resized is freed soon.
  forget_large(block, __builtin_return_address(0), false);
  void* same = live.kind == LiveBlock::kHuge     ? resize_huge(*live.extent, size)
               : resize_large(*live.slice, size) ? block
                                                 : nullptr;
  if (same != nullptr) sample_large(same, size);
  return same;
}

}  // namespace

void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

// All calls up to here are tail calls of malloc's, so that the return address is that of whoever called it.
void* allocate_slow(size_t size) noexcept {
  caller = __builtin_return_address(0);
  if (size <= kSmallMax) return allocate_small(size == 0 ? 1 : size);
  FreshBlock got = allocate_large_or_collect(size, kGranule);
  return got.block != nullptr ? got.block : refused();
}

void* allocate_sample(size_t size, void* block, Countdown& countdown) noexcept {
  caller = __builtin_return_address(0);
  show_caches(false);
  return sample_small(countdown, block, class_of(size), size);
}

// A thread that only frees gets no heap: its blocks become FREE one by one.  It counts them itself and reports the
// count now and then, because a shared counter would cost more than the free.  The first is reported at once: the thread
// may end after a few.
constinit thread_local uint32_t frees_to_report = 1;

HM_COLD void report_frees(Superblock& sb, BlockState& state) noexcept {
  static constinit thread_local uint32_t reports = 0, frees = 1;
  give_back(sb, state);
  footprint.count_cross_thread_frees(frees, kReportedFrees * kSmallMax);  // until the next report there may be as many bytes
  frees = frees_to_report = kReportedFrees;
  if (++reports % (kOperationsPerTick / kReportedFrees) == 0) upkeep_without_heap();
}

HM_NOINLINE void free_without_heap(Superblock& sb, BlockState& state) noexcept {
  HM_UNLIKELY(--frees_to_report == 0) ? report_frees(sb, state) : give_back(sb, state);
}

HM_NOINLINE void free_into_full_cache(void* block, Superblock& sb, BlockState& state) noexcept {
  ThreadHeap& heap = my_thread_heap();
  HeapUse use(heap);
  heap.overflow(block, sb, state);
  tick(heap);
}

// The cache is full, or the thread has no heap.  Both branches are tail calls, so no frame is needed here.
void free_on_full_cache(void* block, Superblock& sb, BlockState& state) noexcept {
  have_heap() ? free_into_full_cache(block, sb, state) : free_without_heap(sb, state);
}

namespace {

void free_run(Slice& run, const char* function) noexcept {
  size_t bytes = large_capacity(run);
  OwnHeap* heap = LargeRun::of(run).heap;
  if (heap != nullptr && !heap->remove(LargeRun::of(run))) not_live(function, run.base());  // another thread was quicker
  if (heap != nullptr || !keep(run)) free_large(run);
  after_large(bytes);
}

void free_guarded(void* block, const char* function, const void* by) noexcept {
  forget_large(block, by);
  guarded_blocks.free(block, function, by);
}

void free_extent(Extent& extent, void* block, const char* function, const void* by) noexcept {
  size_t bytes = huge_capacity(extent);
  forget_large(block, by);
  bool mine = extent.heap == nullptr || extent.heap->remove(extent);
  if (!mine || !free_huge(extent)) not_live(function, block);  // another thread was quicker
  after_large(bytes);
}

}  // namespace

void forget_sampled(const void* block, const void* by) noexcept {
  if (samples.any()) samples.remove(block, by);  // not in there if only a tracer follows it
  end_sample(block);
}

namespace {

// The fast path has rejected it: it is no live small block.
void free_in_slices(Slice& slice, void* block, const char* function, const void* by) noexcept {
  if (!slice.is_small()) {
    Slice& run = live_run(slice, block, function);
    if (forget_large(block, by)) live_run(slice, block, function);
    return free_run(run, function);
  }
  Superblock& sb = live_small(slice, block, function);
  BlockState& state = sb.states[BlockPlace(sb, address_of(block)).index()];
  if (state.end_own()) return give_back(sb, state);
  if (state.end_sample()) {
    forget_sampled(block, by);
    if (belongs_to_own_heap(sb)) return give_back(sb, state);
    state.mark_taken();
    return deallocate(block, function);
  }
  die(function, block, "double free");  // it was not live when the fast path looked
}

}  // namespace

void free_slow(void* block, const char* function) noexcept {
  const void* by = __builtin_return_address(0);  // who called free, for that has called this last
  switch (AddressMap::kind(address_of(block))) {
    case ChunkKind::kSlices: return free_in_slices(Slice::of(address_of(block)), block, function, by);
    case ChunkKind::kHuge: return free_extent(live_extent(block, function), block, function, by);
    case ChunkKind::kGuarded: return free_guarded(block, function, by);
    case ChunkKind::kGone: not_live(function, block);
    default: break;  // not ours
  }
  if (block != nullptr) not_a_block(function, block);
}

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  if (bytes <= kSmallMax) {
    void* block = allocate(bytes);
    return block == nullptr ? nullptr : memset(block, 0, bytes);
  }
  FreshBlock got = allocate_large_or_collect(bytes, kGranule);
  if (got.block == nullptr) return refused();
  return memset(got.block, 0, std::min(got.dirty, bytes));
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= kGranule) return allocate(size);
  size_t c = aligned_class(size, alignment);
  return c < kClasses ? allocate(kClassSize[c]) : allocate_large_block(std::max(size, size_t{1}), alignment);
}

void* allocate_large_block(size_t size, size_t alignment) noexcept {
  FreshBlock got = allocate_large_or_collect(size, alignment);
  return got.block != nullptr ? got.block : refused();
}

// realloc(p, 0) frees and returns null, as glibc does.
void* reallocate(void* block, size_t size, const char* function) noexcept {
  if (block == nullptr) return allocate(size);
  LiveBlock live = lookup(block, function);
  if (size == 0) {
    deallocate(block, function);
    return nullptr;
  }
  if (void* same = resize_in_place(live, block, size)) return same;
  int before = errno;
  OwnHeap* heap = heap_of(live);  // where it stays
  void* fresh = heap == nullptr ? allocate(size) : allocate_in(*heap, size);
  if (fresh == nullptr) {
    if (void* same = resize_in_place(live, block, size)) {  // now that all that was free has gone back
      errno = before;
      return same;
    }
    if (size > live.capacity) return nullptr;
    errno = before;
    return block;
  }
  memcpy(fresh, block, std::min(size, live.capacity));
  deallocate(block, function);
  return fresh;
}

size_t usable_size(const void* block, const char* function) noexcept { return lookup(block, function).capacity; }

OwnHeap* heap_of(const void* block, const char* function) noexcept { return heap_of(lookup(block, function)); }

namespace {

void* allocate_small_in(OwnHeap& heap, ClassIndex c) noexcept {
  bool opened = false;
  void* block = heap.allocate(c, opened);
  if (opened) after_large(slices_of(c) * kSlice);  // the program may make no other requests
  if (block == nullptr) {
    reclaim_before_refusal();
    block = heap.allocate(c, opened);
  }
  if (block == nullptr) return refused();
  if (HM_LIKELY(!sampler.chooses(size_of(c)))) return block;
  if (sample(block, size_of(c), true)) find_block(block).state.mark_sampled();
  write_profile_if_asked_for();
  return block;
}

FreshBlock allocate_large_in(OwnHeap& heap, size_t size, size_t alignment) noexcept {
  FreshBlock got = allocate_large_or_collect(size, alignment, &heap);
  if (got.block == nullptr) refused();
  return got;
}

}  // namespace

// The return address is that of whoever called, as in allocate_slow.
void* allocate_in(OwnHeap& heap, size_t size) noexcept {
  caller = __builtin_return_address(0);
  if (size <= kSmallMax) return allocate_small_in(heap, class_of(size == 0 ? 1 : size));
  return allocate_large_in(heap, size, kGranule).block;
}

void* allocate_zeroed_in(OwnHeap& heap, size_t count, size_t size) noexcept {
  caller = __builtin_return_address(0);
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  if (bytes > kSmallMax) {
    FreshBlock got = allocate_large_in(heap, bytes, kGranule);
    return got.block == nullptr ? nullptr : memset(got.block, 0, std::min(got.dirty, bytes));
  }
  void* block = allocate_small_in(heap, class_of(bytes == 0 ? 1 : bytes));
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* allocate_aligned_in(OwnHeap& heap, size_t alignment, size_t size) noexcept {
  caller = __builtin_return_address(0);
  size_t c = aligned_class(size, std::max(alignment, kGranule));
  if (c < kClasses) return allocate_small_in(heap, ClassIndex(c));
  return allocate_large_block_in(heap, std::max(size, size_t{1}), alignment);
}

void* allocate_large_block_in(OwnHeap& heap, size_t size, size_t alignment) noexcept {
  return allocate_large_in(heap, size, alignment).block;
}

void free_large_of(OwnHeap& heap) noexcept {
  while (void* block = heap.any_large()) free_slow(block, "hm_heap_destroy");
}

void free_all_in(Superblock& sb, const void* by) noexcept {
  constexpr uint64_t kSampledAlone = StateGroup::kOnes * (BlockState::kSampled & ~BlockState::kCached & ~BlockState::kOwn);
  static_assert(kSampledAlone != 0);
  for (size_t i = 0; i < sb.blocks; i += StateGroup::kBlocks)
    for (uint64_t left = StateGroup(sb.states + i).taken() & kSampledAlone; left != 0; left &= left - 1) {
      size_t k = i + static_cast<size_t>(std::countr_zero(left)) / 8;
      if (sb.states[k].end_sample()) forget_sampled(sb.start + k * sb.block_size, by);
    }
  sb.free_all();
  release(sb);
}

void free_all_of(OwnHeap& heap) noexcept {
  free_large_of(heap);
  while (Superblock* sb = heap.take_out()) free_all_in(*sb, __builtin_return_address(0));
}

// A huge block may be as large as those of a class: one that is aligned to more than 32 KB.
bool is_of_class(const void* block, ClassIndex c, const char* function) noexcept {
  LiveBlock live = lookup(block, function);
  return live.kind == LiveBlock::kSmall && live.capacity == size_of(c);
}

// A block may be larger than its request's class: a realloc that shrinks it by less than half leaves it in place.  A large one
// stays in place by any realloc that finds no memory to move it to.
void check_size(const void* block, size_t size, size_t alignment, const char* function) noexcept {
  if (!kChecked || block == nullptr) return;
  LiveBlock live = lookup(block, function);
  size_t c = aligned_class(size, alignment);
  bool own_class = !live.is_large() && c < kClasses && live.capacity == kClassSize[c];
  bool large = live.is_large() && size > kSmallMax;
  bool fits = size <= live.capacity && (size > live.capacity / 2 || own_class || large || alignment > kGranule);
  if (!fits) die(function, block, "freed with a size it was not allocated with");
}

}  // namespace hm
