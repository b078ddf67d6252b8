// A profile against a program that knows the truth.
#include "profile/profile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <hmalloc/hmalloc_local.h>

#include <barrier>

#include "pprof_reader.h"
#include "profile/sampler.h"
#include "profile/samples.h"
#include "support.h"
#include "upkeep/reclaim.h"

using namespace hm;
using namespace hm::test;

namespace {

constexpr size_t kRate = 8 * kKiB;

struct Profile : NothingIsLost {
  Profile() { hm_profile_start(kRate); }
  ~Profile() override { hm_profile_stop(); }
};

double slack(double bytes) { return test::slack(bytes, kRate); }

void* aligned(size_t size) { return hm_aligned_alloc(512, size); }
void* zeroed(size_t size) { return hm_calloc(1, size); }
void* local(size_t size) { return hm_local_alloc(size); }
void* grown(size_t size) { return hm_realloc(hm_malloc(size / 3 + 1), size); }

}  // namespace

TEST(Sampler, KnowsLogarithmAndExponential) {
  for (double u : {1.0, 0.999999, 0.75, 0.5, 0.4999, 0.1, 1e-5, 0x1p-53})
    EXPECT_NEAR(minus_log(u), -std::log(u), 1e-9 * (1 - std::log(u)));
  for (double x : {0.0, 1e-12, 1e-5, 0.01, 0.4, 0.5, 0.6, 1.0, 3.0, 20.0, 41.0, 1e9})
    EXPECT_NEAR(one_minus_exp(x), -std::expm1(-x), 1e-10 * x);
}

// Blocks that wait in caches are handed out again and again, without a refill: those are allocations too.
TEST_F(Profile, EstimatesWhatWasAllocatedAndWhatIsHeld) {
  for (size_t size : {size_t{16}, size_t{64}, size_t{100}, size_t{1000}, size_t{4368}, size_t{32768}, size_t{40000}, kMiB,
                      5 * kMiB, 16 * kMiB}) {
    size_t rounded = size <= kSmallMax ? size_of(class_of(size)) : size;
    auto n = static_cast<size_t>(std::clamp<size_t>(64 * kMiB / size, 32, 300'000));
    Parsed before = dump();
    std::vector<void*> held;
    for (size_t i = 0; i < n; ++i) {
      hm_free(site<1>(hm_malloc, size));
      if (i % 8 == 0) held.push_back(site<2>(hm_malloc, size));
    }
    Parsed now = dump();
    double passing = of(now, site<1>).bytes - of(before, site<1>).bytes,
           kept = of(now, site<2>).live_bytes - of(before, site<2>).live_bytes;
    double objects = of(now, site<2>).live_objects - of(before, site<2>).live_objects;
    EXPECT_NEAR(passing, double(n * rounded), slack(double(n * rounded))) << size;
    EXPECT_NEAR(kept, double(held.size() * rounded), slack(double(held.size() * rounded))) << size;
    EXPECT_NEAR(objects, double(held.size()), slack(double(held.size() * rounded)) / double(rounded)) << size;
    EXPECT_NEAR(of(now, site<1>).live_bytes, 0, 0.6) << size;
    free_all(held);
    EXPECT_NEAR(of(dump(), site<2>).live_bytes, 0, 0.6) << size;
    EXPECT_TRUE(samples.is_valid());
    EXPECT_TRUE(my_heap()->is_valid());
  }
}

// However it is allocated, and whoever frees it, by whatever function.
TEST_F(Profile, SeesEveryEntryPoint) {
  struct Way {
    const char* name;
    void* (*allocate)(size_t);
    void (*free)(void*, size_t);
  };
  static const Way ways[] = {
      {"malloc", hm_malloc, [](void* block, size_t) { hm_free(block); }},
      {"free_sized", hm_malloc, hm_free_sized},
      {"calloc", zeroed, hm_free_sized},
      {"aligned", aligned, [](void* block, size_t) { hm_free(block); }},
      {"shared", hm_shared_alloc, hm_shared_free_sized},
      {"local", local, hm_local_free_sized},
      {"realloc", grown, [](void* block, size_t) { EXPECT_EQ(hm_realloc(block, 0), nullptr); }},
      {"another thread", hm_malloc, [](void* block, size_t) { on_thread([=] { hm_free(block); }); }},
  };
  for (const Way& way : ways) {
    bool slow = std::string(way.name) == "another thread";
    size_t n = slow ? 300 : 40'000, size = slow ? 30'000 : 200;
    Parsed before = dump();
    std::vector<void*> blocks(n);
    for (void*& block : blocks) block = site<3>(way.allocate, size);
    Parsed now = dump();
    size_t rounded = hm_usable_size(blocks[0]);
    double held = of(now, site<3>).live_objects - of(before, site<3>).live_objects;
    double spread = slack(double(n * rounded)) / double(rounded);
    EXPECT_NEAR(held, double(n), std::string(way.name) == "realloc" ? 1.5 * spread : spread) << way.name;
    for (void* block : blocks) way.free(block, size);
    EXPECT_NEAR(of(dump(), site<3>).live_objects, 0, 0.6) << way.name;
  }
}

TEST_F(Profile, AResizedLargeBlockHasItsNewSize) {
  hm_profile_start(1);
  std::vector<void*> blocks(20);
  for (void*& block : blocks) {
    block = site<4>(hm_malloc, 2 * kMiB);
    block = hm_realloc(block, 3 * kMiB);
  }
  EXPECT_NEAR(of(dump(), site<4>).live_bytes, 0, 1) << "that allocation has ended";
  free_all(blocks);
  EXPECT_FALSE(samples.any());
}

TEST_F(Profile, EndsAndLeavesNothingBehind) {
  hm_profile_start(1);
  std::vector<void*> blocks = allocate_many(1000, 100);
  EXPECT_TRUE(samples.any());
  hm_profile_stop();
  EXPECT_FALSE(sampler.chooses(SIZE_MAX / 2));
  std::vector<void*> more = allocate_many(1000, 100);
  for (void* block : blocks) {
    EXPECT_TRUE(counting.is_on()) << "or a sized free would pass it by";
    hm_free_sized(block, 100);
  }
  EXPECT_FALSE(samples.any());
  EXPECT_FALSE(counting.is_on());
  EXPECT_EQ(hm_cache_of(100) == nullptr, kChecked);
  free_all(more);
}

// Frames that a program registers with the unwinder are kept in blocks, which it asks for while it holds a lock.
TEST_F(Profile, TakesNoStackOfTheUnwindersOwn) {
  void* unwinder = dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
  ASSERT_NE(unwinder, nullptr);
  void* block = hm_malloc(10);
  EXPECT_FALSE(samples.add(block, 10, 1, static_cast<char*>(unwinder) + 8));
  EXPECT_TRUE(samples.add(block, 10, 1, reinterpret_cast<void*>(&dump)));
  samples.remove(block, nullptr);
  hm_free(block);
}

TEST_F(Profile, ThereAreNoHandlesWhileItRuns) {
  on_thread([] {
    free_all(allocate_many(100, 256));
    EXPECT_EQ(hm_cache_of(256), nullptr) << "what it handed out would not be counted";
    EXPECT_EQ(hm_local_caches_, nullptr);
    hm_profile_stop();
    EXPECT_EQ(hm_cache_of(256) == nullptr, kChecked);
    EXPECT_EQ(hm_local_caches_ == nullptr, kChecked);
  });
}

TEST_F(Profile, AThreadThatIsStillToComeIsCounted) {
  Parsed before = dump();
  std::vector<void*> blocks(20'000);
  on_thread([&] {
    for (void*& block : blocks) block = site<5>(hm_malloc, 500);
  });
  double held = of(dump(), site<5>).live_bytes - of(before, site<5>).live_bytes, bytes = 20'000.0 * 512;
  EXPECT_NEAR(held, bytes, slack(bytes));
  free_all(blocks);
}

// What was drawn for the last one, at another rate, says nothing.
TEST_F(Profile, AnotherRateCountsAtOnce) {
  hm_profile_start(size_t{1} << 40);
  hm_free(hm_malloc(500));
  hm_profile_start(kRate);
  std::vector<void*> blocks(20'000);
  for (void*& block : blocks) block = site<9>(hm_malloc, 500);
  double held = of(dump(), site<9>).live_bytes, bytes = 20'000.0 * 512;
  EXPECT_NEAR(held, bytes, slack(bytes));
  free_all(blocks);
}

// Its heap, which it gave away and has again, was purged.
TEST_F(Profile, AThreadThatWasIdleIsCountedAgain) {
  on_thread([&] {
    hm_free(hm_malloc(500));
    hm_thread_idle();
    Parsed before = dump();
    std::vector<void*> blocks(20'000);
    for (void*& block : blocks) block = site<9>(hm_malloc, 500);
    double held = of(dump(), site<9>).live_bytes - of(before, site<9>).live_bytes, bytes = 20'000.0 * 512;
    EXPECT_NEAR(held, bytes, slack(bytes));
    free_all(blocks);
  });
}

// Their first block is as likely to be sampled as any other.
TEST_F(Profile, ThreadsThatAllocateLittleCountForNoMore) {
  Parsed before = dump();
  constexpr unsigned kThreads = 200;
  std::vector<void*> blocks(3 * size_t{kThreads});
  std::barrier all_have_a_heap(kThreads);
  on_threads(kThreads, [&](unsigned thread) {
    for (size_t k = 0; k < 3; ++k) blocks[3 * thread + k] = site<8>(hm_malloc, 64);
    all_have_a_heap.arrive_and_wait();
  });
  double held = of(dump(), site<8>).live_bytes - of(before, site<8>).live_bytes, bytes = 600.0 * 64;
  EXPECT_NEAR(held, bytes, slack(bytes));
  free_all(blocks);
}

TEST_F(Profile, AChildHasItsParents) {
  std::vector<void*> blocks(5'000);
  for (void*& block : blocks) block = site<6>(hm_malloc, 1000);
  EXPECT_TRUE(child_succeeds([&] {
    double held = of(dump(), site<6>).live_objects;
    for (int i = 0; i < 5'000; ++i) blocks.push_back(site<6>(hm_malloc, 1000));
    double more = of(dump(), site<6>).live_objects;
    free_all(blocks);
    return held > 4'000 && more > 1.6 * held && of(dump(), site<6>).live_objects < 1 && samples.is_valid();
  }));
  free_all(blocks);
}

TEST_F(Profile, ForksWhileOthersSampleEndWell) {
  hm_profile_start(256);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) allocate_and_free(200, 300);
    });
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(child_succeeds([] {
      free_all(allocate_many(500, 300));
      return samples.is_valid() && my_heap()->is_valid() && hm_profile_start(512) == 0 &&
             hm_profile_dump(open("/dev/null", O_WRONLY)) == 0;
    }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Profile, StartsAndStopsWhileOthersAllocate) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        for (size_t size : {16, 100, 1000, 5000, 50'000}) free_all(allocate_many(20, size));
        hm_free_sized(hm_malloc(64), 64);
        hm_local_free_sized(hm_local_alloc(64), 64);
      }
      EXPECT_TRUE(!have_heap() || my_heap()->is_valid());
    });
  for (int i = 0; i < 300; ++i) i % 2 == 0 ? hm_profile_stop() : void(hm_profile_start(1000));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(samples.is_valid());
}

TEST_F(Profile, IsWhatPprofReads) {
  void* block = site<7>(hm_malloc, 10 * kMiB);
  Parsed parsed = dump();
  EXPECT_EQ(parsed.strings.at(0), "");
  EXPECT_EQ(parsed.types, 4u);
  EXPECT_EQ(parsed.period, kRate);
  for (const auto& [location, mapping] : parsed.mapping_of) {
    ASSERT_EQ(parsed.mappings.count(mapping), 1u) << std::hex << location;
    EXPECT_TRUE(parsed.mappings[mapping].first <= location && location < parsed.mappings[mapping].second);
  }
  EXPECT_EQ(parsed.last_field, 9u) << "the time: a part of a profile has none";
  for (const Parsed::Sample& sample : parsed.samples) {
    EXPECT_FALSE(sample.locations.empty());
    EXPECT_EQ(sample.values.size(), 4u);
    EXPECT_FALSE(sample.is_life());
    for (uint64_t each : sample.locations) EXPECT_EQ(parsed.mapping_of.count(each), 1u);
  }
  EXPECT_EQ(of(parsed, site<7>).live_bytes, 10.0 * kMiB);
  hm_free(block);
}

TEST_F(Profile, SaysWhatKeptItFromBeingWritten) {
  int full = open("/dev/full", O_WRONLY);
  EXPECT_EQ(hm_profile_dump(full), ENOSPC);
  close(full);
  EXPECT_EQ(hm_profile_dump(-1), EBADF);
}
