#include "base/thread_exit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

using namespace hm;

namespace {

std::atomic<int> ended{0};
void count(void* argument) { ended += *static_cast<int*>(argument); }
constinit ThreadExit counting(count);

void again(void* argument);
constinit ThreadExit repeating(again);
void again(void* argument) {
  if (++ended < 3) repeating.watch(argument);
}

}  // namespace

TEST(ThreadExit, RunsWhenAWatchedThreadEndsWithItsArgument) {
  int one = 1, ten = 10;
  std::thread([&] {
    EXPECT_TRUE(counting.watch(&ten));
    EXPECT_EQ(ended, 0) << "not before";
  }).join();
  EXPECT_EQ(ended, 10);
  std::thread([] {}).join();
  EXPECT_EQ(ended, 10) << "only for those who asked";
  std::thread([&] { counting.watch(&one); }).join();
  EXPECT_EQ(ended, 11);
}

TEST(ThreadExit, ASecondWatchReplacesTheFirst) {
  int one = 1, ten = 10;
  std::thread([&] {
    counting.watch(&ten);
    counting.watch(&one);
  }).join();
  EXPECT_EQ(ended, 1);
}

TEST(ThreadExit, TheFunctionMayWatchAgain) {
  int argument = 0;
  std::thread([&] { repeating.watch(&argument); }).join();
  EXPECT_EQ(ended, 3);
}

TEST(ThreadExit, ManyThreadsBeginAtOnce) {
  int one = 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) threads.emplace_back([&] { EXPECT_TRUE(counting.watch(&one)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 16);
}

TEST(ThreadExit, SaysWhenNoKeyIsLeft) {
  pthread_key_t key = 0, last = 0;
  while (pthread_key_create(&key, nullptr) == 0) last = key;
  int one = 1;
  errno = 4242;
  EXPECT_FALSE(counting.watch(&one));
  EXPECT_EQ(errno, 4242);
  pthread_key_delete(last);
  std::thread([&] { EXPECT_TRUE(counting.watch(&one)) << "the next may have more luck"; }).join();
  EXPECT_EQ(ended, 1);
}
