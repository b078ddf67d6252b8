#include "introspect/stats.h"

#include <unistd.h>

#include <string>

#include "support.h"

using namespace hm;

namespace {

hm_stats now() {
  hm_stats stats;
  hm_stats_get(&stats);
  return stats;
}

std::string printed(bool json) {
  FILE* file = tmpfile();
  hm_stats_print(fileno(file), json);
  std::string text(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fileno(file), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  fclose(file);
  return text;
}

// A reader of JSON that only says whether the text is some.
class Json {
 public:
  explicit Json(const std::string& text) : at_(text.c_str()) {}
  bool is_whole() { return value() && (space(), *at_ == '\0'); }

 private:
  void space() { at_ += strspn(at_, " \t\r\n"); }
  bool eat(char c) { return space(), *at_ == c && ++at_; }
  bool string() {
    if (!eat('"')) return false;
    while (*at_ != '"' && *at_ >= ' ') at_ += *at_ == '\\' ? 2 : 1;
    return eat('"');
  }
  bool word(const char* text) { return strncmp(at_, text, strlen(text)) == 0 && (at_ += strlen(text)); }
  bool number() {
    size_t digits = strspn(at_, "0123456789");
    return (at_ += digits), digits > 0;
  }
  bool list(char open, char close, bool named) {
    if (!eat(open)) return false;
    if (eat(close)) return true;
    do
      if ((named && !(string() && eat(':'))) || !value()) return false;
    while (eat(','));
    return eat(close);
  }
  bool value() {
    space();
    switch (*at_) {
      case '{': return list('{', '}', true);
      case '[': return list('[', ']', false);
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      default: return number();
    }
  }
  const char* at_;
};

void expect_consistent(const hm_stats& s) {
  EXPECT_LE(s.allocated, s.active);
  EXPECT_LE(s.active, s.resident);
  EXPECT_LE(s.active, s.mapped);
  EXPECT_LE(s.active, s.peak_active);
  EXPECT_LE(s.retained, s.mapped);
  EXPECT_LE(s.live_heaps, s.heaps);
  EXPECT_GT(s.bound, 0u);
}

}  // namespace

TEST(Stats, AllocatedCountsWhatTheProgramHolds) {
  std::vector<void*> blocks;
  size_t small = 0;
  for (size_t size : {16, 100, 1000, 5000, 20000}) {
    blocks.push_back(hm_malloc(size));
    small += hm_usable_size(blocks.back());
  }
  EXPECT_EQ(now().allocated, small);
  expect_consistent(now());
  blocks.push_back(hm_malloc(100000));
  size_t run = hm_usable_size(blocks.back());
  EXPECT_EQ(now().allocated, small + run);
  void* local = hm_local_alloc(100);
  EXPECT_EQ(now().allocated, small + run + 112);
  hm_local_free(local);
  void* huge = hm_malloc(5 * kMiB);
  EXPECT_GE(now().allocated, small + 5 * kMiB);
  expect_consistent(now());
  hm_free(huge);
  for (void* block : blocks) hm_free(block);
  EXPECT_EQ(now().allocated, 0u);
  EXPECT_GT(now().cached, 0u);
  expect_consistent(now());
  hm_collect();
  EXPECT_EQ(now().cached, 0u);
  EXPECT_EQ(now().active, 0u);
}

TEST(Stats, ActiveAndPeakFollowTheProgram) {
  hm_collect();
  std::vector<void*> blocks;
  for (int i = 0; i < 4000; ++i) blocks.push_back(hm_malloc(1000));
  hm_stats high = now();
  EXPECT_GE(high.active, 4000u * 1000);
  expect_consistent(high);
  for (void* block : blocks) hm_free(block);
  hm_collect();
  hm_stats low = now();
  EXPECT_EQ(low.allocated, 0u);
  EXPECT_EQ(low.peak_active, high.peak_active);
  EXPECT_GT(low.purged, high.purged);
  EXPECT_GT(low.os_calls, high.os_calls);
}

TEST(Stats, CrossThreadFreesAreCounted) {
  std::vector<void*> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(hm_malloc(64));
  uint64_t before = now().cross_thread_frees;
  test::on_thread([&] {
    hm_free(hm_malloc(64));
    for (void* block : blocks) hm_free(block);
  });
  hm_collect();
  EXPECT_GT(now().cross_thread_frees, before + 3000);
  EXPECT_LE(now().cross_thread_frees, before + 5001);
}

TEST(Stats, HeapsAreCounted) {
  hm_free(hm_malloc(1));
  hm_stats before = now();
  test::on_thread([&] {
    hm_free(hm_malloc(1));
    EXPECT_EQ(now().live_heaps, before.live_heaps + 1);
  });
  EXPECT_EQ(now().live_heaps, before.live_heaps);
}

TEST(Stats, JsonIsJson) {
  EXPECT_TRUE(Json(printed(true)).is_whole());
  void* blocks[] = {hm_malloc(10), hm_malloc(5000), hm_malloc(100000), hm_malloc(3 * kMiB), hm_local_alloc(10)};
  test::on_thread([] { hm_free(hm_malloc(100)); });
  std::string text = printed(true);
  EXPECT_TRUE(Json(text).is_whole()) << text;
  for (const char* name : {"version", "allocated", "active", "resident", "retained", "mapped", "metadata", "classes",
                           "threads", "cross_thread_frees", "bound"})
    EXPECT_NE(text.find(std::string("\"").append(name).append("\":")), std::string::npos) << name;
  for (void* block : blocks) hm_free(block);
}

TEST(Stats, TextNamesEveryGaugeAndClass) {
  void* block = hm_malloc(1000);
  std::string text = printed(false);
  for (const char* name : {"allocated:", "active:", "resident:", "retained:", "mapped:", "metadata:", "1024"})
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
  hm_free(block);
}

TEST(Stats, GatheringDisturbsNobody) {
  std::atomic<bool> done{false};
  std::thread worker([&] {
    std::mt19937 random(test::kSeed);
    while (!done.load()) {
      void* block = hm_malloc(random() % 300000);
      void* local = hm_local_alloc(random() % 4000);
      block = hm_realloc(block, random() % 300000 + 1);
      hm_free(block);
      hm_local_free(local);
    }
  });
  for (int i = 0; i < 200; ++i) now();
  done.store(true);
  worker.join();
}
