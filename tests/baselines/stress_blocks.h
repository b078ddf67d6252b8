// Blocks that say whose they are: by a word of address, size and owner that stands in them again and again.  A block that
// is handed out twice, moved wrongly or written by somebody else is noticed by whoever looks at it next.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "override/allocator.h"

namespace stress {

inline uint64_t seed = 1;

// Nothing here comes from the process's own malloc: it also runs in the child of a fork.
[[noreturn]] inline void fail(const char* what, const void* where = nullptr) {
  dprintf(STDERR_FILENO, "%s stress: %s (at %p, seed %llu)\n", HM_LIBRARY_NAME, what, where,
          static_cast<unsigned long long>(seed));
  _exit(1);
}

class Random {
 public:
  explicit Random(uint64_t from) : state_(from * 0x9E3779B97F4A7C15u | 1) {}
  uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 11;
  }
  bool one_in(uint64_t n) { return (*this)() % n == 0; }

 private:
  uint64_t state_;
};

struct Block {
  uint32_t size;
  uint32_t owner;
  uint64_t word;
};
inline constexpr size_t kMin = sizeof(Block);

inline uint64_t word_of(const void* block, size_t size, uint32_t owner) {
  uint64_t word = reinterpret_cast<uintptr_t>(block) ^ (uint64_t{owner} << 32 | size);
  return (word ^ word >> 29) * 0xBF58476D1CE4E5B9u;
}

// visit(place) for each place of the word behind the header: a few hundred, and the very end.
template <class Visit>
void at_each_word(const void* block, size_t size, Visit visit) {
  auto* bytes = static_cast<char*>(const_cast<void*>(block));
  size_t stride = std::max<size_t>(64, size / 256 & ~size_t{7});
  for (size_t at = kMin; at + 16 <= size; at += stride) visit(bytes + at);
  if (size >= kMin + 8) visit(bytes + size - 8);
}

inline Block* mark(void* memory, size_t size, uint32_t owner) {
  auto* block = static_cast<Block*>(memory);
  *block = {static_cast<uint32_t>(size), owner, word_of(block, size, owner)};
  at_each_word(block, size, [=](char* at) { memcpy(at, &block->word, 8); });
  return block;
}

inline void check(const Block* block) {
  if (block->word != word_of(block, block->size, block->owner)) fail("header changed", block);
  at_each_word(block, block->size, [=](char* at) {
    if (memcmp(at, &block->word, 8) != 0) fail("contents changed", at);
  });
}

// Mostly small; a few up to 2 MB; often right at a power of two.
inline size_t random_size(Random& random) {
  uint64_t dice = random() % 256;
  size_t bits = dice < 200 ? 4 + dice % 7 : dice < 255 ? 11 + dice % 5 : 16 + random() % 5;
  return (size_t{1} << bits) + random() % (random.one_in(8) ? 3 : size_t{1} << bits);
}

inline void* zeroed(size_t size) {
  char* bytes = static_cast<char*>(hm::allocate_zeroed(1, size));
  for (size_t at = 0; bytes != nullptr && at < size; at += size < 4096 ? 1 : 61)
    if (bytes[at] != 0) fail("calloc is not zero", bytes + at);
  return bytes;
}

inline Block* allocate(size_t size, uint32_t owner, Random& random) {
  errno = 4242;
  uint64_t how = random() % 16, alignment = how == 1 ? uint64_t{16} << random() % (random.one_in(16) ? 18 : 9) : 16;
  void* memory = how == 0 ? zeroed(size) : how == 1 ? hm::allocate_aligned(alignment, size) : hm::allocate(size);
  if (memory == nullptr) fail("no memory");
  if (errno != 4242) fail("errno changed", memory);
  if (reinterpret_cast<uintptr_t>(memory) % alignment != 0) fail("not aligned", memory);
  if (random.one_in(32) && hm::usable_size(memory, "stress") < size) fail("usable size below the request", memory);
  return mark(memory, size, owner);
}

inline void release(Block*& block) {
  if (block == nullptr) return;
  check(block);
  errno = 4242;
  memset(static_cast<void*>(block), 0xdd, kMin);  // whoever still holds it will see
  hm::deallocate(block, "stress");
  if (errno != 4242) fail("free changed errno", block);
  block = nullptr;
}

// The same block with another owner, perhaps elsewhere.  What it held must come along.
inline Block* resize(Block* block, size_t size, uint32_t owner) {
  check(block);
  Block before = *block;
  auto* after = static_cast<Block*>(hm::reallocate(block, size, "stress"));
  if (after == nullptr) fail("no memory");
  if (memcmp(after, &before, kMin) != 0) fail("header lost by realloc", after);
  at_each_word(after, before.size, [&](char* at) {
    if (at + 8 <= reinterpret_cast<char*>(after) + size && memcmp(at, &before.word, 8) != 0)
      fail("contents lost by realloc", at);
  });
  return mark(after, size, owner);
}

// Where threads hand blocks over: who puts one in takes out what was there.
inline std::array<std::atomic<Block*>, 512> table{};

inline Block* exchange(uint64_t place, Block* block) {
  block = table[place % table.size()].exchange(block, std::memory_order_acq_rel);
  if (block != nullptr) check(block);
  return block;
}

inline void empty_table() {
  for (size_t place = 0; place < table.size(); ++place) {
    Block* block = exchange(place, nullptr);
    release(block);
  }
}

}  // namespace stress
