#include "support.h"

#include <sys/mman.h>

#include <fstream>
#include <string>

#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "threads/registry.h"

namespace hm::test {

void fill(void* block, size_t size, unsigned seed) {
  auto* bytes = static_cast<unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 131 + seed);
}

bool matches(const void* block, size_t size, unsigned seed) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != static_cast<unsigned char>(i * 131 + seed)) return false;
  return true;
}

bool is_zero(const void* block, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != 0) return false;
  return true;
}

size_t resident(char* from, size_t bytes) {
  auto* page = reinterpret_cast<char*>(align_up(address_of(from), os::page_size()));
  return os::resident(page, align_down(address_of(from + bytes), os::page_size()) - address_of(page));
}

std::vector<std::pair<uintptr_t, uintptr_t>> accessible_bytes(uintptr_t from, uintptr_t to) {
  std::vector<std::pair<uintptr_t, uintptr_t>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t start = 0, end = 0;
    char readable = 0, writable = 0;
    if (sscanf(line.c_str(), "%lx-%lx %c%c", &start, &end, &readable, &writable) != 4 || writable != 'w') continue;
    start = std::max(start, from);
    end = std::min(end, to);
    if (start >= end) continue;
    if (!found.empty() && found.back().second == start) found.back().second = end;
    else found.emplace_back(start, end);
  }
  return found;
}

bool is_guard(uintptr_t page) {
  unsigned char in_memory;
  bool mapped = mincore(reinterpret_cast<void*>(page), os::page_size(), &in_memory) == 0;
  return mapped && accessible_bytes(page, page + os::page_size()).empty();
}

Superblock& fresh_superblock(ClassIndex c) {
  Superblock* sb = superblock_pool.fresh(c, nullptr);
  EXPECT_NE(sb, nullptr);
  sb->cursor = 0;
  return *sb;
}

size_t allocated_after_collect() {
  hm_collect();
  hm_stats stats;
  hm_stats_get(&stats);
  return stats.allocated;
}

bool everything_is_valid() {
  bool sound = registry.is_valid() && (!have_heap() || my_heap()->is_valid());
  slice_pool.for_each(
      [&](Slice& first) { sound = sound && (first.kind() == SliceKind::kLarge || Superblock::of(first).is_valid()); });
  return sound;
}

}  // namespace hm::test
