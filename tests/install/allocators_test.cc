// The allocators and memory resources of <hmalloc/hmalloc.hpp>.
#include <hmalloc/hmalloc.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace {

struct alignas(256) Wide {
  char bytes[256];
};

uintptr_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

template <class Allocator>
class AllocatorTest : public testing::Test {};
using Allocators = testing::Types<hm::local_allocator<int>, hm::shared_allocator<int>>;
TYPED_TEST_SUITE(AllocatorTest, Allocators);

template <class Allocator, class T>
using rebind = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;

TYPED_TEST(AllocatorTest, MeetsTheRequirements) {
  using Traits = std::allocator_traits<TypeParam>;
  static_assert(std::is_same_v<typename Traits::value_type, int>);
  static_assert(Traits::is_always_equal::value);
  static_assert(std::is_same_v<rebind<rebind<TypeParam, std::string>, int>, TypeParam>);
  static_assert(std::is_nothrow_copy_constructible_v<TypeParam>);
  TypeParam ints;
  rebind<TypeParam, Wide> wides(ints);
  EXPECT_TRUE(ints == TypeParam());
  EXPECT_TRUE(ints == wides);
  EXPECT_FALSE(ints != wides);
}

TYPED_TEST(AllocatorTest, ServesContainers) {
  std::vector<int, TypeParam> numbers;
  for (int i = 0; i < 100000; ++i) numbers.push_back(i);
  std::vector<int, TypeParam> copy = numbers, moved = std::move(numbers);
  moved.shrink_to_fit();
  EXPECT_EQ(copy, moved);
  EXPECT_EQ(moved[99999], 99999);
  std::map<int, std::string, std::less<>, rebind<TypeParam, std::pair<const int, std::string>>> map;
  for (int i = 0; i < 5000; ++i) map[i * 7919 % 5000] = std::to_string(i);
  EXPECT_EQ(map.size(), 5000u);
  EXPECT_EQ(map.at(7919 % 5000), "1");
  std::list<int, TypeParam> a, b;
  for (int i = 0; i < 1000; ++i) (i % 2 == 0 ? a : b).push_back(i);
  a.splice(a.end(), b);
  a.sort();
  EXPECT_EQ(a.size(), 1000u);
  EXPECT_EQ(a.back(), 999);
}

TYPED_TEST(AllocatorTest, ServesSharedPointersFreedElsewhere) {
  auto object = std::allocate_shared<std::string>(TypeParam(), 100, 'x');
  std::thread([object = std::move(object)]() mutable { object.reset(); }).join();
  SUCCEED();  // a local block is an ordinary one: any thread may free it
}

TYPED_TEST(AllocatorTest, AlignsEveryType) {
  rebind<TypeParam, Wide> wides;
  Wide* blocks[65];
  for (size_t n = 1; n <= 64; ++n) {
    blocks[n] = wides.allocate(n);
    EXPECT_EQ(address_of(blocks[n]) % alignof(Wide), 0u);
    blocks[n][n - 1].bytes[255] = 1;
  }
  for (size_t n = 1; n <= 64; ++n) wides.deallocate(blocks[n], n);
  std::vector<long double, rebind<TypeParam, long double>> numbers(3);
  EXPECT_EQ(address_of(numbers.data()) % 16, 0u);
}

TYPED_TEST(AllocatorTest, ServesNothingAndMuch) {
  TypeParam ints;
  for (size_t n : {0, 1, 1000, 1008, 1009, 8192, 8193, 300000, 3000000}) {
    int* block = ints.allocate(n);
    ASSERT_NE(block, nullptr);
    if (n > 0) block[n - 1] = 1;
    ints.deallocate(block, n);
  }
}

TYPED_TEST(AllocatorTest, ThrowsWhenThereIsNoMemory) {
  TypeParam ints;
  EXPECT_THROW((void)ints.allocate(SIZE_MAX / 2), std::bad_array_new_length);
  EXPECT_THROW((void)ints.allocate(PTRDIFF_MAX / sizeof(int)), std::bad_alloc);
}

TEST(SharedAllocator, FillsWholeLines) {
  hm::shared_allocator<char> chars;
  for (size_t n : {1, 63, 64, 65, 80, 200, 5000}) {
    char* block = chars.allocate(n);
    EXPECT_EQ(address_of(block) % 64, 0u);
    EXPECT_EQ(hm_usable_size(block) % 64, 0u);
    chars.deallocate(block, n);
  }
}

class ResourceTest : public testing::TestWithParam<std::pmr::memory_resource* (*)() noexcept> {};

TEST_P(ResourceTest, ServesPmrContainers) {
  std::pmr::unordered_map<int, std::pmr::string> map(GetParam()());
  for (int i = 0; i < 5000; ++i) map.emplace(i, std::pmr::string(static_cast<size_t>(i % 90), 'a'));
  for (int i = 0; i < 5000; i += 2) map.erase(i);
  EXPECT_EQ(map.size(), 2500u);
  EXPECT_EQ(map.at(89).size(), 89u);
  EXPECT_EQ(map.at(89).get_allocator().resource(), GetParam()());
}

TEST_P(ResourceTest, KeepsEveryAlignment) {
  std::pmr::memory_resource* resource = GetParam()();
  for (size_t alignment = 1; alignment <= size_t{1} << 23; alignment *= 2)
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{40000}}) {
      void* block = resource->allocate(bytes, alignment);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      resource->deallocate(block, bytes, alignment);
    }
}

TEST_P(ResourceTest, ThrowsWhenThereIsNoMemory) {
  EXPECT_THROW((void)GetParam()()->allocate(PTRDIFF_MAX, 16), std::bad_alloc);
  EXPECT_THROW((void)GetParam()()->allocate(PTRDIFF_MAX, 4096), std::bad_alloc);
}

INSTANTIATE_TEST_SUITE_P(Both, ResourceTest, testing::Values(&hm::local_resource, &hm::shared_resource));

TEST(Resource, EqualsItselfAlone) {
  EXPECT_TRUE(hm::local_resource()->is_equal(*hm::local_resource()));
  EXPECT_TRUE(*hm::shared_resource() == *hm::shared_resource());
  EXPECT_FALSE(hm::local_resource()->is_equal(*hm::shared_resource()));
  EXPECT_FALSE(hm::local_resource()->is_equal(*std::pmr::new_delete_resource()));
  EXPECT_FALSE(std::pmr::new_delete_resource()->is_equal(*hm::local_resource()));
}

}  // namespace
