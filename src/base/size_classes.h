// The size classes: multiples of 16 bytes up to 128, then four to each doubling, up to 32 KB.  From 4 KB on there is a
// fifth, an eighth above each power of two, for a page with a header: databases make thousands of such requests
// (SQLite: 4368 bytes).  Larger requests are runs of slices or extents (large/runs.h).  The compiler computes and
// proves everything here.
#pragma once
#include <algorithm>
#include <array>

#include "base/sizes.h"

namespace hm {

enum class ClassIndex : uint8_t {};

inline constexpr size_t kClasses = 43;
inline constexpr size_t kSmallMax = 32 * kKiB;
inline constexpr size_t kLargeMax = 1 * kMiB;     // above: huge
inline constexpr size_t kOneSliceMax = 4 * kKiB;  // classes up to here live in superblocks of one slice, others of four

constexpr size_t index_of(ClassIndex c) { return static_cast<size_t>(c); }

namespace detail {
consteval std::array<uint32_t, kClasses> class_sizes() {
  std::array<uint32_t, kClasses> sizes{};
  size_t n = 0;
  for (uint32_t size = 16; size <= 128; size += 16) sizes[n++] = size;
  for (uint32_t base = 128; n < kClasses; base *= 2) {
    if (base >= kOneSliceMax) sizes[n++] = base + base / 8;
    for (uint32_t quarter = 1; quarter <= 4; ++quarter) sizes[n++] = base + base / 4 * quarter;
  }
  return sizes;
}
}  // namespace detail

inline constexpr std::array<uint32_t, kClasses> kClassSize = detail::class_sizes();

// Size of an entry in a heap's array of block caches.  The table below holds offsets into that array, so that the fast
// path needs no multiplication.
inline constexpr size_t kCacheStride = 32;

namespace detail {
consteval std::array<uint16_t, kSmallMax / kGranule> cache_offsets() {
  std::array<uint16_t, kSmallMax / kGranule> table{};
  size_t c = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    while (kClassSize[c] < (i + 1) * kGranule) ++c;
    table[i] = static_cast<uint16_t>(c * kCacheStride);
  }
  return table;
}
}  // namespace detail

// Indexed by (size - 1) / 16.
inline constexpr std::array<uint16_t, kSmallMax / kGranule> kCacheOffset = detail::cache_offsets();

constexpr ClassIndex class_of(size_t size) {  // size in 1..kSmallMax
  return static_cast<ClassIndex>(kCacheOffset[(size - 1) / kGranule] / kCacheStride);
}
constexpr size_t size_of(ClassIndex c) { return kClassSize[index_of(c)]; }
constexpr size_t slices_of(ClassIndex c) { return size_of(c) <= kOneSliceMax ? 1 : 4; }
constexpr size_t blocks_of(ClassIndex c) { return slices_of(c) * kSlice / size_of(c); }

// The class for a request of this alignment (a power of two up to 4 KB): the first whose blocks are all aligned if they
// start at a multiple of 32 KB.  kClasses if there is none.
constexpr size_t aligned_class(size_t size, size_t alignment) {
  if (size > kSmallMax) return kClasses;
  for (size_t c = index_of(class_of(size == 0 ? 1 : size)); c < kClasses; ++c)
    if (kClassSize[c] % alignment == 0) return c;
  return kClasses;
}

namespace detail {
consteval std::array<uint16_t, kSmallMax / kLine> shared_cache_offsets() {
  std::array<uint16_t, kSmallMax / kLine> table{};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<uint16_t>(aligned_class((i + 1) * kLine, kLine) * kCacheStride);
  return table;
}
}  // namespace detail

// A shared request gets a class of whole lines (80 bytes get the class of 128).  Indexed by (size - 1) / 64.
inline constexpr std::array<uint16_t, kSmallMax / kLine> kSharedCacheOffset = detail::shared_cache_offsets();
constexpr size_t shared_size(size_t size) { return kClassSize[kSharedCacheOffset[(size - 1) / kLine] / kCacheStride]; }

namespace detail {
consteval bool classes_are_sound() {
  for (size_t c = 0; c < kClasses; ++c) {
    if (kClassSize[c] % kGranule != 0) return false;
    if (c > 0 && kClassSize[c] <= kClassSize[c - 1]) return false;
    size_t waste = slices_of(ClassIndex(c)) * kSlice % kClassSize[c];
    if (waste * 8 > slices_of(ClassIndex(c)) * kSlice) return false;  // an eighth of a superblock at most
  }
  for (size_t size = 1; size <= kSmallMax; ++size) {
    size_t got = size_of(class_of(size));
    if (got < size || (size > 128 && got > size + size / 4 + kGranule)) return false;
  }
  return true;
}
consteval bool shared_classes_are_lines() {
  for (size_t size = 1; size <= kSmallMax; ++size)
    if (shared_size(size) % kLine != 0 || shared_size(size) < size) return false;
  return true;
}
}  // namespace detail
static_assert(kClassSize.back() == kSmallMax);
static_assert(detail::classes_are_sound(), "every size has a class that fits it within a quarter");
static_assert(detail::shared_classes_are_lines());

}  // namespace hm
