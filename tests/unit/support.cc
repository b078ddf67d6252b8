#include "support.h"

#include <hmalloc/hmalloc_local.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <fstream>

#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "threads/own_heaps.h"
#include "threads/registry.h"

namespace hm::test {

void on_threads(unsigned n, const std::function<void(unsigned)>& body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

void call_without_tables(const std::function<void()>& body) {
#if defined(__x86_64__)
  // sub $8, %rsp; call *%rsi; add $8, %rsp; ret
  static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd6, 0x48, 0x83, 0xc4, 8, 0xc3};
  void* page = ::mmap(nullptr, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  memcpy(page, code, sizeof code);
  auto call = [](const std::function<void()>* what) { (*what)(); };
  reinterpret_cast<void (*)(const std::function<void()>*, void (*)(const std::function<void()>*))>(page)(&body, call);
  ::munmap(page, sizeof code);
#else
  body();
#endif
}

bool child_succeeds(const std::function<bool()>& body, pid_t (*way_to_fork)()) {
  pid_t child = way_to_fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) == child && status == 0) return true;
  fprintf(stderr, "the child ended with %#x\n", unsigned(status));
  return false;
}

std::vector<void*> allocate_many(size_t n, size_t size, void* (*allocate)(size_t)) {
  std::vector<void*> blocks(n);
  for (void*& block : blocks) block = allocate(size);
  return blocks;
}

void allocate_and_free(size_t n, size_t size) {
  std::array<void*, 200> blocks;
  for (size_t i = 0; i < n; ++i) blocks.at(i) = hm_malloc(size);
  for (size_t i = 0; i < n; ++i) hm_free(blocks[i]);
}

void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks) hm_free(block);
}

std::vector<void*> take_one_of_each_slice(std::vector<void*>& blocks, size_t size) {
  std::vector<void*> taken;
  for (void* block : blocks)
    if (address_of(block) % kSlice < size) taken.push_back(block);
  std::erase_if(blocks, [=](void* block) { return address_of(block) % kSlice < size; });
  return taken;
}

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

void use_at_random(const RandomUse& use, size_t slots, unsigned operations) {
  std::mt19937 random(kSeed);
  struct Slot {
    void* block = nullptr;
    size_t size = 0;
    unsigned seed = 0;
  };
  std::vector<Slot> all(slots);
  for (unsigned i = 0; i < operations; ++i) {
    auto& [block, size, seed] = all[random() % slots];
    ASSERT_TRUE(matches(block, size, seed)) << i;
    size_t wanted = use.size(static_cast<uint32_t>(random()));
    if (random() % 4 == 0) {
      block = use.reallocate(block, wanted);
      ASSERT_TRUE(matches(block, std::min(size, wanted), seed)) << i;
    } else {
      use.release(block);
      block = use.allocate(wanted);
    }
    size = block == nullptr ? 0 : wanted;
    fill(block, size, seed = i);
    if (i % 10000 == 0) { ASSERT_TRUE(everything_is_valid()) << i; }
  }
  for (Slot& slot : all) use.release(slot.block);
}

// Not from statm, which counts the machine's own pages (tests/pages).
size_t mapped_bytes() {
  size_t kilobytes = 0;
  char line[256];
  FILE* file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != nullptr && sscanf(line, "VmSize: %zu", &kilobytes) != 1) {}
  fclose(file);
  EXPECT_GT(kilobytes, 0u);
  return kilobytes * kKiB;
}

size_t resident(char* from, size_t bytes) {
  auto* page = reinterpret_cast<char*>(align_up(address_of(from), os::page_size()));
  return os::resident(page, align_down(address_of(from + bytes), os::page_size()) - address_of(page));
}

namespace {

std::vector<AddressRange> listed_bytes(uintptr_t from, uintptr_t to, bool to_write) {
  std::vector<AddressRange> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t start = 0, end = 0;
    char readable = 0, writable = 0;
    if (sscanf(line.c_str(), "%lx-%lx %c%c", &start, &end, &readable, &writable) != 4) continue;
    if ((writable == 'w') != to_write) continue;
    start = std::max(start, from);
    end = std::min(end, to);
    if (start >= end) continue;
    if (!found.empty() && found.back().second == start) found.back().second = end;
    else found.emplace_back(start, end);
  }
  return found;
}

}  // namespace

std::vector<AddressRange> accessible_bytes(uintptr_t from, uintptr_t to) { return listed_bytes(from, to, true); }

bool is_guard(uintptr_t page) {
  uintptr_t end = page + os::page_size();
  return listed_bytes(page, end, false) == std::vector<AddressRange>{{page, end}};
}

Superblock& fresh_superblock(ClassIndex c) {
  Superblock* sb = superblock_pool.fresh(c, nullptr);
  EXPECT_NE(sb, nullptr);
  sb->cursor = 0;
  return *sb;
}

void drop(Superblock& sb) {
  for (size_t i = 0; i < sb.blocks; ++i) sb.states[i].give_back();
  release(sb);
}

hm_stats stats_now() {
  hm_stats stats;
  hm_stats_get(&stats);
  return stats;
}

std::string printed_stats(int form) {
  FILE* file = tmpfile();
  hm_stats_print(fileno(file), form);
  std::string text(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fileno(file), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  fclose(file);
  return text;
}

size_t allocated_after_collect() {
  hm_collect();
  return stats_now().allocated;
}

bool everything_is_valid() {
  bool sound = registry.is_valid() && own_heaps.is_valid() && superblock_pool.is_valid() && slice_pool.is_valid() &&
               (!have_heap() || my_thread_heap().is_valid());
  slice_pool.for_each(
      [&](Slice& first) { sound = sound && (first.kind() == SliceKind::kLarge || Superblock::of(first).is_valid()); });
  return sound;
}

bool allocator_works() {
  for (size_t size = 1; size < 900'000; size = size * 3 + 1) {
    void* block = hm_malloc(size);
    if (block == nullptr) return false;
    fill(block, size, 1);
    hm_free(block);
  }
  void* local = hm_local_alloc(100);
  hm_local_free(local);
  if (local == nullptr || !everything_is_valid()) return false;
  hm_collect();
  return everything_is_valid();
}

}  // namespace hm::test
