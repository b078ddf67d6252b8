#include "introspect/reports_at_exit.h"

#include <sys/wait.h>

#include <csignal>

#include "base/lock.h"
#include "pages/options.h"
#include "support.h"

using namespace hm;

namespace {

constexpr char kRecord[] = "statistics of process [0-9]+ \\(hm_unit\\), bytes";
std::string record_after(const char* text) { return std::string(text).append(kRecord); }

void say(const char* word) { ASSERT_EQ(write(STDERR_FILENO, word, strlen(word)), static_cast<ssize_t>(strlen(word))); }

// In a process of its own; the library has started without statistics, and now is told to have them.
template <class End>
void expect_end(End end, const std::string& said, int signal = 0) {
  auto watched = [&] {
    options.show_stats = 1;
    watch_for_termination();
    end();
    exit(0);
  };
  auto is_as_expected = [=](int status) {
    return signal != 0 ? testing::KilledBySignal(signal)(status) : testing::ExitedWithCode(0)(status);
  };
  EXPECT_EXIT(watched(), is_as_expected, said);
}

}  // namespace

TEST(StatsAtExit, AnInterruptedHolderOfALockLetsGoFirst) {
  auto end = [] {
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
  expect_end(end, record_after("^both held, one held, hmalloc .* "), SIGTERM);
}

TEST(StatsAtExit, ALockThatWasHeldAlreadyCountsOnce) {
  auto end = [] {
    Lock lock;
    lock.lock();
    EXPECT_FALSE(lock.lock());
    lock.unlock();
    EXPECT_FALSE(holds_a_lock());
    raise(SIGTERM);
  };
  expect_end(end, kRecord, SIGTERM);
}

TEST(StatsAtExit, WhoEndsInTheMiddleOfAnAllocationIsToldSo) {
  auto end = [] {
    Lock lock;
    lock.lock();
    exit(0);
  };
  expect_end(end, "^hmalloc: no report: the process was ended in the middle");
}

TEST(StatsAtExit, AProcessIsToldOfOnce) {
  auto end = [] {
    report_at_exit();
    say("\nend");
  };
  expect_end(end, "\nend$");
}

TEST(StatsAtExit, AChildThatSharesTheMemorySaysNothingAndLeavesTheParentItsEnd) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork, whose child has an end of its own";
  auto end = [] {
    pid_t child = vfork();
    if (child == 0) {
      kill(getpid(), SIGTERM);  // musl's raise() would take the parent's thread for its own
      _exit(3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) say("ended, ");
  };
  expect_end(end, record_after("^ended, hmalloc .* "));
}

TEST(StatsAtExit, AChildOfForkHasAnEndOfItsOwn) {
  auto end = [] {
    report_at_exit();
    pid_t child = fork();
    if (child == 0) say("\nchild: ");
    else waitpid(child, nullptr, 0);
  };
  expect_end(end, record_after("\nchild: hmalloc .* "));
}
