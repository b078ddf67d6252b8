// The end of the open array may be where the heap of late events begins: allocators without headers put vectors side by
// side.  Once taken for each other, a key was executed twice.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "pdes/timing_wheel.h"

namespace {

alignas(16) char arena[1 << 20];
std::size_t used = 0;
bool side_by_side = false;

}  // namespace

void* operator new(std::size_t size) {
  if (!side_by_side) return std::malloc(size);
  void* block = arena + used;
  used += (size + 15) & ~std::size_t{15};
  return block;
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
  side_by_side = true;
  for (std::uint64_t tie : {1, 2}) {
    ASSERT_EQ(wheel.peek(kNever)->tie, tie);
    wheel.pop(wheel.peek(kNever));
  }
  wheel.push({1.75, 3, nullptr});
  side_by_side = false;
  ASSERT_EQ(wheel.late(), 1u);
  ASSERT_EQ(wheel.peek(kNever)->tie, 3u);
  wheel.pop(wheel.peek(kNever));
  EXPECT_EQ(wheel.peek(kNever), nullptr);
  EXPECT_TRUE(wheel.is_valid());
}

}  // namespace
}  // namespace pdes
