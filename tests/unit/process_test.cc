#include "base/process.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <barrier>
#include <csignal>

#include "base/lock.h"
#include "large/huge.h"
#include "support.h"

using namespace hm;
using test::child_succeeds;

namespace {

bool id_is_the_systems() { return my_thread_id() == static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace

TEST(Process, AThreadsIdIsTheSystems) {
  EXPECT_TRUE(id_is_the_systems());
  test::on_thread([] { EXPECT_TRUE(id_is_the_systems()); });
}

#if !defined(__SANITIZE_THREAD__)  // its run-time knows neither of these ways to fork

namespace {

pid_t bare_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }
constexpr pid_t (*kWays[])() = {fork, _Fork, bare_clone};

}  // namespace

TEST(Process, AChildHasItsOwnIdHoweverItWasForked) {
  for (auto way : kWays) {
    my_thread_id();
    EXPECT_TRUE(child_succeeds(
        [=] { return id_is_the_systems() && child_succeeds(id_is_the_systems, way) && id_is_the_systems(); }, way));
  }
}

// The two have one memory, variables of the thread and all.
TEST(Process, AChildOfVforkLeavesItsParentTheId) {
  rename_thread();  // the first to ask is the child
  static bool right_in_child;
  pid_t child = vfork();
  if (child == 0) {
    right_in_child = id_is_the_systems();
    _exit(0);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(right_in_child);
  EXPECT_TRUE(id_is_the_systems());
}

// Of a lock that a thread of the parent holds: nobody tells the child of the fork.
TEST(Process, AChildRepairsBeforeItsFirstLock) {
  for (auto way : kWays) {
    std::barrier step(2);
    std::thread other([&] {
      LockGuard guard(huge_lock());
      step.arrive_and_wait();
      step.arrive_and_wait();
    });
    step.arrive_and_wait();
    auto lock = [] {
      LockGuard guard(huge_lock());
      return true;
    };
    EXPECT_TRUE(child_succeeds(lock, way));
    step.arrive_and_wait();
    other.join();
  }
}

#endif
