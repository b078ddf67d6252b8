// Blocks with marks: every block carries its own size, kind and address, so that a block which is handed out twice, moved
// wrongly or written by somebody else is noticed by whoever looks at it next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>

namespace stress {

using Random = std::mt19937_64;

enum Kind : uint32_t { kGeneral, kShared, kLocal, kLarge, kKinds };

// In the first bytes of every block; the rest is filled from `tag`.
struct Block {
  uint32_t size;
  Kind kind;
  uint64_t tag;
};
inline constexpr size_t kMin = sizeof(Block);

// A random size for a kind: mostly small, sometimes at a boundary.
size_t random_size(Kind kind, Random& random);

Block* allocate(Kind kind, size_t size, Random& random);
// Checks the marks first.  Any thread, by one of the entry points that take the kind.
void release(Block* block, Random& random);
Block* resize(Block* block, size_t size, Random& random);
void check(const Block* block);

// Prints what went wrong with the seed, and ends the program.
[[noreturn]] void fail(const char* what, const void* where = nullptr);
extern uint64_t seed;

}  // namespace stress
