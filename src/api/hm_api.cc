// The explicit API of <hmalloc/hmalloc.h>.
#include <hmalloc/hmalloc_local.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/front.h"  // IWYU pragma: keep (the hardened library has these names in its own)
#include "api/misuse.h"
#include "base/codegen.h"
#include "introspect/stats.h"
#include "profile/profile.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"
#include "upkeep/background.h"
#include "upkeep/pressure.h"
#include "upkeep/reclaim.h"

using namespace hm;

const char* hm_version() noexcept { return HM_VERSION_STRING; }

void* hm_malloc(size_t size) noexcept { return front::allocate(size); }
void hm_free(void* block) noexcept { front::deallocate(block, "hm_free"); }

namespace {

// The size names the cache: no map, descriptor or state is read.  False: take the general path.
// Nor does a push succeed while allocations are counted.
template <size_t kStep, auto kOffset>
inline bool push_by_size(void* block, size_t size) noexcept {
  size_t index = hide_from_optimizer((size - 1) / kStep);  // size 0 wraps around and takes the general path
  return !kChecked && HM_LIKELY(index < kSmallMax / kStep && block != nullptr) &&
         HM_LIKELY(my_heap()->cache((empty_heap.*kOffset)(index)).push_once(block));
}

inline void free_by_long_way(void* block, size_t size, size_t alignment, const char* function) noexcept {
  if (kChecked && size > 0) front::check_size(block, size, alignment, function);
  front::deallocate(block, function);
}

}  // namespace

void hm_free_sized(void* block, size_t size) noexcept {
  if (!push_by_size<kGranule, &EmptyHeap::cache_offset>(block, size))
    free_by_long_way(block, size, kGranule, "hm_free_sized");
}

void* hm_calloc(size_t count, size_t size) noexcept { return front::allocate_zeroed(count, size); }
void* hm_realloc(void* block, size_t size) noexcept { return front::reallocate(block, size, "hm_realloc"); }
size_t hm_usable_size(const void* block) noexcept { return front::usable_size(block, "hm_usable_size"); }

void* hm_aligned_alloc(size_t alignment, size_t size) noexcept {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return front::allocate_aligned(alignment, size);
}

void* hm_shared_alloc(size_t size) noexcept {
  if (kHardened) return front::allocate_aligned(kLine, size);
  size_t index = hide_from_optimizer((size - 1) / kLine);  // size 0 wraps around to a huge index
  if (HM_UNLIKELY(index >= kSharedCacheOffset.size())) return front::allocate(size == 0 ? kLine : size);
  BlockCache& cache = my_heap()->cache(empty_heap.shared_cache_offset(index));
  void** top = cache.top();
  void* block = cache.pop(top);
  if (HM_UNLIKELY(block == nullptr)) return allocate_missed(shared_size(size), cache, top);
  if constexpr (kChecked) find_block(block).state.mark_taken();
  return block;
}

void hm_shared_free(void* block) noexcept { front::deallocate(block, "hm_shared_free"); }

void hm_shared_free_sized(void* block, size_t size) noexcept {
  if (!push_by_size<kLine, &EmptyHeap::shared_cache_offset>(block, size))
    free_by_long_way(block, size, kLine, "hm_shared_free_sized");
}

namespace {

// The calling thread's cache at an offset in its heap.
hm_cache* cache_at(size_t offset) noexcept {
  static_assert(sizeof(hm_cache) <= sizeof(BlockCache));  // the same first members
  ThreadHeap* heap = kChecked || counting.is_on() ? nullptr : heap_or_attach();
  if (heap == nullptr) return nullptr;
  HeapUse use(*heap);
  heap->handed_out = true;
  return reinterpret_cast<hm_cache*>(&heap->cache(offset));
}

}  // namespace

hm_cache* hm_cache_of(size_t size) noexcept {
  size_t index = size == 0 ? 0 : (size - 1) / kGranule;
  return index < kCacheOffset.size() ? cache_at(kCacheOffset[index]) : nullptr;
}

hm_cache* hm_shared_cache_of(size_t size) noexcept {
  size_t index = size == 0 ? 0 : (size - 1) / kLine;
  return index < kSharedCacheOffset.size() ? cache_at(kSharedCacheOffset[index]) : nullptr;
}

void* hm_cache_refill_(hm_cache* cache) noexcept {
  size_t c = (address_of(cache) - address_of(my_heap())) / kCacheStride;
  if (c >= kClasses) die("hm_cache_alloc", cache, "not a cache of this thread");
  return allocate_slow(kClassSize[c]);
}

// Unlike hm_realloc, hm_local_realloc leaves no block in a larger class than that of its size.
void hm_local_free_slow_(void* block, size_t size) noexcept {
  if (kChecked && !kHardened && block != nullptr && size - 1 < kSmallMax &&
      !is_of_class(block, class_of(size), "hm_local_free_sized") &&
      AddressMap::kind(address_of(block)) != ChunkKind::kGuarded)
    die("hm_local_free_sized", block, "freed with a size it was not allocated with");
  free_by_long_way(block, size, kGranule, "hm_local_free_sized");
  if (have_heap()) show_caches(!counting.is_on());
}

void hm_local_free(void* block) noexcept { front::deallocate(block, "hm_local_free"); }

// A block stays where it is only in the class of its new size, so that it may be freed with that.
void* hm_local_realloc(void* block, size_t size) noexcept {
  if (kHardened || block == nullptr || size == 0 || size > kSmallMax)
    return front::reallocate(block, size, "hm_local_realloc");
  ClassIndex c = class_of(size);
  if (is_of_class(block, c, "hm_local_realloc")) return block;
  size_t capacity = front::usable_size(block, "hm_local_realloc");
  void* fresh = front::allocate(size);
  if (fresh == nullptr) return nullptr;
  memcpy(fresh, block, std::min(size, capacity));
  front::deallocate(block, "hm_local_realloc");
  return fresh;
}

size_t hm_local_usable_size(const void* block) noexcept { return front::usable_size(block, "hm_local_usable_size"); }

namespace {

hm_heap* handle_of(const OwnHeap& heap) noexcept {
  return reinterpret_cast<hm_heap*>(const_cast<void*>(OwnHeaps::handle_of(heap)));
}

[[noreturn]] HM_COLD void not_a_heap(const hm_heap* handle, const char* function) noexcept {
  die(function, handle, "not a heap, or one that was destroyed");
}

OwnHeap& live_heap(const hm_heap* handle, const char* function) noexcept {
  OwnHeap* heap = OwnHeaps::find(handle);
  if (heap == nullptr) not_a_heap(handle, function);
  return *heap;
}

}  // namespace

hm_heap* hm_heap_create() noexcept {
  OwnHeap* heap = own_heaps.create();
  return heap != nullptr ? handle_of(*heap) : static_cast<hm_heap*>(out_of_memory());
}

void hm_heap_destroy(hm_heap* handle) noexcept {
  if (handle == nullptr) return;
  OwnHeap* heap = own_heaps.end(handle);
  if (heap == nullptr) not_a_heap(handle, "hm_heap_destroy");
  int before = errno;
  front::free_all_of(*heap);
  own_heaps.release(*heap);
  errno = before;
}

void* hm_heap_malloc(hm_heap* handle, size_t size) noexcept {
  return front::allocate_in(live_heap(handle, "hm_heap_malloc"), size);
}

void* hm_heap_calloc(hm_heap* handle, size_t count, size_t size) noexcept {
  return front::allocate_zeroed_in(live_heap(handle, "hm_heap_calloc"), count, size);
}

void* hm_heap_aligned_alloc(hm_heap* handle, size_t alignment, size_t size) noexcept {
  OwnHeap& heap = live_heap(handle, "hm_heap_aligned_alloc");
  if (std::has_single_bit(alignment)) return front::allocate_aligned_in(heap, alignment, size);
  errno = EINVAL;
  return nullptr;
}

void* hm_heap_realloc(hm_heap* handle, void* block, size_t size) noexcept {
  OwnHeap& heap = live_heap(handle, "hm_heap_realloc");
  if (block == nullptr) return front::allocate_in(heap, size);
  if (front::heap_of(block, "hm_heap_realloc") != &heap) die("hm_heap_realloc", block, "not a block of this heap");
  return front::reallocate(block, size, "hm_heap_realloc");
}

void hm_heap_stats_get(hm_heap* handle, struct hm_heap_stats* out) noexcept {
  OwnHeap::Gauges gauges = live_heap(handle, "hm_heap_stats_get").gauges();
  struct hm_heap_stats all{std::min(out->size, sizeof all), gauges.blocks, gauges.bytes, gauges.held};
  memcpy(out, &all, all.size);
}

int hm_background_start() noexcept { return background.start(); }

int hm_pressure() noexcept { return pressure.level(); }
void hm_pressure_notify(int eventfd) noexcept { pressure.notify(eventfd); }

int hm_collect() noexcept { return reclaim_all() ? 1 : 0; }
void hm_thread_idle() noexcept { registry.part(); }
size_t hm_check() noexcept { return front::check_blocks(); }

int hm_profile_start(size_t rate) noexcept { return start_profile(rate == 0 ? kUsualRate : rate); }
void hm_profile_stop() noexcept { stop_profile(); }
int hm_profile_dump(int fd) noexcept { return write_profile(fd); }

void hm_stats_get(struct hm_stats* out) noexcept { gather(*out); }
void hm_stats_print(int fd, int form) noexcept {
  FdWriter out(fd);
  print_stats(out, form);
}
