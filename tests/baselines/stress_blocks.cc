#include "stress_blocks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stress {

Table table;
uint64_t seed = 1;

void fail(const char* what, const void* where) {
  char line[200];
  int length = snprintf(line, sizeof line, "%s stress: %s (at %p, seed %llu)\n", HM_LIBRARY_NAME, what, where,
                        static_cast<unsigned long long>(seed));
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) _exit(2);
  _exit(1);
}

namespace {

uint64_t word_of(const void* address, size_t size, uint32_t owner) {
  uint64_t word = reinterpret_cast<uintptr_t>(address) ^ (uint64_t{owner} << 32 | size);
  return (word ^ word >> 29) * 0xBF58476D1CE4E5B9u;
}

// At most a few hundred places in a block of any size.
size_t stride_of(size_t size) { return std::max<size_t>(64, size / 256 & ~size_t{7}); }

// visit(offset) for each place of the word behind the header in `size` bytes.
template <class Visit>
void at_each_word(size_t size, Visit visit) {
  for (size_t at = kMin; at + 16 <= size; at += stride_of(size)) visit(at);
  if (size >= kMin + 8) visit(size - 8);
}

char* bytes_of(Block* block) { return reinterpret_cast<char*>(block); }
const char* bytes_of(const Block* block) { return reinterpret_cast<const char*>(block); }

Block* mark(void* memory, size_t size, uint32_t owner) {
  auto* block = static_cast<Block*>(memory);
  uint64_t word = word_of(block, size, owner);
  *block = {static_cast<uint32_t>(size), owner, word};
  at_each_word(size, [&](size_t at) { memcpy(bytes_of(block) + at, &word, 8); });
  return block;
}

void* zeroed(size_t size) {
  char* bytes = static_cast<char*>(hm::allocate_zeroed(1, size));
  for (size_t at = 0; bytes != nullptr && at < size; at += size < 4096 ? 1 : 61)
    if (bytes[at] != 0) fail("calloc is not zero", bytes + at);
  return bytes;
}

void* aligned(size_t size, Random& random) {
  size_t alignment = size_t{16} << random() % (random.one_in(16) ? 18 : 9);
  void* memory = hm::allocate_aligned(alignment, size);
  if (reinterpret_cast<uintptr_t>(memory) % alignment != 0) fail("not aligned", memory);
  return memory;
}

}  // namespace

size_t random_size(Random& random) {
  uint64_t dice = random() % 256;
  size_t bits = dice < 200 ? 4 + dice % 7 : dice < 255 ? 11 + dice % 5 : 16 + random() % 5;
  size_t size = (size_t{1} << bits) + random() % (size_t{1} << bits);
  if (random.one_in(8)) size = (size_t{1} << bits) + random() % 3;
  return std::max(size, kMin);
}

Block* allocate(size_t size, uint32_t owner, Random& random) {
  errno = 4242;
  uint64_t how = random() % 16;
  void* memory = how == 0 ? zeroed(size) : how == 1 ? aligned(size, random) : hm::allocate(size);
  if (memory == nullptr) fail("no memory");
  if (errno != 4242) fail("errno changed", memory);
  if (reinterpret_cast<uintptr_t>(memory) % 16 != 0) fail("not aligned to 16", memory);
  if (random.one_in(32) && hm::usable_size(memory, "stress") < size) fail("usable size below the request", memory);
  return mark(memory, size, owner);
}

void check(const Block* block) {
  uint64_t word = word_of(block, block->size, block->owner);
  if (block->word != word) fail("header changed", block);
  at_each_word(block->size, [&](size_t at) {
    if (memcmp(bytes_of(block) + at, &word, 8) != 0) fail("contents changed", bytes_of(block) + at);
  });
}

void release(Block* block) {
  check(block);
  errno = 4242;
  memset(static_cast<void*>(block), 0xdd, kMin);  // whoever still holds it will see
  hm::deallocate(block, "stress");
  if (errno != 4242) fail("free changed errno", block);
}

Block* resize(Block* block, size_t size, uint32_t owner) {
  check(block);
  Block before = *block;
  void* memory = hm::reallocate(block, size, "stress");
  if (memory == nullptr) fail("no memory");
  if (memcmp(memory, &before, kMin) != 0) fail("header lost by realloc", memory);
  at_each_word(before.size, [&](size_t at) {
    if (at + 8 <= size && memcmp(static_cast<char*>(memory) + at, &before.word, 8) != 0)
      fail("contents lost by realloc", static_cast<char*>(memory) + at);
  });
  return mark(memory, size, owner);
}

}  // namespace stress
