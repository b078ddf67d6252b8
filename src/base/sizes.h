// Sizes, alignments and other basics that every room uses.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#define HM_LIKELY(x) __builtin_expect(!!(x), 1)
#define HM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HM_COLD __attribute__((noinline, cold))
#define HM_NOINLINE __attribute__((noinline))

#if defined(__SANITIZE_THREAD__)
#define HM_SANITIZED_THREAD
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HM_SANITIZED_THREAD
#endif
#endif
namespace hm {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kLine = 64;          // a cache line
inline constexpr size_t kGranule = 16;       // every block starts at a multiple of this
inline constexpr size_t kSlice = 32 * kKiB;  // the unit in which a chunk is handed out; a superblock is one or four
inline constexpr size_t kChunk = 2 * kMiB;   // the unit of the address map, and a huge page; aligned to its own size
inline constexpr size_t kGuard = 64 * kKiB;  // inaccessible, whatever the size of a page: 4, 16 or 64 KB
inline constexpr size_t kMaxRequest = PTRDIFF_MAX;

constexpr size_t align_up(size_t n, size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }
constexpr uintptr_t align_down(uintptr_t n, size_t alignment) { return n & ~(uintptr_t{alignment} - 1); }
constexpr size_t divide_up(size_t n, size_t by) { return (n + by - 1) / by; }
// Inline; std::popcount is a call of a function on x86-64, whose first processors have no instruction for it.
constexpr size_t count_bits(uint64_t bits) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  return ((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
#else
  return static_cast<size_t>(std::popcount(bits));
#endif
}
inline uintptr_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

#if defined(HM_HARDENED)
inline constexpr bool kHardened = true;  // libhmalloc-hardened: states as if checked, and the layer of api/hardened.cc
#else
inline constexpr bool kHardened = false;
#endif

#if defined(HM_CHECKED) || defined(HM_HARDENED)
inline constexpr bool kChecked = true;  // libhmalloc-checked: tracks every block's exact state, also in caches
#else
inline constexpr bool kChecked = false;
#endif

#if defined(HM_SANITIZED_THREAD)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace hm
