#include "introspect/stats_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/lock.h"
#include "support.h"
#include "upkeep/background.h"

using namespace hm;
using namespace hm::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr char kOld[] = "what was there before";

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
void write_text(const fs::path& path, const char* text) { std::ofstream(path) << text; }
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
size_t count_in(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

// Brings looks of a heap.
void allocate() {
  for (int i = 0; i < 20; ++i) hm_free(hm_malloc(100'000));
}
void allocate_for(std::chrono::milliseconds time) {
  for (auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) allocate();
}
template <class Condition>
bool allocates_until(Condition is_so) {
  for (auto end = std::chrono::steady_clock::now() + 40s; std::chrono::steady_clock::now() < end; allocate())
    if (is_so()) return true;
  return false;
}
template <class Condition>
bool sleeps_until(Condition is_so) {
  for (auto end = std::chrono::steady_clock::now() + 40s; std::chrono::steady_clock::now() < end; usleep(1000))
    if (is_so()) return true;
  return false;
}

// Each test in a process of its own, and a folder.
struct StatsFiles : testing::Test {
  StatsFiles() {
    char name[] = "/tmp/hm-stats-XXXXXX";
    folder = mkdtemp(name);
  }
  ~StatsFiles() override { fs::remove_all(folder); }
  void watch(const char* file, size_t interval_ms, const char* trigger = "") const {
    auto set = [&](char* option, const char* value) { strcpy(option, *value == '\0' ? "" : (folder / value).c_str()); };
    set(options.stats_file, file);
    set(options.stats_trigger, trigger);
    options.stats_interval = interval_ms;
    watch_for_stats();
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(folder)) names.insert(each.path().filename());
    return names;
  }
  fs::path folder;
};

}  // namespace

TEST_F(StatsFiles, AMetricsFileIsReplacedAsAWhole) {
  fs::path file = folder / "a.prom";
  write_text(file, kOld);
  int old = open(file.c_str(), O_RDONLY);
  EXPECT_TRUE(child_succeeds([&] {
    umask(0777);  // whoever collects it is another user
    watch("a.prom", 1);
    return allocates_until([&] { return text_of(file) != kOld; });
  }));
  std::string text = text_of(file);
  EXPECT_EQ(text.find("# TYPE hmalloc_allocated_bytes gauge\n"), 0u) << text;
  EXPECT_TRUE(ends_with(text, "\n# EOF\n")) << text;
  EXPECT_EQ(count_in(text, "# EOF"), 1u);
  struct stat found;
  ASSERT_EQ(stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode, mode_t{S_IFREG | 0644});
  char read_before[sizeof kOld] = {};
  EXPECT_EQ(read(old, read_before, sizeof read_before), ssize_t{sizeof kOld - 1});
  EXPECT_STREQ(read_before, kOld) << "whoever had it open reads the old one to its end";
  close(old);
}

TEST_F(StatsFiles, NoReaderSeesHalfOfIt) {
  fs::path file = folder / "a.prom";
  std::vector<pid_t> writers;
  for (int i = 0; i < 2; ++i) {  // that share the name
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    watch("a.prom", 1);
    for (;;) allocate();
  }
  EXPECT_TRUE(sleeps_until([&] { return fs::exists(file); }));
  std::set<std::pair<ino_t, long>> seen;
  EXPECT_TRUE(sleeps_until([&] {
    std::string text = text_of(file);
    EXPECT_TRUE(ends_with(text, "\n# EOF\n")) << text;
    EXPECT_EQ(count_in(text, "# EOF"), 1u);
    struct stat found;
    EXPECT_EQ(stat(file.c_str(), &found), 0);
    seen.insert({found.st_ino, found.st_mtim.tv_nsec});
    return seen.size() >= 50 || HasFailure();
  }));
  for (pid_t writer : writers) {
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
  }
}

// Or two processes that share the file's name would write into one.
TEST_F(StatsFiles, EachUnfinishedOneHasANameOfItsOwn) {
  EXPECT_TRUE(child_succeeds([&] {
    int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify_add_watch(events, folder.c_str(), IN_MOVED_FROM) < 0) return false;
    watch("a.prom", 1);
    std::vector<std::string> names;
    bool enough = allocates_until([&] {
      alignas(inotify_event) char buffer[4096];
      ssize_t bytes = read(events, buffer, sizeof buffer);
      for (ssize_t at = 0; at < bytes;) {
        auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        names.emplace_back(event->name);
        at += static_cast<ssize_t>(sizeof *event + event->len);
      }
      return names.size() >= 3;
    });
    return enough && std::set(names.begin(), names.end()).size() == names.size();
  }));
}

TEST_F(StatsFiles, OthersAreAppendedTo) {
  write_text(folder / "a", kOld);
  EXPECT_TRUE(child_succeeds([&] {
    watch("a", 1);
    return allocates_until([&] { return count_in(text_of(folder / "a"), "statistics of process") >= 3; });
  }));
  EXPECT_EQ(text_of(folder / "a").find(kOld), 0u);
}

TEST_F(StatsFiles, APipeStaysAPipe) {
  fs::path file = folder / "a.prom";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(child_succeeds([&] {
    int reader = open(file.c_str(), O_RDONLY | O_NONBLOCK);
    watch("a.prom", 1);
    char text[64] = {};
    return allocates_until([&] { return read(reader, text, sizeof text - 1) > 0; }) &&
           strncmp(text, "# TYPE hmalloc_", 15) == 0;
  }));
  EXPECT_TRUE(fs::is_fifo(file));
  EXPECT_EQ(files(), std::set<std::string>{"a.prom"});
}

TEST_F(StatsFiles, AtTheEndNobodyWaitsForAReaderThatIsToCome) {
  ASSERT_EQ(mkfifo((folder / "a").c_str(), 0600), 0);
  EXPECT_TRUE(child_succeeds([&] {
    alarm(60);
    watch("a", 0);
    options.show_stats = 1;
    write_last_stats();
    return true;
  }));
}

TEST_F(StatsFiles, AtTheEndASlowReaderGetsItWhole) {
  fs::path file = folder / "a";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  int reader = open(file.c_str(), O_RDONLY | O_NONBLOCK);
  fcntl(reader, F_SETPIPE_SZ, 4096);  // less than the record has
  pid_t writer = fork();
  if (writer == 0) {
    watch("a", 0);
    options.show_stats = 1 + HM_STATS_OPENMETRICS;
    for (uint32_t size : kClassSize) EXPECT_NE(hm_malloc(size), nullptr);  // a line for each
    write_last_stats();
    _exit(0);
  }
  fcntl(reader, F_SETFL, 0);
  pollfd begun{reader, POLLIN, 0};
  poll(&begun, 1, -1);
  usleep(50'000);  // one that did not wait would have given up by now
  std::string text;
  char piece[512];
  for (ssize_t n; (n = read(reader, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  close(reader);
  waitpid(writer, nullptr, 0);
  EXPECT_GT(text.size(), 4096u);
  EXPECT_TRUE(ends_with(text, "# EOF\n"));
}

TEST_F(StatsFiles, WhoMakesTheTriggerIsAnswered) {
  fs::path file = folder / "a", trigger = folder / "now";
  EXPECT_TRUE(child_succeeds([&] {
    watch("a", 0, "now");
    for (size_t n = 1; n <= 2; ++n) {
      allocate();
      write_text(trigger, "");
      if (!allocates_until([&] { return !fs::exists(trigger); })) return false;
      if (count_in(text_of(file), "statistics of process") != n) return false;
    }
    return true;
  }));
}

TEST_F(StatsFiles, WhatCannotBeWrittenIsToldOnceAndTriedAgain) {
  fs::path file = folder / "later/a.prom";
  auto late_folder = [&] {
    watch("later/a.prom", 1);
    for (int i = 0; i < 10; ++i) std::this_thread::sleep_for(5ms), allocate();
    fs::create_directory(folder / "later");
    _exit(allocates_until([&] { return fs::exists(file); }) ? 0 : 1);
  };
  EXPECT_EXIT(late_folder(), testing::ExitedWithCode(0), "^hmalloc: cannot write HMALLOC_STATS_FILE=[^\n]*later/a.prom\n$");
}

TEST_F(StatsFiles, NobodyWritesWhoHoldsALockOrHasEnded) {
  fs::path trigger = folder / "now";
  write_text(trigger, "");
  EXPECT_TRUE(child_succeeds([&] {
    Lock lock;
    lock.lock();
    watch("a", 0, "now");
    allocate_for(150ms);
    if (!fs::exists(trigger)) return false;
    lock.unlock();
    return allocates_until([&] { return !fs::exists(trigger); });
  }));
  write_text(trigger, "");
  EXPECT_TRUE(child_succeeds([&] {
    watch("a", 0, "now");
    write_last_stats();
    allocate_for(150ms);
    return fs::exists(trigger);
  }));
}

// A child of vfork() has this process's memory, and no statistics of its own.
TEST_F(StatsFiles, OnlyTheProcessItselfWritesAndTheChildOfAForkItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork, whose child has statistics of its own";
  HM_NEEDS(kSharesWithVfork);
  EXPECT_TRUE(child_succeeds([&] {
    watch("%p", 1);
    pid_t child = vfork();
    if (child == 0) {
      allocate_for(100ms);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    if (!files().empty()) return false;
    return child_succeeds([&] { return allocates_until([&] { return files().contains(std::to_string(getpid())); }); }) &&
           allocates_until([&] { return files().contains(std::to_string(getpid())); });
  }));
}

TEST_F(StatsFiles, TheBackgroundThreadAnswersForAProgramThatSleeps) {
  fs::path trigger = folder / "now";
  EXPECT_TRUE(child_succeeds([&] {
    watch("a", 0, "now");
    options.decay_ms = 20;  // it goes to sleep soon
    hm_background_start();
    for (int n = 0; n < 3; ++n) {
      write_text(trigger, "");
      if (!sleeps_until([&] { return !fs::exists(trigger); })) return false;
      usleep(100'000);
    }
    return true;
  }));
}

TEST(Background, LooksForAllOthersOnceItRuns) {
  static std::atomic<pid_t> who;
  static constinit Background background([]() noexcept { return false; });
  background.watch([]() noexcept { who = gettid(); }, 1);
  background.on_look();
  EXPECT_EQ(who, gettid());
  options.decay_ms = 600'000;
  ASSERT_EQ(background.start(), 0);
  EXPECT_TRUE(sleeps_until([] { return who != gettid(); })) << "in the middle of a round's sleep";
  background.on_look();
  EXPECT_NE(who, gettid());
  options.decay_ms = 500;
}
