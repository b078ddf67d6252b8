#include "base/process.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/lock.h"
#include "large/huge.h"
#include "support.h"

using namespace hm;

namespace {

uint32_t id_of_system() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace

TEST(Process, AThreadsIdIsTheSystems) {
  EXPECT_EQ(my_thread_id(), id_of_system());
  test::on_thread([] { EXPECT_EQ(my_thread_id(), id_of_system()); });
}

#if !defined(__SANITIZE_THREAD__)  // its run-time knows neither of these ways to fork

namespace {

pid_t bare_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

using Way = pid_t (*)();
constexpr Way kWays[] = {fork, _Fork, bare_clone};

bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST(Process, AChildHasItsOwnIdHoweverItWasForked) {
  for (Way way : kWays) {
    my_thread_id();
    pid_t child = way();
    if (child == 0) {
      bool right = my_thread_id() == id_of_system();
      if (pid_t grandchild = way(); grandchild == 0) _exit(my_thread_id() == id_of_system() ? 0 : 1);
      else right = right && ended_well(grandchild);
      _exit(right && my_thread_id() == id_of_system() ? 0 : 1);
    }
    EXPECT_TRUE(ended_well(child));
  }
}

// The two have one memory, variables of the thread and all.
TEST(Process, AChildOfVforkLeavesItsParentTheId) {
  rename_thread();  // the first to ask is the child
  static uint32_t asked, its_own;
  pid_t child = vfork();
  if (child == 0) {
    asked = my_thread_id();
    its_own = id_of_system();
    _exit(0);
  }
  EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(asked, its_own);
  EXPECT_NE(asked, id_of_system());
  EXPECT_EQ(my_thread_id(), id_of_system());
}

// Of a lock that a thread of the parent holds: nobody tells the child of the fork.
TEST(Process, AChildRepairsBeforeItsFirstLock) {
  for (Way way : kWays) {
    std::atomic<bool> locked{false}, done{false};
    std::thread other([&] {
      LockGuard guard(huge_lock());
      locked.store(true);
      while (!done.load()) std::this_thread::yield();
    });
    while (!locked.load()) std::this_thread::yield();
    pid_t child = way();
    if (child == 0) {
      alarm(10);
      LockGuard guard(huge_lock());
      _exit(0);
    }
    EXPECT_TRUE(ended_well(child));
    done.store(true);
    other.join();
  }
}

#endif
