// A system that answers with addresses beyond the address map: what it gives goes back, and the request fails.  The
// program is linked so that the library's mmap, munmap and mremap come here first.
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/address_map.h"
#include "base/os_pages.h"
#include "support.h"

using namespace hm;

namespace {

constexpr uintptr_t kEnd = uintptr_t{1} << kAddressBits;
uintptr_t given = 0;  // the answer to the next requests; 0: the system's own
size_t mapped, unmapped;

}  // namespace

extern "C" {
void* __real_mmap(void* hint, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* base, size_t bytes);
int __real_madvise(void* base, size_t bytes, int advice);
void* __real_mremap(void* base, size_t bytes, size_t new_bytes, int flags, void* to);

void* __wrap_mmap(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (given == 0) return __real_mmap(hint, bytes, protection, flags, file, offset);
  mapped += bytes;
  return reinterpret_cast<void*>(given);
}

int __wrap_munmap(void* base, size_t bytes) {
  if (hm::test::munmaps_to_refuse > 0) {
    --hm::test::munmaps_to_refuse;
    errno = ENOMEM;
    return -1;
  }
  if (given == 0) return __real_munmap(base, bytes);
  EXPECT_EQ(address_of(base), given);
  unmapped += bytes;
  return 0;
}

int __wrap_madvise(void* base, size_t bytes, int advice) {
  if (auto body = std::exchange(hm::test::during_next_advice, nullptr)) body();
  return __real_madvise(base, bytes, advice);
}

void* __wrap_mremap(void* base, size_t bytes, size_t new_bytes, int flags, void* to) {
  if (given == 0) return __real_mremap(base, bytes, new_bytes, flags, to);
  return base;
}
}

namespace {

struct HighAddresses : testing::Test {
  void TearDown() override { given = 0; }
};

}  // namespace

TEST_F(HighAddresses, AreNotHandedOut) {
  for (uintptr_t address : {kEnd, kEnd - kChunk, uintptr_t{1} << 52, uintptr_t{1} << 56}) {
    mapped = unmapped = 0;
    given = address;
    EXPECT_EQ(os::map(2 * kChunk, os::page_size()), nullptr) << address;
    EXPECT_EQ(os::map(2 * kChunk, kChunk), nullptr) << address;
    EXPECT_EQ(os::map(2 * kChunk, 4 * kChunk, kChunk), nullptr) << address;
    EXPECT_GE(mapped, 6 * kChunk);
    EXPECT_EQ(unmapped, mapped) << "what could not be used went back";
  }
}

TEST_F(HighAddresses, EndInTheMapsLastByte) {
  given = kEnd - kChunk;
  EXPECT_EQ(address_of(os::map(kChunk, kChunk)), kEnd - kChunk);
}

TEST_F(HighAddresses, FailRequestsOfEverySize) {
  for (uintptr_t address : {kEnd, uintptr_t{1} << 52}) {
    given = address;
    for (size_t size : {size_t{1}, size_t{5000}, size_t{100'000}, 5 * kMiB, size_t{1} << 34}) {
      errno = 0;
      EXPECT_EQ(hm_malloc(size), nullptr) << size;
      EXPECT_EQ(errno, ENOMEM) << size;
      EXPECT_EQ(hm_local_alloc(size), nullptr) << size;
    }
  }
  given = 0;
  EXPECT_NE(hm_malloc(100), nullptr) << "and when the system is back to normal, so is malloc";
}

TEST_F(HighAddresses, NoMappingGrowsInto) {
  given = kEnd;
  EXPECT_TRUE(os::resize(reinterpret_cast<void*>(kEnd - 2 * kChunk), kChunk, 2 * kChunk));
  EXPECT_FALSE(os::resize(reinterpret_cast<void*>(kEnd - kChunk), kChunk, 2 * kChunk));
}
