#include "base/thread_exit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

using namespace hm;

namespace {

std::atomic<int> ended{0};
int one = 1, ten = 10;

void count(void* argument) { ended += *static_cast<int*>(argument); }
constinit ThreadExit counting(count);

void again(void* argument);
constinit ThreadExit repeating(again);
void again(void* argument) {
  if (++ended < 3) repeating.watch(argument);
}

void on_thread(void (*body)()) { std::thread(body).join(); }

}  // namespace

TEST(ThreadExit, RunsWhenAWatchedThreadEndsWithItsArgument) {
  on_thread([] {
    EXPECT_TRUE(counting.watch(&ten));
    EXPECT_EQ(ended, 0) << "not before";
  });
  EXPECT_EQ(ended, 10);
  on_thread([] {});
  EXPECT_EQ(ended, 10) << "only for those who asked";
  on_thread([] {
    counting.watch(&ten);
    counting.watch(&one);
  });
  EXPECT_EQ(ended, 11) << "a second watch replaces the first";
}

TEST(ThreadExit, TheFunctionMayWatchAgain) {
  on_thread([] { repeating.watch(&one); });
  EXPECT_EQ(ended, 3);
}

TEST(ThreadExit, ManyThreadsBeginAtOnce) {
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([] { EXPECT_TRUE(counting.watch(&one)); });
  }
  EXPECT_EQ(ended, 16);
}

TEST(ThreadExit, SaysWhenNoKeyIsLeft) {
  pthread_key_t key = 0, last = 0;
  while (pthread_key_create(&key, nullptr) == 0) last = key;
  errno = 4242;
  EXPECT_FALSE(counting.watch(&one));
  EXPECT_EQ(errno, 4242);
  pthread_key_delete(last);
  on_thread([] { EXPECT_TRUE(counting.watch(&one)) << "the next may have more luck"; });
  EXPECT_EQ(ended, 1);
}
