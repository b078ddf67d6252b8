// How the lives of sampled blocks end, against a program that knows it.
#include "profile/lives.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include <memory>
#include <utility>

#include "pages/options.h"
#include "pprof_reader.h"
#include "profile/mappings.h"
#include "profile/sampler.h"
#include "profile/samples.h"

using namespace hm;
using namespace hm::test;

// What happens while the next stack is taken by backtrace().
static std::function<void()> meanwhile;

// The program's own comes before the C library's.
extern "C" int backtrace(void** buffer, int size) {
  static auto* real = reinterpret_cast<int (*)(void**, int)>(dlsym(RTLD_NEXT, "backtrace"));
  if (meanwhile) std::exchange(meanwhile, nullptr)();
  return real(buffer, size);
}

namespace {

constexpr size_t kRate = 8 * kKiB;

struct LivesOfBlocks : NothingIsLost {
  LivesOfBlocks() {
    options.profile_frees = 1;
    hm_profile_start(kRate);
  }
  ~LivesOfBlocks() override { hm_profile_stop(); }
};

template <int kWho>
[[gnu::noinline, gnu::aligned(64)]] void release(void* block) {
  hm_free(block);
  asm volatile("" : : "i"(kWho) : "memory");
}
using Release = void (*)(void*);

struct Ended {
  double objects = 0, bytes = 0;
  uint64_t samples = 0;
};

// Of the blocks allocated here: those whose lives fulfil `is`.
Ended ended(const Parsed& parsed, Site where, const std::function<bool(const Parsed::Sample&)>& is) {
  Ended sum;
  auto* start = reinterpret_cast<const char*>(where);
  for (const Parsed::Sample& sample : parsed.samples) {
    if (!sample.is_life() || !sample.lies_in(sample.locations, start, start + 64) || !is(sample)) continue;
    EXPECT_EQ(sample.values.size(), 7u);
    sum.objects += double(sample.values[4]), sum.bytes += double(sample.values[5]), sum.samples += sample.values[6];
  }
  return sum;
}
Ended ended(const Parsed& parsed, Site where) {
  return ended(parsed, where, [](const Parsed::Sample&) { return true; });
}
bool is_freed_at(const Parsed::Sample& sample, Release where) {
  auto* start = reinterpret_cast<const char*>(where);
  auto found = sample.numbers.find("freed_at");
  return found != sample.numbers.end() && sample.lies_in(found->second, start, start + 64);
}
[[gnu::noinline]] void at_depth(int n) {
  if (n > 0) at_depth(n - 1);
  else allocate_and_free(50, 300);
  asm volatile("" : : : "memory");
}
std::string named(const char* name) { return std::string(name) + " (" + std::to_string(gettid()) + ")"; }

}  // namespace

TEST(AgeClass, IsAPowerOfTen) {
  EXPECT_EQ(age_class(0), 0u);
  for (uint32_t c = 1; c < kAges; ++c) {
    EXPECT_EQ(least_age(c), uint64_t(std::pow(10, c + 2)));
    EXPECT_EQ(age_class(least_age(c) - 1), c - 1);
    EXPECT_EQ(age_class(least_age(c)), c);
  }
  EXPECT_EQ(age_class(UINT64_MAX), kAges - 1);
}

TEST(NumberedRows, FindWhatWasAdded) {
  NumberedRows<SampledThread> rows;
  auto find = [&](uint32_t id) { return rows.find(id % 7, [=](const SampledThread& row) { return row.id == id; }); };
  constexpr uint32_t kRows = 10'000;  // more than the first index has room for
  EXPECT_EQ(find(1), 0u);
  for (uint32_t i = 1; i <= kRows; ++i) ASSERT_EQ(rows.add({i % 7, i, false, {}}, kRows), i);
  EXPECT_EQ(rows.add({0, 0, false, {}}, kRows), 0u) << "there are as many as there may be";
  for (uint32_t i = 1; i <= kRows; ++i) ASSERT_EQ(find(i), i);
  EXPECT_EQ(find(kRows + 1), 0u);
  MappedArray<SampledThread> copy;
  ASSERT_TRUE(rows.copy_to(copy));
  EXPECT_EQ(copy[kRows].id, kRows);
  copy.clear();
}

TEST_F(LivesOfBlocks, SayWhoAllocatedAndWhoFreed) {
  constexpr size_t kBlocks = 40'000, kSize = 200;
  size_t rounded = size_of(class_of(kSize));
  std::vector<void*> blocks(kBlocks);
  std::string feeder, eater, idle = named("idle");
  pthread_setname_np(pthread_self(), "idle");
  on_thread([&] {
    pthread_setname_np(pthread_self(), "feeder");
    feeder = named("feeder");
    for (void*& block : blocks) block = site<1>(hm_malloc, kSize);
    for (size_t i = 0; i < kBlocks / 4; ++i) release<1>(blocks[i]);
  });
  on_thread([&] {
    pthread_setname_np(pthread_self(), "eater");
    eater = named("eater");
    for (size_t i = kBlocks / 4; i < kBlocks; ++i) release<2>(blocks[i]);
  });
  Parsed parsed = dump();
  auto by = [&](const std::string& from, const std::string& to) {
    return ended(parsed, site<1>, [&](const Parsed::Sample& sample) {
      return sample.texts.at("allocated_by") == from && sample.texts.at("freed_by") == to;
    });
  };
  double own = double(kBlocks / 4 * rounded), handed = double(kBlocks * 3 / 4 * rounded);
  EXPECT_NEAR(by(feeder, feeder).bytes, own, slack(own, kRate));
  EXPECT_NEAR(by(feeder, eater).bytes, handed, slack(handed, kRate));
  EXPECT_NEAR(by(feeder, eater).objects, handed / double(rounded), slack(handed, kRate) / double(rounded));
  EXPECT_NEAR(double(by(feeder, eater).samples), handed / kRate, slack(handed, kRate) / kRate);
  EXPECT_EQ(by(eater, eater).samples + by(eater, feeder).samples + by(idle, eater).samples, 0u);
  Ended at_first = ended(parsed, site<1>, [](const Parsed::Sample& sample) { return is_freed_at(sample, release<1>); });
  Ended at_second = ended(parsed, site<1>, [](const Parsed::Sample& sample) { return is_freed_at(sample, release<2>); });
  EXPECT_EQ(at_first.samples, by(feeder, feeder).samples);
  EXPECT_EQ(at_second.samples, by(feeder, eater).samples);
  EXPECT_TRUE(samples.is_valid());
}

// They share rows by their names then, but who freed what it allocated itself is known all the same.
TEST_F(LivesOfBlocks, OfMoreThreadsThanHaveNumbers) {
  hm_profile_start(1);
  constexpr unsigned kThreads = kThreadsByNumber + 100;
  for (unsigned i = 0; i < kThreads; ++i) {
    void* left = nullptr;
    auto body = [&](const std::function<void()>& work) {
      on_thread([&] {
        pthread_setname_np(pthread_self(), "many");
        work();
      });
    };
    body([&] {
      release<9>(site<9>(hm_malloc, 100));
      left = site<9>(hm_malloc, 100);
    });
    body([&] { release<9>(left); });
  }
  Parsed parsed = dump();
  auto is_own = [](const Parsed::Sample& sample) { return sample.texts.at("allocated_by") == sample.texts.at("freed_by"); };
  auto shares = [](const Parsed::Sample& sample) { return sample.texts.at("allocated_by") == "many (0)"; };
  auto another = [](const Parsed::Sample& sample) { return sample.texts.at("freed_by") == "another of many (0)"; };
  EXPECT_EQ(ended(parsed, site<9>, is_own).samples, kThreads);
  EXPECT_EQ(ended(parsed, site<9>).samples, 2 * kThreads);
  EXPECT_GE(ended(parsed, site<9>, shares).samples, 2 * 100u);
  EXPECT_GE(ended(parsed, site<9>, another).samples, 100u);
}

TEST_F(LivesOfBlocks, SayHowOldTheyWere) {
  hm_profile_start(1);
  std::vector<void*> old = std::vector<void*>(50), young(50);
  for (void*& block : old) block = site<2>(hm_malloc, 300);
  usleep(20'000);
  for (void* block : old) release<3>(block);
  Parsed parsed = dump();
  Ended late =
      ended(parsed, site<2>, [](const Parsed::Sample& sample) { return sample.numbers.at("age").at(0) >= 10'000'000; });
  EXPECT_EQ(late.samples, 50u);
  EXPECT_EQ(ended(parsed, site<2>).samples, 50u);
}

TEST_F(LivesOfBlocks, OfBlocksOfAllKinds) {
  for (size_t size : {size_t{16}, size_t{32'768}, size_t{100'000}, 5 * kMiB}) {
    hm_profile_start(1);
    Parsed before = dump();
    for (int i = 0; i < 40; ++i) release<4>(site<3>(hm_malloc, size));
    Parsed now = dump();
    EXPECT_EQ(ended(now, site<3>).samples - ended(before, site<3>).samples, 40u) << size;
    EXPECT_NEAR(ended(now, site<3>).bytes - ended(before, site<3>).bytes, 40.0 * double(size), 40) << size;
  }
  Parsed parsed = dump();
  EXPECT_EQ(ended(parsed, site<3>, [](const Parsed::Sample& sample) { return is_freed_at(sample, release<4>); }).samples,
            ended(parsed, site<3>).samples);
}

TEST_F(LivesOfBlocks, AnotherSizeOfALargeBlockIsAnEnd) {
  hm_profile_start(1);
  void* block = hm_realloc(site<4>(hm_malloc, 2 * kMiB), 3 * kMiB);
  EXPECT_EQ(ended(dump(), site<4>).samples, 1u);
  hm_free(block);
}

TEST_F(LivesOfBlocks, AreNotAskedForWithoutTheOption) {
  options.profile_frees = 0;
  hm_profile_start(1);
  release<5>(site<5>(hm_malloc, 100));
  Parsed parsed = dump();
  EXPECT_EQ(parsed.types, 4u);
  for (const Parsed::Sample& sample : parsed.samples) EXPECT_FALSE(sample.is_life());
}

// The unwinder holds a lock then that it would want again; the loader has unmapped what it frees the description of.
TEST_F(LivesOfBlocks, NoStackIsTakenWhereTheUnwinderOrTheLoaderFrees) {
  void* unwinder = dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
  void* loader = nullptr;  // its functions have other libraries' names, too
  auto mapping = std::make_unique<Mapping>();
  for (Mappings all; all.next(*mapping);)
    if (strstr(mapping->file, "/ld-") != nullptr) loader = reinterpret_cast<void*>(mapping->start);
  ASSERT_TRUE(unwinder != nullptr && loader != nullptr);
  void* block = hm_malloc(10);
  auto without_a_stack = [] {
    uint64_t n = 0;
    for (const Parsed::Sample& sample : dump().samples)
      n += sample.is_life() && sample.numbers.count("freed_at") == 0 ? sample.values[6] : 0;
    return n;
  };
  for (void* by : {unwinder, loader, reinterpret_cast<void*>(&named)}) {
    uint64_t before = without_a_stack();
    ASSERT_TRUE(samples.add(block, 10, 1, nullptr));
    samples.remove(block, static_cast<char*>(by) + 8);
    EXPECT_EQ(without_a_stack() - before, by == unwinder || by == loader ? 1u : 0u);
  }
  hm_free(block);
}

TEST_F(LivesOfBlocks, NamesAreWrittenAsUtf8) {
  hm_profile_start(1);
  struct Name {
    const char *given, *written;
  };
  for (Name name : {Name{"plain", "plain"}, Name{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"}, Name{"cut\xc3", "cut?"},
                    Name{"\x80\xff", "??"}, Name{"\xed\xa0\x80", "???"}, Name{"\xe0\x80\x80", "???"},
                    Name{"\xf0\x9f\x90\x98", "\xf0\x9f\x90\x98"}}) {
    std::string expected;
    on_thread([&] {
      pthread_setname_np(pthread_self(), name.given);
      expected = named(name.written);
      release<6>(site<6>(hm_malloc, 100));
    });
    Parsed parsed = dump();
    EXPECT_EQ(ended(parsed, site<6>, [&](const Parsed::Sample& sample) { return sample.texts.at("freed_by") == expected; })
                  .samples,
              1u)
        << expected;
  }
}

// What a child has of its parent was handed over by nobody.
TEST_F(LivesOfBlocks, OfAChildAreThoseOfItsOwnBlocks) {
  hm_profile_start(1);
  void* block = site<7>(hm_malloc, 100);
  EXPECT_TRUE(child_succeeds([&] {
    release<7>(block);
    release<7>(site<7>(hm_malloc, 100));
    Parsed parsed = dump();
    std::set<std::string> from, to;
    ended(parsed, site<7>, [&](const Parsed::Sample& sample) {
      from.insert(sample.texts.at("allocated_by")), to.insert(sample.texts.at("freed_by"));
      return true;
    });
    return ended(parsed, site<7>).samples == 1 && from == to && from.size() == 1 && samples.is_valid();
  }));
  hm_free(block);
}

// In the child the tables may begin anew, at any point of what the parent's threads were doing.
TEST_F(LivesOfBlocks, AreWholeInChildrenWhateverOthersDid) {
  hm_profile_start(256);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int n = 0; !stop; ++n) at_depth(n % 40);
    });
  usleep(50'000);  // so that there are many stacks, more than a child that begins anew will have
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(child_succeeds([] {
      free_all(allocate_many(300, 300));
      Parsed parsed = dump();
      bool whole = samples.is_valid() && parsed.last_field == 9;
      for (const Parsed::Sample& sample : parsed.samples)
        whole = whole && sample.values.size() == 7 && (!sample.is_life() || sample.texts.size() == 2);
      return whole;
    }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

using LivesDeathTest = LivesOfBlocks;

// For as long as a stack takes, nothing but the byte says that the block is being freed.
TEST_F(LivesDeathTest, AFreeWhileTheStackIsTakenIsADoubleFree) {
  for (size_t size : {size_t{100}, size_t{100'000}})
    EXPECT_DEATH(
        {
          hm_profile_start(1);
          void* block = hm_malloc(size);
          meanwhile = [=] {
            on_thread([=] {
              hm_free(hm_malloc(100));  // its heap would keep the block
              hm_free(block);
            });
          };
          call_without_tables([=] { hm_free(block); });
        },
        "hmalloc: .*double free");
}

TEST_F(LivesOfBlocks, AForkWhileTheStackIsTakenEndsWell) {
  hm_profile_start(1);
  void* block = site<8>(hm_malloc, 100);
  pid_t child = -1;
  meanwhile = [&] { child = fork(); };
  call_without_tables([=] { release<8>(block); });
  bool whole = samples.is_valid() && ended(dump(), site<8>).samples == 1;
  if (child == 0) _exit(whole ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(whole);
}
