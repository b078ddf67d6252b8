// Every gauge against a model: a program that knows what it holds, in each kind of block, by each kind of thread.
#include <hmalloc/hmalloc_local.h>
#include <pthread.h>

#include <atomic>

#include "base/size_classes.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

namespace {

struct Block {
  const char* name;
  size_t size;
  void* (*allocate)(size_t);
  void (*release)(void*);
  bool small;  // lives in a superblock, so that who frees it elsewhere is a cross-thread free
};
template <size_t kAlignment>
void* aligned(size_t size) {
  return hm_aligned_alloc(kAlignment, size);
}
constexpr Block kBlocks[] = {
    {"Tiny", 16, hm_malloc, hm_free, true},
    {"Small", 100, hm_malloc, hm_free, true},
    {"FourSlices", 20000, hm_malloc, hm_free, true},
    {"Shared", 100, hm_shared_alloc, hm_shared_free, true},
    {"AlignedToALine", 100, aligned<256>, hm_free, true},
    {"AlignedToAPage", 4000, aligned<4096>, hm_free, true},
    {"Large", 100000, hm_malloc, hm_free, false},
    {"LargeAligned", 100000, aligned<4096>, hm_free, false},
    {"Huge", 3 * kMiB, hm_malloc, hm_free, false},
    {"HugeAligned", 3 * kMiB, aligned<kChunk>, hm_free, false},
    {"Local", 100, hm_local_alloc, hm_local_free, true},
};

// Who allocates, or frees: the main thread; another that has allocated such blocks; one that has allocated others; one that
// has not allocated; one that has ended when it is looked at; one in its last destructors, after hmalloc heard of its end.
enum class Who { kMain, kOther, kOtherClass, kFreeingOnly, kEnded, kLate };
constexpr const char* kNames[] = {"Main", "Other", "OtherClass", "FreeingOnly", "Ended", "Late"};

struct Case {
  Block block;
  Who who;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.block.name; }
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.block.name) + "By" + kNames[static_cast<size_t>(info.param.who)];
}
std::vector<Case> all(std::initializer_list<Who> actors) {
  std::vector<Case> cases;
  for (const Block& block : kBlocks)
    for (Who who : actors) cases.push_back({block, who});
  return cases;
}

// Runs among the last destructors of a thread: hmalloc has heard of its end already, for its key is older.
struct Late {
  std::function<void()> body;
  static pthread_key_t key() {
    static pthread_key_t made = [] {
      pthread_key_t key;
      EXPECT_EQ(pthread_key_create(&key, [](void* late) { static_cast<Late*>(late)->body(); }), 0);
      return key;
    }();
    return made;
  }
};

// Runs the body as that thread would; `meanwhile` while a thread that lives on is still there.
void act_as(Who who, const Block& block, const std::function<void()>& body, const std::function<void()>& meanwhile) {
  if (who == Who::kMain) return body(), meanwhile();
  std::atomic<bool> done{false}, end{false};
  Late late{body};
  std::thread thread([&] {
    if (who != Who::kFreeingOnly) hm_free(hm_malloc(5000));
    if (who == Who::kOther || who == Who::kEnded) block.release(block.allocate(block.size));
    if (who == Who::kLate) {
      pthread_setspecific(Late::key(), &late);
      return;
    }
    body();
    done.store(true);
    done.notify_one();
    if (who != Who::kEnded) end.wait(false);
  });
  if (who != Who::kEnded && who != Who::kLate) {
    done.wait(false);
    meanwhile();
    end.store(true);
    end.notify_one();
    return thread.join();
  }
  thread.join();
  meanwhile();
}

// A number that only the printed statistics have.
uint64_t printed(const std::string& name) {
  std::string text = printed_stats(HM_STATS_JSON);
  size_t at = text.find("\"" + name + "\":");
  EXPECT_NE(at, std::string::npos) << name;
  return std::stoull(text.substr(at + name.size() + 3));
}

size_t resident_bytes() {
  std::FILE* file = fopen("/proc/self/statm", "r");
  size_t total = 0, pages = 0;
  EXPECT_EQ(fscanf(file, "%zu %zu", &total, &pages), 2);
  fclose(file);
  return pages * static_cast<size_t>(getpagesize());
}

class Gauges : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    hm_free(hm_malloc(1));  // this thread's heap, and the key that is older than Late's
    Late::key();
    hm_collect();
    blocks_.assign(count(), nullptr);  // its memory is not the allocator's
    blocks_.clear();
    before_ = stats_now();
    resident_before_ = resident_bytes();
  }
  void TearDown() override {
    release_all();
    hm_collect();
    EXPECT_EQ(stats_now().allocated, before_.allocated);
  }
  size_t count() const { return std::max<size_t>(16 * kMiB / block_.size / (block_.size < 50 ? 4 : 1), 4); }
  void allocate_all() {
    for (size_t i = 0; i < count(); ++i) {
      blocks_.push_back(block_.allocate(block_.size));
      memset(blocks_.back(), 1, block_.size);
    }
  }
  void release_all() {
    for (void* block : blocks_) block_.release(block);
    blocks_.clear();
  }
  size_t held() const {
    size_t bytes = 0;
    for (void* block : blocks_) bytes += hm_usable_size(block);
    return bytes;
  }
  bool is(const char* name) const { return strstr(block_.name, name) != nullptr; }
  // What a huge block has in front of it counts with it: its header, or what its alignment leaves.
  size_t huge_lead() const { return is("HugeAligned") ? kChunk + kSlice : is("Huge") ? kSlice : 0; }

  Block block_ = GetParam().block;
  Who who_ = GetParam().who;
  std::vector<void*> blocks_;
  hm_stats before_{};
  size_t resident_before_ = 0;
};

using GaugesOfAllocation = Gauges;
using GaugesOfFreeing = Gauges;
}  // namespace

TEST_P(GaugesOfAllocation, SayWhatTheProgramHolds) {
  act_as(
      who_, block_, [&] { allocate_all(); },
      [&] {
        hm_stats s = stats_now();
        size_t bytes = held();
        size_t lead = blocks_.size() * huge_lead();
        EXPECT_GE(s.allocated, before_.allocated + bytes);
        EXPECT_LE(s.allocated, before_.allocated + bytes + lead);
        EXPECT_GE(s.active, bytes);
        EXPECT_LE(s.active, bytes + lead + bytes / 4 + 4 * kMiB) << "blocks fill what they lie in";
        EXPECT_GE(s.peak_active, s.active);
        EXPECT_GE(s.resident, s.active);
        EXPECT_GE(s.mapped, s.resident - s.metadata);
        EXPECT_EQ(s.retained, s.mapped - s.active - s.metadata);
        EXPECT_EQ(printed("large_blocks"), is("Large") ? blocks_.size() : 0);
        EXPECT_EQ(printed("large_bytes"), is("Large") ? bytes : 0);
        bool fallback = who_ == Who::kLate && block_.small;  // a thread that has ended shares one last heap with its like
        EXPECT_GE(s.live_heaps, before_.live_heaps + (who_ == Who::kOther));
        EXPECT_LE(s.live_heaps, before_.live_heaps + (who_ == Who::kOther) + fallback) << "that heap may be there already";
        EXPECT_GE(s.heaps, s.live_heaps);
        EXPECT_EQ(s.cross_thread_frees, before_.cross_thread_frees);
        EXPECT_GE(s.refills, before_.refills + block_.small);
        EXPECT_LE(s.refills - before_.refills, blocks_.size() + 1);
      });
}

TEST_P(GaugesOfAllocation, ResidentIsWhatTheKernelSees) {
  if (kThreadSanitizer) GTEST_SKIP() << "the kernel sees ThreadSanitizer's shadow of it as well";
  HM_NEEDS(kCountsTheProgram);
  use_no_huge_pages();
  act_as(
      who_, block_, [&] { allocate_all(); },
      [&] {
        size_t grown = resident_bytes() - resident_before_;
        size_t said = stats_now().resident - before_.resident;
        EXPECT_GE(said + kMiB, grown);
        EXPECT_LE(said, grown + grown / 4 + 4 * kMiB + blocks_.size() * huge_lead()) << "an upper estimate";
      });
}

TEST_P(GaugesOfFreeing, SayWhatWasFreedAndByWhom) {
  // A thread without a heap reports its frees by the handful.
  size_t unreported = who_ == Who::kFreeingOnly || who_ == Who::kLate ? 63 : 0;
  allocate_all();
  size_t freed = blocks_.size(), foreign = block_.small && who_ != Who::kMain ? freed : 0;
  hm_stats before = stats_now();
  act_as(
      who_, block_,
      [&] {
        release_all();
        hm_collect();
      },
      [&] {
        hm_stats s = stats_now();
        EXPECT_EQ(s.allocated, before_.allocated);
        EXPECT_EQ(printed("large_blocks"), 0u);
        EXPECT_LE(s.active, before.active);
        EXPECT_LE(s.flushes - before.flushes, freed + kClasses);
        EXPECT_GE(s.flushes, before.flushes + (who_ == Who::kOther && block_.small));
        EXPECT_LE(s.cross_thread_frees - before.cross_thread_frees, foreign);
        EXPECT_GE(s.cross_thread_frees - before.cross_thread_frees + unreported, foreign);
      });
}

INSTANTIATE_TEST_SUITE_P(All, GaugesOfAllocation, testing::ValuesIn(all({Who::kMain, Who::kOther, Who::kEnded, Who::kLate})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, GaugesOfFreeing,
                         testing::ValuesIn(all({Who::kMain, Who::kOther, Who::kOtherClass, Who::kFreeingOnly, Who::kEnded,
                                                Who::kLate})),
                         name_of);
