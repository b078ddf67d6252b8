// What gauges_test.cc does not ask for each kind of block.
#include "introspect/stats.h"

#include <hmalloc/hmalloc_local.h>

#include <fcntl.h>
#include <sys/ioctl.h>

#include <barrier>
#include <regex>
#include <sstream>

#include "support.h"
#include "threads/registry.h"

using namespace hm;
using namespace hm::test;

namespace {

void expect_consistent(const hm_stats& s) {
  EXPECT_LE(s.allocated, s.active);
  EXPECT_LE(s.active, std::min({s.resident, s.mapped, s.peak_active}));
  EXPECT_LE(s.retained, s.mapped);
  EXPECT_LE(s.live_heaps, s.heaps);
  EXPECT_GT(s.bound, 0u);
}

// Replaces values by V, from the innermost ones on, until one is left.
bool is_json(std::string text) {
  const std::regex kString(R"("(\\.|[^"\\])*")"), kSimple(R"(\d+|true|false)"), kSpace(R"(\s)");
  const std::regex kNested(R"(\{(S:[SV](,S:[SV])*)?\}|\[([SV](,[SV])*)?\])");
  text = std::regex_replace(std::regex_replace(text, kString, "S"), kSimple, "V");
  text = std::regex_replace(text, kSpace, "");
  for (size_t before = 0; before != text.size();) {
    before = text.size();
    text = std::regex_replace(text, kNested, "V");
  }
  return text == "V";
}

}  // namespace

TEST(Stats, AllocatedCountsBlocksOfAllKindsTogether) {
  auto blocks = allocate_many(1, 16);
  size_t held = hm_usable_size(blocks[0]);
  for (size_t size : {100, 1000, 5000, 20000, 100000}) {
    blocks.push_back(hm_malloc(size));
    held += hm_usable_size(blocks.back());
    EXPECT_EQ(stats_now().allocated, held);
    expect_consistent(stats_now());
  }
  blocks.push_back(hm_local_alloc(100));
  EXPECT_EQ(stats_now().allocated, held + 112);
  blocks.push_back(hm_malloc(5 * kMiB));
  EXPECT_GE(stats_now().allocated, held + 5 * kMiB);
  expect_consistent(stats_now());
  free_all(blocks);
  EXPECT_EQ(stats_now().allocated, 0u);
  EXPECT_GT(stats_now().cached, 0u);
  expect_consistent(stats_now());
  hm_collect();
  EXPECT_EQ(stats_now().cached, 0u);
  EXPECT_EQ(stats_now().active, 0u);
}

TEST(Stats, WhatGoesBackIsCounted) {
  auto blocks = allocate_many(4000, 1000);
  hm_stats high = stats_now();
  free_all(blocks);
  hm_collect();
  EXPECT_GT(stats_now().purged, high.purged);
  EXPECT_GT(stats_now().os_calls, high.os_calls);
  EXPECT_EQ(stats_now().peak_active, high.peak_active);
}

TEST(Stats, LiveHeapsAreThoseOfLiveThreads) {
  hm_free(hm_malloc(1));
  on_thread([] {
    hm_free(hm_malloc(1));
    EXPECT_EQ(stats_now().live_heaps, 2u);
  });
  EXPECT_EQ(stats_now().live_heaps, 1u);
}

// Whoever reads the pipe may be a thread that has no heap yet.
TEST(Stats, AFullPipeKeepsNobodyFromAHeap) {
  constexpr unsigned kThreads = 100;
  std::barrier all_have_one(kThreads);
  on_threads(kThreads, [&](unsigned) {
    hm_free(hm_malloc(10));
    all_have_one.arrive_and_wait();
  });
  std::vector<std::jthread> others(kThreads);  // or the reader would inherit a heap
  std::barrier all_have_them(kThreads + 1), done(kThreads + 1);
  for (std::jthread& other : others)
    other = std::jthread([&] {
      hm_free(hm_malloc(10));
      all_have_them.arrive_and_wait();
      done.arrive_and_wait();
    });
  all_have_them.arrive_and_wait();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  size_t read_bytes = 0;
  std::jthread reader([&] {
    for (int left = 0; left < 4096;) ioctl(ends[0], FIONREAD, &left), usleep(100);
    hm_free(hm_malloc(10));
    char text[1000];
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;) read_bytes += static_cast<size_t>(n);
  });
  hm_stats_print(ends[1], 1);
  close(ends[1]);
  reader.join();
  done.arrive_and_wait();
  EXPECT_GT(read_bytes, 4096u);
}

TEST(Stats, WhatAFreeGivesBackIsCounted) {
  hm_free(hm_malloc(100 * kMiB));
  EXPECT_GE(stats_now().purged, 100 * kMiB);
}

// It serves threads that have ended.
TEST(Stats, TheHeapOfLateDestructorsIsNotLive) {
  hm_free(hm_malloc(10));
  hm_stats before, after;
  hm_stats_get(&before);
  registry.with_fallback([](ThreadHeap& heap) { return heap.refill(class_of(10)); });
  hm_stats_get(&after);
  EXPECT_EQ(after.heaps, before.heaps + 1);
  EXPECT_EQ(after.live_heaps, before.live_heaps);
}

TEST(Stats, JsonIsJson) {
  EXPECT_TRUE(is_json(printed_stats(HM_STATS_JSON)));
  for (size_t size : {10u, 5000u, 100000u, 3u << 20}) allocate_many(1, size);
  hm_free(hm_local_alloc(10));
  on_thread([] { hm_free(hm_malloc(100)); });
  std::string text = printed_stats(HM_STATS_JSON);
  EXPECT_TRUE(is_json(text)) << text;
  for (const char* name : {"version", "allocated", "active", "resident", "retained", "mapped", "metadata", "classes",
                           "threads", "cross_thread_frees", "bound"})
    EXPECT_NE(text.find("\"" + std::string(name) + "\":"), std::string::npos) << name;
}

TEST(Stats, OpenMetricsIsLinesOfThreeKinds) {
  allocate_many(10, 1000);
  on_thread([] { hm_free(hm_malloc(100)); });
  std::string text = printed_stats(HM_STATS_OPENMETRICS);
  const std::regex kLine(R"(# (TYPE hmalloc_\w+ (gauge|counter)|UNIT hmalloc_\w+_bytes bytes|HELP hmalloc_\w+ [^\\]+)"
                         R"(|EOF)|hmalloc_\w+\{((class|heap)="\d+",)?pid="\d+",program="hm_unit"\} \d+)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(std::regex_match(line, kLine)) << line;
  std::string whose = "pid=\"" + std::to_string(getpid()) + "\",program=\"hm_unit\"} ";
  EXPECT_NE(text.find("hmalloc_class_held_blocks{class=\"1024\"," + whose), std::string::npos) << text;
  EXPECT_NE(text.find("hmalloc_allocated_bytes{" + whose + "10240\n"), std::string::npos) << text;
  EXPECT_NE(text.find("hmalloc_heap_refills_total{heap=\"1\"," + whose), std::string::npos) << text;
  EXPECT_NE(text.find("hmalloc_purged_bytes_total{" + whose), std::string::npos) << text;
}

// Whoever stores series would have them for ever.
TEST(Stats, OpenMetricsHasNoMoreThan64Heaps) {
  std::barrier all_have_one(100);
  on_threads(100, [&](unsigned) {
    hm_free(hm_malloc(10));
    all_have_one.arrive_and_wait();
  });
  std::string text = printed_stats(HM_STATS_OPENMETRICS), part = "hmalloc_heap_refills_total{";
  size_t series = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++series;
  EXPECT_EQ(series, 64u);
}

TEST(Stats, TextNamesEveryGaugeAndClass) {
  allocate_many(1, 1000);
  std::string text = printed_stats(HM_STATS_TEXT);
  for (const char* name : {"allocated:", "active:", "resident:", "retained:", "mapped:", "metadata:", "1024"})
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
}
