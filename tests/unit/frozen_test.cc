// What is constant once the process has started, in the hardened library.
#include "base/frozen.h"

#include "base/clock.h"
#include "base/os_pages.h"
#include "base/secret.h"
#include "hardened.h"
#include "pages/options.h"

using namespace hm;
using namespace hm::test;

extern "C" char __data_start[], _end[];  // of the program

namespace {

struct Words {
  size_t first = 1, last = 2;
};
constinit Frozen<Words> words;
constinit size_t in_front = 1, behind = 2;

}  // namespace

TEST(Frozen, WhatWasSetCanBeReadAndNotWritten) {
  words.first = 3;
  words.freeze();
  EXPECT_EQ(words.first + words.last, 5u);
  EXPECT_EXIT(words.first = 4, kFault, "");
  EXPECT_EXIT(words.last = 4, kFault, "");
  in_front = behind = 5;
  words.thaw();
  words.last = 6;
  EXPECT_EQ(words.last, 6u);
}

TEST(Frozen, NothingElseLiesOnItsPages) {
  EXPECT_EQ(address_of(&words) % os::page_size(), 0u);
  EXPECT_EQ(sizeof words % os::page_size(), 0u);
}

TEST(Frozen, OptionsAndTheKeyAreConstantFromTheStart) {
  EXPECT_EXIT(options.limit = 1, kFault, "");
  EXPECT_EXIT(options.profile_trigger[kMaxPath - 1] = 'x', kFault, "");
  EXPECT_EXIT(memset(static_cast<void*>(&secret), 1, 8), kFault, "");
}

// Options, the key, who tells the time, who repairs the child of a fork; and whether memory has tags.
TEST(Frozen, SoIsAllThatIsSetAtLoad) {
  uintptr_t from = align_down(address_of(__data_start), os::page_size()), to = align_up(address_of(_end), os::page_size());
  size_t constant = to - from;
  for (auto [start, end] : accessible_bytes(from, to)) constant -= end - start;
#if defined(__aarch64__)
  EXPECT_EQ(constant, 5 * kLargestPage);
#else
  EXPECT_EQ(constant, 4 * kLargestPage);
#endif
}

TEST(Frozen, AChildOfAForkGoesOnWithIt) {
  uint64_t key = secret.key();
  auto body = [key] { return secret.key() == key && os::now_ns() > 0 && allocator_works(); };
  EXPECT_TRUE(child_succeeds(body));
}
