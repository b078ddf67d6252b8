// The end of the open array may be where the heap of late events begins: allocators without headers put vectors side by
// side.  Once taken for each other, a key was executed twice.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "pdes/timing_wheel.h"

alignas(16) static char arena[1 << 20];
static char* next_block = nullptr;  // of the arena; null: not now

void* operator new(std::size_t size) {
  if (next_block == nullptr) return std::malloc(size);
  next_block += (size + 15) & ~std::size_t{15};
  return next_block - ((size + 15) & ~std::size_t{15});
}
void operator delete(void* block) noexcept {
  if (block < arena || block >= arena + sizeof arena) std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace pdes {
namespace {

TEST(TimingWheel, ALateKeyBesideTheEndOfTheOpenArray) {
  TimingWheel wheel(Queue::wheel, 1);
  wheel.push({1.25, 1, nullptr});
  wheel.push({1.5, 2, nullptr});
  wheel.start();
  next_block = arena;
  for (std::uint64_t tie : {1, 2}) {
    ASSERT_EQ(wheel.peek(kNever)->tie, tie);
    wheel.pop(wheel.peek(kNever));
  }
  wheel.push({1.75, 3, nullptr});
  next_block = nullptr;
  ASSERT_EQ(wheel.late(), 1u);
  ASSERT_EQ(wheel.peek(kNever)->tie, 3u);
  wheel.pop(wheel.peek(kNever));
  EXPECT_EQ(wheel.peek(kNever), nullptr);
  EXPECT_TRUE(wheel.is_valid());
}

}  // namespace
}  // namespace pdes
