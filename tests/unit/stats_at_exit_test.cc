#include "introspect/stats_at_exit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;

namespace {

constexpr char kRecord[] = "statistics of process [0-9]+ \\(hm_unit\\), bytes";
std::string record_after(const char* text) { return std::string(text).append(kRecord); }

void say(const char* word) { ASSERT_EQ(write(STDERR_FILENO, word, strlen(word)), static_cast<ssize_t>(strlen(word))); }

// The library has started without statistics, and now is told to have them.
void start_watching() {
  options.show_stats = 1;
  watch_for_termination();
}

}  // namespace

TEST(StatsAtExit, AnInterruptedHolderOfALockLetsGoFirst) {
  auto end = [] {
    start_watching();
    Lock one, other;
    one.lock();
    other.lock();
    raise(SIGTERM);
    say("both held, ");
    one.unlock();
    say("one held, ");
    other.unlock();
    say("never reached");
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(SIGTERM), record_after("^both held, one held, hmalloc .* "));
}

TEST(StatsAtExit, ALockThatWasHeldAlreadyCountsOnce) {
  auto end = [] {
    start_watching();
    Lock lock;
    lock.lock();
    EXPECT_FALSE(lock.lock());
    lock.unlock();
    EXPECT_FALSE(holds_a_lock());
    raise(SIGTERM);
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(SIGTERM), kRecord);
}

TEST(StatsAtExit, WhoEndsInTheMiddleOfAnAllocationIsToldSo) {
  auto end = [] {
    start_watching();
    Lock lock;
    lock.lock();
    exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "^hmalloc: no statistics: the process was ended in the middle");
}

TEST(StatsAtExit, AProcessIsToldOfOnce) {
  auto end = [] {
    start_watching();
    print_stats_at_exit();
    say("\nend");
    exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "\nend$");
}

TEST(StatsAtExit, AChildThatSharesTheMemorySaysNothingAndLeavesTheParentItsEnd) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork, whose child has an end of its own";
  auto end = [] {
    start_watching();
    pid_t child = vfork();
    if (child == 0) {
      raise(SIGTERM);
      _exit(3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) say("ended, ");
    exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), record_after("^ended, hmalloc .* "));
}

TEST(StatsAtExit, AChildOfForkHasAnEndOfItsOwn) {
  auto end = [] {
    start_watching();
    print_stats_at_exit();
    say("\n");
    pid_t child = fork();
    if (child == 0) {
      say("child: ");
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    exit(status);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), record_after("\nchild: hmalloc .* "));
}
