#include "base/process.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <barrier>
#include <csignal>
#include <utility>

#include "base/lock.h"
#include "base/os_pages.h"
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

struct Way {
  const char* name;
  pid_t (*fork)();
  bool announced;  // by the C library, which runs the handlers
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class ProcessForkedBy : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!GetParam().announced) HM_NEEDS(kEmptiesPages);
  }
  pid_t (*way_)() = GetParam().fork;
};

bool lock_of_huge_blocks_can_be_had() {
  LockGuard guard(huge_lock());
  return true;
}

// What a child can do while another thread of its parent holds a lock, which nobody ever releases there.
bool child_succeeds_beside_a_holder(const std::function<bool()>& body, pid_t (*way_to_fork)()) {
  std::barrier step(2);
  std::thread other([&] {
    LockGuard guard(huge_lock());
    step.arrive_and_wait();
    step.arrive_and_wait();
  });
  step.arrive_and_wait();
  bool succeeds = child_succeeds(body, way_to_fork);
  step.arrive_and_wait();
  other.join();
  return succeeds;
}

}  // namespace

TEST_P(ProcessForkedBy, HasItsOwnId) {
  my_thread_id();
  EXPECT_TRUE(child_succeeds(
      [this] { return id_is_the_systems() && child_succeeds(id_is_the_systems, way_) && id_is_the_systems(); }, way_));
}

// Of a lock that a thread of the parent holds: nobody tells the child of the fork.
TEST_P(ProcessForkedBy, RepairsBeforeItsFirstLock) {
  EXPECT_TRUE(child_succeeds_beside_a_holder(lock_of_huge_blocks_can_be_had, way_));
}

namespace {

constexpr pid_t kNobody = -1;
std::atomic<pid_t> forked{kNobody};  // by the handler
pid_t (*way_of_handler)() = nullptr;

void fork_in_handler(int) {
  forked = way_of_handler();
  if (forked == 0) alarm(60);
}

}  // namespace

// Its handler forks while it waits; the lock's holder is not in the child, and nobody there will wake it.
TEST_P(ProcessForkedBy, AThreadThatWaitsForALockGoesOnInTheChild) {
  forked = kNobody;
  way_of_handler = way_;
  struct sigaction ours{}, before{};
  ours.sa_handler = fork_in_handler;
  ours.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &ours, &before);
  huge_lock().lock();
  std::atomic<bool> begun{false};
  std::thread waiter([&] {
    begun = true;
    bool had = lock_of_huge_blocks_can_be_had();
    if (forked == 0) _exit(had && id_is_the_systems() ? 0 : 1);
  });
  while (!begun) usleep(1000);
  usleep(50'000);  // it sleeps by now
  pthread_kill(waiter.native_handle(), SIGUSR1);
  while (forked == kNobody) usleep(1000);
  huge_lock().unlock();
  waiter.join();
  int status = -1;
  EXPECT_EQ(waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  sigaction(SIGUSR1, &before, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, ProcessForkedBy,
                         testing::Values(Way{"Fork", fork, true}, Way{"UnderscoreFork", _Fork, false},
                                         Way{"Clone", bare_clone, false}),
                         [](const auto& test) { return test.param.name; });

// Where the system says that it will empty the page and does not, and where it refuses: then fork alone is covered.  Each in a
// process of its own, for the library gets another page, or none.
namespace {

bool page_is_kept() { return madvise(known_process, os::page_size(), MADV_KEEPONFORK) == 0 || !test::kEmptiesPages.holds(); }

bool is_whole() { return id_is_the_systems() && lock_of_huge_blocks_can_be_had(); }

bool is_whole_with_children() {
  auto child = [] { return is_whole() && child_succeeds(is_whole) && is_whole(); };
  return is_whole() && child_succeeds_beside_a_holder(child, fork) && is_whole();
}

}  // namespace

TEST(Process, AChildIsRepairedWhereThePageKeepsItsContents) {
  EXPECT_TRUE(
      child_succeeds([] { return page_is_kept() && is_whole_with_children() && child_succeeds(is_whole_with_children); }));
}

TEST(Process, AChildIsRepairedWhereThePageIsRefused) {
  EXPECT_TRUE(child_succeeds([] {
    static KnownProcess variable{kFirstProcess, id_of_process()};
    known_process = &variable;
    return is_whole_with_children() && child_succeeds(is_whole_with_children);
  }));
}

// A signal handler may fork anywhere.
TEST(Process, AChildThatIsForkedInARepairIsRepaired) {
  for (bool kept : {false, true})
    EXPECT_TRUE(child_succeeds([=] {
      rlimit seconds{3, 3};  // who waits in a fork for a repair has no alarm yet
      setrlimit(RLIMIT_CPU, &seconds);
      static bool forked, good;
      repair_forks_with([](uint32_t) noexcept {
        if (!std::exchange(forked, true)) good = child_succeeds(id_is_the_systems);
      });
      if (kept && !page_is_kept()) return false;
      return child_succeeds([] { return good && id_is_the_systems(); });
    })) << (kept ? "the page was not emptied" : "the page was emptied");
}

// The two have one memory, variables of the thread and all.
TEST(Process, AChildOfVforkLeavesItsParentTheId) {
  HM_NEEDS(kSharesWithVfork);
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

#endif
