// A program that includes hmalloc.h alone, or that takes the address of an inline function, calls the library's.
#include <hmalloc/hmalloc.h>

#include <csignal>
#include <cstring>

#include "support.h"

namespace hm {
namespace {

TEST(OutOfLine, LocalBlocksNeedOneHeader) {
  void* first = hm_local_alloc(100);
  memset(first, 1, 100);
  EXPECT_GE(hm_local_usable_size(first), 100u);
  hm_local_free(first);
  EXPECT_EQ(hm_local_alloc(100), first);
  hm_local_free_sized(first, 100);
  EXPECT_EQ(hm_local_alloc(100), first);
  hm_local_free(first);
}

TEST(OutOfLine, ACachesFunctionsHaveAddresses) {
  void* (*volatile take)(hm_cache*) = hm_cache_alloc;
  void (*volatile put)(hm_cache*, void*) = hm_cache_free;
  hm_cache* cache = hm_cache_of(48);
  void* block = take(cache);
  put(cache, block);
  EXPECT_EQ(hm_cache_alloc(cache), block);
  EXPECT_EXIT((put(cache, block), put(cache, block)), testing::KilledBySignal(SIGABRT), "double free");
  hm_free(block);
}

}  // namespace
}  // namespace hm
