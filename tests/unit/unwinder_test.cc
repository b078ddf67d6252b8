// Stacks as the library takes them, against those of glibc's backtrace().
#include "profile/unwinder.h"

#include <dlfcn.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <random>

#include "profile/samples.h"
#include "profile/stack_taker.h"
#include "support.h"

using namespace hm;
using namespace hm::test;

#if defined(__x86_64__) && defined(DLFO_EH_SEGMENT_TYPE)

namespace {

// Not that of this program, which stands before it (lives_test.cc), nor a sanitizer's.
const auto backtrace_of_libc =
    reinterpret_cast<int (*)(void**, int)>(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "backtrace"));

struct Stacks : testing::Test {
  Stacks() {
    void* frame;
    backtrace_of_libc(&frame, 1);  // loads libgcc_s
    unwinder.prepare();
  }
};

size_t walk(uintptr_t* frames) { return unwinder.walk(frames, kMostFrames); }

// Both are called in here, so that only the innermost frames differ.  None: where another thread has its turn.
enum Answer : int { kSame, kNone, kAnother };
[[gnu::noinline]] Answer compare() {
  uintptr_t walked[kMostFrames], told[kMostFrames];
  size_t n = unwinder.walk(walked, kMostFrames);
  auto most = static_cast<size_t>(backtrace_of_libc(reinterpret_cast<void**>(told), kMostFrames));
  if (n == 0) return kNone;
  return n > 1 && n == most && std::equal(walked + 1, walked + n, told + 1) ? kSame : kAnother;
}
bool agree() { return compare() == kSame; }

// A stack of frames of many kinds, drawn by lot; `then` runs at its end.
struct Pile {
  std::mt19937 random;
  const std::function<void()>& then;

  [[gnu::noinline]] void go(int depth) {
    if (depth == 0) return then();
    switch (random() % 6) {
      case 0: return plain(depth - 1);
      case 1: return with_room(depth - 1, random() % 3000);
      case 2: return large(depth - 1);
      case 3: return from_qsort(depth - 1);
      case 4: return from_catch(depth - 1);
      default: return std::function<void()>([this, depth] { go(depth - 1); })();
    }
  }
  [[gnu::noinline]] void plain(int depth) {
    go(depth);
    asm("");  // so that it is no tail call
  }
  [[gnu::noinline]] void with_room(int depth, size_t bytes) {
    auto* room = static_cast<volatile char*>(__builtin_alloca(bytes + 1));
    room[0] = 1;
    go(depth);
    room[bytes] = 1;
  }
  [[gnu::noinline]] void large(int depth) {
    char room[5000];
    asm volatile("" : : "r"(room) : "memory");
    go(depth);
    asm volatile("" : : "r"(room) : "memory");
  }
  [[gnu::noinline]] void from_qsort(int depth) {
    struct Context {
      Pile* pile;
      int depth;
    } context{this, depth};
    int two[] = {2, 1};
    qsort_r(
        two, 2, sizeof(int),
        [](const void*, const void*, void* in) {
          auto& is = *static_cast<Context*>(in);
          is.pile->go(is.depth);
          return 0;
        },
        &context);
  }
  [[gnu::noinline]] void from_catch(int depth) {
    try {
      throw depth;
    } catch (int thrown) { go(thrown); }
  }
};

Answer compare_at(unsigned seed) {
  Answer answer = kAnother;
  std::function<void()> ask = [&] { answer = compare(); };
  Pile pile{std::mt19937(seed), ask};
  pile.go(static_cast<int>(seed % 12));
  return answer;
}

std::atomic<size_t> walked_in_handler{99};

}  // namespace

TEST_F(Stacks, AreThoseOfBacktrace) {
  for (unsigned seed = 1; seed < 2000; ++seed) EXPECT_EQ(compare_at(seed), kSame) << seed;
}

TEST_F(Stacks, AreThoseOfBacktraceInManyThreads) {
  std::atomic<int> same{0};
  on_threads(4, [&](unsigned thread) {
    for (unsigned seed = 1; seed < 300; ++seed) {
      Answer answer = compare_at(seed * 4 + thread);
      EXPECT_NE(answer, kAnother) << seed;
      same += answer == kSame;
    }
  });
  EXPECT_GT(same, 0);
}

// The return address of a call that does not return may be in the next function.
extern "C" [[noreturn]] void hm_test_call_at_the_end(void (*call)());
asm(R"(
  .pushsection .text
  .type hm_test_call_at_the_end, @function
hm_test_call_at_the_end:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  call *%rdi
  .cfi_endproc
hm_test_next:
  .cfi_startproc
  ud2
  .cfi_endproc
  .popsection
)");

TEST_F(Stacks, GoOnWhereACallIsTheLastOfItsFunction) {
  try {
    hm_test_call_at_the_end([] { throw agree(); });
  } catch (bool agreed) { EXPECT_TRUE(agreed); }
}

TEST_F(Stacks, EndWhereThereIsNoMoreRoom) {
  std::function<void(size_t)> down = [&](size_t depth) {
    if (depth > 0) return down(depth - 1);
    uintptr_t few[3], all[kMostFrames];
    EXPECT_EQ(unwinder.walk(few, 3), 3u);
    EXPECT_EQ(walk(all), kMostFrames);
  };
  down(kMostFrames);
}

// What stays are the addresses in the code, so what the tables say of them must be read again; or that of the tables, so that
// where an entry was there may be nothing.
TEST_F(Stacks, FollowAnObjectThatTookAnothersPlace) {
  const char* pairs[][2] = {
      {"small_frame", "large_frame"}, {"late_small_frame", "late_large_frame"}, {"among_others", "small_frame"}};
  for (auto& pair : pairs) {
    std::vector<void*> places;
    for (const char* name : {pair[0], pair[1], pair[0]}) {
      void* object = dlopen((HM_PLUGINS + std::string(name) + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(object, nullptr) << dlerror();
      places.push_back(dlsym(object, "call_from_a_frame"));
      auto* call = reinterpret_cast<void* (*)(void* (*)(void*), void*)>(places.back());
      for (int i = 0; i < 3; ++i) EXPECT_EQ(call([](void* in) { return agree() ? in : nullptr; }, this), this) << name;
      dlclose(object);
    }
    if (kThreadSanitizer) continue;  // it keeps objects loaded
    EXPECT_EQ(places[0], places[1]) << pair[1] << ": this shows nothing, then";
  }
}

TEST_F(Stacks, OfSignalsAreLeftToBacktrace) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {
    uintptr_t frames[kMostFrames];
    walked_in_handler = walk(frames);
  };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(walked_in_handler, 0u);
}

TEST_F(Stacks, OfCodeWithoutTablesAreLeftToBacktrace) {
  size_t walked = 99;
  call_without_tables([&] {
    uintptr_t frames[kMostFrames];
    walked = walk(frames);
  });
  EXPECT_EQ(walked, 0u);
}

TEST_F(Stacks, AChildOfAForkTakesThem) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      uintptr_t frames[kMostFrames];
      while (!stop) walk(frames);
    });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(child_succeeds([] { return agree(); }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

#else

TEST(Stacks, AreLeftToBacktrace) {
  uintptr_t frame;
  unwinder.prepare();
  EXPECT_EQ(unwinder.walk(&frame, 1), 0u);
}

#endif
