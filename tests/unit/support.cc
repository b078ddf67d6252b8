#include "support.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "hmalloc/registry.h"
#include "hmalloc/superblock_pool.h"

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

bool has_huge_pages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  uintptr_t from = 0, to = 0;
  for (std::string line; std::getline(maps, line);) {
    if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2 && line.find('-') < line.find(' ')) continue;
    bool here = from <= address_of(address) && address_of(address) < to;
    if (here && line.rfind("VmFlags:", 0) == 0) return line.find(" hg") != std::string::npos;
  }
  return false;
}

bool is_zero(const void* block, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != 0) return false;
  return true;
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
  slice_pool.for_each([&](Superblock& sb) { sound = sound && (sb.kind() == SliceKind::kLarge || sb.is_valid()); });
  return sound;
}

}  // namespace hm::test
